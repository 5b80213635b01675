"""Kinds of models that some methods cannot take, refused by name before any forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwidget.models.model import Model

ANY = "'ablation', 'gradient' or 'gating'"
"""The methods that take every model."""


def refuse_encoder_decoder(model: Model, method: str, why: str) -> None:
    """Raise where the model reads a source with an encoder and answers with a decoder."""
    if model.encoder_decoder:
        raise ValueError(
            f"{method} {why}, and {model.name} ({model.family.name}) is an encoder-decoder model; "
            f"use method={ANY}."
        )


def refuse_classifier(model: Model, method: str, why: str) -> None:
    """Raise where the model names the class of an image or a sound."""
    if model.classifier:
        what = "an image" if model.family.head == "image-class" else "a sound"
        raise ValueError(
            f"{method} {why}, and {model.name} ({model.family.name}) names the class of {what}; "
            f"use method={ANY}."
        )
