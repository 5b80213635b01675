"""Does the unembedding read the residual stream, but for a norm?

A masked language model that was turned into a decoder sends the stream through a dense layer
and an activation first; there, ``W_O U`` is no way to the logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from headwidget.models import hooks, tracing
from headwidget.models.altering import Altered
from headwidget.models.multiples import ALLOWED, is_constant_multiple, off
from headwidget.models.straight import norms_outside

if TYPE_CHECKING:
    from headwidget.models.model import Model


def check_unembedded(model: Model) -> None:
    """Refuse a model that makes something else of its stream before the unembedding.

    The last block's output is turned around; what the final norm, or without one the
    unembedding, reads must turn around with it.
    """
    last = _last_block(model)
    before = _read_by_unembedding(model, last, turned=False)
    after = _read_by_unembedding(model, last, turned=True)
    if off(before, -after) <= ALLOWED[model.dtype.itemsize]:
        return
    raise ValueError(
        "relations reads what a head writes off the unembedding, but in "
        f"{model.name} ({model.family.name}) there is more than a norm between the last block and "
        "the unembedding (a dense layer and an activation?); use method='ablation' or 'gradient'."
    )


def _last_block(model: Model) -> nn.Module:
    """The block that runs last: some run for images only."""
    ran: list[nn.Module] = []

    def note(block: nn.Module) -> Altered:
        return hooks.watch(block, lambda args, kwargs, out: ran.append(block))

    with hooks.together(*map(note, model.blocks)):
        model.module(**tracing.random_inputs(model.module))
    return ran[-1]


def _read_by_unembedding(model: Model, last: nn.Module, *, turned: bool) -> Tensor:
    """What the final norm reads, or the unembedding where there is none."""
    normed: list[tuple[Tensor, Tensor]] = []
    fed: list[Tensor] = []

    def note(args: Any, kwargs: Any, out: Any) -> None:
        if args and isinstance(out, Tensor) and args[0].shape == out.shape:
            normed.append((args[0].clone(), out.clone()))

    parts = [model.module.get_submodule(name) for name in norms_outside(model)]
    watches = [hooks.watch(part, note) for part in parts]
    watches.append(hooks.watch(model.unembedding, lambda args, kwargs, out: fed.append(args[0])))
    if turned:
        watches.append(hooks.stand_in(last, _turned(last)))
    with hooks.together(*watches):
        model.module(**tracing.random_inputs(model.module))
    if len(fed) != 1:
        raise ValueError(
            f"relations reads what a head writes off the unembedding, but that of {model.name} "
            f"({model.family.name}) does not run as a module; use method='ablation' or 'gradient'."
        )
    for read, out in reversed(normed):
        if is_constant_multiple(fed[0], out, ALLOWED[model.dtype.itemsize]):
            return read
    return fed[0]


def _turned(block: nn.Module) -> Any:
    inner = block.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        out = inner(*args, **kwargs)
        return type(out)([-out[0], *out[1:]]) if isinstance(out, (tuple, list)) else -out

    return forward
