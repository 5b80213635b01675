"""gating: gates over all heads, fitted under pressure to keep heads and under pressure to drop them (Nam et al. 2025).

``G = sigmoid(theta)``; the loss is the answers' mean NLL less ``strength * mean(clip(theta))``, so a positive strength keeps heads and a negative
one drops them. A first stage without pressure starts from random gates; the other two start from where it ends. A head that stays on
under pressure to drop facilitates the task, one that stays off under pressure to keep interferes, and one that goes with either is irrelevant.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from headwidget.methods.gate_fits import Fits, Prompts
from headwidget.models import Model
from headwidget.scores.record import digest
from headwidget.scoring import gated_forward
from headwidget.scoring.checks import at_least, between
from headwidget.scoring.contract import Chunk, Method, Together, alone
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.tasks import Task

Preset = Literal["published", "quick"]
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "published": {"updates": 500, "strength": 0.1, "lr": 1.0, "fits": 10, "start": (0.0, 1.0)},
    "quick": {"updates": 20, "strength": 0.1, "lr": 1.0, "fits": 4, "start": (0.5, 1.0)},
}
"""A quick fit starts half open: from anywhere, so few updates do not find a way to do the task."""
BATCH: Mapping[str, int] = {"published": 32, "quick": 8}
"""Prompts an update."""
STAGES = ("free", "keep", "drop")
EVERY = 10
"""Updates between two chunks, at most: how often the host waits for the device."""
PATIENCE = 1.0
"""Seconds between two chunks, about, where updates are slow: whoever watches sees gates open and close."""
FEW = 4
"""Prompts; gates fitted on fewer say what those need, not what the task needs."""


@dataclass(frozen=True)
class Gating:
    """Options of ``method="gating"``. ``batch_size`` of :func:`headwidget.score` is how many prompts an update sees (published 32, quick 8)."""

    preset: Preset = "published"
    """``"quick"`` for a workshop: fewer updates, fits and prompts (docs/gating.md says what that gives up)."""
    updates: int | None = None
    """Updates a stage (published 500)."""
    strength: float | None = None
    """lambda: how hard the second stage pushes to keep heads and the third to drop them (published 0.1)."""
    clamp: float = 4.0
    """Beyond this logit a gate is no longer pushed."""
    lr: float | None = None
    """Adam's learning rate (published 1)."""
    lr_end: float | None = None
    """What it falls to, in a straight line, by the end of a stage; None: it stays (published)."""
    fits: int | None = None
    """Fits side by side, each from a random start of its own: the runs."""
    start: tuple[float, float] | None = None
    """Between which gates a fit starts, at random (published: 0 to 1)."""
    bootstrap: bool = False
    """Let every fit see a resample of the prompts of its own."""
    settle: float | None = None
    """End a stage when the gates moved by less than this, on average, in the last ten updates; None: never (published)."""
    contrast: Task | None = None
    """Subtract this task's loss: what the task needs and the other does not."""

    def __post_init__(self) -> None:
        if self.preset not in get_args(Preset):
            raise ValueError(f"preset must be 'published' or 'quick'; got {self.preset!r}.")
        for name, value in PRESETS[self.preset].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        at_least("updates", self.updates, 1)
        at_least("fits", self.fits, 1)
        between("strength", self.strength, 0, float("inf"))
        between("clamp", self.clamp, 0, float("inf"))
        between("lr", self.lr, 0, float("inf"))
        if self.lr_end is not None:
            between("lr_end", self.lr_end, 0, float("inf"))
        object.__setattr__(self, "start", self._start())
        if self.settle is not None:
            between("settle", self.settle, 0, 1)
        if not isinstance(self.bootstrap, bool):
            raise ValueError(f"bootstrap must be True or False; got {self.bootstrap!r}.")
        if self.contrast is not None and not isinstance(self.contrast, Task):
            raise ValueError(
                f"contrast is a hw.Task whose needs are subtracted, or None; got a {type(self.contrast).__name__}."
            )

    def _start(self) -> tuple[float, float]:
        try:
            low, high = map(float, self.start)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"start is two gates between 0 and 1, the lower one first, such as (0.5, 1); got {self.start!r}."
            )
        return low, high

    @property
    def batch(self) -> int:
        """Prompts an update, where nobody said how many."""
        return BATCH[self.preset]

    def pressure(self, stage: str) -> float:
        """lambda of a stage: positive keeps heads, negative drops them."""
        assert self.strength is not None
        return {"free": 0.0, "keep": self.strength, "drop": -self.strength}[stage]


def together(
    model: Model,
    tasks: Sequence[EncodedTask],
    batch_size: int | None,
    options: Gating,
    its: Together,
) -> Iterator[tuple[EncodedTask, Chunk]]:
    """Chunks of all fits of a task while they are fitted, then of the next task. Ctrl-C keeps the gates as they are."""
    assert options.fits is not None
    for task in tasks:
        its.labels[task.name] = tuple(f"fit {i}" for i in range(options.fits))
        its.right[task.name] = answered(model, task, batch_size)
        its.tasks[task.name] = {
            "gating": {},
            **_contrast(options.contrast),
            **_doubt(task, its.right[task.name]),
        }
        for chunk in fit(model, task, batch_size or options.batch, options, its):
            yield task, chunk


