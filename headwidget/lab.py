"""The lab: the explorer with a kernel behind it. Run and stop a method, type a prompt, look at a head, scale heads and see what changes.

Everything that needs the model runs on the model's own thread (:mod:`headwidget.worker`), so the kernel stays free.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import traitlets
from traitlets import TraitError

from headwidget import effects, engine, methods, prompt, ready, relations
from headwidget.models import Model, load
from headwidget.running import PROMPTS, Running
from headwidget.tasks import Task
from headwidget.widget import _trait

WARM = 0.25
"""Seconds at a time that work ahead may take from what is asked for."""


class Lab(Running):
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

    prompt = traitlets.Unicode("", help="A prompt that the model reads.").tag(sync=True)
    """A prompt that the model reads as it is typed."""
    target = traitlets.Int(None, allow_none=True, help="The token whose map is shown.").tag(sync=True)
    """The id of the token whose map is shown beside the prompt; None is the likeliest."""
    gates: Any = _trait(None, "What each head's output is multiplied by.").tag(sync=False)
    """What each head's output is multiplied by, a (layer, head) array of ones where nothing is changed; set it whole, the widget follows."""

    _live = traitlets.Bool(True).tag(sync=True)
    _can = traitlets.Dict().tag(sync=True)
    """Methods with their options, and tasks, for the front end to offer."""
    _reading = traitlets.Dict().tag(sync=True)
    _maps = traitlets.Bytes().tag(sync=True)
    """(target, layer, head) float32: the prompt's maps."""
    _head = traitlets.Dict().tag(sync=True)
    _effect = traitlets.Dict().tag(sync=True)
    _scaled: Any = traitlets.List().tag(sync=True)
    """[layer, head, factor] of every head that is scaled."""

    def __init__(self, model: Model, tasks: Iterable[Task], **asked: Any) -> None:
        self._read: prompt.Reading | None = None
        start = asked.pop("prompt", "")
        super().__init__(model, tasks, **asked)
        self.gates = np.ones(model.shape, np.float32)
        self._can = {"methods": ready.offered(model), "tasks": [[t.name, len(t), t.category] for t in self._sources.values()]}
        self.on_msg(self._heard)
        self.observe(self._new_selected, "selected")
        if start:
            self.prompt = start

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

    @property
    def reading(self) -> dict[str, Any]:
        """What the prompt panel shows: tokens, predictions as [id, text, probability, probability with heads scaled], or an error."""
        return dict(self._reading)

    def measure(self, prompts: int = 12, draws: int = 3) -> Lab:
        """What the gates do to the tasks: accuracy and log-probability before and after, and after the same to random heads of the same layers; and greedy
        text of the prompt before and after. Prompts that no run has scored come first. Comes piece by piece as ``lab.effect``."""
        self._open()
        if (self.gates == 1).all():
            raise ValueError("no head is scaled: select heads and turn them off in the widget, or set lab.gates.")
        gates = self.gates
        scored = {label for scores in self._results.values() for task in scores.tasks for label in scores.runs(task)}
        tasks = [self._sources[name] for name in self.asked]
        pieces = effects.pieces(self._model, tasks, gates, lambda: self._read, scored, prompts=prompts, draws=draws, seed=self._seed)

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
            self._painted = True  # content["at"] says when, by the browser's clock
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
