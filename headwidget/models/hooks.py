"""Hooks: read z (batch, seq, head, dim) and gate heads.

The only module that registers hooks; each is an :class:`~headwidget.models.altering.Altered`,
which removes its own. Attention stays as the user set it (sdpa stays sdpa): only the output
projection's input and a few modules' calls are touched. A hook is registered behind those
that are there, so z is what the projection receives, whatever others did to it before.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headwidget.models.altering import Altered, Undo, deliver_signals, entered, together
from headwidget.models.encoder_decoder import answered_ids
from headwidget.models.weights import packs_its_weight
from headwidget.models.wrappers import check_unhooked

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

__all__ = ["together"]

Take = Callable[[int, Tensor], None]
without_backward = torch.no_grad
"""Not inference mode: what a module keeps of a forward must be of use to a later backward."""


# ---- threads ----

_thread = threading.local()


class Stopped(KeyboardInterrupt):
    """Work was asked to stop, as Ctrl-C asks: what is done is kept."""


@contextmanager
def stoppable(stop: threading.Event) -> Iterator[None]:
    """Let this thread's work end with :class:`Stopped` once ``stop`` is set.

    That happens at the next layer of a forward, or of a backward to gates.
    """
    before, _thread.stop = getattr(_thread, "stop", None), stop
    try:
        yield
    finally:
        _thread.stop = before


def check_stop() -> None:
    """Raise where this thread was asked to stop, or Ctrl-C is waiting."""
    deliver_signals()
    if (stop := _stop_event()) is not None:
        _raise_if_set(stop)


def _stop_event() -> threading.Event | None:
    return getattr(_thread, "stop", None)


def _raise_if_set(stop: threading.Event) -> None:
    if stop.is_set():
        raise Stopped


def on_this_thread() -> Callable[[], bool]:
    """A test whether code runs on the thread that called this.

    A hook acts on its own thread only: a forward in another cell is neither seen nor changed.
    """
    owner = threading.get_ident()
    return lambda: threading.get_ident() == owner


# ---- heads ----


def read(model: Model, take: Take) -> Altered:
    """Call ``take(row, z)`` for every attention layer as the model runs.

    ``row`` counts the layers with attention; z is (batch, seq, head, dim).

    >>> import headwidget as hw, torch
    >>> from headwidget.models import hooks
    >>> model, seen = hw.load(), {}
    >>> with hooks.read(model, lambda row, z: seen.update({row: z.shape})), torch.no_grad():
    ...     _ = model.module(torch.tensor([[1, 2, 3]]))
    >>> len(seen), seen[0]
    (30, torch.Size([1, 3, 9, 64]))
    """

    def hook(row: int, layer: Layer, flat: Tensor) -> None:
        take(row, by_head(flat, layer))

    return on_projections(model, hook)


def gate(
    model: Model,
    gates: Tensor,
    fill: Tensor | None = None,
    at: Tensor | None = None,
    *,
    all_layers: bool = True,
) -> Altered:
    """Multiply each head's z by its gate. Ones change nothing, bit for bit.

    ``gates`` is (layer, head), or (batch, layer, head) for a gate per sample. With ``fill``
    (layer, head, dim), dim that of the widest head, what a gate takes away is replaced:
    ``g * z + (1 - g) * fill``. With
    ``at`` (batch, k), heads are gated at those positions only. Without ``all_layers``, the
    layers may run one at a time meanwhile.
    """
    if gates.shape[-2:] != model.shape:
        raise ValueError(
            f"gates must end in (layer, head) = {model.shape}; got {tuple(gates.shape)}."
        )

    def hook(row: int, layer: Layer, flat: Tensor) -> Tensor:
        z = by_head(flat, layer)  # (batch, seq, head, dim)
        g = gates[..., row, :].to(z.device, z.dtype)  # (head,) or (batch, head)
        g = g[:, None, :, None] if g.dim() == 2 else g[:, None]
        if at is not None:
            here = torch.zeros(z.shape[:2], dtype=z.dtype, device=z.device)
            g = 1 - (1 - g) * here.scatter_(1, at.to(z.device), 1)[:, :, None, None]
        out = z * g
        if fill is not None:
            out = out + (1 - g) * fill[row, :, : layer.head_dim].to(z.device, z.dtype)
        if (stop := _stop_event()) is not None and out.requires_grad:
            # The backward may run in a thread of torch's own, so it is given the event.
            out.register_hook(lambda _: _raise_if_set(stop))  # type: ignore[no-untyped-call]
        return out.reshape(flat.shape)

    return on_projections(model, hook, all_layers=all_layers)


def logits_at(model: Model, inputs: dict[str, Any], positions: Tensor) -> Tensor:
    """A forward's logits at ``positions`` (batch, k), (batch, k, vocabulary).

    Only those are computed, unless the user's hooks must find all positions in their place,
    or the unembedding is not a module that runs.
    """
    if model.classifier:  # it answers once
        return logits_of(model, inputs)
    length = answered_ids(inputs).shape[1]
    if model.one_by_one or not model.unembeds:
        logits = logits_of(model, inputs)
        _check_length(model, logits.shape[1], length)
        return take_positions(logits, positions)
    fired, mine = 0, on_this_thread()

    def hook(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        nonlocal fired
        if not mine():
            return None
        if not args:
            raise RuntimeError(_by_keyword(model, "the unembedding"))
        fired += 1
        _check_length(model, args[0].shape[1], length)
        return (take_positions(args[0], positions), *args[1:])

    with Altered(lambda undo: undo(model.unembedding.register_forward_pre_hook(hook).remove)):
        logits = logits_of(model, inputs)
    if not fired:
        raise RuntimeError(
            f"{type(model.unembedding).__name__}, the unembedding of {model.name}, never ran: "
            "its logits are made elsewhere."
        )
    _check_length(model, logits.shape[1], positions.shape[1])
    return logits


def logits_of(model: Model, inputs: dict[str, Any]) -> Tensor:
    """A plain forward's logits, (batch, seq, vocabulary); a classifier's, (batch, 1, class)."""
    out = model.module(**inputs)
    logits = out.get("logits") if isinstance(out, dict) else getattr(out, "logits", None)
    if model.classifier and isinstance(logits, Tensor) and logits.dim() == 2:
        return logits[:, None]
    if not isinstance(logits, Tensor) or logits.dim() != 3:
        raise ValueError(
            f"{model.name} gives a {type(out).__name__} without logits (batch, token, vocabulary); "
            "headwidget needs a model with a language-model head that returns a ModelOutput "
            "(config.return_dict=True)."
        )
    return logits


def _by_keyword(model: Model, name: str) -> str:
    return (
        f"{model.name} calls {name} with keyword arguments only, so headwidget cannot see what "
        "goes in."
    )


def _check_length(model: Model, positions: int, length: int) -> None:
    """Refuse a model that predicts at other positions than it was fed."""
    if positions != length:
        raise ValueError(
            f"{model.name} was fed {length} tokens and answers at {positions} positions: it adds "
            "tokens of its own (virtual tokens of prompt tuning?) or drops some, so where the "
            "answer is predicted is not known. Score the model without what adds them."
        )


def watch(module: nn.Module, see: Callable[[Any, Any, Any], None]) -> Altered:
    """Call ``see(args, kwargs, output)`` after each call of ``module``."""
    mine = on_this_thread()

    def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if mine():
            see(args, kwargs, output)

    return Altered(lambda undo: undo(module.register_forward_hook(hook, with_kwargs=True).remove))


def watch_turn(module: nn.Module, layer: Layer, see: Callable[[Any, Any, Any], None]) -> Altered:
    """:func:`watch` of a module of a layer, called for the layer's own turn only."""
    calls = itertools.count()

    def in_turn(args: Any, kwargs: Any, output: Any) -> None:
        if next(calls) % layer.turns == layer.turn:
            see(args, kwargs, output)

    return watch(module, in_turn)


