"""Discovery: the attention heads of a model that no table knows, found by what they do.

One short forward of random tokens is watched. Attention shows itself by a softmax over tokens
or by ``scaled_dot_product_attention``. In the second of two equal rows its output is made NaN:
the first linear map that NaN reaches is taken for the output projection, whose input is then
the heads side by side. That is a guess, which :mod:`headwidget.models.proof` has to prove
before anything is scored.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headwidget.models import hooks
from headwidget.models.altering import Altered, Undo, entered
from headwidget.models.families import Family, Prediction
from headwidget.models.layers import Layer
from headwidget.models.locks import SharedLock
from headwidget.models.weights import in_width

TOKENS = 7
"""How many tokens the forward has: few, and no number of heads or widths."""
SOFTMAX = (functional.softmax, torch.softmax, torch.Tensor.softmax)


@dataclass(frozen=True, eq=False)
class Found:
    """Where the heads are."""

    family: Family
    blocks: tuple[nn.Module, ...]
    layers: tuple[Layer, ...]


@dataclass(eq=False)
class Call:
    """One call of a module."""

    name: str
    module: nn.Module
    input: Tensor | None = None
    output: Tensor | None = None


@dataclass(eq=False)
class Attended:
    """One computation of attention."""

    inside: tuple[Call, ...]
    """The calls under way, the outermost first."""
    heads: int
    projection: Call | None = None
    """The first linear map that its output reaches."""


@dataclass(eq=False)
class Trace:
    """The calls and the attention of one forward, in the order of time."""

    calls: list[Call] = field(default_factory=list)
    attended: list[Attended] = field(default_factory=list)


def find(module: Any, text: Any) -> Found:
    """The blocks of a model and the attention in each; a sentence where none is found."""
    trace = traced(module)
    if not trace.attended:
        raise ValueError(_no_heads(module, text))
    places = _one_each([(attended, _projection(attended)) for attended in trace.attended])
    _check_heads(module, text, [attended for attended, _ in places])
    _check_reached(module, trace)
    holder = _holder(module, [call.name for _, call in places])
    turns = Counter(id(call.module) for _, call in places)
    _check_calls(module, trace, [call for _, call in places], turns)
    shared = max(turns.values()) > 1
    layers: list[Layer] = []
    for number, (attended, projection) in enumerate(places):
        layer = _layer(module, f"{holder}.", attended, projection, text)
        if shared:  # layers are numbered by their calls
            layer.turns, layer.index = turns[id(projection.module)], number
            layer.turn = sum(other.projection is layer.projection for other in layers)
        layers.append(layer)
    _check_one_a_block(module, layers)
    blocks = tuple(module.get_submodule(holder))
    ordered = tuple(sorted(layers, key=lambda layer: layer.index))
    return Found(_family(module, holder, ordered[0]), blocks, ordered)


def _one_each(places: list[tuple[Attended, Call]]) -> list[tuple[Attended, Call]]:
    """One attention for each call of a projection: some compute it in several pieces."""
    first: dict[int, tuple[Attended, Call]] = {}
    for attended, call in places:
        twin, _ = first.setdefault(id(call), (attended, call))
        if twin.heads != attended.heads:
            raise ValueError(
                f"{call.name} takes what two attentions of {twin.heads} and {attended.heads} heads "
                "give, so there is no one number of heads in it."
            )
    return list(first.values())


def _check_heads(module: nn.Module, text: Any, attended: Sequence[Attended]) -> None:
    """Refuse a number of heads that the configuration does not have, and one head alone.

    A model may compute its heads one by one, or in groups, and a single head cannot be told
    from others in any proof.
    """
    words = ("dim", "size", "kv", "key_value")
    counts = {
        value
        for name, value in vars(text).items()
        if "head" in name and type(value) is int and not any(word in name for word in words)
    }
    for heads in sorted({each.heads for each in attended}):
        if heads == 1 or (counts and heads not in counts):
            told = ", ".join(map(str, sorted(counts))) or "no number"
            raise ValueError(
                f"{type(module).__name__} computes attention for {heads} heads at a time, and its "
                f"configuration tells {told}, so it is not known which numbers are one head's."
            )


def _check_reached(module: nn.Module, trace: Trace) -> None:
    """Refuse a model that ran an attention whose heads cannot be reached."""
    for call in trace.calls:
        if isinstance(call.module, nn.MultiheadAttention):
            raise ValueError(
                f"{call.name} of {type(module).__name__} is torch's MultiheadAttention, which uses "
                "its output projection's weight directly, so its heads cannot be reached."
            )


def _check_one_a_block(module: nn.Module, layers: Sequence[Layer]) -> None:
    first: dict[int, Layer] = {}
    for layer in layers:
        if (twin := first.setdefault(layer.index, layer)) is not layer:
            raise ValueError(
                f"block {layer.index} of {type(module).__name__} holds two attentions, {twin.name} "
                f"and {layer.name}; headwidget scores one in each block."
            )


# ---- the forward that is watched ----


def traced(module: Any) -> Trace:
    """One forward of random tokens, watched."""
    trace = Trace()
    tokens = random_tokens(module, 1).expand(2, -1).contiguous()
    with still(module), _watched(module, trace):
        module(input_ids=tokens, **no_cache(module))
    return trace


def in_words(module: nn.Module, error: Exception) -> ValueError:
    """An error of a model's own code, met while its heads were looked for."""
    lines = str(error).splitlines() or [""]
    return ValueError(
        f"{type(module).__name__} is of a family that is not in headwidget's table, and its heads "
        f"could not be looked for: a forward of {TOKENS} random tokens failed "
        f"({type(error).__name__}: {lines[0][:200]})."
    )


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
    config = module.config.get_text_config()
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


