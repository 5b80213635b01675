"""A model in words: where its heads are, of which kinds, and how that is known."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from headwidget.models.encoder_decoder import SECTIONS
from headwidget.models.layers import Kind
from headwidget.models.value_search import kinds_of_heads

if TYPE_CHECKING:
    from headwidget.models.model import Model

TABLE, STRUCTURE = "a known family", "found by structure, proven on load"

KINDS: dict[Kind, str] = {
    "sinks": "attention sinks (a place to attend to that is no token)",
    "gated": "gated output (the gate is part of the head)",
    "latent": "latent attention (values are made in two steps)",
    "shared": "values of another layer (shared key-values)",
}


_ANSWERS = {
    "causal": "the next token",
    "image-text": "the next token",
    "masked": "masked tokens",
    "encoder-decoder": "the decoder's next token",
    "image-class": "the class of an image",
    "audio-class": "the class of a sound",
}


def how(model: Model) -> str:
    """How it is known where the heads are."""
    return TABLE if model.family.table else STRUCTURE


def describe(model: Model) -> str:
    """Several lines, the most important first."""
    layers, heads = model.shape
    widths = sorted({layer.head_dim for layer in model.layers})
    lines = [
        f"{model.name}: {model.family.name}, {how(model)}",
        f"{layers} layers with attention x {heads} heads of {' or '.join(map(str, widths))}, "
        f"{model.n_kv_heads} key-value heads",
        *_projections(model),
    ]
    if (others := len(model.blocks) - layers) > 0 and not model.encoder_decoder:
        numbers = ", ".join(str(layer.index) for layer in model.layers)
        lines.append(f"{others} blocks without self-attention heads: run, not scored")
        lines.append(f"scored blocks: {numbers} (scores.layers, the layers of all scores)")
    if model.layers[0].turns > 1:
        lines.append("layers share their modules: a layer is one of the calls in a forward")
    kinds = Counter(layer.kind for layer in model.layers if layer.kind)
    if len(kinds) > 1:
        counts = ", ".join(f"{kind.replace('_', ' ')} in {n}" for kind, n in kinds.items())
        lines.append(f"kinds: {counts} layers")
    for kind, count in kinds_of_heads(model).items():
        lines.append(f"{KINDS[kind]} in {count} of {layers} layers")
    if model.family.head == "image-text":
        lines.append(_images(model))
    lines.append(f"answers: {_ANSWERS[model.family.head]}")
    return "\n".join(lines)


def _images(model: Model) -> str:
    """Whether images can be fed, and how they are written."""
    if not hasattr(model.processor, "image_processor"):
        return "images: none, as it was loaded with a tokenizer and no processor"
    token = getattr(model.processor, "image_token", None)
    written = f", written {token!r} in a prompt" if token else ""
    return f"images: fed{written}; the heads that read them run and are not scored"


def _projections(model: Model) -> list[str]:
    """Where the output projections are, a line for each section of the layers."""
    if not model.encoder_decoder:
        return [f"output projections: {model.family.blocks}.*.{model.family.projection}"]
    lines, row = [], 0
    for section in SECTIONS:
        if section not in dict(model.sections):
            lines.append(f"{section}: no heads that can be told apart; run, not scored")
    for section, count in model.sections:
        name = re.sub(r"\.0\.", ".*.", model.layers[row].name, count=1)
        what = "cross-attention" if section == "cross" else section
        letter = section[0].upper()
        lines.append(
            f"{what}: rows {row} to {row + count - 1}, called {letter}0 to {letter}{count - 1}, "
            f"output projections {name}"
        )
        row += count
    return lines