def fit(
    model: Model, task: EncodedTask, prompts: int, options: Gating, its: Together
) -> Iterator[Chunk]:
    """Three stages of all fits of one task."""
    assert options.fits is not None and options.updates is not None and options.lr is not None
    lr, lr_end = options.lr, options.lr if options.lr_end is None else options.lr_end
    seeds = [np.random.default_rng([its.seed, i]) for i in range(options.fits)]
    seen = [Prompts(model, task.examples, prompts, seeds, options.bootstrap)]
    if options.contrast is not None:
        seen.append(
            Prompts(
                model, encode(options.contrast, model).examples, prompts, seeds, options.bootstrap
            )
        )
    assert options.start is not None
    fits = Fits.random(model, seen, seeds, options.clamp, *options.start)
    gates: dict[str, npt.NDArray[np.float32]] = {}
    start = None  # of the stages under pressure: where the free one ended
    for stage in STAGES:
        fits.begin(options.pressure(stage), start)
        done, stopped, settled, before = 0, None, False, None
        while done < options.updates and not settled:
            began = time.monotonic()
            try:
                while done < options.updates:
                    fits.update(lr + (lr_end - lr) * done / max(1, options.updates - 1))
                    done += 1
                    its.note(f"{task.name}, {stage}", 1)
                    if done % EVERY == 0 or time.monotonic() - began > PATIENCE:
                        break
            except KeyboardInterrupt as stop:
                stopped = stop
            gates[stage] = fits.gates()
            its.tasks[task.name]["gating"][stage] = curve = fits.curve()
            yield _chunk(
                gates,
                {
                    "stage": stage,
                    "update": done,
                    "updates": options.updates,
                    **{name: many[-1:] for name, many in curve.items()},
                },
            )
            if stopped is not None:
                raise stopped
            if options.settle is not None and done % EVERY == 0:
                settled = (
                    before is not None
                    and float(np.abs(gates[stage] - before).mean()) < options.settle
                )
                before = gates[stage]
        its.note(f"{task.name}, {stage}", options.updates - done)
        if not curve["loss"]:
            raise FloatingPointError(
                f"task {task.name!r}: the loss of every update is not a number ({model.dtype} overflows); load the model with dtype=torch.float32."
            )
        start = fits.theta if start is None else start


def _chunk(gates: Mapping[str, npt.NDArray[np.float32]], state: Mapping[str, Any]) -> Chunk:
    """The three scores from the gates there are: a stage that has not begun stands where the one before it ended."""
    keep = gates.get("keep", gates["free"])  # G+, (fit, layer, head)
    drop = gates.get("drop", gates["free"])  # G-
    aspects = {"interference": 1 - keep, "irrelevance": keep * (1 - drop)}
    return Chunk(tuple(range(len(drop))), slice(None), drop, aspects=aspects, state=state)


def answered(model: Model, task: EncodedTask, batch_size: int | None) -> npt.NDArray[np.bool_]:
    """(2, example): does the untouched model answer right; does the answer beat its foil?"""
    right = np.zeros((2, len(task.examples)), bool)
    for landed in gated_forward.run(
        model, task.examples, np.ones((1, *model.shape), np.float32), batch_size
    ):
        right[:, list(landed.runs)] = landed.values[0, :, 1:].T > 0.5
    return right


def _contrast(task: Task | None) -> dict[str, Any]:
    """Which prompts of another task the gates were fitted against: those are no fresh ones either."""
    return (
        {}
        if task is None
        else {
            "contrast": {
                "task": task.name,
                "made_from": [digest(e.prompt + e.answer) for e in task.examples],
            }
        }
    )


def _doubt(task: EncodedTask, right: npt.NDArray[np.bool_]) -> dict[str, str]:
    """A sentence where the fitted gates should not be believed."""
    said = []
    if len(task.examples) == 1:
        said.append(
            "Fitted on one prompt: the gates say what that prompt needs, not what the task needs."
        )
    elif len(task.examples) < FEW:
        said.append(
            f"Fitted on {len(task.examples)} prompts: the gates say what those need, not what the task needs."
        )
    if not right[0].any():
        said.append(
            "The model answers none of the prompts right, so the gates say which heads make a right answer less unlikely."
        )
    return {"warning": " ".join(said)} if said else {}


def _steps(tasks: Sequence[EncodedTask], options: Gating) -> tuple[float, str]:
    assert options.updates is not None
    return len(tasks) * len(STAGES) * options.updates, "updates"


def _check_tasks(model: Model, tasks: Sequence[EncodedTask], options: Gating) -> None:
    if options.contrast is not None:
        encode(options.contrast, model)  # whatever is wrong with it is said here


METHOD = Method(
    "gating", alone, Gating, signed=False, together=together, check_tasks=_check_tasks, steps=_steps
)
