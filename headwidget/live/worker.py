"""One thread for each model that is used live, which does one thing at a time with it.

A run is a generator that does not touch the model between two of its steps. Short jobs, such
as reading a prompt, are done between the steps, so that only one of them uses the model at a
time. A new run replaces the one under way. The thread ends when there is nothing to do.
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

END_SECONDS = 30
"""Seconds to wait for the thread when the process ends."""
Job = Callable[[], None]


@dataclass(eq=False)
class Run:
    """Long work, step by step.

    ``stop`` ends it at the next layer of a forward. Its generator sees that as Ctrl-C.
    """

    begin: InitVar[Callable[[Run], Generator[None, None, None]]]
    """Gives the generator of a run; not kept, as it may hold what holds the run."""
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self, begin: Callable[[Run], Generator[None, None, None]]) -> None:
        self.steps = begin(self)


@dataclass(eq=False)
class _UnderWay:
    """The job that is being done."""

    purpose: object
    job: Job
    is_idle: bool
    stop: threading.Event = field(default_factory=threading.Event)
    again: bool = False
    """Was it stopped only because something else is to be done first?"""


class Worker:
    """The thread of one model, and what it has to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Jobs by purpose: a newer job replaces one of the same purpose that waits.
        self._jobs: dict[object, Job] = {}
        self._idle_jobs: dict[object, Job] = {}  # done when there is nothing else to do
        # The first run is under way. All but the last were replaced and are stopped.
        self._runs: deque[Run] = deque()
        self._current: _UnderWay | None = None
        self._thread: threading.Thread | None = None
        self._is_ending = False

    def soon(self, purpose: object, job: Job, *, idle: bool = False) -> None:
        """Do a short job next, or when there is nothing else to do.

        A job of the same purpose that still waits is dropped. A job reports its own errors. An
        idle job is broken off for another, and done again later.
        """
        with self._lock:
            if self._is_ending:
                return
            if not idle:
                self._break_off_idle()
            jobs = self._idle_jobs if idle else self._jobs
            jobs.pop(purpose, None)
            jobs[purpose] = job
            self._wake()

    def start(self, run: Run) -> None:
        """Start a run; the one under way is stopped first."""
        with self._lock:
            for replaced in self._runs:
                replaced.stop.set()
            self._break_off_idle()
            self._runs.append(run)
            self._wake()

    def forget(self, purpose: object) -> None:
        """Drop a job that waits; one under way ends at the next layer of a forward."""
        with self._lock:
            self._jobs.pop(purpose, None)
            self._idle_jobs.pop(purpose, None)
            if self._current is not None and self._current.purpose == purpose:
                self._current.again = False
                self._current.stop.set()

    def end(self) -> None:
        """Stop everything and wait for the thread.

        A thread that is cut off inside torch would crash the process.
        """
        with self._lock:
            self._is_ending = True  # no new jobs
            self._jobs.clear()
            self._idle_jobs.clear()
            if self._current is not None:
                self._current.stop.set()
            for run in self._runs:
                run.stop.set()
            thread = self._thread
        if thread is not None:
            thread.join(END_SECONDS)

    @property
    def thread(self) -> threading.Thread | None:
        """The thread, while there is something to do."""
        return self._thread

    def _break_off_idle(self) -> None:
        current = self._current
        if current is not None and current.is_idle and not current.stop.is_set():
            current.again = True
            current.stop.set()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="headwidget", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Do a job and a step of the run in turn, until there is nothing left."""
        was_step = True
        while (task := self._next(was_step)) is not None:
            was_step = isinstance(task, Run)
            try:
                if not isinstance(task, Run):
                    self._do(task)
                elif not self._step(task):
                    self._over(task)
            except BaseException:  # an observer may even call sys.exit: the thread goes on
                log.exception("headwidget: the model's thread goes on after an error")
                if isinstance(task, Run):
                    self._over(task)

    def _next(self, was_step: bool) -> Run | Job | None:
        """The run to step or the job to do; None, and the thread is given up, where neither is.

        A run that was stopped goes first, so that Stop is answered at once.
        """
        with self._lock:
            run = self._runs[0] if self._runs else None
            jobs = self._jobs or (self._idle_jobs if run is None else {})
            if run is not None and (not jobs or not was_step or run.stop.is_set()):
                return run
            if jobs:
                purpose = next(iter(jobs))
                job = jobs.pop(purpose)
                self._current = _UnderWay(purpose, job, is_idle=jobs is self._idle_jobs)
                return job
            self._thread = None
            return None

    def _do(self, job: Job) -> None:
        current = self._current
        assert current is not None
        try:
            with hooks.stoppable(current.stop):
                job()
        except hooks.Stopped:
            with self._lock:
                if current.again and not self._is_ending:
                    self._idle_jobs.setdefault(current.purpose, job)
        finally:
            self._current = None

    def _over(self, run: Run) -> None:
        with self._lock:
            self._runs.remove(run)
        run.ended.set()

    def _step(self, run: Run) -> bool:
        """Do one step of a run; False when the run has ended."""
        is_suspended = inspect.getgeneratorstate(run.steps) == inspect.GEN_SUSPENDED
        try:
            with hooks.stoppable(run.stop):
                if run.stop.is_set() and is_suspended:
                    run.steps.throw(hooks.Stopped())
                else:
                    next(run.steps)
        except (StopIteration, KeyboardInterrupt):
            return False
        return True


_workers: weakref.WeakKeyDictionary[nn.Module, Worker] = weakref.WeakKeyDictionary()


def of(model: Model) -> Worker:
    """The worker of a model, shared by all who have loaded the same module."""
    return _workers.setdefault(model.module, Worker())


@atexit.register
def _end_all() -> None:
    for worker in list(_workers.values()):
        worker.end()
