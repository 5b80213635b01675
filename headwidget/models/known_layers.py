"""The layers of a model whose family is in the table, found where it says and checked."""

from __future__ import annotations

from typing import Any

from torch import nn

from headwidget.models import classifiers
from headwidget.models.encoder_decoder import text_config
from headwidget.models.families import FAMILIES, Family
from headwidget.models.layers import Layer
from headwidget.models.weights import in_width, submodule


def known_family(module: Any) -> Family | None:
    """What the table says of the model's family; None where it does not fit, or says nothing."""
    family = FAMILIES.get(getattr(module.config, "model_type", ""))
    if family is None or classifiers.classifies(module):
        return None
    is_decoder = getattr(text_config(module.config), "is_decoder", False)
    turned = family.head == "masked" and is_decoder  # an encoder turned into a decoder
    return None if turned else family


def find(
    module: nn.Module, family: Family, heads: int, text: Any
) -> tuple[tuple[nn.Module, ...], tuple[Layer, ...]]:
    """Every block, and every block's attention.

    Each output projection is checked to be n_heads * head_dim wide.
    """
    holder = submodule(module, family.blocks)
    if not isinstance(holder, nn.ModuleList):
        raise ValueError(
            f"{type(module).__name__} has no list of layers at {family.blocks!r}, where family "
            f"{family.name!r} keeps them; load the model with its language-model head "
            "(AutoModelForCausalLM or AutoModelForMaskedLM), or hw.register the family's own paths."
        )
    names = {id(m): n for n, m in module.named_modules()}
    head_dim = int(getattr(text, "head_dim", None) or text.hidden_size // heads)
    layers = []
    for index, block in enumerate(holder):
        attention = submodule(block, family.attention)
        projection = submodule(block, family.projection)
        if attention is None:
            continue  # a hybrid model's layer without attention
        name = f"{family.blocks}.{index}.{family.projection}"
        if projection is None:
            raise ValueError(
                f"{names[id(attention)]} ({type(attention).__name__}) has no output projection "
                f"{name!r}: is it fused with another layer?"
            )
        width = in_width(projection)
        if width != heads * head_dim:
            raise ValueError(
                f"{name} ({type(projection).__name__}) takes {width} numbers in, not {heads} heads "
                f"x {head_dim} = {heads * head_dim}: its input is not the heads' outputs side by "
                "side (a fused projection?), so heads cannot be told apart there."
            )
        post = submodule(block, family.post_norm) if family.post_norm else None
        inside = any(m is projection for m in attention.modules())
        layers.append(
            Layer(index, block, attention, projection, post, name, heads, head_dim, inside)
        )
    _check_apart(layers)
    if not layers:
        raise ValueError(
            f"no layer of {type(module).__name__} has attention at "
            f"{family.blocks}.*.{family.attention}; there are no heads to score."
        )
    return tuple(holder), tuple(layers)


def _check_apart(layers: list[Layer]) -> None:
    """Refuse layers that share a module: its heads have one score, and a call tells no layer."""
    first: dict[int, Layer] = {}
    for layer in layers:
        twin = first.setdefault(id(layer.projection), layer)
        if twin is not layer:
            raise ValueError(
                f"layers {twin.index} and {layer.index} share {twin.name}: one module runs in "
                "both, so headwidget cannot tell their heads apart."
            )
