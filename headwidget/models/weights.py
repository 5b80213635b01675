"""Weights read as linear maps: a head's values and output, the unembedding, the first MLP.

Nothing here runs a forward of the whole model.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headwidget.models.foreign import has_foreign_hooks, is_hooked_itself

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

ROWS = 1024
"""How many embeddings go through the MLP at a time."""


def is_conv1d(module: nn.Module) -> bool:
    """GPT-2's linear map, which keeps its weight the other way round."""
    return type(module).__name__ == "Conv1D"


def in_width(module: nn.Module) -> int | None:
    """How many numbers a linear map takes in; None where the module is none."""
    if is_conv1d(module):
        return int(module.weight.shape[0])  # type: ignore[index]
    return getattr(module, "in_features", None)


def linear_weight(module: nn.Module) -> Tensor | None:
    """The weight of a linear map, (in, out); None where it cannot be read.

    Nor is it given where the module does more than its weight says: an adapter may be too
    small to be seen in numbers, so the module's own code decides, not a probe.
    """
    weight = getattr(module, "weight", None)
    if not _is_plain(module) or not isinstance(weight, Tensor) or weight.dim() != 2:
        return None
    quantised = not weight.is_floating_point() or weight.dtype.itemsize < 2
    if quantised or weight.is_meta or hasattr(weight, "__tensor_flatten__"):  # torchao, offloaded
        return None
    return weight if is_conv1d(module) else weight.T  # nn.Linear keeps (out, in)


def _is_plain(module: nn.Module) -> bool:
    """Does the module multiply by its weight, add its bias, and do nothing else?"""
    kind = type(module)
    if "forward" in module.__dict__ and is_hooked_itself(module):
        return False  # a forward of the user's
    from_transformers = kind.__module__.startswith("transformers.")
    known = from_transformers and kind.__name__ in ("Conv1D", "FalconLinear")
    return known or kind.forward is nn.Linear.forward


def packs_its_weight(module: nn.Module) -> bool:
    """Is it a 4-bit layer of bitsandbytes?

    On a CPU, its first forward in evaluation mode without gradients packs its weight, for
    good, and a packed weight passes no gradient on.
    """
    bitsandbytes = sys.modules.get("bitsandbytes")
    return bitsandbytes is not None and type(module) is bitsandbytes.nn.Linear4bit


def submodule(module: nn.Module, path: str) -> nn.Module | None:
    """The module at a path such as ``self_attn.v_proj``; None where there is none."""
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None


