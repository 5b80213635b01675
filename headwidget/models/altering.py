"""Changes of a model for a while: made as a whole or not at all, and always undone.

Hooks, replaced forwards, modes: whatever headwidget changes on a model, it changes through
:class:`Altered`, which undoes its steps in reverse order.

The danger is Ctrl-C. Python raises KeyboardInterrupt between any two bytecodes of the main
thread, and so also after a hook is registered and before anybody knows how to remove it.
Therefore signals wait while a change is made or undone: :class:`Altered` replaces their
handlers, and the replacement looks whether ``__enter__`` or ``__exit__`` of an ``Altered`` is
among the frames that were interrupted. Elsewhere, above all in the body of the ``with``, a
signal is handled at once, by the handler that was there before.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

Undo = Callable[[Callable[[], object]], None]
"""Takes what undoes a step; called right after (or before) the step is made."""

POLL = 0.05
"""Seconds between two looks for Ctrl-C while a thread waits for a lock."""


class Altered:
    """A context in which a model is changed by ``make`` and then as it was before.

    ``make(undo)`` makes the change and calls ``undo(step)`` for each step that will undo a
    part of it. ``check`` runs after a body that raised nothing, once all is undone.
    """

    def __init__(
        self, make: Callable[[Undo], None], check: Callable[[], None] = lambda: None
    ) -> None:
        self.make, self.check = make, check
        self._steps: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        _signals.hold()
        try:
            self.make(self._steps.append)
            _signals.deliver()
        except BaseException:
            self._undo()
            _signals.let_go()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._undo()
        finally:
            _signals.let_go()
        if error is None:
            self.check()

    def _undo(self) -> None:
        """Undo every step, the last one first, whatever another step raises."""
        try:
            while self._steps:
                self._steps.pop()()
        finally:
            if self._steps:
                self._undo()


def together(*alterations: Altered) -> Altered:
    """Several changes as one: made in order, undone in reverse order."""

    def make(undo: Undo) -> None:
        for alteration in alterations:
            alteration.make(undo)

    def check() -> None:
        for alteration in alterations:
            alteration.check()

    return Altered(make, check)


def entered(context: Any, undo: Undo) -> None:
    """Enter a context manager of torch as a step of an alteration."""
    context.__enter__()
    undo(lambda: context.__exit__(None, None, None))


def acquire(lock: Any, undo: Undo) -> None:
    """Take a lock as a step of an alteration; Ctrl-C ends the wait."""
    while not lock.acquire(timeout=POLL):
        _signals.deliver()
    undo(lock.release)


def deliver_signals() -> None:
    """Handle the signals that arrived while a change was made; called before every layer."""
    _signals.deliver()


class _Signals:
    """The main thread's signal handlers, replaced while a model is altered."""

    NUMBERS = tuple(
        getattr(signal, name)
        for name in (
            *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"),
            *("SIGALRM", "SIGVTALRM", "SIGPROF"),
        )
        if hasattr(signal, name)
    )

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        """The handlers that were there before."""
        self._depth = 0
        """How many alterations are under way, one inside the other."""
        self._waiting: list[int] = []

    def hold(self) -> None:
        """Begin an alteration: from here on, signals wait where they must."""
        if not _on_main_thread():
            return
        if not self._depth:
            for number in self.NUMBERS:
                handler = signal.getsignal(number)
                if callable(handler) and handler != self._handle:
                    self._handlers[number] = handler
                    signal.signal(number, self._handle)
        self._depth += 1

    def let_go(self) -> None:
        """End an alteration, and handle the signals that waited."""
        if not _on_main_thread():
            return
        self._depth -= 1
        if not self._depth:
            for number, handler in self._handlers.items():
                if signal.getsignal(number) == self._handle:
                    signal.signal(number, handler)
        self.deliver()

    def deliver(self) -> None:
        """Call the handlers of the signals that waited; that of Ctrl-C raises."""
        while self._waiting and _on_main_thread():
            number = self._waiting.pop(0)
            self._handlers[number](number, None)

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if _is_altering(frame):
            self._waiting.append(number)
            return None
        return self._handlers[number](number, frame)


_CODES: frozenset[CodeType] = frozenset(
    {Altered.__enter__.__code__, Altered.__exit__.__code__, _Signals.deliver.__code__}
)
"""While one of these runs, signals wait."""
_signals = _Signals()


def _is_altering(frame: FrameType | None) -> bool:
    """Is a change being made or undone in this frame, or in one that called it?"""
    while frame is not None:
        if frame.f_code in _CODES:
            return True
        frame = frame.f_back
    return False


def _on_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident
