"""Models that name the class of an image or a sound: what they are fed, and their classes.

Their tokens are patches of an image or frames of a sound. They answer once, with a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from headwidget.models.model import Model

SAMPLES = 6400
"""How long the random sound is that a model of raw samples is fed."""


def classifies(module: Any) -> Literal["image", "audio"] | None:
    """What the model classifies, by its class or one that it is made of; None where nothing."""
    for cls in type(module).__mro__:
        if (what := saved_to_classify(cls.__name__)) is not None:
            return "image" if what == "image-class" else "audio"
    return None


def saved_to_classify(architecture: str) -> Literal["image-class", "audio-class"] | None:
    """What a checkpoint was saved to classify, by the class that its configuration names."""
    from transformers.models.auto import modeling_auto

    if architecture in _names(modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES):
        return "image-class"
    if architecture in _names(modeling_auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES):
        return "audio-class"
    return None


def _names(mapping: Any) -> set[str]:
    """The classes of one of transformers' mappings; some types have several."""
    names: set[str] = set()
    for value in mapping.values():
        names.update([value] if isinstance(value, str) else value)
    return names


def own_config(config: Any) -> Any:
    """The configuration of what reads images, where a model has one of its own (CLIP)."""
    return getattr(config, "vision_config", None) or config


def random_input(module: Any) -> dict[str, Tensor]:
    """Keyword arguments for a forward of one random image or sound."""
    config, name = own_config(module.config), module.main_input_name
    weight = next(p for p in module.parameters() if p.is_floating_point())
    random = torch.Generator().manual_seed(0)
    content = torch.randn(_shape(config, name), generator=random)
    return {name: content.to(weight.device, weight.dtype)}


def _shape(config: Any, name: str) -> tuple[int, ...]:
    if name == "pixel_values":
        size = getattr(config, "image_size", 224)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return 1, getattr(config, "num_channels", 3), height, width
    bins: Any = getattr(config, "num_mel_bins", None)
    if name == "input_features" and bins and hasattr(config, "max_source_positions"):  # Whisper
        return 1, bins, 2 * config.max_source_positions
    if name == "input_features":  # a spectrogram of any length
        return 1, 32, getattr(config, "feature_projection_input_dim", bins or 80)
    if bins is not None and hasattr(config, "max_length"):  # a spectrogram of one length
        return 1, config.max_length, bins
    return 1, SAMPLES


def classes(model: Model) -> dict[str, list[int]]:
    """The model's classes by name, and their numbers; LABEL_0 and so on where it has no names.

    Several classes may have one name (ImageNet has two cranes).
    """
    names = model.config.id2label or {i: f"LABEL_{i}" for i in range(model.vocabulary)}
    known: dict[str, list[int]] = {}
    for number, name in names.items():
        known.setdefault(str(name), []).append(int(number))
    return known


def check_answers(model: Model, logits: Tensor) -> None:
    """Refuse a head that does not choose one of several classes."""
    kind = getattr(model.config, "problem_type", None)
    count = logits.shape[-1]
    if kind in ("regression", "multi_label_classification") or count == 1:
        what = "a number" if count == 1 or kind == "regression" else "several classes at once"
        raise ValueError(
            f"{model.name} answers with {what}, not with one class of several, so there is no log "
            "p(answer) to score."
        )
    if count != model.vocabulary:
        raise ValueError(
            f"{model.name} gives {count} logits, and its configuration names {model.vocabulary} "
            "classes, so it is not known which is which."
        )