def no_cache(module: Any) -> dict[str, Any]:
    """Keyword arguments for a forward that keeps no keys and values."""
    takes = inspect.signature(module.forward).parameters
    return {"use_cache": False} if "use_cache" in takes else {}


def _watched(module: nn.Module, trace: Trace) -> Altered:
    """Note the calls of all modules, and attention, while the model runs."""
    under_way: list[Call] = []
    waiting: list[Attended] = []

    def enter(name: str, part: nn.Module, args: Any, kwargs: Any) -> Any:
        call = Call(name, part, input=_first_tensor((*args, *kwargs.values())))
        under_way.append(call)
        trace.calls.append(call)
        if not waiting or in_width(part) is None or not _reached(call.input):
            return None
        for attended in waiting:
            attended.projection = call
        waiting.clear()
        return tuple(map(_unmarked, args)), {key: _unmarked(v) for key, v in kwargs.items()}

    def leave(output: Any) -> None:
        under_way.pop().output = _first_tensor(_as_tuple(output))

    def attend(heads: int) -> None:
        waiting.append(Attended(tuple(under_way), heads))
        trace.attended.append(waiting[-1])

    mode = Altered(lambda undo: entered(_Attention(attend), undo))
    return hooks.together(hooks.watch_all(module, enter, leave), mode)


def _reached(tensor: Tensor | None) -> bool:
    return tensor is not None and bool(tensor[-1].isnan().any())


def _unmarked(value: Any) -> Any:
    """The first row in place of the second, which was marked."""
    return value[:1].expand_as(value).contiguous() if _is_float(value) else value


