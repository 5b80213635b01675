"""Proof, on the live model, that what discovery found are the heads.

Four short forwards of random tokens. Gates of 1 change nothing, bit for bit. What heads write
adds up to the projection's output. What one head computes reaches its own slice of the
projection's input and no other. And a causal model's answers do not depend on later tokens.
What cannot be proven is refused with a sentence that names the module.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headwidget.models import classifiers, hooks, tracing
from headwidget.models.altering import Altered, entered
from headwidget.models.caches import ForgetfulCache, kept_in
from headwidget.models.encoder_decoder import answered_ids

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

ALLOWED = {8: 1e-9, 4: 1e-4, 2: 3e-2}
"""How far sums may be off, relative to the largest number, by the bytes of a number."""
ANSWERS = {**ALLOWED, 8: ALLOWED[4]}
"""How far answers may be off: parts of a model (norms, routers) compute in float32, whatever the
weights are in."""
ROUNDED = 0.1
"""The same where a projection rounds its input (quantised activations)."""
RULED_OUT = 1e3
"""Logits of at least this size stand for tokens that a model rules out."""


def prove(model: Model) -> None:
    """Raise where the model's layers and heads are not what they are taken for."""
    with tracing.still(model.module), hooks.scoring(model):
        inputs = tracing.random_inputs(model.module)
        plain = _plain(model, inputs)
        _prove_gates(model, inputs, plain)
        for count in sorted({layer.heads for layer in model.layers}):
            _prove_apart(model, inputs, plain, _marks(model, count))
        if not model.classifier:
            _prove_direction(model, inputs, plain)


def _plain(model: Model, inputs: dict[str, Any]) -> Tensor:
    """The logits of a plain forward; notes whether the unembedding runs as a module."""
    if model.classifier:
        model.unembeds = False
        logits = hooks.logits_of(model, inputs)
        classifiers.check_answers(model, logits)
        return _numbers(model, logits)
    ran: list[int] = []
    fed = answered_ids(inputs).shape

    def see(args: Any, kwargs: Any, out: Any) -> None:
        if args and args[0].shape[:2] == fed:
            ran.append(1)

    with hooks.watch(model.unembedding, see):
        logits = hooks.logits_of(model, inputs)
    if logits.shape[1] != fed[1]:
        raise ValueError(
            f"{model.name} was fed {fed[1]} tokens and answers at {logits.shape[1]} positions, so "
            "where an answer is predicted is not known."
        )
    model.unembeds = len(ran) == 1
    return _numbers(model, logits)


def _numbers(model: Model, logits: Tensor) -> Tensor:
    if bool(logits.isnan().any()):
        raise ValueError(f"{model.name} answers with numbers that are not numbers (NaN).")
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
    """Gates of 1 change nothing, with a cache that keeps nothing where the model takes one."""
    model.forgets = model.family.head in ("causal", "image-text")
    if model.forgets:
        kept = {"input_ids": inputs["input_ids"], **kept_in(ForgetfulCache())}
        try:
            gated, seen = _gated(model, kept)
            model.forgets = torch.equal(gated, plain)
        except Exception:  # whatever a model's own code raises at a cache that is not its own
            model.forgets = False
    if not model.forgets:
        gated, seen = _gated(model, inputs)
        if not torch.equal(gated, plain):
            what = "gates of 1 on all heads change the model's answers"
            raise _refusal(model, model.layers[0], what)
    model.positions = int(seen[0][0].shape[1])
    for layer, (z, out) in zip(model.layers, seen):
        fed = _fed(model, layer, inputs)
        if not isinstance(out, Tensor) or out.shape[:-1] != fed or z.shape[:-1] != fed:
            raise _refusal(model, layer, "it does not take and give a row for each position")
        _prove_sum(model, layer, z, out)


