"""What to do about a model that gives a number that is not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from headwidget.models.model import Model


def advice(model: Model, *, heads_scaled: bool = False) -> str:
    """A sentence that says why a model's numbers are not finite, and what to do.

    A number of 16 bits or fewer overflows early, which float32 mends. It does not mend a
    weight that is NaN, nor a model that is float32 already. ``heads_scaled``: the numbers are
    those of the model with some heads' outputs scaled.
    """
    if (name := _first_weight(model, torch.isnan)) is not None:
        return f"The model's weight {name!r} has NaN: load a sound checkpoint."
    if heads_scaled:
        return (
            "The likely cause is that heads are scaled: scale heads by less, or score the model "
            "as it is (lab.heed_gates = False)."
        )
    if model.dtype.itemsize < 4:
        return f"Its numbers overflow in {model.dtype}: load the model with dtype=torch.float32."
    if (name := _first_weight(model, torch.isinf)) is not None:
        return f"The model's weight {name!r} is infinite: load a sound checkpoint."
    return (
        f"Every weight of the model is a finite {model.dtype}, so a number overflows on the way: "
        "look at the model's own logits for this prompt, or leave the prompt out."
    )


def _first_weight(model: Model, is_bad: Callable[[Tensor], Tensor]) -> str | None:
    """The name of the first weight with a number that is bad; None where there is none."""
    weights: Iterator[tuple[str, Tensor]] = model.module.named_parameters()
    for name, weight in weights:
        # A weight that is offloaded has no numbers here, and torch tests none of 8 bits.
        is_testable = weight.device.type != "meta" and weight.dtype.itemsize > 1
        if is_testable and weight.is_floating_point() and bool(is_bad(weight.detach()).any()):
            return name
    return None
