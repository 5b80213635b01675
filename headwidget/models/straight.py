"""The straight way from a head to the logits: the norms and the factors on it, found and proven.

What a head writes reaches the logits directly through the residual stream: a norm behind the
output projection where there is one, a factor (Granite, MiniCPM), the final norm, the
unembedding. For a family in the table these are known. For others they are looked for here: a
random write is added to one layer's output projection, all attention and MLPs are fed as if it
were not there, all norms keep their scale, and what arrives at the unembedding must be what the
norms and one factor foretell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headwidget.models import hooks, tracing
from headwidget.models.altering import Altered
from headwidget.models.norms import FrozenNorm
from headwidget.models.proof import RULED_OUT

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

AT_ONCE = 8
"""How many layers are tried in one forward."""
ALLOWED = {8: 1e-5, 4: 1e-3, 2: 3e-2}
"""How far what arrives may be off, relative to its size, by the bytes of a number."""

CONSTANT = {8: 1e-9, 4: 1e-5, 2: 5e-3}
"""The same for logits that are a constant times others; a cap of small logits comes close."""


def find(model: Model) -> None:
    """Find the norms and factors of a model that no table knows; raise where there is no way.

    They are kept in the model's layers and in its family.
    """
    if model.family.final_norm is None and model.no_straight_way is None:
        try:
            _find(model)
        except ValueError as error:
            model.no_straight_way = str(error)
    if model.no_straight_way is not None:
        raise ValueError(model.no_straight_way)


def _find(model: Model) -> None:
    with hooks.scoring(model):
        inputs = tracing.random_inputs(model.module)
        final_name, behind = _final_norm(model, inputs)
        measured = _measure(model, model.module.get_submodule(final_name))
        for layer in model.layers:
            _settle(model, layer, measured[layer.index])
            layer.factor *= behind
    model.family = replace(model.family, final_norm=final_name)


def _refusal(model: Model, why: str) -> str:
    return (
        "attribution follows what a head writes straight to the logits, but in "
        f"{model.name} ({model.family.name}) {why}, so there is no such straight way that "
        "headwidget can prove; use method='gradient' or 'ablation'."
    )


def is_norm(module: nn.Module) -> bool:
    """Is it a norm, by its class?"""
    return "norm" in type(module).__name__.lower() and not list(module.children())


def norms_outside(model: Model) -> Iterator[str]:
    """The norms outside the blocks, in the order of the modules."""
    inside = {id(part) for block in model.blocks for part in block.modules()}
    for name, part in model.module.named_modules():
        if is_norm(part) and id(part) not in inside:
            yield name


# ---- writes that are added, and what arrives ----


@dataclass(frozen=True, eq=False)
class _Arrived:
    """What a random write at one layer's output projection became."""

    write: Tensor  # (seq, width)
    at_final: Tensor
    """The change before the final norm, (seq, width)."""
    posts: dict[str, tuple[FrozenNorm, Tensor]]
    """The norms of the layer's block, by name, and what each was fed, (seq, width)."""


def _measure(model: Model, final: nn.Module) -> dict[int, _Arrived]:
    """By index of the layer."""
    arrived: dict[int, _Arrived] = {}
    for start in range(0, len(model.layers), AT_ONCE):
        layers = model.layers[start : start + AT_ONCE]
        arrived |= _Trial(model, final, layers).run()
    return arrived


