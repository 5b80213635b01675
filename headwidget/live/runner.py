"""Runs of the lab: a method that scores off the main thread, pictures of it as it goes, and how to stop it."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import TraitError

from headwidget.display import settings, wire
from headwidget.display.explorer import ExplorerBase, trait
from headwidget.live import lifetime, payloads, worker
from headwidget.models import Model, hooks
from headwidget.scores import HeadScores, provenance
from headwidget.scoring import registry, score
from headwidget.tasks import Task

if TYPE_CHECKING:
    from typing_extensions import Self

PROMPTS = 20
"""Prompts of each task that a run scores at first."""
OFTEN, SELDOM = 0.08, 0.5
"""Seconds between two pictures of a run, at least: where the browser has said that it painted the last, and where it has not. Between two words about how far
it is, the second."""
SHARE = 0.04
"""How much of a run's time pictures of it may take, here and in the browser, which may well run on the same cores."""
UNSEEN, FEW = 0.07, 4
"""Seconds of a core that a picture takes where nobody here sees it (the server, the browser's other processes); they count where there are few cores, and a
model on one of them."""


class Running(ExplorerBase):
    """An explorer that scores what it shows. :class:`headwidget.Lab` says what it is for."""

    method = trait("gradient", "The method of the next run.")
    """The method of the next run, as in :func:`headwidget.score`."""
    options = trait({}, "The next run's options.")
    """The method's own options for the next run; what is not in it is as the method has it."""
    asked = trait([], "The tasks of the next run.")
    """The names of the tasks that the next run scores."""
    prompts = trait(PROMPTS, "How many prompts of each task.")
    """How many prompts of each task the next run scores; None is all of them."""

    _closed = True  # as it is until it is made
    _state = traitlets.Dict().tag(sync=True)
    """How far the run is."""
    _trouble = traitlets.Unicode().tag(sync=True)
    """What went wrong beside the run: in a handler that the lab called, or in asking for another run."""

    def __init__(
        self,
        model: Model,
        tasks: Iterable[Task],
        *,
        method: str,
        prompts: int | None,
        seed: int = 0,
        **traits: Any,
    ) -> None:
        self._model, self._seed = model, seed
        self._sources = {task.name: task for task in tasks}
        self._telling = _Telling()  # traits are set by the model's thread and by the front end
        self._job: worker.Run | None = None
        self._scoring: score.Scoring | None = None
        self._kept: HeadScores | None = None
        self._results: dict[str, HeadScores] = {}
        self._painted, self._pictured, self._cost, self._took = True, 0.0, 0.0, 0.0
        self._unseen = (
            UNSEEN if (os.cpu_count() or 1) <= FEW and model.device.type == "cpu" else 0.0
        )
        self._closed = False
        own = {"options": {}, "asked": list(self._sources)} | {
            name: traits.pop(name) for name in ("options", "asked") if name in traits
        }
        super().__init__(
            payloads.nothing_yet(model, self._sources.values(), method), preview="png", **traits
        )
        with self.hold_trait_notifications():
            self.method, self.prompts, self.asked, self.options = (
                method,
                prompts,
                own["asked"],
                own["options"],
            )
        self._state = {"state": "idle"}
        lifetime.let_go(self)

    # ---- runs ----

    def run(self, **asked: Any) -> Self:
        """Start a run with what ``method``, ``options``, ``asked`` and ``prompts`` say; keywords set them first, and any other keyword is an option of the
        method. A run under way is stopped and replaced. Gives the lab back: ``lab.run().wait()``, or ``await lab.run().done``."""
        self._open()
        if "tasks" in asked:
            asked["asked"] = asked.pop("tasks")
        own = {name: asked.pop(name) for name in ("method", "asked", "prompts") if name in asked}
        for name, value in own.items():
            setattr(self, name, value)
        known = {f.name for f in dataclasses.fields(registry.find(self.method).options)}
        if odd := [
            name
            for name in asked
            if name not in known
            and difflib.get_close_matches(name, ("method", "tasks", "asked", "prompts"), 1)
        ]:
            raise TypeError(
                f"lab.run has no {odd[0]!r}; it takes method, tasks, prompts, and the options of the method."
            )
        if asked or "method" in own:
            self.options = asked
        tasks = [self._sources[name] for name in self.asked]
        tasks = (
            tasks
            if self.prompts is None
            else [task.sample(self.prompts, seed=self._seed) for task in tasks]
        )
        prepared = score.prepare(
            self._model, tasks, self.method, batch_size=None, seed=self._seed, **self.options
        )
        with self._telling:
            self._open()
            if self._job is not None:
                self._job.stop.set()
            held = weakref.ref(self)  # a run does not keep its lab
            self._job = worker.Run(lambda job: _steps(held, prepared, job))
            self._scoring, self._kept = prepared, None
            total, unit = prepared.steps()
            self._set(_trouble="")
            self._say(
                state="running",
                what="starting",
                done=0.0,
                total=total,
                unit=unit,
                method=self.method,
                seconds=0.0,
            )
            worker.of(self._model).start(self._job)
        return self

    def stop(self) -> None:
        """Ask the run to stop; what is done stays, marked partial."""
        with self._telling:
            if self._job is not None and self.state == "running":
                self._job.stop.set()
                self._say(**{**self._state, "state": "stopping"})

    @property
    def done(self) -> Any:
        """``await lab.done`` until the run, or the measurement, has ended; the kernel serves other work meanwhile."""
        return _Ended(self)

    def _busy(self) -> bool:
        return self._job is not None and not self._job.ended.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all that was asked is done; False where that took longer than ``seconds``. Blocks the kernel: in a cell, ``await lab.done`` is better."""
        end = None if seconds is None else time.monotonic() + seconds
        while (thread := worker.of(self._model).thread) is not None:
            if threading.current_thread() is thread or self._telling.mine:
                raise RuntimeError(
                    "lab.wait() inside a handler would wait for itself; observe lab._state there, or `await lab.done` in a cell."
                )
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            thread.join(0.05 if left is None else min(0.05, left))
        return True

    @property
    def state(self) -> str:
        """``"idle"``, ``"running"``, ``"stopping"``, ``"done"``, ``"stopped"`` or ``"failed"``."""
        return str(self._state.get("state", "idle"))

    @property
    def scores(self) -> HeadScores | None:
        """The scores of the last run, or of the prompts that the run under way has done; None before there are any."""
        under_way = (
            self._scoring if self._job is not None and not self._job.ended.is_set() else None
        )
        if under_way is not None and any(under_way.done(task) for task in under_way.tasks):
            return under_way.scores(partial=True)
        return self._kept

    @property
    def results(self) -> dict[str, HeadScores]:
        """The last scores of every method that was run, by its name."""
        return dict(self._results)

    def _keep(self, prepared: score.Scoring, job: worker.Run, *, partial: bool) -> int:
        """Keep what a run has done and show it, unless another has replaced it; how many runs of prompts that are."""
        finished = [task for task in prepared.tasks if prepared.done(task)]
        found = prepared.scores(partial=partial) if finished and self._job is job else None
        with self._telling:
            if found is not None and self._job is job:
                self._kept = found
                before = self._results.get(prepared.method.name)
                if (
                    before is None or before.partial or not found.partial
                ):  # a run that was stopped takes nobody's place
                    self._results[prepared.method.name] = found
                self._show(found, final=True)
                self._has_kept()
        return sum(len(prepared.done(task)) for task in finished)

    def _has_kept(self) -> None:
        """New scores are kept: what else shows them follows."""

    def _picture(self, prepared: score.Scoring, job: worker.Run, *, now: bool = False) -> None:
        """Send what has landed, as often as the browser paints and the run can afford."""
        since = time.monotonic() - self._pictured
        due = (
            since > (OFTEN if self._painted else SELDOM)
            and since > (self._cost + self._took + self._unseen) / SHARE
        )
        if self._job is not job or not (now or due):
            return
        started = time.monotonic()
        self._show(prepared.snapshot(), final=False)
        self._pictured = time.monotonic()
        self._cost, self._painted = 0.0 if now else self._pictured - started, False

    def _show(self, scores: HeadScores, *, final: bool) -> None:
        """Replace what is shown; settings that do not fit the new scores go back to where they start."""
        header, buffer = wire.encode(scores)
        with self._telling, self.hold_sync():
            other = (self._shown.method, self._shown.signed) != (scores.method, scores.signed)
            renamed = self._shown.tasks != scores.tasks
            self._shown = scores
            fitting: dict[str, Any] = (
                {"task": None, "isolated": None, "tasks": list(scores.tasks)} if renamed else {}
            )
            if other and self.rule == "value":
                fitting["threshold"] = None
            if final and (first := provenance.display(scores).get("normalize")):
                fitting["normalize"] = first
            elif not final and other:
                fitting["normalize"] = None
            self._set(**fitting, _header=header, _buffer=buffer)

    # ---- the model's thread and the front end ----

    def _later(self, what: str, job: Callable[[Self], None], *, idle: bool = False) -> None:
        """Let the model's thread do a short job next, or when it has nothing else to do. Until then the job does not keep its lab."""
        held = weakref.ref(self)

        def alive() -> None:
            if (lab := held()) is not None and not lab._closed:
                job(lab)

        if not self._closed:
            worker.of(self._model).soon((id(self), what), alive, idle=idle)

    def _tell(self, job: worker.Run, **state: Any) -> None:
        """Say how far a run is, unless another has replaced it."""
        with self._telling:
            if self._job is job:
                self._say(**state)

    def _say(self, **state: Any) -> None:
        self._set(_state=state)

    def _set(self, **traits: Any) -> None:
        """Set traits, all in one message. What a handler of somebody's raises is said in the widget and stops nothing."""
        if self._closed:
            return
        with self._telling, self.hold_sync():
            for name, value in traits.items():
                try:
                    setattr(self, name, value)
                except Exception as error:
                    worker.log.exception("headwidget: a handler of %r failed", name)
                    if name != "_trouble":
                        self._set(
                            _trouble=f"A handler that observes the lab failed: {payloads.sentence(error)}"
                        )

    def set_state(self, sync_data: dict[str, Any]) -> None:
        with self._telling:
            super().set_state(sync_data)

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("this lab is closed; make another with hw.live(model).")

    def close(self) -> None:
        """Stop what runs and let go of the model."""
        with self._telling:
            was_open = not self._closed
            self.stop()
            self._closed = True
        if was_open:
            for what in ("prompt", "head", "salient", "effect", "warm"):
                worker.of(self._model).forget((id(self), what))
            lifetime.hidden(self)
        super().close()

    def __del__(self) -> None:
        """The last reference is gone. This may be the garbage collector, on any thread and under any lock: nothing here asks for one of ours."""
        if not self._closed:
            self._closed = True
            if self._job is not None:
                self._job.stop.set()
            super().close()

    def _drawn(self) -> tuple[HeadScores, settings.Settings]:
        """A figure shows what is scored: it has no way to say of a cell that it is not."""
        if (scores := self.scores) is None:
            raise ValueError("nothing is scored yet, so there is no figure: lab.run() first.")
        asked = {name: getattr(self, name) for name in settings.NAMES}
        asked["tasks"] = [name for name in self.tasks if name in scores.tasks]
        asked["task"] = self.task if self.task in scores.tasks else None
        return scores, settings.settings(scores, **asked)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        lifetime.shown(self)
        self.preview = "png" if self.scores is not None else None
        return super()._repr_mimebundle_(**kwargs)

    @traitlets.validate("method", "options", "asked", "prompts")
    def _valid_run(self, proposal: Any) -> Any:
        try:
            return payloads.check(self._sources, proposal["trait"].name, proposal["value"])
        except ValueError as error:
            raise TraitError(str(error)) from None


