"""Proof, on the live model, that what discovery found are the heads.

Six short forwards of random tokens. Gates of 1 change nothing, bit for bit. What heads write
adds up to the projection's output. What one head computes reaches its own slice of the
projection's input and no other. And a causal model's answers do not depend on later tokens.
What cannot be proven is refused with a sentence that names the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headwidget.models import hooks, tracing
from headwidget.models.altering import Altered, entered
from headwidget.models.caches import ForgetfulCache, kept_in

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

ALLOWED = {8: 1e-9, 4: 1e-4, 2: 3e-2}
"""How far sums may be off, relative to the largest number, by the bytes of a number."""
ROUNDED = 0.1
"""The same where a projection rounds its input (quantised activations)."""


def prove(model: Model) -> None:
    """Raise where the model's layers and heads are not what they are taken for."""
    with tracing.still(model.module), hooks.scoring(model):
        inputs = {
            "input_ids": tracing.random_tokens(model.module, 1),
            **tracing.no_cache(model.module),
        }
        plain = _plain(model, inputs)
        _prove_gates(model, inputs, plain)
        _prove_apart(model)
        _prove_direction(model, inputs, plain)
        model.forgets = _forgets(model, inputs, plain)


def _plain(model: Model, inputs: dict[str, Any]) -> Tensor:
    """The logits of a plain forward; notes whether the unembedding runs as a module."""
    ran: list[int] = []

    def see(args: Any, kwargs: Any, out: Any) -> None:
        if args and args[0].shape[:2] == inputs["input_ids"].shape:
            ran.append(1)

    with hooks.watch(model.unembedding, see):
        logits = hooks.logits_of(model, inputs)
    if logits.shape[1] != inputs["input_ids"].shape[1]:
        raise ValueError(
            f"{model.name} was fed {inputs['input_ids'].shape[1]} tokens and answers at "
            f"{logits.shape[1]} positions, so where an answer is predicted is not known."
        )
    if bool(logits.isnan().any()):
        raise ValueError(f"{model.name} answers with numbers that are not numbers (NaN).")
    last = torch.tensor([[0, logits.shape[1] - 2]], device=model.device)
    model.unembeds = len(ran) == 1 and torch.allclose(
        hooks.logits_at(model, inputs, last), logits[:, last[0]], rtol=1e-3, atol=1e-3
    )
    return logits


def _refusal(model: Model, layer: Layer, what: str) -> ValueError:
    return ValueError(
        f"{layer.name} ({type(layer.projection).__name__}) looks like the output projection of "
        f"{layer.heads} attention heads of {layer.head_dim}, but {what}. {model.name} is not "
        "scored, as its numbers could be wrong. If you know where its heads are, say so with "
        "hw.register(hw.Family(…))."
    )


# ---- gates of 1, and the sum of what heads write ----


def _prove_gates(model: Model, inputs: dict[str, Any], plain: Tensor) -> None:
    seen: dict[int, tuple[Tensor, Tensor]] = {}

    def note(row: int) -> Altered:
        def see(args: Any, kwargs: Any, out: Any) -> None:
            seen[row] = args[0], out

        layer = model.layers[row]
        return hooks.watch_turn(layer.projection, layer, see)

    ones = torch.ones(model.shape, dtype=torch.float32, device=model.device)
    watches = [note(row) for row in range(len(model.layers))]
    with hooks.together(hooks.gate(model, ones), *watches):
        gated = hooks.logits_of(model, inputs)
    if not torch.equal(gated, plain):
        raise _refusal(model, model.layers[0], "gates of 1 on all heads change the model's answers")
    for layer, (z, out) in zip(model.layers, (seen[row] for row in range(len(model.layers)))):
        positions = inputs["input_ids"].shape
        if not isinstance(out, Tensor) or out.shape[:-1] != positions or z.shape[:-1] != positions:
            raise _refusal(model, layer, "it does not take and give a row for each position")
        _prove_sum(model, layer, z, out)


def _prove_sum(model: Model, layer: Layer, z: Tensor, out: Tensor) -> None:
    """The heads' contributions and the bias are the projection's output."""
    nothing = layer.projection(torch.zeros_like(z))
    total = nothing.double().clone()
    for head in range(layer.heads):
        rows = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        alone = torch.zeros_like(z)
        alone[..., rows] = z[..., rows]
        total += layer.projection(alone).double() - nothing.double()
        if layer.plain:
            written = z[..., rows].double() @ layer.w_o()[head].double()
            _check_close(model, layer, written, layer.projection(alone) - nothing, out)
    _check_close(model, layer, total, out, out)