def _fed(model: Model, layer: Layer, inputs: dict[str, Any]) -> torch.Size:
    """(batch, positions) of what a layer reads; the positions of a classifier are its own."""
    if model.classifier:
        return torch.Size((1, model.positions))
    source = layer.section == "encoder"
    return (inputs["input_ids"] if source else answered_ids(inputs)).shape


def _gated(model: Model, inputs: dict[str, Any]) -> tuple[Tensor, list[tuple[Tensor, Any]]]:
    """Logits under gates of 1, and what every projection takes and gives."""
    seen: dict[int, tuple[Tensor, Any]] = {}

    def note(row: int) -> Altered:
        def see(args: Any, kwargs: Any, out: Any) -> None:
            seen[row] = args[0], out

        layer = model.layers[row]
        return hooks.watch_turn(layer.projection, layer, see)

    ones = torch.ones(model.shape, dtype=torch.float32, device=model.device)
    watches = [note(row) for row in range(len(model.layers))]
    with hooks.together(hooks.gate(model, ones), *watches):
        logits = hooks.logits_of(model, inputs)
    return logits, [seen[row] for row in range(len(model.layers))]


def _prove_sum(model: Model, layer: Layer, z: Tensor, out: Tensor) -> None:
    """The heads' contributions and the bias are the projection's output."""
    each = torch.eye(layer.heads, dtype=z.dtype, device=z.device)
    alone = hooks.by_head(z[0], layer) * each[:, None, :, None]  # (head, seq, head, dim)
    fed = torch.cat([torch.zeros_like(z), alone.flatten(2)])  # (1 + head, seq, heads * dim)
    # what a projection of another kind gives may depend on the rows beside it
    rows = (
        layer.projection(fed)
        if layer.plain
        else torch.cat([layer.projection(row[None]) for row in fed])
    )
    nothing, writes = rows[:1], rows[1:] - rows[:1]  # (head, seq, width)
    _check_close(model, layer, nothing.double() + writes.double().sum(0), out, out)
    if layer.plain:
        written = torch.einsum("shd,hdw->hsw", hooks.by_head(z[0], layer), layer.w_o())
        _check_close(model, layer, written.double(), writes, out)


def _check_close(model: Model, layer: Layer, sums: Tensor, part: Tensor, out: Tensor) -> None:
    largest = out.double().abs().max().clamp(min=1e-30)
    off = (sums - part.double()).abs().max() / largest
    allowed = ALLOWED[out.dtype.itemsize] if layer.plain else ROUNDED
    if not bool(off <= allowed):
        raise _refusal(
            model, layer, f"what the heads write does not add up to its output ({off:.1%} off)"
        )


# ---- heads are separate, and which tokens an answer depends on ----


class _Marks(TorchFunctionMode):
    """Makes some heads' outputs NaN, other heads in each row of the batch.

    ``heads`` is (row, head), True where a head is marked.
    """

    def __init__(self, heads: Tensor, lengths: tuple[int, ...] | None) -> None:
        super().__init__()
        self.heads, self.lengths = heads, lengths

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rows, heads = self.heads.shape
        if tracing.attention_heads(func, out, rows, self.lengths) != heads:
            return out
        return tracing.marked(out, self.heads.to(out.device))


def _marks(model: Model, count: int) -> Tensor:
    """(row, head), True where a head's output is made NaN; nothing in the first row.

    A head shows itself by the rows in which it is marked: the bits of its number, and for
    every bit also the row of all heads without it.
    """
    bits = max(1, count.bit_length())
    numbers = torch.arange(1, count + 1)  # no head is marked in no row
    marks = (numbers[None] >> torch.arange(bits)[:, None] & 1).bool()
    nothing = torch.zeros(1, count, dtype=torch.bool)
    return torch.cat([nothing, marks, ~marks]).to(model.device)


