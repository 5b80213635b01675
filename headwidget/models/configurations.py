"""What a model's configuration says of the stack that is scored."""

from __future__ import annotations

from typing import Any

from torch import nn

from headwidget.models import classifiers
from headwidget.models.encoder_decoder import text_config
from headwidget.models.families import Family


def own_config(module: Any) -> Any:
    """The configuration of the stack that is scored."""
    config = module.config
    is_classifier = classifiers.classifies(module) is not None
    return classifiers.own_config(config) if is_classifier else text_config(config)


def kv_heads(text: Any, heads: int) -> int:
    """How many key-value heads a layer has."""
    if text.model_type == "falcon" and not text.new_decoder_architecture:
        return 1 if text.multi_query else heads
    for key in ("num_key_value_heads", "num_kv_heads"):
        if type(count := getattr(text, key, None)) is int:
            return count
    return heads


def context(module: nn.Module, text: Any, family: Family) -> int | None:
    """The longest input, None where there is no limit (ALiBi, T5's relative positions)."""
    most: int | None = getattr(text, "max_position_embeddings", None)
    if not most and family.head != "encoder-decoder":
        most = getattr(text, "n_positions", None)
    if most is None:
        return None
    for name, part in module.named_modules():
        if not name.endswith("position_embeddings") or not isinstance(part, nn.Embedding):
            continue
        if part.padding_idx is not None and part.num_embeddings == most:
            return most - part.padding_idx - 1  # RoBERTa's positions start behind the padding id
    return most


def rope_switch(text: Any) -> int | None:
    """The longest input before longrope switches to its long factors; None without longrope."""
    rope = getattr(text, "rope_parameters", None)
    if not isinstance(rope, dict) or rope.get("rope_type") != "longrope":
        return None
    return rope.get("original_max_position_embeddings") or getattr(
        text, "original_max_position_embeddings", None
    )
