"""The lab: the explorer with a kernel behind it. Run and stop a method, type a prompt, look at a head, scale heads and see what changes.

Everything that needs the model runs on the model's own thread (:mod:`headwidget.worker`), so the kernel stays free.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import traitlets
from traitlets import TraitError

from headwidget import effects, engine, hooks, methods, prompt, provenance, ready, relations, settings, wire, worker
from headwidget.models import Model, load
from headwidget.scores import HeadScores
from headwidget.tasks import Task
from headwidget.widget import Explorer, _trait

PROMPTS = 20
"""Prompts of each task that a run scores at first."""
OFTEN, SELDOM = 0.08, 0.5
"""Seconds between two pictures of a run: at least, and at most while the browser has not said that it painted the last."""
WARM = 0.25
"""Seconds at a time that work ahead may take from what is asked for."""
SHARE = 0.04
"""How much of a run's time pictures of it may take."""


class Lab(Explorer):
    """The explorer of a model, live. Made by :func:`headwidget.live`.

    Beside an explorer's traits it has those of the next run (``method``, ``options``, ``asked``, ``prompts``), ``prompt`` and ``target``, and
    ``gates``, what each head's output is multiplied by. ``run()``, ``stop()``, ``await lab.done``, ``lab.scores`` do without a mouse what the buttons do.

    >>> import headwidget as hw
    >>> task = hw.Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")])
    >>> lab = hw.live(hw.load(), task, method="attribution")
    >>> lab.run().wait()
    True
    >>> lab.scores.values("capitals").shape, lab.state
    ((2, 30, 9), 'done')
    >>> lab.close()
    """

    method = _trait("gradient", "The method of the next run.")
    """The method of the next run, as in :func:`headwidget.score`."""
    options = _trait({}, "The next run's options.")
    """The method's own options for the next run; what is not in it is as the method has it."""
    asked = _trait([], "The tasks of the next run.")
    """The names of the tasks that the next run scores."""
    prompts = _trait(PROMPTS, "How many prompts of each task.")
    """How many prompts of each task the next run scores; None is all of them."""
    prompt = traitlets.Unicode("", help="A prompt that the model reads.").tag(sync=True)
    """A prompt that the model reads as it is typed."""
    target = traitlets.Int(None, allow_none=True, help="The token whose map is shown.").tag(sync=True)
    """The id of the token whose map is shown beside the prompt; None is the likeliest."""
    gates: Any = _trait(None, "What each head's output is multiplied by.").tag(sync=False)
    """What each head's output is multiplied by, a (layer, head) array of ones where nothing is changed; set it whole, the widget follows."""

    _live = traitlets.Bool(True).tag(sync=True)
    _can = traitlets.Dict().tag(sync=True)
    """Methods with their options, and tasks, for the front end to offer."""
    _state = traitlets.Dict().tag(sync=True)
    """How far the run is."""
    _reading = traitlets.Dict().tag(sync=True)
    _maps = traitlets.Bytes().tag(sync=True)
    """(target, layer, head) float32: the prompt's maps."""
    _head = traitlets.Dict().tag(sync=True)
    _effect = traitlets.Dict().tag(sync=True)
    _scaled: Any = traitlets.List().tag(sync=True)
    """[layer, head, factor] of every head that is scaled."""

    def __init__(self, model: Model, tasks: Iterable[Task], *, method: str, prompts: int | None, seed: int = 0, **traits: Any) -> None:
        self._model, self._seed = model, seed
        self._sources = {task.name: task for task in tasks}
        self._telling = threading.RLock()  # traits are set by the model's thread and by the front end
        self._job: worker.Run | None = None
        self._scoring: engine.Scoring | None = None
        self._kept: HeadScores | None = None
        self._results: dict[str, HeadScores] = {}
        self._read: prompt.Reading | None = None
        self._painted, self._pictured, self._cost = True, 0.0, 0.0
        self._closed = False
        start = traits.pop("prompt", "")
        own = {"options": {}, "asked": list(self._sources)} | {name: traits.pop(name) for name in ("options", "asked") if name in traits}
        super().__init__(ready.nothing_yet(model, self._sources.values(), method), preview="png", **traits)
        with self.hold_trait_notifications():
            self.method, self.prompts, self.asked, self.options = method, prompts, own["asked"], own["options"]
            self.gates = np.ones(model.shape, np.float32)
        self._can = {"methods": ready.offered(model), "tasks": [[t.name, len(t), t.category] for t in self._sources.values()]}
        self._state = {"state": "idle"}
        self.on_msg(self._heard)
        self.observe(self._new_selected, "selected")
        if start:
            self.prompt = start

    # ---- runs ----

    def run(self, **asked: Any) -> Lab:
        """Start a run with what ``method``, ``options``, ``asked`` and ``prompts`` say; keywords set them first, and any other keyword is an option of the
        method. A run under way is stopped and replaced. Gives the lab back: ``lab.run().wait()``, or ``await lab.run().done``."""
        self._open()
        if "tasks" in asked:
            asked["asked"] = asked.pop("tasks")
        own = {name: asked.pop(name) for name in ("method", "asked", "prompts") if name in asked}
        for name, value in own.items():
            setattr(self, name, value)
        if asked or "method" in own:
            self.options = asked
        tasks = [self._sources[name] for name in self.asked]
        tasks = tasks if self.prompts is None else [task.sample(self.prompts, seed=self._seed) for task in tasks]
        prepared = engine.prepare(self._model, tasks, self.method, batch_size=None, seed=self._seed, **self.options)
        if self._job is not None:
            self._job.stop.set()
        self._job = job = worker.Run(self._steps(prepared))
        self._scoring = prepared
        self._say(state="running", what="starting", done=0.0, total=prepared.steps()[0], unit=prepared.steps()[1], method=self.method, seconds=0.0)
        worker.of(self._model).start(job)
        return self

    def stop(self) -> None:
        """Ask the run to stop; what is done stays, marked partial."""
        if self._job is not None and not self._job.ended.is_set():
            self._job.stop.set()
            self._say(**{**self._state, "state": "stopping"})

    @property
    def done(self) -> Any:
        """``await lab.done`` until the run has ended; the kernel serves other work meanwhile."""
        return _Ended(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all that was asked is done; False where that took longer than ``seconds``. Blocks the kernel: in a cell, ``await lab.done`` is better."""
        end = None if seconds is None else time.monotonic() + seconds
        while (thread := worker.of(self._model).thread) is not None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            thread.join(0.05 if left is None else min(0.05, left))
        return True

    @property
    def state(self) -> str:
        """``"idle"``, ``"running"``, ``"stopping"``, ``"done"``, ``"stopped"`` or ``"failed"``."""
        return str(self._state["state"])

    @property
    def scores(self) -> HeadScores | None:  # type: ignore[override]
        """The scores of the last run, or of the prompts that the run under way has done; None before there are any."""
        under_way = self._scoring if self._job is not None and not self._job.ended.is_set() else None
        if under_way is not None and any(under_way.done(task) for task in under_way.tasks):
            return under_way.scores(partial=True)
        return self._kept

    @property
    def results(self) -> dict[str, HeadScores]:
        """The last scores of every method that was run, by its name."""
        return dict(self._results)

    def _steps(self, prepared: engine.Scoring) -> Generator[None, None, None]:
        """Score, on the model's thread; the generator yields where the model is free."""
        began, done, said = time.monotonic(), 0.0, 0.0
        total, unit = prepared.steps()
        job = self._job

        def note(what: str, steps: float) -> None:
            nonlocal done, said
            done += steps
            if (now := time.monotonic()) - said > OFTEN:
                said = now
                left = (now - began) * (total - done) / done if done else None
                stopping = job is not None and job.stop.is_set()
                self._tell(
                    job, state="stopping" if stopping else "running", what=what, done=done, total=total, unit=unit, method=prepared.method.name,
                    seconds=now - began, left=left,
                )  # fmt: skip
            hooks.check_stop()

        state, message = "done", None
        try:
            self._picture(prepared, job, now=True)
            for _ in prepared.land(note):
                self._picture(prepared, job)
                yield
        except KeyboardInterrupt:
            state = "stopped"
        except Exception as error:
            state, message = "failed", ready.sentence(error)
        finished = [task for task in prepared.tasks if prepared.done(task)]
        runs = sum(len(prepared.done(task)) for task in finished)
        if finished:
            found = prepared.scores(partial=state != "done")
            if self._job is job:
                self._kept = self._results[prepared.method.name] = found
                self._show(found, final=True)
        self._tell(
            job, state=state, what="", done=done, total=total, unit=unit, method=prepared.method.name, seconds=time.monotonic() - began, kept=runs,
            message=message, halved=prepared.halved[-1] if prepared.halved else None,
        )  # fmt: skip
        if job is not None:
            job.ended.set()

    def _picture(self, prepared: engine.Scoring, job: worker.Run | None, *, now: bool = False) -> None:
        """Send what has landed, as often as the browser paints and the run can afford."""
        since = time.monotonic() - self._pictured
        due = since > (OFTEN if self._painted else SELDOM) and since > self._cost / SHARE
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
            if renamed:
                self.task, self.isolated = None, None
                self.tasks = list(scores.tasks)
            if other and self.rule == "value":
                self.threshold = None
            if final:
                first = provenance.display(scores)
                if first.get("normalize") and self.normalize != first["normalize"]:
                    self.normalize = first["normalize"]
            elif other:
                self.normalize = None
            self._header, self._buffer = header, buffer

    # ---- prompts, heads, gates ----

    @traitlets.observe("prompt")
    def _new_prompt(self, change: Any) -> None:
        self.target = None
        self._later("prompt", self._read_prompt)

    @traitlets.observe("_scaled")
    def _new_scaled(self, change: Any) -> None:
        rows = {layer: row for row, layer in enumerate(self._shown.layers)}
        gates = np.ones(self._shown.shape, np.float32)
        for layer, head, factor in change["new"]:
            gates[rows[layer], head] = factor
        if not np.array_equal(gates, self.gates):
            self.gates = gates

    @traitlets.observe("gates")
    def _new_gates(self, change: Any) -> None:
        layers = self._shown.layers
        scaled = [[layers[row], int(head), float(self.gates[row, head])] for row, head in np.argwhere(self.gates != 1)]
        if scaled != self._scaled:
            self._scaled = scaled
        if self._can:  # else still starting
            self._effect = {}
            self._later("prompt", self._read_prompt)

    @traitlets.validate("gates")
    def _valid_gates(self, proposal: Any) -> npt.NDArray[np.float32]:
        try:
            gates = np.array(proposal["value"], np.float32)
        except (TypeError, ValueError):
            gates = np.empty(0, np.float32)
        if gates.shape != self._model.shape or not np.isfinite(gates).all():
            raise TraitError(
                f"gates is a (layer, head) array of {self._model.shape[0]} x {self._model.shape[1]} finite numbers; got {proposal['value']!r:.60}."
            )
        gates.setflags(write=False)  # changed in place, nobody would be told
        return gates

    def _new_selected(self, change: Any) -> None:
        self._later("head", self._read_head)

    def _read_prompt(self) -> None:
        """One forward of the prompt; what it says goes to the front end."""
        text, gates = self.prompt, self.gates
        if not text.strip():
            self._read = None
            self._set(_reading={}, _maps=b"")
            return
        started = time.monotonic()
        try:
            self._read = read = prompt.read(self._model, text, gates)
        except Exception as error:
            self._read = None
            self._set(_reading={"text": text, "error": ready.sentence(error)}, _maps=b"")
            return
        self._set(_reading=ready.reading(read, time.monotonic() - started), _maps=read.maps.astype("<f4").tobytes())
        self._read_head()

    def _read_head(self) -> None:
        """What the last selected head does on the prompt, and in the scores so far; then what it amplifies in any prompt."""
        if not self.selected:
            self._set(_head={})
            return
        layer, head = self.selected[-1]
        found = ready.head(self._model, self._read, self._results, layer, head)
        self._set(_head=found)
        self._later("salient", lambda: self._read_salient(layer, head, found))

    def _read_salient(self, layer: int, head: int, found: dict[str, Any]) -> None:
        if self.selected and list(self.selected[-1]) == [layer, head]:
            self._set(_head={**found, **ready.salient(self._model, layer, head)})

    def _warm(self) -> None:
        """Do ahead, a little at a time, what a first look at a head's salient tokens needs: a click is answered within a second."""
        stop = threading.Event()
        timer = threading.Timer(WARM, stop.set)
        timer.start()
        try:
            done = relations.warm(self._model, stop)
        except Exception:
            return  # whoever asks for salient tokens is told why not
        finally:
            timer.cancel()
        if not done:
            self._later("warm", self._warm)

    def measure(self, prompts: int = 12, draws: int = 3) -> Lab:
        """What the gates do to the tasks: accuracy and log-probability before and after, and after the same to random heads of the same layers; and greedy
        text of the prompt before and after. Comes piece by piece as ``lab.effect``."""
        self._open()
        if (self.gates == 1).all():
            raise ValueError("no head is scaled: select heads and turn them off in the widget, or set lab.gates.")
        gates = self.gates
        pieces = effects.pieces(self._model, [self._sources[name] for name in self.asked], gates, lambda: self._read, prompts, draws, self._seed)

        def piece() -> None:
            if not np.array_equal(gates, self.gates):
                return
            try:
                found = next(pieces, None)
            except Exception as error:
                self._set(_effect={**self._effect, "error": ready.sentence(error), "done": True})
                return
            if found is not None:
                self._set(_effect=found)
                self._later("effect", piece)

        self._set(_effect={"done": False, "heads": int((gates != 1).sum()), "tasks": []})
        self._later("effect", piece)
        return self

    @property
    def effect(self) -> dict[str, Any]:
        """What :meth:`measure` has found so far."""
        return dict(self._effect)

    # ---- talking to the front end ----

    def _heard(self, _: Any, content: Any, buffers: Any) -> None:
        """A button was pressed."""
        actions: dict[str, Callable[[], Any]] = {"run": self.run, "stop": self.stop, "measure": self.measure}
        kind = content.get("ask") if isinstance(content, Mapping) else None
        if kind == "painted":
            self._painted = True
        elif kind == "shown":
            self._later("warm", self._warm)
        elif kind in actions:
            try:
                actions[kind]()
            except Exception as error:
                if kind == "measure":
                    self._set(_effect={"error": ready.sentence(error), "done": True})
                else:
                    self._say(state="failed", message=ready.sentence(error), kept=0)

    def _later(self, what: str, job: Callable[[], None]) -> None:
        """Let the model's thread do a short job next."""

        def alive() -> None:
            if not self._closed:
                job()

        if not self._closed:
            worker.of(self._model).soon((id(self), what), alive)

    def _tell(self, job: worker.Run | None, **state: Any) -> None:
        """Say how far a run is, unless another has replaced it."""
        if self._job is job:
            self._say(**state)

    def _say(self, **state: Any) -> None:
        self._set(_state=state)

    def _set(self, **traits: Any) -> None:
        if self._closed:
            return
        with self._telling, self.hold_sync():
            for name, value in traits.items():
                setattr(self, name, value)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        with self._telling:
            super().set_state(sync_data)

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("this lab is closed; make another with hw.live(model).")

    def close(self) -> None:
        """Stop what runs and let go of the model."""
        if not self._closed:
            self.stop()
            self._closed = True
            for what in ("prompt", "head", "salient", "effect", "warm"):
                worker.of(self._model).forget((id(self), what))
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
        self.preview = "png" if self.scores is not None else None
        return super()._repr_mimebundle_(**kwargs)

    @traitlets.validate("method", "options", "asked", "prompts")
    def _valid_run(self, proposal: Any) -> Any:
        try:
            return ready.check(self._sources, proposal["trait"].name, proposal["value"])
        except ValueError as error:
            raise TraitError(str(error)) from None


class _Ended:
    """Awaits the end of a lab's run."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def __await__(self) -> Generator[Any, None, HeadScores | None]:
        async def wait() -> HeadScores | None:
            while self.lab._job is not None and not self.lab._job.ended.is_set():
                await asyncio.sleep(0.05)
            return self.lab.scores

        return wait().__await__()


def live(
    model: Model | Any = None,
    tasks: Task | str | Iterable[Task] = "math-syntax",
    method: str = "gradient",
    *,
    prompts: int | None = PROMPTS,
    seed: int = 0,
    **traits: Any,
) -> Lab:
    """The explorer with the model behind it: run and stop ``method`` on ``tasks``, type a prompt, knock heads out. Nothing runs before it is asked for.

    ``model`` is what :func:`headwidget.load` gives or takes; without one, the embedded model. ``prompts`` of each task are scored (None: all). Further
    keywords set traits of the :class:`Lab` (``prompt="The capital of France is"``, ``view="agreement"``, …).
    """
    found = model if isinstance(model, Model) else load(model)
    sources = engine.listed(tasks, seed)
    methods.find(method)
    return Lab(found, sources, method=method, prompts=prompts, seed=seed, **traits)