def _prove_apart(model: Model, inputs: dict[str, Any], plain: Tensor, marks: Tensor) -> None:
    """What a head computes reaches its own slice of the projection's input, all of it.

    Rows of the batch are the same prompt; in each, the outputs of other heads are NaN, so
    that a head shows itself by the rows in which its slice is NaN. Before the projection they
    all become the first again: layers do not disturb each other.
    """
    wrong: list[tuple[Layer, str]] = []

    def look(row: int, layer: Layer, z: Tensor) -> Tensor:
        if layer.heads == marks.shape[1]:
            lost = hooks.by_head(z, layer).isnan()  # (row, seq, head, dim)
            touched = lost.any(dim=(1, 3))
            if not torch.equal(touched.cpu(), marks.cpu()):
                wrong.append((layer, _mixture(touched, marks.to(touched.device))))
            elif not torch.equal(lost.all(dim=(1, 3)), touched):
                wrong.append((layer, "a head's output is only a part of its slice"))
        return z[:1].expand_as(z).contiguous()

    rows = tracing.repeated(inputs, len(marks))
    backwards = torch.arange(plain.shape[1] - 1, -1, -1, device=model.device)
    backwards = backwards.expand(len(marks), -1)
    mode = Altered(lambda undo: entered(_Marks(marks, tracing.fed_lengths(model.module)), undo))
    with hooks.together(hooks.on_projections(model, look), mode):
        # positions in another order show whether they can be chosen before the unembedding
        logits = hooks.logits_at(model, rows, backwards).flip(1)
    if wrong:
        raise _refusal(model, *wrong[0])
    if bool(logits.isnan().any()):
        what = "what the heads compute also goes past it, to the answers"
        raise _refusal(model, model.layers[-1], what)
    if model.unembeds and _apart(logits[0], plain[0]) > ANSWERS[plain.dtype.itemsize]:
        model.unembeds = False  # from now on all positions are computed, in their order
        _prove_apart(model, inputs, plain, marks)


def _mixture(touched: Tensor, marks: Tensor) -> str:
    """What happened to heads before the projection, by the slices that marks reached.

    Both are (row, head).
    """
    if not bool(touched.any()):
        return "no attention reaches its input"
    if not bool(touched.any(dim=0).all()):
        how = "a part of it is no head's"
    elif bool(touched[marks.any(dim=1)].all()):
        how = "all are mixed, as by a norm over them"
    else:
        how = "some are added to or subtracted from others"
    return f"one head's output reaches other heads' slices of its input: {how}"


def _prove_direction(model: Model, inputs: dict[str, Any], plain: Tensor) -> None:
    """A causal model's answers do not depend on the tokens behind them; a masked one's do.

    In a batch of one, as ``plain`` is: models may treat it in a way of its own. A causal one
    gets another last token, which no answer before it may notice. A masked one gets another
    token everywhere but in front, where the answer must move.
    """
    ids = answered_ids(inputs).clone()
    changed = slice(1, None) if model.encoder else slice(-1, None)
    others = tracing.random_tokens(model.module, 1, seed=1)[:, : ids.shape[1]][:, changed]
    ids[:, changed] = torch.where(others == ids[:, changed], ids[:, :1], others)
    name = next(name for name, value in inputs.items() if value is answered_ids(inputs))
    after = hooks.logits_of(model, {**inputs, name: ids})
    before_them = slice(changed.start)
    # forwards of one shape round alike but for routers: what moves an encoder's answer is real
    allowed = ANSWERS[4 if model.encoder else plain.dtype.itemsize]
    depends = _apart(plain[0, before_them], after[0, before_them]) > allowed
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


def _apart(logits: Tensor, others: Tensor) -> float:
    """How far logits are apart, relative to the largest.

    Tokens that a model rules out, by minus infinity or a very large number, are left aside:
    beside these every difference would look small. Infinite where others are ruled out.
    """
    logits, others = logits.double(), others.double()
    kept = logits.abs() < RULED_OUT
    if not torch.equal(kept, others.abs() < RULED_OUT) or not bool(kept.any()):
        return math.inf
    largest = logits[kept].abs().max().clamp(min=1e-2)
    return float((logits[kept] - others[kept]).abs().max() / largest)
