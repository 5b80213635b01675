"""One run of a method on the model's thread: start it, stop it, keep its scores.

A runner knows nothing of widgets. It reports to its owner through three callbacks and does
not keep that owner alive: when the owner is gone, the run stops.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeVar

from headwidget.live import payloads, worker
from headwidget.live.lock import Lock
from headwidget.live.pacer import Pacer
from headwidget.models import Model, hooks
from headwidget.scores import HeadScores, provenance
from headwidget.scoring.contract import Chunk
from headwidget.scoring.portions import Portions
from headwidget.scoring.score import Scoring

Callback = TypeVar("Callback", bound=Callable[..., Any])

UNDER_WAY = "a run is under way; stop it before you return to an earlier one."


class Runner:
    """Runs methods on one model, one at a time; a new run replaces the one under way.

    The callbacks are bound methods of the owner, held weakly. They are called on the model's
    thread, ``tell`` also on the one that starts or stops a run:

    - ``show(scores, final)``: scores to draw, of a run under way or as they are kept;
    - ``tell(state)``: how far the run is, with ``lock`` held;
    - ``kept()``: ``scores`` and ``results`` have changed, with ``lock`` held.
    """

    def __init__(
        self,
        model: Model,
        pacer: Pacer,
        lock: Lock,
        *,
        show: Callable[[HeadScores, bool], None],
        tell: Callable[[dict[str, Any]], None],
        kept: Callable[[], None],
    ) -> None:
        self._model, self._pacer, self._lock = model, pacer, lock
        self._show = weakref.WeakMethod(show)
        self._tell_owner = weakref.WeakMethod(tell)
        self._tell_kept = weakref.WeakMethod(kept)
        self._run: worker.Run | None = None  # the last one, whether it has ended or not
        self._scoring: Scoring | None = None  # of the run under way
        self._kept: HeadScores | None = None
        self._before: HeadScores | None = None  # what was kept before the run under way
        self._results: dict[str, HeadScores] = {}
        self._state: dict[str, Any] = {"state": "idle"}

    # ---- for the owner ----

    def start(self, scoring: Scoring) -> None:
        """Start a run; the one under way is stopped and replaced."""
        with self._lock:
            self.abandon()
            scoring.portions = Portions()
            progress = _Progress(scoring)
            self._run = worker.Run(lambda run: self._steps(scoring, progress, run))
            self._scoring, self._before, self._kept = scoring, self._kept or self._before, None
            self._tell(self._run, progress.report("running", what="starting"))
            worker.of(self._model).start(self._run)

    def stop(self) -> None:
        """Ask the run to stop; what is done is kept."""
        with self._lock:
            if self._run is not None and self._state["state"] == "running":
                self._run.stop.set()
                self._tell(self._run, {**self._state, "state": "stopping"})

    def abandon(self) -> None:
        """Stop the run without telling the owner. Takes no lock, so ``__del__`` may call it."""
        if self._run is not None:
            self._run.stop.set()

    def show_again(self, scores: HeadScores, at: str) -> None:
        """Show the scores of an earlier run; ``ValueError`` while another one is under way."""
        with self._lock:
            if self.is_busy:
                raise ValueError(UNDER_WAY)
            self._kept = scores
            _alive(self._show)(scores, True)
            state = "stopped" if scores.partial else "done"
            self._report({"state": state, "method": scores.method, "again": at})

    def refuse(self, message: str) -> None:
        """Report that a run could not be started."""
        with self._lock:
            self._report({"state": "failed", "message": message, "kept": 0})

    @property
    def state(self) -> dict[str, Any]:
        """What the owner was told last; ``["state"]`` names the state, such as ``"running"``."""
        return self._state

    @property
    def is_busy(self) -> bool:
        """Whether a run is under way."""
        return self._run is not None and not self._run.ended.is_set()

    @property
    def scores(self) -> HeadScores | None:
        """The scores of the last run, or what the run under way has measured."""
        scoring = self._scoring if self.is_busy else None
        if scoring is not None and any(scoring.begun(task) for task in scoring.tasks):
            return scoring.scores(partial=True)
        return self._kept

    @property
    def results(self) -> dict[str, HeadScores]:
        """The last scores of every method that was run, by the method's name.

        Scores with heads changed stand beside those without: "gradient · 3 heads changed".
        """
        return dict(self._results)

    # ---- on the model's thread ----

    def _steps(
        self, scoring: Scoring, progress: _Progress, run: worker.Run
    ) -> Generator[None, None, None]:
        """The run, as the worker steps through it; it yields where the model is free."""
        progress.start()
        self._pacer.start_run()
        held = weakref.ref(self)  # a scoring keeps note until the garbage collector comes

        def note(what: str, steps: float) -> None:
            progress.done += steps
            if (runner := held()) is not None:
                runner._note(run, progress, what)
            hooks.check_stop()

        state, message, kept = "done", None, 0
        try:
            hooks.check_stop()
            self._picture(scoring, run, first=True)
            for chunk in _chunks(scoring, note):
                progress.note_losses(chunk.state)
                self._picture(scoring, run)
                yield
        except KeyboardInterrupt:
            state = "stopped"
        except GeneratorExit:
            raise  # the worker is gone, and this generator is closed
        except BaseException as error:  # a handler of the owner may even call sys.exit
            state, message = "failed", payloads.sentence(error)
        try:
            kept = self._keep(scoring, run, partial=state != "done")
        except KeyboardInterrupt:
            pass  # the owner is gone: there is nothing to keep
        except BaseException as error:
            state, message = "failed", payloads.sentence(error)
        finally:
            halved = scoring.halved[-1] if scoring.halved else None
            ending = progress.report(
                state,
                what="",
                kept=kept,
                message=message,
                halved=halved,
                trouble=_let_go(scoring),
            )
            with contextlib.suppress(hooks.Stopped):
                self._tell(run, ending)
            if self._scoring is scoring:
                self._scoring = None  # what it has found is kept as scores
            run.ended.set()

    def _note(self, run: worker.Run, progress: _Progress, what: str) -> None:
        """Report progress, if that is due."""
        if self._pacer.progress_due():
            state = "stopping" if run.stop.is_set() else "running"
            left, trouble = progress.seconds_left(), _trouble(self._scoring)
            self._tell(run, progress.report(state, what=what, left=left, trouble=trouble))

    def _picture(self, scoring: Scoring, run: worker.Run, *, first: bool = False) -> None:
        """Show what has landed, if a picture is due and the run was not replaced."""
        show = _alive(self._show)
        if self._run is not run or not (first or self._pacer.due()):
            return
        with self._pacer.picture(free=first):
            show(scoring.snapshot(), False)

    def _keep(self, scoring: Scoring, run: worker.Run, *, partial: bool) -> int:
        """Keep and show what a run has done, unless it was replaced; how many runs of prompts."""
        show, tell_kept = _alive(self._show), _alive(self._tell_kept)
        runs = sum(len(scoring.begun(task)) for task in scoring.tasks)
        scores = scoring.scores(partial=partial) if runs and self._run is run else None
        with self._lock:
            if scores is not None and self._run is run:
                self._kept = scores
                name = provenance.method_name(scores)
                before = self._results.get(name)
                if before is None or before.partial or not scores.partial:
                    self._results[name] = scores  # partial never replaces complete
                show(scores, True)
                tell_kept()
            elif self._before is not None and self._run is run:
                show(self._before, True)  # nothing was done: what was scored stays on view
        return runs

    def _tell(self, run: worker.Run, state: dict[str, Any]) -> None:
        """Report the state of a run, unless it was replaced."""
        with self._lock:
            if self._run is run:
                self._report(state)

    def _report(self, state: dict[str, Any]) -> None:
        self._state = state
        _alive(self._tell_owner)(state)


def _chunks(scoring: Scoring, note: Callable[[str, float], None]) -> Iterator[Chunk]:
    """The chunks of a run. A method that would end the thread fails as with any other error."""
    landing = scoring.land(note)
    while True:
        try:
            _, chunk = next(landing)
        except StopIteration:
            return
        except (SystemExit, GeneratorExit) as error:
            raise RuntimeError(
                f"method {scoring.method.name!r} raised {type(error).__name__}; a method ends with "
                "return, or raises an error such as ValueError."
            ) from error
        yield chunk


def _trouble(scoring: Scoring | None) -> str | None:
    """Why a run's checkpoint is not written any more, as a sentence, if so."""
    kept = None if scoring is None else scoring.checkpoint
    return None if kept is None else kept.broken


