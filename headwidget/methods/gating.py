"""gating: gates over all heads, fitted to keep heads and to drop them (Nam et al. 2025).

``G = sigmoid(theta)``; the loss is the answers' mean NLL less ``strength * mean(clip(theta))``,
so a positive strength keeps heads and a negative one drops them. A first stage without
pressure starts from random gates; the other two start where it ends. A head that stays on
under pressure to drop facilitates the task, one that stays off under pressure to keep
interferes, and one that follows either pressure is irrelevant.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.methods.gate_fits import Fits, Prompts
from headwidget.models import Model, not_finite
from headwidget.scores.record import Contrast, TaskRecord, digest
from headwidget.scoring import slopes
from headwidget.scoring.batch import answered, can_share
from headwidget.scoring.contract import (
    Chunk,
    Job,
    Method,
    Report,
    TaskReport,
    check_shapes,
    taken_up,
)
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.scoring.option_checks import at_least, between
from headwidget.tasks import Task

if TYPE_CHECKING:
    from headwidget.scoring.journal import Entry

Gates = npt.NDArray[np.float32]

Preset = Literal["published", "quick"]
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "published": {"updates": 500, "strength": 0.1, "lr": 1.0, "fits": 10, "start": (0.0, 1.0)},
    "quick": {"updates": 20, "strength": 0.1, "lr": 1.0, "fits": 4, "start": (0.5, 1.0)},
}
"""A quick fit starts half open: from lower gates, few updates do not reach a solution."""
BATCH: Mapping[str, int] = {"published": 32, "quick": 8}
"""Prompts an update."""
STAGES = ("free", "keep", "drop")
_CURVES = ("loss", "regulariser")
EVERY = 10
"""Updates between two chunks, at most: how often the host waits for the device."""
PATIENCE = 1.0
"""Seconds between two chunks, about, where updates are slow."""
FEW = 4
"""Gates fitted on fewer prompts say what those need, not what the task needs."""


@dataclass(frozen=True)
class Gating:
    """Options of ``method="gating"``.

    ``batch_size`` of :func:`headwidget.score` is the prompts an update (published 32, quick 8).
    """

    preset: Preset = "published"
    """``"quick"`` takes fewer updates, fits and prompts, for a workshop.

    docs/gating.md says what that gives up.
    """
    updates: int | None = None
    """Updates a stage (published 500)."""
    strength: float | None = None
    """Lambda, the pressure to keep heads, and then to drop them (published 0.1)."""
    clamp: float = 4.0
    """Beyond this logit a gate is no longer pushed."""
    lr: float | None = None
    """Adam's learning rate (published 1)."""
    lr_end: float | None = None
    """The learning rate at the end of a stage, reached in a straight line; None: it stays."""
    fits: int | None = None
    """How many fits are trained side by side, each from its own random start: the runs."""
    start: tuple[float, float] | None = None
    """The range of the random gates that a fit starts from (published 0 to 1)."""
    bootstrap: bool = False
    """Give every fit its own resample of the prompts."""
    settle: float | None = None
    """End a stage once ten updates moved the gates by less than this on average; None: never."""
    contrast: Task | None = None
    """Subtract this task's loss: the gates then show what only the first task needs."""

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
                "contrast is a hw.Task whose needs are subtracted, or None; "
                f"got a {type(self.contrast).__name__}."
            )

    def _start(self) -> tuple[float, float]:
        try:
            low, high = map(float, self.start)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not 0 <= low < high <= 1:
            raise ValueError(
                "start is two gates between 0 and 1, the lower one first, such as (0.5, 1); "
                f"got {self.start!r}."
            )
        return low, high

    @property
    def batch(self) -> int:
        """Prompts an update, where ``batch_size`` is not given."""
        return BATCH[self.preset]

    def pressure(self, stage: str) -> float:
        """lambda of a stage: positive keeps heads, negative drops them."""
        assert self.strength is not None
        return {"free": 0.0, "keep": self.strength, "drop": -self.strength}[stage]


def run(job: Job) -> Iterator[Chunk | Report]:
    """Chunks of all fits of a task while they are trained, then of the next task.

    Ctrl-C keeps the gates as they are.
    """
    options: Gating = job.options
    assert options.fits is not None
    labels = tuple(f"fit {i}" for i in range(options.fits))
    for task in job.tasks:
        kept = job.kept.get(_name(job, task))
        if kept is not None and kept.facts["stage"] == len(STAGES):  # it is fitted
            job.note(task.name, _steps([task], options)[0])
            continue
        checked = slopes.as_record(slopes.check_task(job.model, task.examples, job.seed))
        right = answered(job.model, task.examples, job.batch_size)
        curves = {} if kept is None else kept.facts["curves"]
        facts = {**checked, **_contrast(options.contrast), **_warning(task, right)}
        record = {"gating": curves, **facts}
        yield Report({task.name: TaskReport(labels=labels, right=right, record=record)})
        yield from fit(job, task, kept)