class _Trial:
    """One forward of equal rows; each but the first has a write added to one layer."""

    def __init__(self, model: Model, final: nn.Module, layers: tuple[Layer, ...]) -> None:
        self.model, self.final, self.layers = model, final, layers
        self.held: dict[int, tuple[FrozenNorm, Tensor]] = {}
        """By id of a norm: the norm, and what the first row fed it, (seq, width)."""
        self.writes: dict[int, Tensor] = {}
        self.at_final: Tensor | None = None

    def run(self) -> dict[int, _Arrived]:
        model, rows = self.model, len(self.layers) + 1
        tokens = tracing.random_tokens(model.module, 1).expand(rows, -1).contiguous()
        with hooks.together(*self._stand_ins()):
            model.module(input_ids=tokens, **tracing.no_cache(model.module))
        if self.at_final is None:
            raise ValueError(_refusal(model, "the norm before its unembedding does not run"))
        arrived = {}
        for row, layer in enumerate(self.layers, 1):
            norms = [(name, id(norm)) for name, norm in layer.block.named_modules()]
            posts = {name: self.held[norm] for name, norm in norms if norm in self.held}
            change = (self.at_final[row] - self.at_final[0]).float()
            arrived[layer.index] = _Arrived(self.writes[layer.index], change, posts)
        return arrived

    def _stand_ins(self) -> Iterator[Altered]:
        for block in self.model.blocks:
            for part in _sublayers(block):
                if not is_norm(part) and any(True for _ in part.parameters()):  # no dropout
                    yield hooks.stand_in(part, self._undisturbed(part))
            for part in block.modules():
                if is_norm(part):
                    yield hooks.stand_in(part, self._held(part))
        for row, layer in enumerate(self.layers, 1):
            yield hooks.stand_in(layer.projection, self._with_write(layer, row))
        yield hooks.stand_in(self.final, self._held(self.final))

    def _undisturbed(self, part: nn.Module) -> Callable[..., Any]:
        """A sublayer that is fed what the first row feeds it."""
        inner = part.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            if args:
                return inner(_first_row(args[0]), *args[1:], **kwargs)
            name = next((n for n, v in kwargs.items() if _is_hidden(v)), None)
            if name is not None:
                kwargs = {**kwargs, name: _first_row(kwargs[name])}
            return inner(**kwargs)

        return forward

    def _held(self, norm: nn.Module) -> Callable[..., Any]:
        """A norm with the scale that it has in the first row, where it can be held."""
        inner = norm.forward

        def forward(x: Tensor, *args: Any, **kwargs: Any) -> Any:
            if not _is_hidden(x) or len(x) != len(self.layers) + 1 or args or kwargs:
                return inner(x, *args, **kwargs)
            if norm is self.final:
                self.at_final = x
            try:
                frozen = FrozenNorm.of(norm, x[0, 0])
            except ValueError:  # no norm of the usual kinds; if it is on the way, nothing fits
                return inner(x)
            self.held[id(norm)] = frozen, x[0]
            difference = frozen.ahead((x - x[:1]).float(), x[:1])
            out: Tensor = inner(_first_row(x))
            return out + difference.to(out.dtype)

        return forward

    def _with_write(self, layer: Layer, row: int) -> Callable[..., Any]:
        inner = layer.projection.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            out: Tensor = inner(*args, **kwargs)
            random = torch.Generator().manual_seed(layer.index)
            write = torch.randn(out.shape[1:], generator=random).to(out)
            self.writes[layer.index] = write.float()
            out = out.clone()
            out[row] += write
            return out

        return forward


def _sublayers(block: nn.Module) -> Iterator[nn.Module]:
    """A block's children; of a list among them, its own."""
    for child in block.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield child


def _is_hidden(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.dim() == 3


def _first_row(value: Any) -> Any:
    return value[:1].expand_as(value).contiguous() if _is_hidden(value) else value


# ---- what the norms and a factor foretell ----


def _settle(model: Model, layer: Layer, arrived: _Arrived) -> None:
    """Choose the norm behind the projection that explains what arrived, or none; and the factor."""
    names: list[str | None] = [None, *arrived.posts]
    for name in names:
        foretold = arrived.write
        if name is not None:
            norm, fed = arrived.posts[name]
            if fed.shape != foretold.shape:
                continue
            foretold = norm.ahead(foretold, fed).float()
        factor, off = _ratio(arrived.at_final, foretold)
        if off <= ALLOWED[model.dtype.itemsize]:
            layer.post_norm = None if name is None else layer.block.get_submodule(name)
            layer.factor = factor
            return
    raise ValueError(
        _refusal(model, f"what {layer.name} writes is changed on its way to the final norm")
    )


def _final_norm(model: Model, inputs: dict[str, Any]) -> tuple[str, float]:
    """The name of the norm before the unembedding, and what is multiplied in behind it.

    That may happen before the unembedding (MiniCPM) and behind it (Cohere, Granite). Where
    logits are capped, they are taken before the cap.
    """
    normed: dict[str, Tensor] = {}
    fed: list[Tensor] = []
    before: list[Tensor] = []

    def note(name: str) -> Altered:
        norm = model.module.get_submodule(name)
        return hooks.watch(norm, lambda args, kwargs, out: normed.update({name: out}))

    def see(args: Any, kwargs: Any, out: Any) -> None:
        fed.append(args[0])
        before.append(out)

    watches = [note(name) for name in norms_outside(model)]
    with hooks.together(hooks.watch(model.unembedding, see), *watches):
        logits = hooks.logits_of(model, inputs)
    allowed = ALLOWED[model.dtype.itemsize]
    for name, out in normed.items():
        first, off = _ratio(fed[0], out) if fed else (1.0, float("inf"))
        if off <= allowed:
            kept = logits.abs() < RULED_OUT
            second, off = _ratio(logits[kept], before[0][kept])
            return name, first * (second if off <= CONSTANT[model.dtype.itemsize] else 1.0)
    raise ValueError(_refusal(model, "no norm stands right before its unembedding"))


def _ratio(whole: Tensor, part: Tensor) -> tuple[float, float]:
    """The factor between two tensors, and how far it fails to explain them."""
    if whole.shape != part.shape:
        return 1.0, float("inf")
    whole, part = whole.double(), part.double()
    factor = (whole * part).sum() / part.square().sum()
    return float(factor), float((whole - factor * part).norm() / whole.norm())
