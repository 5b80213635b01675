"""A tiny random model of every family that the installed transformers can build."""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import Any
from unittest import mock

import torch
import transformers
from transformers.models.auto import modeling_auto

from tests.support.small_configs import Unbuildable, config, first_line

MOST_WEIGHTS = 5_000_000
"""A model with more was not made small: its configuration has sizes with other names."""
MAPPINGS = {
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "encoder-decoder": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "image-text": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
}
"""By what is predicted: the classes of transformers, by ``config.model_type``."""

_TOWERS = {
    "gemma3n": "gemma3n.modeling_gemma3n.AutoModel",
    "inkling_mm_model": "inkling.modeling_inkling.InklingVisionModel",
}
"""What makes a tower for images that needs a package which is not installed, by family."""


class NoTower:
    """In the place of such a tower, which does not run without an image."""

    def __new__(cls, settings: Any) -> Any:
        return torch.nn.Identity()

    @staticmethod
    def from_config(settings: Any) -> Any:
        vision = settings.model_type.endswith("_vision")
        return torch.nn.Identity() if vision else transformers.AutoModel.from_config(settings)


def _without_tower(family: str) -> Any:
    if family not in _TOWERS:
        return contextlib.nullcontext()
    return mock.patch(f"transformers.models.{_TOWERS[family]}", NoTower)


def _own(settings: Any, wanted: Any) -> Any:
    """The configuration that a class takes: the whole, or one nested in it (its text side)."""
    nested = [value for value in vars(settings).values() if type(value) is wanted]
    return nested[0] if type(settings) is not wanted and nested else settings


@functools.cache
def build(family: str, kind: str = "causal") -> Any:
    """The family's model with random weights, in evaluation mode."""
    name = MAPPINGS[kind][family]
    name = name if isinstance(name, str) else name[0]
    settings = config(family, kind)
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        cls = getattr(transformers, name)
        settings = _own(settings, cls.config_class)
        with _without_tower(family):
            with torch.device("meta"):
                weights = sum(p.numel() for p in cls(settings).parameters())
            if weights > MOST_WEIGHTS:
                raise Unbuildable(f"{weights:,} weights: not made small")
            torch.manual_seed(0)
            model = cls(settings).eval()
    except Unbuildable:
        raise
    except Exception as error:
        raise Unbuildable(first_line(error)) from error
    finally:
        logging.disable(level)
    if getattr(settings, "is_encoder_decoder", False):
        settings.decoder_start_token_id = 2  # some have none by default
    if hasattr(model, "set_default_language"):
        model.set_default_language("en_XX")
    _draw(model)
    return model


@torch.no_grad()
def _draw(model: Any) -> None:
    """Weights wide enough that every head and every bias matters."""
    for name, parameter in model.named_parameters():
        special = any(word in name for word in ("conv", "A_log", "dt_", "time_", "decay"))
        if parameter.dim() >= 2 and not special:
            parameter.normal_(0, parameter.shape[-1] ** -0.5)
        elif "bias" in name or "norm" in name:
            parameter.add_(0.1 * torch.randn_like(parameter))