class _Attention(TorchFunctionMode):
    """Tells of every computation of attention over the forward's tokens, and marks its output."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        super().__init__()
        self.tell = tell

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if (heads := attention_heads(func, out, rows=2)) is None:
            return out
        self.tell(heads)
        marks = torch.tensor([[False] * heads, [True] * heads], device=out.device)
        return marked(out, marks)


def marked(out: Tensor, marks: Tensor) -> Tensor:
    """What a call of torch computes for heads, NaN where ``marks`` (row, head) is True."""
    by_head = out.reshape(*marks.shape, *out.shape[-2:])
    return by_head.masked_fill(marks[..., None, None], float("nan")).reshape(out.shape)


def attention_heads(func: Any, out: Any, rows: int) -> int | None:
    """How many heads a call of torch computes attention for; None where it does not.

    ``out`` is (batch, head, query, key or dim); some models put batch and head together.
    """
    sdpa = func is functional.scaled_dot_product_attention
    if not (sdpa or func in SOFTMAX) or out.dim() not in (3, 4) or out.shape[-2] != TOKENS:
        return None
    if not sdpa and out.shape[-1] < TOKENS:
        return None
    if out.dim() == 4:
        return int(out.shape[1]) if len(out) == rows else None
    # (batch * head, query, key); a router's softmax is (batch, token, expert)
    return len(out) // rows if len(out) % rows == 0 and len(out) > rows else None


def _as_tuple(output: Any) -> tuple[Any, ...]:
    if isinstance(output, dict):
        return tuple(output.values())
    return output if isinstance(output, tuple) else (output,)


def _first_tensor(values: Sequence[Any]) -> Tensor | None:
    return next(filter(_is_float, values), None)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


# ---- from the trace to places ----


def _projection(attended: Attended) -> Call:
    """The output projection behind an attention: its heads must fit."""
    call, innermost = attended.projection, attended.inside[-1]
    width = None if call is None else in_width(call.module)
    if call is not None and width and width % attended.heads == 0:
        return call
    reached = "reaches no linear map" if call is None else f"reaches {call.name} first"
    raise ValueError(
        f"{innermost.name} ({type(innermost.module).__name__}) computes attention with "
        f"{attended.heads} heads, but its output {reached}, which does not take them side by side, "
        "so there is no place where heads can be told apart."
    )


def _check_calls(
    module: nn.Module, trace: Trace, projections: Sequence[Call], turns: Counter[int]
) -> None:
    """Refuse projections that also run without attention, or unequally often."""
    counts = Counter(id(call.module) for call in trace.calls)
    for call in projections:
        count = counts[id(call.module)]
        if count != turns[id(call.module)] or len(set(turns.values())) > 1:
            raise ValueError(
                f"{call.name} of {type(module).__name__} runs {count} times in a forward, others "
                "less often: layers share it in part, so headwidget cannot tell their heads apart."
            )


def _holder(module: nn.Module, names: Sequence[str]) -> str:
    """The name of the list of blocks that all projections are in."""
    holders = []
    for name in names:
        parts = name.split(".")
        number = next((i for i, part in enumerate(parts) if part.isdigit()), None)
        if number is None:
            raise ValueError(
                f"{name} of {type(module).__name__} is in no list of blocks, so headwidget cannot "
                "number its layers."
            )
        holders.append(".".join(parts[:number]))
    if len(set(holders)) > 1:
        lists = ", ".join(sorted(set(holders)))
        raise ValueError(
            f"{type(module).__name__} computes attention in several lists of blocks ({lists}); "
            "headwidget scores models with one."
        )
    return holders[0]


def _layer(
    module: nn.Module, prefix: str, attended: Attended, projection: Call, text: Any
) -> Layer:
    index = int(projection.name.removeprefix(prefix).split(".", 1)[0])
    heads = attended.heads
    width = in_width(projection.module)
    assert width is not None  # it was chosen by its width
    attention, inside = _attention_module(f"{prefix}{index}", attended, projection)
    kinds = getattr(text, "layer_types", None) or []
    return Layer(
        index=index,
        block=module.get_submodule(f"{prefix}{index}"),
        attention=attention,
        projection=projection.module,
        post_norm=None,
        name=projection.name,
        heads=heads,
        head_dim=width // heads,
        inside=inside,
        kind=str(kinds[index]) if index < len(kinds) else "",
    )


def _attention_module(block: str, attended: Attended, projection: Call) -> tuple[nn.Module, bool]:
    """The module whose output is the projection's, and True; else the innermost, and False.

    The innermost one may give the heads' outputs themselves, as BERT's does. Where it gives
    neither, a replay differs from a plain forward, which ablation finds out.
    """
    candidates = [call for call in attended.inside if call.name.startswith(f"{block}.")]
    for call in reversed(candidates):
        holds = projection.name.startswith(f"{call.name}.")
        if holds and _same(call.output, projection.output):
            return call.module, True
    innermost = candidates[-1] if candidates else attended.inside[-1]
    return innermost.module, False


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is not None and b is not None and a.shape == b.shape and torch.equal(a, b)


def _family(module: Any, holder: str, first: Layer) -> Family:
    """What a table would say of the model."""
    number = first.name.removeprefix(f"{holder}.").split(".", 1)[0]
    block = f"{holder}.{number}."
    names = {id(part): name for name, part in module.named_modules()}
    return Family(
        name=str(getattr(module.config, "model_type", type(module).__name__)),
        blocks=holder,
        attention=names[id(first.attention)].removeprefix(block),
        projection=first.name.removeprefix(block),
        final_norm=None,
        head=prediction(module),
        table=False,
    )


def prediction(module: Any) -> Prediction:
    """What the model predicts, by its class."""
    from transformers.models.auto import modeling_auto

    name, config = type(module).__name__, module.config
    masked = name in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()
    turned = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    if name.endswith("ForMaskedLM") or (masked and not turned):
        return "masked"
    return "image-text" if name.endswith("ForConditionalGeneration") else "causal"


def _no_heads(module: nn.Module, text: Any) -> str:
    how = str(getattr(text, "_attn_implementation", None) or "")
    if "flash" in how or "flex" in how:
        return (
            f"{type(module).__name__} runs attention by {how!r}, a kernel that does not show its "
            "heads, and its family is not in headwidget's table; load it with "
            "attn_implementation='sdpa' or 'eager'."
        )
    return (
        f"{type(module).__name__} has no attention heads to score: in a forward of {TOKENS} "
        "tokens, no softmax over them was seen (a state-space or recurrent model, or attention "
        "over other pieces than tokens)."
    )