@dataclass
class Training:
    """How far the fits of a task are."""

    stage: int = 0
    """The index of the stage under way."""
    done: int = 0
    """Updates of that stage."""
    settled: bool = False
    gates: dict[str, Gates] = field(default_factory=dict)
    """By stage, as it stands or ended."""
    curves: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    before: Gates | None = None
    """The gates ten updates ago."""
    start: Tensor | None = None
    """Where the stages under pressure start: the end of the free one."""

    def keep(self, job: Job, task: EncodedTask, fits: Fits) -> None:
        """Keep all of it, with the fits."""
        facts, arrays = fits.kept()
        arrays |= {f"gates {stage}": gates for stage, gates in self.gates.items()}
        if self.before is not None:
            arrays["before"] = self.before
        if self.start is not None:
            arrays["start"] = self.start.detach().cpu().numpy()
        stand = {"stage": self.stage, "done": self.done, "settled": self.settled}
        job.kept.put(_name(job, task), {**facts, **stand, "curves": self.curves}, arrays)

    @classmethod
    def of(cls, kept: Entry, fits: Fits, options: Gating) -> Training:
        """What was kept; ``fits`` stand where they stood then."""
        facts, arrays = kept.facts, kept.arrays
        assert options.updates is not None
        stage, done, curves = facts["stage"], facts["done"], facts["curves"]
        begun = STAGES[: stage + 1]
        if not (0 <= stage < len(STAGES) and 1 <= done <= options.updates):
            raise ValueError(f"update {done} of stage {stage}")
        names = [f"gates {name}" for name in begun] + [
            n for n in ("before", "start") if n in arrays
        ]
        check_shapes(arrays, dict.fromkeys(names, tuple(fits.theta.shape)))
        start = None
        if stage > 0:
            start = torch.from_numpy(arrays["start"]).to(fits.theta.device)
        fits.begin(options.pressure(STAGES[stage]), start)
        fits.go_on(facts, arrays)
        return cls(
            stage,
            done,
            facts["settled"],
            {name: arrays[f"gates {name}"] for name in begun},
            {name: {part: list(curves[name][part]) for part in _CURVES} for name in begun},
            arrays.get("before"),
            start,
        )


def _name(job: Job, task: EncodedTask) -> str:
    """What a task's fits are kept under; those with other batches are others."""
    return f"{task.name}, batches of {job.batch_size or job.options.batch}"


def fit(job: Job, task: EncodedTask, kept: Entry | None = None) -> Iterator[Chunk | Report]:
    """Train all fits of one task, three stages. A report of the losses precedes each chunk."""
    options: Gating = job.options
    assert options.updates is not None
    fits = _random_fits(job, task)
    now = Training()
    if kept is not None:
        with taken_up(f"task {task.name!r}"):
            now = Training.of(kept, fits, options)
        job.note(task.name, now.stage * options.updates + now.done)
    for stage in STAGES[now.stage :]:
        if kept is None:
            fits.begin(options.pressure(stage), now.start)
            now.done, now.settled, now.before = 0, False, None
        kept = None
        while now.done < options.updates and not now.settled:
            now.done, interrupt = _update(fits, job, now.done, f"{task.name}, {stage}")
            now.gates[stage], now.curves[stage] = fits.gates(), fits.curve()
            yield Report({task.name: TaskReport(record={"gating": dict(now.curves)})})
            state = _state(stage, now.done, options.updates, now.curves[stage])
            yield _chunk(task, now.gates, state)
            if interrupt is not None:
                raise interrupt
            if options.settle is not None and now.done % EVERY == 0:
                moved = None if now.before is None else _moved(now.gates[stage], now.before)
                now.settled = moved is not None and moved < options.settle
                now.before = now.gates[stage]
            if job.kept.due():
                now.keep(job, task, fits)
        job.note(f"{task.name}, {stage}", options.updates - now.done)
        if not now.curves[stage]["loss"]:
            raise FloatingPointError(
                f"task {task.name!r}: the loss of every update is not a number. "
                f"{not_finite.advice(job.model, heads_scaled=job.heads_scaled)}"
            )
        now.start = fits.theta if now.start is None else now.start
        now.stage += 1
    job.kept.put(_name(job, task), {"stage": len(STAGES)}, {})


def _random_fits(job: Job, task: EncodedTask) -> Fits:
    """Fits with random gates, and the prompts that they are trained on."""
    options: Gating = job.options
    assert options.fits is not None and options.start is not None
    size = job.batch_size or options.batch
    seeds = [np.random.default_rng([job.seed, i]) for i in range(options.fits)]
    seen = [Prompts(job.model, task.examples, size, seeds, options.bootstrap)]
    if options.contrast is not None:
        examples = encode(options.contrast, job.model).examples
        seen.append(Prompts(job.model, examples, size, seeds, options.bootstrap))
    return Fits.random(job.model, seen, seeds, options.clamp, *options.start)


