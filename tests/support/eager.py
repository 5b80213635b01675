"""Attention weights as transformers' eager attention returns them: what ours are held to."""

from __future__ import annotations

from typing import Any

import torch

from tests.support import tiny


def eager(family: str, **changes: Any) -> torch.nn.Module:
    """The same weights with eager attention, which returns its weights."""
    if family != "gemma3":
        changes["attn_implementation"] = "eager"
    module: torch.nn.Module = tiny.build(family, **changes)
    if family == "gemma3":
        module.set_attn_implementation("eager")  # type: ignore[operator]
    return module


def returned_weights(
    module: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor
) -> list[torch.Tensor]:
    """What output_attentions gives, layers without attention left out."""
    with torch.no_grad():
        return [
            w
            for w in module(
                input_ids=ids, attention_mask=mask, output_attentions=True, use_cache=False
            ).attentions
            if w is not None
        ]
