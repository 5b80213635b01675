"""Every family that classifies images or sounds, built small and examined as the others are."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
import transformers
from transformers.models.auto import modeling_auto

import headwidget as hw
from headwidget.models import classifiers
from tests.support import seeing
from tests.support.every_family import MOST_WEIGHTS
from tests.support.family_table import Row
from tests.support.plain import ablation_by_loop, slopes_by_steps
from tests.support.small_configs import Unbuildable, first_line, small_sizes

MAPPINGS = {
    "image-class": modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    "audio-class": modeling_auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
}
_SIZES: dict[str, Any] = {
    "image_size": 16,
    "patch_size": 8,
    "conv_dim": (16,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "max_length": 40,
    "num_mel_bins": 16,
    "max_source_positions": 20,
    "tdnn_dim": [8] * 5,
    "classifier_proj_size": 8,
    "feature_projection_input_dim": 16,
    "num_key_value_heads": 4,
    "eos_token_id": 2,
}
"""By name in a configuration, beside or in place of those of language models."""
_BY_STAGE = {
    "depths": 1,
    "num_blocks": 1,
    "hidden_sizes": 32,
    "embed_dims": 32,
    "num_heads": 4,
    "num_attention_heads": 4,
}
"""By name, where a configuration has a list of a number for every stage."""
_STAGES = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1]}
_MORE: dict[str, dict[str, Any]] = {
    "swin": {**_STAGES, "num_heads": [2, 4], "window_size": 4},
    "swinv2": {**_STAGES, "num_heads": [2, 4], "window_size": 4},
    "donut-swin": {**_STAGES, "num_heads": [2, 4], "window_size": 4},
    "sew": {"conv_dim": (16,) * 13, "squeeze_factor": 2},
    "sew-d": {"conv_dim": (16,) * 13, "squeeze_factor": 2},
}
"""What families need beside small sizes."""


class Stand:
    """In the place of a processor: random numbers that depend on the image or sound."""

    def __init__(self, module: Any) -> None:
        self.shapes = {n: t.shape for n, t in classifiers.random_input(module).items()}

    def __call__(self, images: Any = None, raw_speech: Any = None, **_: Any) -> dict[str, Any]:
        content = np.asarray(raw_speech if images is None else images, np.float64)
        random = torch.Generator().manual_seed(int(abs(content.sum()) * 1000) % 2**31)
        return {n: torch.randn(shape, generator=random) for n, shape in self.shapes.items()}


def build(family: str, kind: str) -> Any:
    """The family's model with random weights, in evaluation mode."""
    name = MAPPINGS[kind][family]
    cls = getattr(transformers, name if isinstance(name, str) else name[0])
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        usual = transformers.AutoConfig.for_model(family)
        small = {**_small(usual), **_MORE.get(family, {}), "num_labels": 5}
        settings = transformers.AutoConfig.for_model(family, **small)
        with torch.device("meta"):
            weights = sum(p.numel() for p in cls(settings).parameters())
        if weights > MOST_WEIGHTS:
            raise Unbuildable(f"{weights:,} weights: not made small")
        return seeing.drawn(cls(settings)).double()
    except Unbuildable:
        raise
    except Exception as error:
        raise Unbuildable(first_line(error)) from error
    finally:
        logging.disable(level)


def _small(usual: Any) -> dict[str, Any]:
    own = {name: value for name, value in _SIZES.items() if name in vars(usual)}
    nested = {
        name: _small(value)
        for name, value in vars(usual).items()
        if isinstance(value, transformers.PretrainedConfig)
    }
    by_stage = {
        name: [_BY_STAGE[name]] * len(value)
        for name, value in vars(usual).items()
        if name in _BY_STAGE and isinstance(value, (list, tuple))
    }
    if by_stage and type(usual.__dict__.get("image_size")) is int:
        own["image_size"] = 64  # halved from stage to stage
        own.pop("patch_size", None)
    return {**small_sizes(usual), **own, **by_stage, **nested}


def examine(family: str, kind: str) -> Row:
    """Build, load and score a tiny model of the family."""
    try:
        module = build(family, kind)
    except Unbuildable as error:
        return Row(family, "not built", str(error))
    try:
        model = hw.load(module, Stand(module))
    except (ValueError, RuntimeError) as error:
        return Row(family, "refused", str(error))
    examples = [("one", "LABEL_1"), ("two", "LABEL_0")]
    media: dict[str, Any] = {"images": seeing.images(2)}
    if kind == "audio-class":
        media = {"audio": seeing.sounds(2)}
    task = hw.Task("t", examples, **media)
    faults = []
    for method, definition in (("ablation", ablation_by_loop), ("gradient", slopes_by_steps)):
        ours = hw.score(model, task, method, progress=False).values("t")
        expected = definition(model, task)
        size = np.abs(expected).max()
        if size < 1e-3 or not np.allclose(ours, expected, rtol=5e-3, atol=2e-3 * size):
            faults.append(f"{method} differs by {np.abs(ours - expected).max():.2g} of {size:.2g}")
    return Row(family, "wrong", "; ".join(faults)) if faults else Row(family, "exact")
