"""One thread for each model that is worked with live: it runs what is asked, one thing at a time, and ends when there is nothing to do.

A long run is a generator that leaves the model alone whenever it yields. Between two of its steps comes a short job (a prompt that was typed), so
the two never meet in the model. A new run replaces the one under way.
"""

from __future__ import annotations

import atexit
import inspect
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from headwidget.models import hooks

if TYPE_CHECKING:
    from torch import nn

    from headwidget.models import Model

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Run:
    """Long work, step by step. ``stop`` ends it at the next layer of a forward; its generator sees that as Ctrl-C and keeps what is done."""

    begin: InitVar[Callable[[Run], Generator[None, None, None]]]
    """Gives the generator of a run; not kept, as it may hold what holds the run."""
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self, begin: Callable[[Run], Generator[None, None, None]]) -> None:
        self.steps = begin(self)


class Worker:
    """The thread of one model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[
            object, Callable[[], None]
        ] = {}  # by what they are for: a newer one replaces one that waits
        self._idle: dict[
            object, Callable[[], None]
        ] = {}  # the same, for when there is nothing else to do
        self._runs: deque[Run] = (
            deque()
        )  # the first is under way; all but the last were replaced, and end as soon as it is their turn
        self._doing: tuple[object, threading.Event] | None = (
            None  # the job under way, and how it is stopped
        )
        self._thread: threading.Thread | None = None
        self._ending = False

    def soon(self, what: object, job: Callable[[], None], *, idle: bool = False) -> None:
        """Do a short job next, or when ``idle``; one for the same purpose that still waits is dropped. A job says itself what goes wrong in it."""
        with self._lock:
            if self._ending:
                return
            jobs = self._idle if idle else self._jobs
            jobs.pop(what, None)
            jobs[what] = job
            self._wake()

    def start(self, run: Run) -> None:
        """Begin a run; the one under way is stopped first."""
        with self._lock:
            for before in self._runs:
                before.stop.set()
            self._runs.append(run)
            self._wake()

    def end(self) -> None:
        """Stop everything and wait for the thread: a thread that is cut off inside torch takes the process down with it."""
        with self._lock:
            self._ending = True  # a job that asks for more is not heard
            self._jobs.clear()
            self._idle.clear()
            if (doing := self._doing) is not None:
                doing[1].set()
            for run in self._runs:
                run.stop.set()
            thread = self._thread
        if thread is not None:
            thread.join(30)

    def forget(self, what: object) -> None:
        """Drop a job that waits; one under way ends at the next layer of a forward."""
        with self._lock:
            self._jobs.pop(what, None)
            self._idle.pop(what, None)
            if (doing := self._doing) is not None and doing[0] == what:
                doing[1].set()

    @property
    def thread(self) -> threading.Thread | None:
        """The thread, while there is something to do."""
        return self._thread

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="headwidget", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """A job, then a step of the run, in turn; a run that was stopped goes first, so that Stop is answered at once."""
        stepped = True
        while True:
            with self._lock:
                run = self._runs[0] if self._runs else None
                wanted = self._jobs or (self._idle if run is None else {})
                if run is not None and (not wanted or not stepped or run.stop.is_set()):
                    job = None
                elif wanted:
                    what = next(iter(wanted))
                    job, self._doing = wanted.pop(what), (what, threading.Event())
                else:
                    self._thread = None
                    return
            stepped = job is None
            try:
                if job is not None:
                    self._do(job)
                elif run is not None and not self._step(run):
                    self._over(run)
            except BaseException:  # of somebody's handler (sys.exit, too), which was called here: the next job must not wait for ever
                log.exception("headwidget: the model's thread goes on after an error")
                if job is None and run is not None:
                    self._over(run)

    def _do(self, job: Callable[[], None]) -> None:
        assert self._doing is not None
        try:
            with hooks.stoppable(self._doing[1]):
                job()
        except hooks.Stopped:
            pass  # nobody waits for it any more
        finally:
            self._doing = None

    def _over(self, run: Run) -> None:
        with self._lock:
            self._runs.remove(run)
        run.ended.set()

    def _step(self, run: Run) -> bool:
        """One step of a run; False when it has ended."""
        try:
            with hooks.stoppable(run.stop):
                if (
                    run.stop.is_set()
                    and inspect.getgeneratorstate(run.steps) == inspect.GEN_SUSPENDED
                ):
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
