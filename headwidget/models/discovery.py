"""Discovery: the attention heads of a model that no table knows, found by what they do.

One short forward of random tokens is watched. Attention shows itself by a softmax over tokens
or by ``scaled_dot_product_attention``. In the second of two equal rows its output is made NaN:
the first linear map that NaN reaches is taken for the output projection, whose input is then
the heads side by side. That is a guess, which :mod:`headwidget.models.proof` has to prove
before anything is scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwidget.models import classifiers
from headwidget.models.encoder_decoder import SECTIONS, Section, is_encoder_decoder
from headwidget.models.families import Family, Prediction
from headwidget.models.layers import Layer
from headwidget.models.tracing import Attended, Call, Refused, Trace, fed_words, in_words, traced
from headwidget.models.weights import in_width


@dataclass(frozen=True, eq=False)
class Found:
    """Where the heads are."""

    family: Family
    blocks: tuple[nn.Module, ...]
    layers: tuple[Layer, ...]


def find(module: Any, text: Any) -> Found:
    """The blocks of a model and the attention in each; a sentence where none is found."""
    try:
        trace = traced(module)
    except Refused:
        raise
    except Exception as error:  # an image that was not given, say
        raise _not_run(module, error) from error
    if not trace.attended:
        raise ValueError(_no_heads(module, text, trace.fused))
    places = _one_each([(attended, _projection(attended)) for attended in trace.attended])
    _check_heads(module, text, [attended for attended, _ in places])
    _check_reached(module, trace)
    turns = Counter(id(call.module) for _, call in places)
    _check_calls(module, trace, [call for _, call in places], turns)
    holders: dict[str, None] = {}  # the lists of blocks, in order
    layers: list[Layer] = []
    for section in SECTIONS if is_encoder_decoder(module) else ("",):
        members = [place for place in places if section in ("", place[0].section)]
        if members:
            holder = _holder(module, [call.name for _, call in members])
            layers += _section(module, holder, members, turns, _kinds(module, text, section))
            holders[holder] = None
            for layer in layers[-len(members) :]:
                layer.section = section
    if is_encoder_decoder(module):
        for row, layer in enumerate(layers):  # numbers of blocks are not enough
            layer.index = row
    blocks = tuple(block for holder in holders for block in module.get_submodule(holder))
    return Found(_family(module, next(reversed(holders)), layers[-1]), blocks, tuple(layers))


def _not_run(module: Any, error: Exception) -> ValueError:
    """Why a model did not run on tokens alone."""
    if classifiers.classifies(module):
        return in_words(module, error)
    try:
        embedding = module.get_input_embeddings()
    except Exception:
        embedding = None
    if isinstance(embedding, nn.Module) and isinstance(getattr(embedding, "weight", None), Tensor):
        return in_words(module, error)
    kind = "none was found" if embedding is None else f"it is a {type(embedding).__name__}"
    return ValueError(
        f"{type(module).__name__} has no one embedding of tokens ({kind}), so headwidget cannot "
        "feed it text."
    )


def _section(
    module: nn.Module,
    holder: str,
    places: list[tuple[Attended, Call]],
    turns: Counter[int],
    kinds: Sequence[str],
) -> list[Layer]:
    """The layers of one list of blocks, or of the only one, in order."""
    layers: list[Layer] = []
    for number, (attended, projection) in enumerate(places):
        layer = _layer(module, f"{holder}.", attended, projection, kinds)
        if max(turns.values()) > 1:  # layers are numbered by their calls
            layer.turns, layer.index = turns[id(projection.module)], number
            layer.turn = sum(other.projection is layer.projection for other in layers)
        layers.append(layer)
    _check_one_a_block(module, layers)
    return sorted(layers, key=lambda layer: layer.index)


def _kinds(module: Any, text: Any, section: Section) -> Sequence[str]:
    """What sort of attention each block has, where the configuration names it."""
    if section == "cross":
        return []
    settings = getattr(module.config, section, None) if section else text
    return getattr(settings, "layer_types", None) or []


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


def _check_heads(module: Any, text: Any, attended: Sequence[Attended]) -> None:
    """Refuse a number of heads that the configuration does not have, and one head alone.

    A model may compute its heads one by one, or in groups, and a single head cannot be told
    from others in any proof.
    """
    words = ("dim", "size", "kv", "key_value")
    settings = vars(text)
    if (encoder := getattr(module.config, "encoder", None)) is not None:  # a configuration each
        settings = {**settings, **{f"encoder {k}": v for k, v in vars(encoder).items()}}
    counts = {
        value
        for name, value in settings.items()
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
    module: nn.Module, prefix: str, attended: Attended, projection: Call, kinds: Sequence[str]
) -> Layer:
    index = int(projection.name.removeprefix(prefix).split(".", 1)[0])
    heads = attended.heads
    width = in_width(projection.module)
    assert width is not None  # it was chosen by its width
    attention, inside = _attention_module(f"{prefix}{index}", attended, projection)
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


def _family(module: Any, holder: str, layer: Layer) -> Family:
    """What a table would say of the model, by one of its layers."""
    number = layer.name.removeprefix(f"{holder}.").split(".", 1)[0]
    block = f"{holder}.{number}."
    names = {id(part): name for name, part in module.named_modules()}
    return Family(
        name=str(getattr(module.config, "model_type", type(module).__name__)),
        blocks=holder,
        attention=names[id(layer.attention)].removeprefix(block),
        projection=layer.name.removeprefix(block),
        final_norm=None,
        head=prediction(module),
        table=False,
    )


def prediction(module: Any) -> Prediction:
    """What the model predicts, by its class."""
    from transformers.models.auto import modeling_auto

    if (what := classifiers.classifies(module)) is not None:
        return "image-class" if what == "image" else "audio-class"
    if is_encoder_decoder(module):
        return "encoder-decoder"
    name, config = type(module).__name__, module.config
    masked = name in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()
    turned = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    if name.endswith("ForMaskedLM") or (masked and not turned):
        return "masked"
    pictures = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()
    reads_images = name in pictures or name.endswith("ForConditionalGeneration")
    return "image-text" if reads_images else "causal"


def _no_heads(module: nn.Module, text: Any, fused: bool) -> str:
    if fused:
        return (
            f"{type(module).__name__} computes attention by torch's multi_head_attention_forward, "
            "which uses the output projection's weight directly, so its heads cannot be reached."
        )
    how = str(getattr(text, "_attn_implementation", None) or "")
    if "flash" in how or "flex" in how:
        return (
            f"{type(module).__name__} runs attention by {how!r}, a kernel that does not show its "
            "heads, and its family is not in headwidget's table; load it with "
            "attn_implementation='sdpa' or 'eager'."
        )
    return (
        f"{type(module).__name__} has no attention heads to score: in a forward of "
        f"{fed_words(module)}, no softmax over tokens was seen (a state-space, recurrent or "
        "convolutional model, or attention over other pieces than tokens)."
    )