def watch_all(
    module: nn.Module,
    enter: Callable[[str, nn.Module, Any, Any], Any],
    leave: Callable[[Any], None],
) -> Altered:
    """Call ``enter(name, part, args, kwargs)`` and ``leave(output)`` around each call of a part.

    Other arguments that ``enter`` returns, as a pair, go to the part in place of its own.
    """
    mine = on_this_thread()

    def place(name: str) -> tuple[Callable[..., Any], Callable[..., None]]:
        def before(part: nn.Module, args: Any, kwargs: Any) -> Any:
            return enter(name, part, args, kwargs) if mine() else None

        def after(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if mine():
                leave(output)

        return before, after

    def make(undo: Undo) -> None:
        for name, part in module.named_modules():
            before, after = place(name)
            undo(part.register_forward_pre_hook(before, with_kwargs=True).remove)
            undo(part.register_forward_hook(after, with_kwargs=True).remove)

    return Altered(make)


def stand_in(module: nn.Module, forward: Callable[..., Any]) -> Altered:
    """Let ``forward`` answer in the module's place."""
    mine = on_this_thread()

    def make(undo: Undo) -> None:
        original, wrapper = module.forward, module.__dict__.get("forward")

        def answer(*args: Any, **kwargs: Any) -> Any:
            return (forward if mine() else original)(*args, **kwargs)

        if wrapper is None:
            undo(lambda: module.__dict__.pop("forward", None))
        else:  # accelerate keeps one of its own here
            undo(lambda: setattr(module, "forward", wrapper))
        module.forward = answer

    return Altered(make)


# ---- modes ----


def evaluating(model: Model) -> Altered:
    """Evaluation mode, uncompiled; afterwards everything is as it was.

    4-bit layers of bitsandbytes are kept in training mode, in which they leave their weights
    as they are.

    Other threads' scoring waits meanwhile. Parameters are not touched, and modules only
    where they are in training mode or compiled: then another thread that runs the model
    finds it in evaluation mode, which ``model.disturbances`` tells.
    """
    modules: list[nn.Module] = []
    switched, others, mine = False, 0, on_this_thread()

    def count(*_: Any) -> None:
        nonlocal others
        others += not mine()

    def make(undo: Undo) -> None:
        model.shared_lock.take(undo)
        check_stop()
        check_unhooked(model.wrappers, model.module)
        model.check_in_place()
        everything = list(model.module.modules())
        modules.extend(m for m in everything if not packs_its_weight(m))
        if any(m.training for m in modules):
            undo(model.blocks[0].register_forward_pre_hook(count).remove)
        switch_modes(everything, undo)
        undo(look_around)

    def look_around() -> None:  # before the modes are given back
        nonlocal switched
        switched = any(m.training for m in modules)

    def check() -> None:
        if switched:
            raise RuntimeError(
                f"{model.name} was switched to training mode while it was scored, by another "
                "thread: scores would depend on dropout. Score it when its training rests."
            )
        if others:
            model.disturbances.add(
                "Another thread ran the model meanwhile: it is in training mode, and scoring "
                "switches it to evaluation mode, so those forwards had no dropout."
            )

    return Altered(make, check)


def switch_modes(everything: list[nn.Module], undo: Undo) -> None:
    """Evaluation mode, uncompiled, as a step of an alteration."""
    training = [m for m in everything if m.training and not packs_its_weight(m)]
    compiled = [m for m in everything if m._compiled_call_impl is not None]
    packing = [m for m in everything if packs_its_weight(m) and not m.training]
    if compiled:
        calls = [m._compiled_call_impl for m in compiled]
        undo(lambda: _give_back(compiled, calls))
        set_all(compiled, "_compiled_call_impl", None)
    if packing:  # they have no dropout, and pack their weights in evaluation mode only
        undo(lambda: set_all(packing, "training", False))
        set_all(packing, "training", True)
    if training:
        undo(lambda: set_all(training, "training", True))
        set_all(training, "training", False)


def set_all(modules: list[nn.Module], name: str, value: Any) -> None:
    """Set an attribute of several modules."""
    for module in modules:
        setattr(module, name, value)


def _give_back(modules: list[nn.Module], calls: list[Any]) -> None:
    for module, call in zip(modules, calls):
        module._compiled_call_impl = call


def scoring(model: Model) -> Altered:
    """Evaluation mode, and nothing kept for a backward.

    Never held across a yield: the caller's own code must not run inside.
    """
    return together(evaluating(model), Altered(lambda undo: entered(without_backward(), undo)))


def differentiating(model: Model) -> Altered:
    """Evaluation mode, and gradients are kept, also where the caller has switched them off."""

    def make(undo: Undo) -> None:
        entered(torch.inference_mode(False), undo)
        entered(torch.enable_grad(), undo)

    return together(evaluating(model), Altered(make))


# ---- shapes ----


def by_head(flat: Tensor, layer: Layer) -> Tensor:
    """(batch, seq, heads * dim) -> (batch, seq, head, dim)."""
    return flat.reshape(*flat.shape[:-1], layer.heads, layer.head_dim)


def take_positions(hidden: Tensor, positions: Tensor) -> Tensor:
    """Each sample at its own positions: (batch, seq, …), (batch, k) -> (batch, k, …)."""
    rows = torch.arange(len(positions), device=hidden.device)[:, None]
    return hidden[rows, positions.to(hidden.device)]


def on_projections(
    model: Model,
    hook: Callable[[int, Layer, Tensor], Tensor | None],
    *,
    all_layers: bool = True,
) -> Altered:
    """Run ``hook(row, layer, z)`` before every output projection.

    A tensor that it returns replaces the projection's input. A model that runs without one of
    them is refused, unless layers may run one at a time.
    """
    fired = [0] * len(model.layers)
    ran, mine = 0, on_this_thread()

    def count(*_: Any) -> None:
        nonlocal ran
        ran += mine()

    def place(
        row: int, layer: Layer
    ) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]:
        calls = itertools.count()

        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if not mine() or next(calls) % layer.turns != layer.turn:
                return None
            check_stop()
            if not args:
                raise RuntimeError(_by_keyword(model, layer.name))
            fired[row] += 1
            changed = hook(row, layer, args[0])
            return None if changed is None else (changed, *args[1:])

        return before

    def make(undo: Undo) -> None:
        undo(model.layers[0].block.register_forward_pre_hook(count).remove)
        for row, layer in enumerate(model.layers):
            undo(layer.projection.register_forward_pre_hook(place(row, layer)).remove)

    def check() -> None:
        if all_layers and ran and not all(fired):
            silent = model.layers[fired.index(0)].name
            raise RuntimeError(
                f"{silent} was never called while the model ran, so its heads could not be "
                "reached (does the layer use its weight directly?)."
            )

    return Altered(make, check)