def _update(fits: Fits, job: Job, done: int, what: str) -> tuple[int, KeyboardInterrupt | None]:
    """Updates until the next chunk is due; how many are done, and an interrupt if one came."""
    options: Gating = job.options
    assert options.updates is not None and options.lr is not None
    lr_end = options.lr if options.lr_end is None else options.lr_end
    began = time.monotonic()
    try:
        while done < options.updates:
            fits.update(options.lr + (lr_end - options.lr) * done / max(1, options.updates - 1))
            done += 1
            job.note(what, 1)
            if done % EVERY == 0 or time.monotonic() - began > PATIENCE:
                break
    except KeyboardInterrupt as interrupt:
        return done, interrupt
    return done, None


def _moved(gates: Gates, before: Gates) -> float:
    return float(np.abs(gates - before).mean())


def _state(stage: str, done: int, updates: int, curve: Mapping[str, list[float]]) -> dict[str, Any]:
    """How far the training is, with the last loss and regulariser."""
    latest = {name: losses[-1:] for name, losses in curve.items()}
    return {"stage": stage, "update": done, "updates": updates, **latest}


def _chunk(task: EncodedTask, gates: Mapping[str, Gates], state: Mapping[str, Any]) -> Chunk:
    """The three scores; a stage that has not begun counts as where the free one ended."""
    keep = gates.get("keep", gates["free"])  # G+, (fit, layer, head)
    drop = gates.get("drop", gates["free"])  # G-
    aspects = {"interference": 1 - keep, "irrelevance": keep * (1 - drop)}
    runs = tuple(range(len(drop)))
    return Chunk(task.name, runs, slice(None), drop, aspects=aspects, state=state)


def _contrast(task: Task | None) -> dict[str, Any]:
    """The prompts whose loss was subtracted: the gates were fitted on those too."""
    if task is None:
        return {}
    made_from = tuple(digest(example.prompt + example.answer) for example in task.examples)
    return TaskRecord(contrast=Contrast(task=task.name, made_from=made_from)).to_json()


def _warning(task: EncodedTask, right: npt.NDArray[np.bool_]) -> dict[str, str]:
    """A warning where the fitted gates should not be believed."""
    sentences = []
    if len(task.examples) == 1:
        sentences.append(
            "Fitted on one prompt: the gates say what that prompt needs, not what the task needs."
        )
    elif len(task.examples) < FEW:
        sentences.append(
            f"Fitted on {len(task.examples)} prompts: the gates say what those need, "
            "not what the task needs."
        )
    if not right[0].any():
        sentences.append(
            "The model answers none of the prompts right, so the gates say which heads make "
            "a right answer less unlikely."
        )
    return {"warning": " ".join(sentences)} if sentences else {}


def _steps(tasks: Sequence[EncodedTask], options: Gating) -> tuple[float, str]:
    assert options.updates is not None
    return len(tasks) * len(STAGES) * options.updates, "updates"


def _check_tasks(model: Model, tasks: Sequence[EncodedTask], options: Gating) -> None:
    if options.contrast is not None:
        encode(options.contrast, model)  # raises a sentence where it cannot be encoded
    for task in tasks:
        first = task.examples[0]
        if not all(can_share(first, example, model) for example in task.examples[1:]):
            raise ValueError(
                f"task {task.name!r}: gating fits gates on batches, and prompts with images, "
                "or images or sounds of several sizes, do not run in one; use "
                "method='gradient' or 'ablation'."
            )


METHOD = Method(
    "gating",
    run,
    Gating,
    signed=False,
    together=True,
    check_tasks=_check_tasks,
    steps=_steps,
    usual_batch=lambda options: options.batch,
    about="How open the head's fitted gate stays under pressure to drop heads, from 0 to 1.",
    aspects={
        "interference": "How closed the head's gate stays under pressure to keep heads, 0 to 1.",
        "irrelevance": "How far the head's gate follows the pressure to keep or drop, 0 to 1.",
    },
    explained=(
        "Every head gets a gate between 0 and 1, and the gates of all heads are fitted together "
        "while the model stays as it is: first without pressure, then with pressure to keep heads, "
        "then with pressure to drop them.",
        "Facilitation: the gate stays open under pressure to drop. Interference: it stays closed "
        "under pressure to keep. Irrelevance: it follows the pressure.",
        "A run is one fit from another random start. Fits differ where heads can stand in for "
        "each other: compare Always and Any in the agreement view.",
    ),
    paper=("Nam et al. 2025", "https://arxiv.org/abs/2505.13737"),
)