def _steps(
    held: Callable[[], Running | None], prepared: score.Scoring, job: worker.Run
) -> Generator[None, None, None]:
    """Score, on the model's thread; the generator yields where the model is free, and keeps its lab from ending nowhere."""
    began, done, said = time.monotonic(), 0.0, 0.0
    total, unit = prepared.steps()
    far: dict[str, Any] = {
        "total": total,
        "unit": unit,
        "method": prepared.method.name,
        "detail": "",
    }

    def lab() -> Running:
        if (found := held()) is None:
            raise hooks.Stopped
        return found

    def note(what: str, steps: float) -> None:
        nonlocal done, said
        done += steps
        if (now := time.monotonic()) - said > SELDOM:
            said = now
            left = (now - began) * (total - done) / done if done else None
            lab()._tell(
                job,
                state="stopping" if job.stop.is_set() else "running",
                what=what,
                done=done,
                seconds=now - began,
                left=left,
                **far,
            )
        hooks.check_stop()

    state, message, kept = "done", None, 0
    try:
        hooks.check_stop()
        lab()._picture(prepared, job, now=True)
        for _, chunk in prepared.land(note):
            far["detail"] = ", ".join(
                f"{name} {chunk.state[name][-1]:.3g}"
                for name in ("loss", "regulariser")
                if chunk.state.get(name)
            )
            lab()._picture(prepared, job)
            yield
    except KeyboardInterrupt:
        state = "stopped"
    except Exception as error:
        state, message = "failed", payloads.sentence(error)
    try:
        kept = lab()._keep(prepared, job, partial=state != "done")
    except KeyboardInterrupt:
        pass  # nobody is left to keep it for
    except Exception as error:
        state, message = "failed", payloads.sentence(error)
    finally:
        halved = prepared.halved[-1] if prepared.halved else None
        if (found := held()) is not None:
            found._tell(
                job,
                state=state,
                what="",
                done=done,
                seconds=time.monotonic() - began,
                kept=kept,
                message=message,
                halved=halved,
                **far,
            )
        job.ended.set()