def _let_go(scoring: Scoring) -> str | None:
    """Close a run's checkpoint; why it is not whole, as a sentence, if so."""
    if scoring.checkpoint is not None:
        scoring.checkpoint.close()
    return _trouble(scoring)


class _Progress:
    """How far a run is, in the form that the front end reads."""

    def __init__(self, scoring: Scoring) -> None:
        self._total, self._unit = scoring.steps()
        self._method, self._losses = scoring.method.name, ""
        self.done = 0.0
        self.start()

    def start(self) -> None:
        """Begin to count seconds."""
        self._started = time.monotonic()

    def note_losses(self, state: Mapping[str, Any]) -> None:
        """Keep the last loss and regulariser of a fit, for methods that have them."""
        losses = []
        for name in ("loss", "regulariser"):
            if state.get(name):
                losses.append(f"{name} {state[name][-1]:.3g}")
        self._losses = ", ".join(losses)

    def seconds_left(self) -> float | None:
        """An estimate from the steps done so far; None before the first."""
        spent = time.monotonic() - self._started
        return spent * (self._total - self.done) / self.done if self.done else None

    def report(self, state: str, **more: Any) -> dict[str, Any]:
        """The state as JSON."""
        return {
            "state": state,
            "done": self.done,
            "total": self._total,
            "unit": self._unit,
            "method": self._method,
            "detail": self._losses,
            "seconds": time.monotonic() - self._started,
            **more,
        }


def _alive(callback: weakref.WeakMethod[Callback]) -> Callback:
    """The owner's callback; where the owner is gone, the run stops as by Ctrl-C."""
    if (method := callback()) is None:
        raise hooks.Stopped
    return method