def working(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float32, or float64 for float64 weights."""
    return torch.promote_types(dtype, torch.float32)


# ---- heads ----


@dataclass(frozen=True, eq=False)
class Values:
    """W_V by key-value head, and its bias where it has one."""

    weight: Tensor  # (kv head, width, head_dim)
    bias: Tensor | None  # (kv head, head_dim)
    repeat: int
    """How many query heads share a key-value head."""

    def of(self, e: Tensor, *, bias: bool) -> Tensor:
        """``e W_V [+ b_V]`` for every query head: (row, width) -> (head, row, head_dim)."""
        values = torch.einsum("rw,kwd->krd", e, self.weight.to(e.dtype))
        if bias and self.bias is not None:
            values = values + self.bias[:, None].to(e.dtype)
        return values.repeat_interleave(self.repeat, dim=0)


def values(model: Model, layer: Layer) -> Values:
    """W_V of a layer; a sentence where it cannot be read.

    Of a family that is not in the table, :func:`value_search.find` has to find it first.
    """
    if not model.family.table:
        if layer.value_path is None:
            raise ValueError(f"how {layer.name} of {model.name} makes values was not looked for.")
        return layer.value_path.values()
    family, groups, dim = model.family, model.n_kv_heads, layer.head_dim
    name = f"{family.blocks}.{layer.index}.{family.value}"
    module = submodule(layer.block, family.value)
    if module is None:
        raise ValueError(
            f"there is no value projection {name!r} where family {family.name!r} keeps it; say "
            "where it is: hw.register(hw.Family(…, value=…, packed=…))."
        )
    weight = linear_weight(module)
    if weight is None:
        raise TypeError(
            f"{name} is a {type(module).__name__} whose weight cannot be read as plain numbers "
            "(quantised, adapted, or offloaded to disk?); load the model whole, unquantised and "
            "merged."
        )
    bias: Tensor | None = getattr(module, "bias", None)
    heads = groups if family.packed is None else layer.heads + 2 * groups
    if weight.shape[1] != heads * dim:
        raise ValueError(
            f"{name} gives {weight.shape[1]} numbers, not {heads} heads x {dim} = {heads * dim}, "
            "so the heads' values cannot be told apart in it; say how it is laid out: "
            "hw.register(hw.Family(…, value=…, packed=…))."
        )

    def value_rows(rows: Tensor) -> Tensor:  # (heads * dim, …) -> (kv head, dim, …)
        return _value_rows(rows.detach(), layer.heads, groups, dim, family.packed)

    by_head = value_rows(weight.T).transpose(1, 2)  # (kv head, width, dim)
    return Values(by_head, None if bias is None else value_rows(bias), layer.heads // groups)


def _value_rows(rows: Tensor, heads: int, groups: int, dim: int, packed: str | None) -> Tensor:
    """The rows that make values, (kv head, dim, …)."""
    if packed == "groups":  # for each group: its queries, its key, its value
        return rows.reshape(groups, heads // groups + 2, dim, *rows.shape[1:])[:, -1]
    if packed == "blocks":  # all queries, all keys, all values
        rows = rows[(heads + groups) * dim :]
    return rows.reshape(groups, dim, *rows.shape[1:])


# ---- from tokens, to tokens ----


def embedded(model: Model, tokens: Tensor) -> Tensor:
    """The embeddings of ``tokens``, (token, width), as the model's embedding gives them."""
    embedding = model.module.get_input_embeddings()
    _check_unhooked(model, embedding)
    embeddings: Tensor = embedding(tokens.to(model.device))
    return embeddings


def unembedding(model: Model) -> Tensor:
    """U, (vocabulary, width), without its bias, which no head changes."""
    weight = linear_weight(model.unembedding)
    if weight is None:
        raise TypeError(
            f"the unembedding of {model.name}, a {type(model.unembedding).__name__}, cannot be "
            "read as plain numbers (quantised, or offloaded to disk?); load the model whole, "
            "unquantised and merged."
        )
    width = model.layers[0].w_o().shape[-1]
    if weight.shape[0] != width:
        raise ValueError(
            f"the unembedding of {model.name} reads {weight.shape[0]} numbers where heads write "
            f"{width}: there is a projection between them."
        )
    return weight.T.detach()


@dataclass(frozen=True, eq=False)
class MlpPath:
    """An MLP behind its norm."""

    norm: nn.Module | None
    branches: tuple[tuple[nn.Module, ...], ...]
    """Modules one after the other; what several branches give is added up."""

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """All of them."""
        chained = [module for branch in self.branches for module in branch]
        return tuple(chained if self.norm is None else [self.norm, *chained])

    def of(self, rows: Tensor) -> Tensor:
        """What it makes of rows, (row, width)."""
        if self.norm is not None:
            rows = through([self.norm], rows)
        first, *others = (through(branch, rows) for branch in self.branches)
        for other in others:
            first = first + other
        return first


def first_mlp(model: Model, e: Tensor) -> Tensor:
    """Layer 0's MLP applied to layer 0's pre-MLP norm of ``e`` (row, width).

    Of a family that is not in the table, :func:`mlp_search.find` has to find it first.
    """
    path = _known_mlp(model) if model.family.table else model.mlp_path
    if path is None:
        raise ValueError(f"the first MLP of {model.name} was not looked for.")
    for module in path.modules:
        _check_unhooked(model, module)
    return torch.cat([path.of(rows) for rows in torch.split(e, ROWS)])


def _known_mlp(model: Model) -> MlpPath:
    """Layer 0's MLP and the norm before it, where the table says."""
    block, family = model.blocks[0], model.family
    mlp = [module for name in family.mlp if (module := submodule(block, name)) is not None]
    norms = [module for name in family.mlp_norm if (module := submodule(block, name)) is not None]
    complete = len(mlp) == len(family.mlp)
    if not complete or (family.mlp_norm and not norms):
        missing = family.mlp_norm if complete else family.mlp
        raise ValueError(
            f"block 0 of {model.name} has no {' or '.join(map(repr, missing))}, where family "
            f"{family.name!r} keeps its MLP and the norm before it; say where they are with "
            "hw.register(hw.Family(…, mlp=…, mlp_norm=…)), or leave the first MLP out: mlp=False."
        )
    return MlpPath(norms[0] if norms else None, (tuple(mlp),))


def _check_unhooked(model: Model, module: nn.Module) -> None:
    """Refuse hooks on a module that reads words by themselves: they were made for prompts."""
    if has_foreign_hooks(module):
        name = next(name for name, part in model.module.named_modules() if part is module)
        raise ValueError(
            f"{name} of {model.name} carries a hook that is not headwidget's, and words are sent "
            "through it by themselves here, not in prompts, so the hook would act where it should "
            "not; remove it first (or, for the first MLP, ask for mlp=False)."
        )


def through(modules: Sequence[nn.Module], rows: Tensor) -> Tensor:
    """The rows (row, width) after one module after the other."""
    x: Any = rows[None]  # (1, row, width), as blocks are fed
    for module in modules:
        parameter = next(module.parameters(), None)
        if parameter is not None and not parameter.is_meta:
            x = x.to(parameter.device)  # block 0 may be on another device than the embedding
        x = module(x, torch.zeros_like(x)) if adds_residual(module) else module(x)
        x = x[0] if isinstance(x, tuple) else x  # some mixtures of experts return their routing
    out: Tensor = x.reshape(len(rows), -1)  # some give the rows of all prompts together
    return out


def adds_residual(module: nn.Module) -> bool:
    """Does an MLP add the residual stream itself, as BLOOM's does?"""
    return "residual" in inspect.signature(module.forward).parameters