class _Telling:
    """A lock that a thread may take again, and that knows whether this thread has it."""

    def __init__(self) -> None:
        self._lock, self._owners = threading.RLock(), list[int]()

    @property
    def mine(self) -> bool:
        """Has this thread taken it?"""
        return threading.get_ident() in self._owners

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owners.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        self._owners.pop()
        self._lock.release()


class _Ended(Coroutine[Any, Any, "HeadScores | None"]):
    """Awaits the end of a lab's run: ``await``, ``asyncio.gather`` and ``asyncio.create_task`` take it, and nobody minds if it is not awaited."""

    def __init__(self, lab: Running) -> None:
        self._lab = lab
        self._waiting: Coroutine[Any, Any, HeadScores | None] | None = (
            None  # as a task, which asks by send
        )

    def _begun(self) -> Coroutine[Any, Any, HeadScores | None]:
        if self._waiting is None:
            self._waiting = _until_ended(self._lab)
        return self._waiting

    def __await__(self) -> Generator[Any, None, HeadScores | None]:
        return _until_ended(self._lab).__await__()  # as often as one likes

    def send(self, value: Any) -> Any:
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        return self._begun().throw(*error)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()


async def _until_ended(lab: Running) -> HeadScores | None:
    while lab._busy():
        await asyncio.sleep(0.05)
    return lab.scores
