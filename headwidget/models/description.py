"""A model in words: where its heads are, of which kinds, and how that is known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwidget.models.model import Model

TABLE, STRUCTURE = "a known family", "found by structure, proven on load"


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
        f"output projections: {model.family.blocks}.*.{model.family.projection}",
    ]
    if (others := len(model.blocks) - layers) > 0:
        lines.append(f"{others} blocks without attention heads: run, not scored")
    if model.layers[0].turns > 1:
        lines.append("layers share their modules: a layer is one of the calls in a forward")
    kinds = Counter(layer.kind for layer in model.layers if layer.kind)
    if len(kinds) > 1:
        counts = ", ".join(f"{kind.replace('_', ' ')} in {n}" for kind, n in kinds.items())
        lines.append(f"kinds: {counts} layers")
    lines.append("answers: " + ("masked tokens" if model.encoder else "the next token"))
    return "\n".join(lines)
