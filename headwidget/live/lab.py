"""The lab: the explorer with a kernel behind it. Run and stop a method, type a prompt, look at a head, scale heads and see what changes.

Everything that needs the model runs on the model's own thread (:mod:`headwidget.live.worker`), so the kernel stays free.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import traitlets
from traitlets import TraitError

from headwidget.display.explorer import trait
from headwidget.live import lifetime, measure, payloads, reading
from headwidget.live.runner import PROMPTS, Running
from headwidget.methods import word_maps
from headwidget.models import Model, load
from headwidget.scoring import checks, registry, score
from headwidget.tasks import Task

MOST_TOOK = 0.1
"""Seconds that the browser is believed to have worked on one picture: what is longer was waiting."""
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
    target = traitlets.Int(None, allow_none=True, help="The token whose map is shown.").tag(
        sync=True
    )
    """The id of the token whose map is shown beside the prompt, any that the model knows; None is the likeliest."""
    gates: Any = trait(None, "What each head's output is multiplied by.").tag(sync=False)
    """What each head's output is multiplied by, a (layer, head) array of ones where nothing is changed; set it whole, the widget follows."""

    _kind = "a lab"
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
        self._read: reading.Reading | None = None
        self._measuring = (
            object()
        )  # the measurement under way; another one, or other gates, take its place
        own = {name: asked.pop(name) for name in ("gates", "prompt", "target") if name in asked}
        super().__init__(model, tasks, **asked)
        self.gates = np.ones(model.shape, np.float32)
        self._can = {
            "methods": payloads.offered(model),
            "tasks": [[t.name, len(t), t.category] for t in self._sources.values()],
        }
        for name, value in own.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"Lab({self._model.name}, {self.method}, {', '.join(self.asked)}: {self.state})"

    # ---- prompts, heads, gates ----

    @traitlets.observe("prompt")
    def _new_prompt(self, change: Any) -> None:
        self.target = None
        self._later("prompt", Lab._read_prompt)

    @traitlets.validate("target")
    def _valid_target(self, proposal: Any) -> int | None:
        target: int | None = proposal["value"]
        if target is not None and not 0 <= target < self._model.vocabulary:
            raise TraitError(
                f"target is the id of a token, 0 to {self._model.vocabulary - 1}, or None for the likeliest; got {target}."
            )
        return target

    @traitlets.observe("target")
    def _new_target(self, change: Any) -> None:
        self._list_target()

    def _list_target(self) -> None:
        """Read once more where the target is not listed, such as one that was chosen while the prompt was read."""
        listed = [one[0] for one in self._reading.get("predictions", [])]
        if self.target is not None and self.target not in listed:
            self._later("prompt", Lab._read_prompt)

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
        scaled = [
            [layers[row], int(head), float(self.gates[row, head])]
            for row, head in np.argwhere(self.gates != 1)
        ]
        if scaled != self._scaled:
            self._scaled = scaled
        if self._can:  # else still starting
            with self._telling:
                self._measuring = object()
                self._set(_effect={})
            self._later("prompt", Lab._read_prompt)

    @traitlets.validate("_scaled")
    def _valid_scaled(self, proposal: Any) -> list[list[Any]]:
        layers, heads = self._shown.layers, self._shown.shape[1]
        for one in proposal["value"]:
            try:
                layer, head, factor = one
                fine = (
                    layer in layers
                    and type(head) is int
                    and 0 <= head < heads
                    and math.isfinite(factor)
                )
            except (TypeError, ValueError):
                fine = False
            if not fine:
                raise TraitError(
                    f"a head is scaled by [layer, head, factor], a head that the model has and a finite number; got {one!r:.60}."
                )
        return list(proposal["value"])

    @traitlets.validate("gates")
    def _valid_gates(self, proposal: Any) -> npt.NDArray[np.float32]:
        try:
            gates = np.array(proposal["value"], np.float32)
        except (TypeError, ValueError):
            gates = np.empty(0, np.float32)
        if gates.shape != self._model.shape or not np.isfinite(gates).all():
            layers, heads = self._model.shape
            got = (
                f"{proposal['value']!r:.60}"
                if gates.ndim != 2
                else f"{gates.shape[0]} x {gates.shape[1]}, {np.isfinite(gates).sum()} of them finite"
            )
            raise TraitError(
                f"gates is a (layer, head) array of {layers} x {heads} finite numbers; got {got}."
            )
        gates.setflags(write=False)  # changed in place, nobody would be told
        return gates

    @traitlets.observe("selected")
    def _new_selected(self, change: Any) -> None:
        if self._can:  # else still starting
            self._later("head", Lab._read_head)

    def _read_prompt(self) -> None:
        """One forward of the prompt; what it says goes to the front end."""
        text, gates = self.prompt, self.gates
        if not text.strip():
            self._read = None
            self._set(_reading={}, _maps=b"")
            return
        started = time.monotonic()
        try:
            self._read = read = reading.read(self._model, text, gates, self.target)
        except Exception as error:
            self._read = None
            self._set(_reading={"error": payloads.sentence(error)}, _maps=b"")
            return
        self._set(
            _reading=payloads.prompt(read, time.monotonic() - started),
            _maps=read.maps.astype("<f4").tobytes(),
        )
        self._list_target()
        self._read_head()

    def _read_head(self) -> None:
        """What the last selected head does on the prompt, and in the scores so far; then what it amplifies in any prompt."""
        if not self.selected:
            self._set(_head={})
            return
        layer, head = self.selected[-1]
        found = payloads.head(self._model, self._read, self._results, layer, head)
        self._set(_head=found)
        self._later("salient", lambda lab: lab._read_salient(layer, head, found))

    def _has_kept(self) -> None:
        self._later("head", Lab._read_head)

    def _read_salient(self, layer: int, head: int, found: dict[str, Any]) -> None:
        if not self.selected or list(self.selected[-1]) != [layer, head]:
            return
        if self._warmed():
            self._set(_head={**found, **payloads.salient(self._model, layer, head)})
        else:
            self._later("salient", lambda lab: lab._read_salient(layer, head, found))

    def _warm(self) -> None:
        """Do ahead what a first look at a head's salient tokens needs: a click is answered within a second."""
        if not self._warmed():
            self._later("warm", Lab._warm, idle=True)

    def _warmed(self) -> bool:
        """Do a little of that; True when nothing of it is left, or it cannot be done (whoever asks for salient tokens is told why)."""
        try:
            return word_maps.warm(self._model, _Slice())
        except Exception:
            return True

    @property
    def reading(self) -> dict[str, Any]:
        """What the prompt panel shows: tokens, predictions as [id, text, probability, probability with heads scaled], or an error."""
        return dict(self._reading)

    def measure(self, prompts: int = 12, draws: int = 3) -> Lab:
        """What the gates do to the tasks: accuracy and log-probability before and after, and after the same to random heads of the same layers; and greedy
        text of the prompt before and after. Prompts that no run has scored come first. Comes piece by piece as ``lab.effect``."""
        self._open()
        checks.at_least("prompts", prompts, 1)
        checks.at_least("draws", draws, 1)
        with self._telling:
            if (self.gates == 1).all():
                raise ValueError(
                    "no head is scaled: select heads and turn them off in the widget, or set lab.gates."
                )
            self._measuring = token = object()
            tasks = [self._sources[name] for name in self.asked]
            results, held = list(self._results.values()), weakref.ref(self)

            def last_reading() -> reading.Reading | None:
                return None if (lab := held()) is None else lab._read

            pieces = measure.pieces(
                self._model,
                tasks,
                self.gates,
                last_reading,
                results,
                prompts=prompts,
                draws=draws,
                seed=self._seed,
            )

            def piece(lab: Lab) -> None:
                if lab._measuring is not token:
                    return
                try:
                    found = next(pieces, None)
                except Exception as error:
                    found = {**lab._effect, "error": payloads.sentence(error), "done": True}
                with lab._telling:  # the gates may have changed meanwhile
                    if found is not None and lab._measuring is token:
                        lab._later("effect", piece)
                        lab._set(_effect=found)

            self._set(_effect={"done": False, "heads": int((self.gates != 1).sum()), "tasks": []})
            self._later("effect", piece)
        return self

    def _busy(self) -> bool:
        return super()._busy() or (not self._closed and self._effect.get("done") is False)

    @property
    def effect(self) -> dict[str, Any]:
        """What :meth:`measure` has found so far."""
        return dict(self._effect)

    # ---- talking to the front end ----

    def _handle_custom_msg(self, content: Any, buffers: Any) -> None:
        self._heard(self, content, buffers)
        super()._handle_custom_msg(content, buffers)

    def _heard(self, _: Any, content: Any, buffers: Any) -> None:
        """A button was pressed."""
        actions: dict[str, Callable[[], Any]] = {
            "run": self.run,
            "stop": self.stop,
            "measure": self.measure,
        }
        kind = str(content.get("ask")) if isinstance(content, Mapping) else ""
        if kind == "painted":
            took = content.get(
                "took"
            )  # ms from its coming to its painting; content["at"] says when, by the browser's clock
            self._painted, self._took = (
                True,
                min(took / 1000, MOST_TOOK) if isinstance(took, (int, float)) and took > 0 else 0.0,
            )
        elif kind == "hidden":
            lifetime.fewer_views(self)
        elif kind == "shown":
            lifetime.more_views(self)
            self._later("warm", Lab._warm, idle=True)
        elif kind in actions:
            try:
                actions[kind]()
            except Exception as error:
                said = payloads.sentence(error)
                if kind == "measure":
                    self._set(_effect={"error": said, "done": True})
                elif self.state in ("running", "stopping"):  # another run goes on
                    self._set(_trouble=said)
                else:
                    self._say(state="failed", message=said, kept=0)


class _Slice(threading.Event):
    """Is set a while after somebody first asked: however slow the machine, something is done each time."""

    _began: float | None = None

    def is_set(self) -> bool:
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        return now - self._began > WARM


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
    sources = score.listed(tasks, seed)
    registry.find(method)
    return Lab(found, sources, method=method, prompts=prompts, seed=seed, **traits)
