"""Encoder-decoder models: what they are fed, and the three sections of their layers.

The encoder reads a source (``input_ids``), the decoder what was said so far
(``decoder_input_ids``), and its cross-attention looks from there at the source. Answers are
the decoder's.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

if TYPE_CHECKING:
    from headwidget.models.model import Model

Section = Literal["", "encoder", "decoder", "cross"]
"""Which of the model's stacks a layer's heads belong to; "" where there is one stack."""
SECTIONS: tuple[Section, ...] = ("encoder", "decoder", "cross")
"""In the order of their rows."""


def is_encoder_decoder(module: Any) -> bool:
    """Does the model read a source and answer with a decoder?"""
    takes = inspect.signature(module.forward).parameters
    return (
        bool(getattr(module.config, "is_encoder_decoder", False)) and "decoder_input_ids" in takes
    )


def text_config(config: Any) -> Any:
    """The configuration of the text side; of an encoder-decoder model, its decoder's."""
    if getattr(config, "is_encoder_decoder", False):
        return config.get_text_config(decoder=True)
    return config.get_text_config()


def source_context(config: Any) -> int | None:
    """The longest source that an encoder reads; None where there is no limit."""
    encoder = getattr(config, "encoder", config)
    most: int | None = getattr(encoder, "max_position_embeddings", None)
    return most


def answered_ids(inputs: dict[str, Any]) -> Tensor:
    """The tokens at whose positions a forward answers, (batch, seq)."""
    ids: Tensor = inputs["decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"]
    return ids


def decoder_start(model: Model) -> list[int]:
    """The tokens that a decoder begins with before it has said anything.

    Some models force another one behind it (a language's code).
    """
    settings = (getattr(model.module, "generation_config", None), model.config)

    def setting(name: str) -> int | None:
        values = (getattr(place, name, None) for place in settings)
        value = next((value for value in values if value is not None), None)
        if isinstance(value, (list, tuple)):
            raise ValueError(
                f"the configuration of {model.name} has several tokens as {name} ({value}), so it "
                f"is not known which one its decoder begins with; set model.config.{name} and "
                "model.module.generation_config to one."
            )
        return value if type(value) is int else None

    start, forced = setting("decoder_start_token_id"), setting("forced_bos_token_id")
    if start is None:
        start = setting("bos_token_id")
    if start is None:
        raise ValueError(
            f"the configuration of {model.name} does not say which token its decoder begins with; "
            "set model.config.decoder_start_token_id."
        )
    return [start] if forced is None else [start, forced]
