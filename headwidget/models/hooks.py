"""Hooks: read z (batch, seq, head, dim) and gate heads.

The only module that registers hooks; each is a context manager that removes its own.
Attention stays as the user set it (sdpa stays sdpa): only the output projection's input
and a few modules' calls are touched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwidget.models.model import Layer, Model

Take = Callable[[int, Tensor], None]
without_backward = torch.inference_mode


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
    """Raise :class:`Stopped` where this thread was asked to stop."""
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


@contextmanager
def read(model: Model, take: Take) -> Iterator[None]:
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

    with _on_projections(model, hook):
        yield


@contextmanager
def gate(model: Model, gates: Tensor, fill: Tensor | None = None) -> Iterator[None]:
    """Multiply each head's z by its gate. Ones change nothing, bit for bit.

    ``gates`` is (layer, head), or (batch, layer, head) for a gate per sample. With ``fill``
    (layer, head, dim), what a gate takes away is replaced: ``g * z + (1 - g) * fill``.
    """
    if gates.shape[-2:] != model.shape:
        raise ValueError(
            f"gates must end in (layer, head) = {model.shape}; got {tuple(gates.shape)}."
        )

    def hook(row: int, layer: Layer, flat: Tensor) -> Tensor:
        z = by_head(flat, layer)  # (batch, seq, head, dim)
        g = gates[..., row, :].to(z.device, z.dtype)  # (head,) or (batch, head)
        g = g[:, None, :, None] if g.dim() == 2 else g[:, None]
        out = z * g
        if fill is not None:
            out = out + (1 - g) * fill[row].to(z.device, z.dtype)
        if (stop := _stop_event()) is not None and out.requires_grad:
            # The backward may run in a thread of torch's own, so it is given the event.
            out.register_hook(lambda _: _raise_if_set(stop))  # type: ignore[no-untyped-call]
        return out.reshape(flat.shape)

    with _on_projections(model, hook):
        yield


@contextmanager
def unembed_at(model: Model, positions: Tensor) -> Iterator[None]:
    """Compute logits at ``positions`` (batch, k) only, (batch, k, vocabulary)."""
    fired, mine = 0, on_this_thread()

    def hook(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        nonlocal fired
        if not mine():
            return None
        fired += 1
        return (take_positions(args[0], positions), *args[1:])

    handle = model.unembedding.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()
    if not fired:
        raise RuntimeError(
            f"{type(model.unembedding).__name__}, the unembedding of {model.name}, never ran: "
            "its logits are made elsewhere."
        )


@contextmanager
def watch(module: nn.Module, see: Callable[[Any, Any, Any], None]) -> Iterator[None]:
    """Call ``see(args, kwargs, output)`` after each call of ``module``."""
    mine = on_this_thread()

    def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if mine():
            see(args, kwargs, output)

    handle = module.register_forward_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def stand_in(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Let ``forward`` answer in the module's place."""
    wrapper = module.__dict__.get("forward")  # accelerate keeps one of its own here
    original, mine = module.forward, on_this_thread()

    def answer(*args: Any, **kwargs: Any) -> Any:
        return (forward if mine() else original)(*args, **kwargs)

    module.forward = answer
    try:
        yield
    finally:
        if wrapper is None:
            del module.__dict__["forward"]
        else:
            module.forward = wrapper


@contextmanager
def frozen(model: Model) -> Iterator[None]:
    """Evaluation mode and no gradients to weights; afterwards everything is as it was.

    Other threads' scoring waits meanwhile. A plain forward of theirs does not wait, and finds
    the model in evaluation mode.
    """
    with model.lock:
        check_stop()
        training = [m for m in model.module.modules() if m.training]
        trainable = [p for p in model.module.parameters() if p.requires_grad]
        try:
            for m in training:
                m.training = False
            for p in trainable:
                p.requires_grad_(False)
            yield
        finally:
            for m in training:
                m.training = True
            for p in trainable:
                p.requires_grad_(True)


@contextmanager
def scoring(model: Model) -> Iterator[None]:
    """Frozen, and nothing kept for a backward.

    Never held across a yield: the caller's own code must not run inside.
    """
    with frozen(model), without_backward():
        yield


def by_head(flat: Tensor, layer: Layer) -> Tensor:
    """(batch, seq, heads * dim) -> (batch, seq, head, dim)."""
    return flat.reshape(*flat.shape[:-1], layer.heads, layer.head_dim)


def take_positions(hidden: Tensor, positions: Tensor) -> Tensor:
    """Each sample at its own positions: (batch, seq, …), (batch, k) -> (batch, k, …)."""
    rows = torch.arange(len(positions), device=hidden.device)[:, None]
    return hidden[rows, positions.to(hidden.device)]


@contextmanager
def _on_projections(
    model: Model, hook: Callable[[int, Layer, Tensor], Tensor | None]
) -> Iterator[None]:
    """Run ``hook(row, layer, z)`` before every output projection.

    A tensor that it returns replaces the projection's input.
    """
    fired = [0] * len(model.layers)
    ran, mine = 0, on_this_thread()

    def count(*_: Any) -> None:
        nonlocal ran
        ran += mine()

    def place(
        row: int, layer: Layer
    ) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]:
        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if not mine():
                return None
            check_stop()
            fired[row] += 1
            changed = hook(row, layer, args[0])
            return None if changed is None else (changed, *args[1:])

        return before

    with ExitStack() as stack:
        stack.callback(model.layers[0].block.register_forward_pre_hook(count).remove)
        for row, layer in enumerate(model.layers):
            stack.callback(layer.projection.register_forward_pre_hook(place(row, layer)).remove)
        yield
    if ran and not all(fired):
        silent = model.layers[fired.index(0)].name
        raise RuntimeError(
            f"{silent} was never called while the model ran, so its heads could not be reached "
            "(does the layer use its weight directly?)."
        )