def _check_close(model: Model, layer: Layer, sums: Tensor, part: Tensor, out: Tensor) -> None:
    largest = out.double().abs().max().clamp(min=1e-30)
    off = (sums - part.double()).abs().max() / largest
    allowed = ALLOWED[out.dtype.itemsize] if layer.plain else ROUNDED
    if not bool(off <= allowed):
        raise _refusal(
            model, layer, f"what the heads write does not add up to its output ({off:.1%} off)"
        )


# ---- heads are separate ----


class _Marks(TorchFunctionMode):
    """Makes some heads' outputs NaN, other heads in each row of the batch.

    ``heads`` is (row, head), True where a head is marked.
    """

    def __init__(self, heads: Tensor) -> None:
        super().__init__()
        self.heads = heads

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rows, heads = self.heads.shape
        if tracing.attention_heads(func, out, rows) != heads:
            return out
        return tracing.marked(out, self.heads.to(out.device))


def _prove_apart(model: Model) -> None:
    """What a head computes reaches its own slice of the projection's input, all of it.

    Rows of the batch are the same prompt; in each, the outputs of other heads are NaN, so
    that a head shows itself by the rows in which its slice is NaN. Before the projection all
    rows become the first again, in which no head is marked: layers do not disturb each other.
    """
    for count in sorted({layer.heads for layer in model.layers}):
        bits = max(1, count.bit_length())
        numbers = torch.arange(1, count + 1)  # no head is marked in no row
        marks = (numbers[None] >> torch.arange(bits)[:, None] & 1).bool()
        marks = torch.cat([torch.zeros(1, count, dtype=torch.bool), marks, ~marks])
        marks = marks.to(model.device)  # (row, head)
        _prove_marks(model, marks)


def _prove_marks(model: Model, marks: Tensor) -> None:
    wrong: list[tuple[Layer, str]] = []

    def look(row: int, layer: Layer, z: Tensor) -> Tensor:
        if layer.heads != marks.shape[1]:
            return z[:1].expand_as(z).contiguous()
        lost = hooks.by_head(z, layer).isnan()  # (row, seq, head, dim)
        touched = lost.any(dim=(1, 3))
        if not torch.equal(touched.cpu(), marks.cpu()):
            mixed = "one head's output reaches other heads' slices of its input"
            unreached = "no attention reaches its input"
            wrong.append((layer, mixed if bool(touched.any()) else unreached))
        elif not torch.equal(lost.all(dim=(1, 3)), touched):
            wrong.append((layer, "a head's output is only a part of its slice"))
        return z[:1].expand_as(z).contiguous()

    rows = tracing.random_tokens(model.module, 1).expand(len(marks), -1).contiguous()
    inputs = {"input_ids": rows, **tracing.no_cache(model.module)}
    mode = Altered(lambda undo: entered(_Marks(marks), undo))
    with hooks.together(hooks.on_projections(model, look), mode):
        logits = hooks.logits_of(model, inputs)
    if wrong:
        raise _refusal(model, *wrong[0])
    if bool(logits.isnan().any()):
        what = "what the heads compute also goes past it, to the answers"
        raise _refusal(model, model.layers[-1], what)


# ---- which tokens an answer depends on ----


def _prove_direction(model: Model, inputs: dict[str, Any], plain: Tensor) -> None:
    """A causal model's answers do not depend on the tokens behind them; a masked one's do."""
    ids = inputs["input_ids"].clone()
    ids[:, -1] = tracing.random_tokens(model.module, 1, seed=1)[:, 0]
    if torch.equal(ids, inputs["input_ids"]):
        ids[:, -1] = ids[:, 0]
    other = hooks.logits_of(model, {**inputs, "input_ids": ids})
    before, after = plain[:, :-1].double(), other[:, :-1].double()
    allowed = ALLOWED[plain.dtype.itemsize] * float(before.abs().max().clamp(min=1.0))
    depends = bool((before - after).abs().max() > allowed)
    if depends and not model.encoder:
        raise ValueError(
            f"the answers of {model.name} depend on the tokens behind them, so it does not predict "
            "the next token: an answer would be seen before it is given."
        )
    if not depends and model.encoder:
        raise ValueError(
            f"the answers of {model.name} do not depend on the tokens behind them, so it does not "
            "fill in masked tokens as an encoder does."
        )


def _forgets(model: Model, inputs: dict[str, Any], plain: Tensor) -> bool:
    """Does the model take a cache that keeps nothing, and answer the same?"""
    if model.encoder:
        return False
    try:
        kept = {"input_ids": inputs["input_ids"], **kept_in(ForgetfulCache())}
        return torch.equal(model.module(**kept).logits, plain)
    except Exception:  # whatever a model's own code raises at a cache that is not its own
        return False
