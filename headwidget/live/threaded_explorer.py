"""An explorer whose traits are also set by the model's thread, and that ends as objects do.

Three things a widget with work on another thread needs: traits that two threads may set,
errors of observers that reach the user, and an end that takes the work with it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import TraitError

from headwidget.display.explorer import ExplorerBase
from headwidget.live import lifetime, payloads, worker
from headwidget.live.lock import Lock
from headwidget.models import Model
from headwidget.scores import HeadScores

if TYPE_CHECKING:
    from typing_extensions import Self


class ThreadedExplorer(ExplorerBase):
    """The maps, with the thread of one model. :class:`headwidget.Lab` is one."""

    _jobs: tuple[str, ...] = ()
    """The names of the short jobs that it gives the model's thread (:meth:`_later`)."""
    _trouble = traitlets.Unicode().tag(sync=True)
    """What went wrong beside the work itself, such as in an observer."""
    _refusal = ""
    """Why a value of the page was refused last; shown until the page sends one that is taken."""
    _closed = True  # until __init__ has begun

    def __init__(self, model: Model, lock: Lock, scores: HeadScores, **traits: Any) -> None:
        self._model = model
        self._lock = lock  # held while traits are set
        self._closed = False
        super().__init__(scores, preview="png", **traits)
        lifetime.let_go(self)

    def stop(self) -> None:
        """Ask what runs on the model's thread to stop; :meth:`close` does."""

    def _abandon(self) -> None:
        """The same for ``__del__``: without taking a lock, and without setting a trait."""

    # ---- traits ----

    def _set(self, **traits: Any) -> None:
        """Set traits in one message. An observer that raises is reported and stops nothing."""
        if self._closed:
            return
        with self._lock, self.hold_sync():
            for name, value in traits.items():
                try:
                    self.set_trait(name, value)
                except Exception as error:
                    worker.log.exception("headwidget: a handler of %r failed", name)
                    if name != "_trouble":
                        sentence = payloads.sentence(error)
                        self._set(_trouble=f"A handler that observes the lab failed: {sentence}")

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the front end has set (ipywidgets calls this)."""
        with self._lock:
            try:
                super().set_state(sync_data)
            except TraitError as error:
                self._refusal = str(error)
                self._set(_trouble=self._refusal)
                raise
            if self._trouble and self._trouble == self._refusal:
                self._set(_trouble="")

    # ---- the model's thread ----

    def _later(self, what: str, job: Callable[[Self], None], *, idle: bool = False) -> None:
        """Let the model's thread do a short job next, or when it is idle.

        A job of the same name that still waits is replaced. A job that waits does not keep
        its widget alive.
        """
        held = weakref.ref(self)

        def do_if_open() -> None:
            if (widget := held()) is not None and not widget._closed:
                job(widget)

        if not self._closed:
            worker.of(self._model).soon((id(self), what), do_if_open, idle=idle)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all that was asked is done; False if that took longer than ``seconds``.

        It blocks the kernel: in a cell, ``await lab.done`` is better.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while (thread := worker.of(self._model).thread) is not None:
            if threading.current_thread() is thread or self._lock.is_held_here:
                raise RuntimeError(
                    "lab.wait() inside a handler would wait for itself; follow the run with "
                    "lab.observe(handler, 'state'), or `await lab.done` in a cell."
                )
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            thread.join(0.05 if left is None else min(0.05, left))
        return True

    # ---- its end ----

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        lifetime.shown(self)
        return super()._repr_mimebundle_(**kwargs)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this lab is closed; make another with hw.live(model).")

    def close(self) -> None:
        """Stop what runs and let go of the model."""
        with self._lock:
            was_open = not self._closed
            self.stop()
            self._closed = True
        if was_open:
            for what in self._jobs:
                worker.of(self._model).forget((id(self), what))
            lifetime.hidden(self)
        super().close()

    def __del__(self) -> None:
        """Stop the work when the last reference is gone.

        The garbage collector may call this on any thread, while that thread or another holds
        any lock, so it takes none of ours.
        """
        if not self._closed:
            self._closed = True
            self._abandon()
            super().close()
