"""One short forward of random tokens, watched: which modules ran, and where attention is.

Attention shows itself by a softmax over tokens or by ``scaled_dot_product_attention``. Its
output is marked with NaN in one of two equal rows, to see which linear map it reaches first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headwidget.models import classifiers, hooks
from headwidget.models.altering import Altered, Undo, entered
from headwidget.models.encoder_decoder import Section, is_encoder_decoder, text_config
from headwidget.models.locks import SharedLock
from headwidget.models.weights import in_width

TOKENS = 7
"""How many tokens the forward has: few, and no number of heads or widths."""
DECODED = 5
"""How many of them a decoder is fed behind an encoder: attention tells by its lengths what it
is between."""
SOFTMAX = (functional.softmax, torch.softmax, torch.Tensor.softmax)
PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
"""How attention weights that a softmax gave are multiplied with values."""


IN_PIECES = (
    "{name} cannot be scored: attention is computed in windows of the input, or over a part of it, "
    "not over all its patches or frames, so headwidget cannot follow its heads from layer to layer."
)


class Refused(ValueError):
    """A forward does what headwidget cannot follow."""


@dataclass(eq=False)
class Call:
    """One call of a module."""

    name: str
    module: nn.Module
    input: Tensor | None = None
    output: Tensor | None = None
    second: Tensor | None = None
    """The second tensor that it is given, where tensors are kept."""


@dataclass(eq=False)
class Attended:
    """One computation of attention."""

    inside: tuple[Call, ...]
    """The calls under way, the outermost first."""
    heads: int
    queries: int
    keys: int
    projection: Call | None = None
    """The first linear map that its output reaches."""
    value: Tensor | None = None
    """Where tensors are kept: the values, (head, key, dim); heads may share them."""
    output: Tensor | None = None
    """Where tensors are kept: what attention makes of them, (head, query, dim)."""

    @property
    def section(self) -> Section:
        """Which stack of an encoder-decoder model it is in.

        A decoder that attends to its own tokens and the source at once has no cross-attention.
        """
        if self.queries != DECODED:
            return "encoder"
        return "cross" if self.keys in (TOKENS, TOKENS + 1) else "decoder"  # 1 for a sink


@dataclass(eq=False)
class Trace:
    """The calls and the attention of one forward, in the order of time."""

    calls: list[Call] = field(default_factory=list)
    attended: list[Attended] = field(default_factory=list)
    fused: bool = False
    """Was attention computed by one call of torch, projections and all?"""


def traced(module: Any, *, keep: bool = False, seed: int = 0) -> Trace:
    """One forward of random tokens, watched.

    With ``keep``, tensors are copies of what they were at the time, of one row, on the CPU,
    and values are noted too. Without, they are the live ones, of two rows.
    """
    trace = Trace()
    with still(module), _watched(module, trace, keep):
        module(**repeated(random_inputs(module, seed), 2))
    return trace


def in_words(module: nn.Module, error: Exception) -> ValueError:
    """An error of a model's own code, met while its heads were looked for."""
    lines = str(error).splitlines() or [""]
    return ValueError(
        f"{type(module).__name__} is of a family that is not in headwidget's table, and its heads "
        f"could not be looked for: a forward of {fed_words(module)} failed "
        f"({type(error).__name__}: {lines[0][:200]})."
    )


def fed_words(module: nn.Module) -> str:
    """What the forward is fed, in words."""
    what = classifiers.classifies(module)
    return f"{TOKENS} random tokens" if what is None else f"a random {what} input"


def still(module: nn.Module) -> Altered:
    """Evaluation mode, nothing kept for a backward, and buffers given back afterwards.

    Marks are NaN, which a module that counts or observes would keep. Other threads that
    score a model with some of the modules wait meanwhile.
    """
    lock = SharedLock(module.modules())

    def make(undo: Undo) -> None:
        lock.take(undo)
        buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
        undo(lambda: _give_back(buffers))
        hooks.switch_modes(list(module.modules()), undo)
        entered(torch.no_grad(), undo)

    return Altered(make)


def _give_back(buffers: list[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for buffer, before in buffers:
            if buffer.shape == before.shape and not buffer.is_meta:
                buffer.copy_(before)


def random_tokens(module: Any, rows: int, seed: int = 0) -> Tensor:
    """Token ids that mean nothing special, (row, TOKENS)."""
    config = text_config(module.config)
    embedding = module.get_input_embeddings()
    vocabulary = int(embedding.weight.shape[0])
    special = {
        value
        for part in (module.config, config)
        for name, value in vars(part).items()
        if "token" in name and isinstance(value, int)
    }
    plain = [token for token in range(min(vocabulary, 1000)) if token not in special]
    chosen = torch.randint(
        len(plain), (rows, TOKENS), generator=torch.Generator().manual_seed(seed)
    )
    device = embedding.weight.device
    if device.type == "meta":  # offloaded by accelerate
        device = torch.device(embedding._hf_hook.execution_device)
    return torch.tensor(plain)[chosen].to(device)


def random_inputs(module: Any, seed: int = 0) -> dict[str, Any]:
    """Keyword arguments for a forward of one row of random tokens, which keeps no cache.

    A classifier gets a random image or sound.
    """
    if classifiers.classifies(module):
        return {**classifiers.random_input(module)}
    inputs = {"input_ids": random_tokens(module, 1, seed)}
    if is_encoder_decoder(module):
        inputs["decoder_input_ids"] = random_tokens(module, 1, seed=2)[:, :DECODED]
    return {**inputs, **no_cache(module)}


def repeated(inputs: dict[str, Any], rows: int) -> dict[str, Any]:
    """The same row several times."""
    return {
        name: value.expand(rows, *value.shape[1:]).contiguous()
        if isinstance(value, Tensor)
        else value
        for name, value in inputs.items()
    }


def fed_lengths(module: Any) -> tuple[int, ...] | None:
    """How many tokens a forward of random tokens has, in each stack.

    None for a classifier: how many patches or frames it makes of its input is its own choice.
    """
    if classifiers.classifies(module):
        return None
    return (TOKENS, DECODED) if is_encoder_decoder(module) else (TOKENS,)


def no_cache(module: Any) -> dict[str, Any]:
    """Keyword arguments for a forward that keeps no keys and values."""
    takes = inspect.signature(module.forward).parameters
    return {"use_cache": False} if "use_cache" in takes else {}


def _watched(module: nn.Module, trace: Trace, keep: bool = False) -> Altered:
    """Note the calls of all modules, and attention, while the model runs."""
    under_way: list[Call] = []
    waiting: list[Attended] = []
    noted = _first_row if keep else _as_it_is

    def enter(name: str, part: nn.Module, args: Any, kwargs: Any) -> Any:
        tensors = [value for value in (*args, *kwargs.values()) if _is_float(value)]
        fed = tensors[0] if tensors else None
        call = Call(name, part, input=noted(fed))
        if keep and len(tensors) > 1:
            call.second = noted(tensors[1])
        under_way.append(call)
        trace.calls.append(call)
        if not waiting or in_width(part) is None or not _reached(fed):
            return None
        for attended in waiting:
            attended.projection = call
        waiting.clear()
        return tuple(map(_unmarked, args)), {key: _unmarked(v) for key, v in kwargs.items()}

    def leave(output: Any) -> None:
        under_way.pop().output = noted(_first_tensor(_as_tuple(output)))

    def attend(heads: int, queries: int, keys: int) -> Attended:
        waiting.append(Attended(tuple(under_way), heads, queries, keys))
        trace.attended.append(waiting[-1])
        return waiting[-1]

    def fuse() -> None:
        trace.fused = True

    lengths, name = fed_lengths(module), type(module).__name__
    mode = Altered(lambda undo: entered(_Attention(attend, fuse, lengths, keep, name), undo))
    return hooks.together(hooks.watch_all(module, enter, leave), mode)


def _reached(tensor: Tensor | None) -> bool:
    return tensor is not None and bool(tensor[-1].isnan().any())


def _unmarked(value: Any) -> Any:
    """The first row in place of the second, which was marked."""
    return value[:1].expand_as(value).contiguous() if _is_float(value) else value


def _as_it_is(value: Tensor | None) -> Tensor | None:
    return value


def _first_row(value: Tensor | None) -> Tensor | None:
    """A copy of the first of two rows, on the CPU; None where rows cannot be told."""
    row = None
    if value is None:
        return None
    if value.dim() == 2 and len(value) % 2 == 0:  # positions of all rows, one after the other
        row = value[: len(value) // 2]
    elif value.dim() > 2 and len(value) == 2:
        row = value[0]
    elif value.dim() == 4 and value.shape[1] == 2:  # several streams (AltUp)
        row = value[:, 0]
    return None if row is None else row.detach().to("cpu", copy=True)


def _rows_by_head(value: Tensor) -> Tensor:
    """(batch, head, token, dim), also where batch and head are one."""
    return value if value.dim() == 4 else value.reshape(2, -1, *value.shape[1:])


class _Attention(TorchFunctionMode):
    """Tells of every computation of attention over the forward's tokens, and marks its output.

    With ``keep``, the values are noted: after a softmax, the right factor of the first product
    whose left factor is marked.
    """

    def __init__(
        self,
        tell: Callable[[int, int, int], Attended],
        fuse: Callable[[], None],
        lengths: tuple[int, ...] | None,
        keep: bool,
        name: str,
    ) -> None:
        super().__init__()
        self.name = name
        self.tell, self.fuse, self.lengths, self.keep = tell, fuse, lengths, keep
        self.without_values: Attended | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is functional.multi_head_attention_forward:
            self.fuse()
        if (heads := attention_heads(func, out, 2, self.lengths)) is None:
            if self.lengths is None and _in_pieces(func, out, 2):
                raise Refused(IN_PIECES.format(name=self.name))
            if self.without_values is not None and func in PRODUCTS and _reached(args[0]):
                self._note_values(self.without_values, args[1], out)
                self.without_values = None
            return out
        key, sdpa = out, func is functional.scaled_dot_product_attention
        if sdpa:
            key = args[1].mT if len(args) > 1 else (kwargs or {})["key"].mT
        if self.lengths is None and key.shape[-1] < out.shape[-2]:
            raise Refused(IN_PIECES.format(name=self.name))
        attended = self.tell(heads, int(out.shape[-2]), int(key.shape[-1]))
        if self.keep and sdpa:
            self._note_values(attended, args[2] if len(args) > 2 else (kwargs or {})["value"], out)
        elif self.keep:
            self.without_values = attended
        marks = torch.tensor([[False] * heads, [True] * heads], device=out.device)
        return marked(out, marks)

    def _note_values(self, attended: Attended, value: Tensor, out: Tensor) -> None:
        if value.dim() in (3, 4) and out.dim() in (3, 4):
            attended.value = _first_row(_rows_by_head(value))
            attended.output = _first_row(_rows_by_head(out))


def marked(out: Tensor, marks: Tensor) -> Tensor:
    """What a call of torch computes for heads, NaN where ``marks`` (row, head) is True."""
    by_head = out.reshape(*marks.shape, *out.shape[-2:])
    return by_head.masked_fill(marks[..., None, None], float("nan")).reshape(out.shape)


def attention_heads(func: Any, out: Any, rows: int, lengths: tuple[int, ...] | None) -> int | None:
    """How many heads a call of torch computes attention for; None where it does not.

    ``out`` is (batch, head, query, key or dim); some models put batch and head together.
    Queries are as many as the tokens of a stack, one of ``lengths``, or any number.
    """
    sdpa = func is functional.scaled_dot_product_attention
    if not (sdpa or func in SOFTMAX) or out.dim() not in (3, 4):
        return None
    if lengths is not None and out.shape[-2] not in lengths:
        return None
    if not sdpa and out.shape[-1] < out.shape[-2]:
        return None
    if out.dim() == 4:
        return int(out.shape[1]) if len(out) == rows else None
    # (batch * head, query, key); a router's softmax is (batch, token, expert)
    return len(out) // rows if len(out) % rows == 0 and len(out) > rows else None


def _in_pieces(func: Any, out: Any, rows: int) -> bool:
    """Does a call of torch compute attention for more rows than were fed, or to fewer keys?"""
    if func is functional.scaled_dot_product_attention:
        return out.dim() == 4 and len(out) > rows
    few_keys = func in SOFTMAX and out.dim() == 4 and out.shape[-1] < out.shape[-2]
    return few_keys or (func in SOFTMAX and out.dim() == 4 and len(out) > rows)


def _as_tuple(output: Any) -> tuple[Any, ...]:
    if isinstance(output, dict):
        return tuple(output.values())
    return output if isinstance(output, tuple) else (output,)


def _first_tensor(values: Sequence[Any]) -> Tensor | None:
    return next(filter(_is_float, values), None)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
