"""One thread for each model that is worked with live: it runs what is asked, one thing at a time, and ends when there is nothing to do.

A long run is a generator that leaves the model alone whenever it yields. Between two of its steps come short jobs (a prompt that was typed), so
the two never meet in the model. A new run replaces the one under way.
"""

from __future__ import annotations

import atexit
import inspect
import threading
import weakref
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwidget import hooks

if TYPE_CHECKING:
    from torch import nn

    from headwidget.models import Model


@dataclass(eq=False)
class Run:
    """Long work, step by step. ``stop`` ends it at the next layer of a forward; its generator sees that as Ctrl-C and keeps what is done."""

    steps: Generator[None, None, None]
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class Worker:
    """The thread of one model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[object, Callable[[], None]] = {}  # by what they are for: a newer one replaces one that waits
        self._run: Run | None = None
        self._next: Run | None = None
        self._thread: threading.Thread | None = None

    def soon(self, what: object, job: Callable[[], None]) -> None:
        """Do a short job next; one for the same purpose that still waits is dropped. A job says itself what goes wrong in it."""
        with self._lock:
            self._jobs.pop(what, None)
            self._jobs[what] = job
            self._wake()

    def start(self, run: Run) -> None:
        """Begin a run; the one under way is stopped first."""
        with self._lock:
            for before in (self._run, self._next):
                if before is not None:
                    before.stop.set()
            if self._next is not None:
                self._next.ended.set()  # it never began
            self._next = run
            self._wake()

    def end(self) -> None:
        """Stop everything and wait for the thread: a thread that is cut off inside torch takes the process down with it."""
        with self._lock:
            self._jobs.clear()
            for run in (self._run, self._next):
                if run is not None:
                    run.stop.set()
            thread = self._thread
        if thread is not None:
            thread.join(30)

    def forget(self, what: object) -> None:
        """Drop a job that waits."""
        with self._lock:
            self._jobs.pop(what, None)

    @property
    def thread(self) -> threading.Thread | None:
        """The thread, while there is something to do."""
        return self._thread

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="headwidget", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                job = self._jobs.pop(next(iter(self._jobs))) if self._jobs else None
                if job is None and self._run is None:
                    self._run, self._next = self._next, None
                if job is None and self._run is None:
                    self._thread = None
                    return
                run = self._run
            if job is not None:
                job()
            elif run is not None and not self._step(run):
                with self._lock:
                    self._run = None
                run.ended.set()

    def _step(self, run: Run) -> bool:
        """One step of a run; False when it has ended."""
        try:
            with hooks.stoppable(run.stop):
                if run.stop.is_set() and inspect.getgeneratorstate(run.steps) == inspect.GEN_SUSPENDED:
                    run.steps.throw(hooks.Stopped())
                else:
                    next(run.steps)
        except (StopIteration, KeyboardInterrupt):
            return False
        return True


_workers: weakref.WeakKeyDictionary[nn.Module, Worker] = weakref.WeakKeyDictionary()


def of(model: Model) -> Worker:
    """The worker of a model; the same for everyone who has loaded it."""
    return _workers.setdefault(model.module, Worker())


@atexit.register
def _end_all() -> None:
    for one in list(_workers.values()):
        one.end()
