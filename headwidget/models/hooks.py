"""Hooks: read z (batch, seq, head, dim) and gate heads. The only place that registers hooks; each is a context manager that removes its own.

Attention stays as the user set it (sdpa stays sdpa): only the output projection's input and a few modules' calls are touched.
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
    """Whatever this thread runs inside ends with :class:`Stopped` at the next layer of a forward, or of a backward to gates, once ``stop`` is set."""
    before, _thread.stop = getattr(_thread, "stop", None), stop
    try:
        yield
    finally:
        _thread.stop = before


def check_stop() -> None:
    """Go on, unless this thread was asked to stop."""
    if (stop := _asked_to_stop()) is not None:
        _stop_at(stop)


def _asked_to_stop() -> threading.Event | None:
    return getattr(_thread, "stop", None)


def _stop_at(stop: threading.Event) -> None:
    if stop.is_set():
        raise Stopped


def here() -> Callable[[], bool]:
    """Tells whether code runs on the thread that called this. A hook is for its own thread: a forward in another cell is left as it is, and not seen."""
    owner = threading.get_ident()
    return lambda: threading.get_ident() == owner


# ---- heads ----


@contextmanager
def read(model: Model, take: Take) -> Iterator[None]:
    """Call ``take(row, z)`` for every attention layer as the model runs; ``row`` counts layers with attention, z is (batch, seq, head, dim).

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
    """Multiply each head's z by its gate: ``gates`` is (layer, head), or (batch, layer, head) for a gate per sample. Ones change nothing, bit for bit.

    With ``fill`` (layer, head, dim), what a gate takes away is replaced: ``g * z + (1 - g) * fill``.
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
        if (stop := _asked_to_stop()) is not None and out.requires_grad:
            out.register_hook(lambda _: _stop_at(stop))  # type: ignore[no-untyped-call]  # on its way back, which may be in a thread of torch's own
        return out.reshape(flat.shape)

    with _on_projections(model, hook):
        yield


@contextmanager
def unembed_at(model: Model, positions: Tensor) -> Iterator[None]:
    """Compute logits at ``positions`` (batch, k) only: the model then gives (batch, k, vocabulary)."""
    fired, mine = 0, here()

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
            f"{type(model.unembedding).__name__}, the unembedding of {model.name}, never ran: its logits are made elsewhere."
        )


@contextmanager
def watch(module: nn.Module, see: Callable[[Any, Any, Any], None]) -> Iterator[None]:
    """Call ``see(args, kwargs, output)`` after each call of ``module``."""
    mine = here()

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
    """Let ``forward`` answer in the module's place for a while."""
    had = module.__dict__.get("forward")  # accelerate keeps a wrapper of its own here
    own, mine = module.forward, here()

    def answer(*args: Any, **kwargs: Any) -> Any:
        return (forward if mine() else own)(*args, **kwargs)

    module.forward = answer
    try:
        yield
    finally:
        if had is None:
            del module.__dict__["forward"]
        else:
            module.forward = had


@contextmanager
def frozen(model: Model) -> Iterator[None]:
    """Evaluation mode and no gradients to weights inside; every module and parameter is as it was afterwards. Other threads' scoring waits meanwhile; a plain
    forward of theirs does not, and finds the model in evaluation mode."""
    with model.lock:
        check_stop()
        training = [m for m in model.module.modules() if m.training]
        wanting = [p for p in model.module.parameters() if p.requires_grad]
        try:
            for m in training:
                m.training = False
            for p in wanting:
                p.requires_grad_(False)
            yield
        finally:
            for m in training:
                m.training = True
            for p in wanting:
                p.requires_grad_(True)


@contextmanager
def scoring(model: Model) -> Iterator[None]:
    """Frozen, and nothing kept for a backward. Never held across a yield: the caller's own code must not run inside."""
    with frozen(model), without_backward():
        yield


def by_head(flat: Tensor, layer: Layer) -> Tensor:
    """(batch, seq, heads * dim) -> (batch, seq, head, dim)."""
    return flat.reshape(*flat.shape[:-1], layer.heads, layer.head_dim)


def take_positions(hidden: Tensor, positions: Tensor) -> Tensor:
    """(batch, seq, …), (batch, k) -> (batch, k, …): the rows of each sample at its own positions."""
    rows = torch.arange(len(positions), device=hidden.device)[:, None]
    return hidden[rows, positions.to(hidden.device)]


@contextmanager
def _on_projections(
    model: Model, hook: Callable[[int, Layer, Tensor], Tensor | None]
) -> Iterator[None]:
    """Run ``hook(row, layer, z)`` before every output projection; a tensor it gives replaces the projection's input."""
    fired = [0] * len(model.layers)
    ran, mine = 0, here()

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
            f"{silent} was never called while the model ran, so its heads could not be reached (does the layer use its weight directly?)."
        )
