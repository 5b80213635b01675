"""One scoring under way: runs a method's jobs, stores what they yield, and makes HeadScores."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from headwidget.models import Model, hooks
from headwidget.scores import HeadScores
from headwidget.scores.record import Dropped, TaskRecord
from headwidget.scoring import facts, results, trust
from headwidget.scoring.batch import answered, plan
from headwidget.scoring.checkpoint import Checkpoint
from headwidget.scoring.contract import Chunk, Job, NothingKept, Portioned, Report, TaskReport
from headwidget.scoring.encode import Encoded, EncodedTask
from headwidget.scoring.memory import halving
from headwidget.scoring.method_checks import Checker
from headwidget.scoring.score_store import ScoreStore
from headwidget.tasks import Task

if TYPE_CHECKING:
    from headwidget.scoring.contract import Method

Note = Callable[[str, float], None]


@dataclass
class Scoring:
    """What was asked, and the scores that have landed."""

    model: Model
    method: Method
    options: Any
    tasks: list[EncodedTask]
    batch_size: int | None
    seed: int
    sources: Sequence[Task] = ()
    """The tasks as text."""
    portions: Portioned = iter
    """Splits the method's batches further, for a run that is watched."""
    gates: npt.NDArray[np.float32] | None = None
    """(layer, head): the model is scored with its heads' outputs scaled by these."""
    not_heeded: int = 0
    """How many heads are scaled elsewhere and not in these scores."""
    report: Report = field(default_factory=Report)
    """All that the method has reported so far."""
    halved: list[int] = field(default_factory=list)
    """The batch sizes that were tried after memory ran out."""
    dropped: dict[str, Dropped] = field(default_factory=dict)
    """By task, the prompts that were left out."""
    accuracy: dict[str, TaskRecord] = field(default_factory=dict)
    """By task, where it was measured before scoring."""
    checkpoint: Checkpoint | None = None
    """Where what lands is kept."""

    def __post_init__(self) -> None:
        self.landed = ScoreStore(self.model.shape)
        self.asked_batch_size = self.batch_size
        self._aspects: list[str] | None = None
        self._weights: tuple[int, str] | None = None  # what they were when scoring began
        self._ended: set[str] = set()  # tasks of which everything was scored

    @property
    def _checker(self) -> Checker:
        return Checker(self.method.name, self.model, heads_scaled=self.gates is not None)

    # ---- running ----

    def steps(self) -> tuple[float, str]:
        """The number of steps and their unit."""
        return self._checker.steps(self.method.steps(self.tasks, self.options))

    def land(self, note: Note) -> Iterator[tuple[EncodedTask, Chunk]]:
        """Score everything; yield each chunk once it is stored.

        ``note(what, steps)`` is called for every step that is done.
        """
        self._restore(note)
        counted = self._counted(note)
        groups = [self.tasks] if self.method.together else [[task] for task in self.tasks]
        groups = [tasks for tasks in groups if not self._ended.issuperset(t.name for t in tasks)]
        if groups:
            note("checking the model", 0)
            self._begin()
        for tasks in groups:
            start = functools.partial(self._run, tasks, counted)
            for yielded in self._halving(start):
                task, chunk, new = self._store(yielded, tasks)
                if not self.method.together:
                    note(task.name, new / self.model.shape[0])
                yield task, chunk
            self._end(tasks)

    def _end(self, tasks: Sequence[EncodedTask]) -> None:
        """Check that all of these tasks is scored, and keep that it is."""
        for task in tasks:
            self._checker.complete(task, self.expected(task), len(self.done(task)))
        if self.checkpoint is not None:
            self.checkpoint.ended([task.name for task in tasks])

    def _begin(self) -> None:
        """Check the model once, and note what its weights are."""
        if self._weights is None and self.method.runs_model:
            self.check_model()
            self._weights = trust.weight_versions(self.model), self.model.fingerprint()

    def _restore(self, note: Note) -> None:
        """Take in what the checkpoint holds."""
        if self.checkpoint is None:
            return
        self.checkpoint.restore(self)
        if self.method.together:  # it counts its own steps, unless it does not run any more
            if self._ended:
                note(self.method.name, self.steps()[0])
            return
        for task in self.tasks:
            landed = self.landed.landed(task.name, len(self.labels(task))).sum()
            if landed:
                note(task.name, int(landed) / self.model.shape[0])

    def land_again(self, chunk: Chunk) -> None:
        """Store a chunk of a checkpoint."""
        tasks = self.tasks if self.method.together else [self._checker.task(chunk.task, self.tasks)]
        self._store(chunk, tasks, again=True)

    def report_again(self, report: Report, names: Sequence[str]) -> None:
        """Take in a report of a checkpoint, on a job of these tasks."""
        tasks = [self._checker.task(name, self.tasks) for name in names]
        self._take(report, tasks, again=True)

    def end_again(self, names: Sequence[str]) -> None:
        """Take in that these tasks, which make a job, are scored."""
        tasks = [self._checker.task(name, self.tasks) for name in names]
        if self.method.together and len(tasks) != len(self.tasks):
            raise ValueError(f"method {self.method.name!r} scores all of its tasks or none")
        for task in tasks:
            self._checker.complete(task, self.expected(task), len(self.done(task)))
        self._ended.update(task.name for task in tasks)

    def batch_halved(self, size: int) -> None:
        """Go on with smaller batches, as memory ran out."""
        self.batch_size = size
        self.halved.append(size)

    def check_model(self) -> None:
        """Check the live model, before anything is asked of it; remembered until it changes."""
        if not self.method.runs_model:
            return
        self.model.disturbances.clear()
        examples: list[Encoded] = []
        for task in self.tasks:
            examples += task.examples
        with self._changed():
            trust.check(self.model, examples)

    def disturbances(self, fingerprint: str | None) -> list[str]:
        """What others did to the model meanwhile, in sentences.

        ``fingerprint`` is that of the weights now.
        """
        sentences = sorted(self.model.disturbances)
        if self._weights not in (None, (trust.weight_versions(self.model), fingerprint)):
            sentences.append("The model's weights were changed while it was scored.")
        return sentences

    def _run(self, tasks: Sequence[EncodedTask], note: Note) -> Iterator[Chunk]:
        """The chunks of one job; its reports are taken in here."""
        rest, left = self._not_done(tasks)
        landed = {}
        if self.method.skips_done:
            for task in rest:
                landed[task.name] = self.landed.landed(task.name, len(self.labels(task)))
        job = Job(
            self.model,
            tuple(rest),
            self.batch_size,
            self.options,
            self.seed,
            self._sources_of(tasks, left),
            note,
            self.portions,
            landed,
            NothingKept() if self.checkpoint is None else self.checkpoint,
            heads_scaled=self.gates is not None,
        )
        yielded = self.method.run(job)
        self._checker.iterable(yielded)
        for item in map(self._checker.known_kind, self._with_gates(yielded)):
            if isinstance(item, Report):
                self._take(item, tasks)
            elif left is None:
                yield item
            else:  # indices into the examples that are not done yet
                yield self._renumbered(item, rest[0], left)

    def _changed(self) -> contextlib.AbstractContextManager[object]:
        """The model with its heads scaled, where the run heeds gates."""
        if self.gates is None:
            return contextlib.nullcontext()
        gates = torch.tensor(self.gates).to(self.model.device)
        return hooks.gate(self.model, gates, all_layers=False)

    def _with_gates(self, yielded: Iterable[Any]) -> Iterator[Any]:
        """What a method yields; between two of its steps no head is scaled."""
        steps, ended = iter(yielded), object()
        while True:
            with self._changed():
                item = next(steps, ended)
            if item is ended:
                return
            yield item

    def _not_done(
        self, tasks: Sequence[EncodedTask]
    ) -> tuple[Sequence[EncodedTask], list[int] | None]:
        """The tasks to score, and for a task of which a part is done, the runs that are not.

        Only where a task's runs are its examples can a part be scored alone. A method that
        leaves out what is done itself is given everything.
        """
        task = tasks[0]
        done, report = set(self.done(task)), self.reported(task)
        runs_are_examples = report.labels is None and report.runs is None
        if self.method.together or not done or not runs_are_examples or self.method.skips_done:
            return tasks, None
        left = [i for i in range(len(task.examples)) if i not in done]
        if not left:  # what the method reports at its end is missing: it scores the task again
            return tasks, None
        return [task.only(left)], left

    def _sources_of(
        self, tasks: Sequence[EncodedTask], left: Sequence[int] | None
    ) -> tuple[Task, ...]:
        """A job's tasks as text; of a task of which a part is done, the examples left."""
        if self.method.together:
            return tuple(self.sources)
        named = [source for source in self.sources if source.name == tasks[0].name]
        if left is None or self.method.encode is not None:
            return tuple(named)
        return tuple(source.only(left) for source in named)

    def _renumbered(self, chunk: Chunk, rest: EncodedTask, left: Sequence[int]) -> Chunk:
        chunk = self._checker.chunk(chunk, rest, [example.label for example in rest.examples])
        return dataclasses.replace(chunk, runs=tuple(left[i] for i in chunk.runs))

    def _take(self, report: Report, tasks: Sequence[EncodedTask], *, again: bool = False) -> None:
        """Add a report to what was reported before; one of a checkpoint is there ``again``."""
        self._checker.report(report, tasks)
        later = self.report.extended(report)
        for task in tasks:
            landed = self.landed.of(task.name)
            size = None if landed is None else len(landed)
            reported = later.tasks.get(task.name, TaskReport())
            self._checker.fits_landed(reported, task, self.begun(task), size)
        self.report = later
        if self.checkpoint is not None and not again:
            self.checkpoint.reported(report, [task.name for task in tasks])

    def _store(
        self, chunk: Chunk, tasks: Sequence[EncodedTask], *, again: bool = False
    ) -> tuple[EncodedTask, Chunk, int]:
        """Check a chunk and store it; its task, the chunk as arrays, and how many rows are new."""
        task = self._checker.task(chunk.task, tasks)
        labels = self.labels(task)
        chunk = self._checker.chunk(chunk, task, labels)
        self._checker.among_reported(self.reported(task), task, chunk.runs)
        self._checker.answers(chunk, self.reported(task), task)
        aspects = sorted(chunk.aspects)
        if self._aspects is not None and aspects != self._aspects:
            raise ValueError(
                f"method {self.method.name!r} yielded chunks with the aspects {self._aspects} "
                f"and with {aspects}; all chunks must have the same."
            )
        self._aspects = aspects
        new = self.landed.put(chunk, len(labels))
        if self.checkpoint is not None and not again:
            self.checkpoint.landed(chunk)
        return task, chunk, new

    def _counted(self, note: Note) -> Note:
        """The ``note`` of a job: counts the steps of a method that counts its own.

        Where memory ran out and the method starts over, its steps are taken back.
        """
        done, restarts = 0.0, 0

        def counted(what: str, steps: float) -> None:
            nonlocal done, restarts
            if not self.method.together:
                return note(what, 0)
            started_over, restarts = len(self.halved) != restarts, len(self.halved)
            undone, done = (done, steps) if started_over else (0.0, done + steps)
            note(what, steps - undone)

        return counted

    def _halving(self, start: Callable[[], Iterator[Chunk]]) -> Iterator[Chunk]:
        """What ``start`` yields; where memory runs out, it starts again with half the batch."""

        def halved(size: int) -> None:
            self.batch_halved(size)
            if self.checkpoint is not None:
                self.checkpoint.halved(size)

        return halving(lambda _: start(), self.batch_size, usual=self._usual_batch, halved=halved)

    def _usual_batch(self) -> int:
        """How many prompts run together where the user did not say."""
        chosen = self.method.usual_batch(self.options)
        if chosen is not None:
            return chosen
        largest = 1
        for task in self.tasks:
            largest = max(largest, *map(len, plan(task.examples, self.model, None)))
        return largest

    def keep_correct(self) -> None:
        """Leave out the prompts whose answer is not the model's own first choice."""
        self._begin()
        tasks, sources = [], []
        for task, source in zip(self.tasks, self.sources):
            right = answered(self.model, task.examples, self.batch_size)
            kept = [int(i) for i in np.flatnonzero(right[0])]
            if not kept:
                raise ValueError(
                    f"task {task.name!r}: the model answers none of its {len(right[0])} prompts "
                    "right, so only_correct leaves nothing to score."
                )
            wrong = [task.examples[i].label for i in np.flatnonzero(~right[0])]
            if wrong:
                why = "the answer is not the model's first choice"
                self.dropped[task.name] = Dropped(why, len(wrong), tuple(wrong))
            self.accuracy[task.name] = facts.accuracy(task.examples, right)
            tasks.append(task.only(kept))
            sources.append(source.only(kept))
        self.tasks, self.sources = tasks, sources
        self.method.check_tasks(self.model, tasks, self.options)

    # ---- results ----

    def labels(self, task: EncodedTask) -> Sequence[str]:
        """The labels of a task's runs: its prompts, unless the method reported others."""
        reported = self.reported(task).labels
        return reported or [example.label for example in task.examples]

    def done(self, task: EncodedTask) -> list[int]:
        """The runs of a task that are scored at every head."""
        return self.landed.done(task.name)

    def begun(self, task: EncodedTask) -> list[int]:
        """The runs of a task that are scored at some heads."""
        return self.landed.begun(task.name)

    def reported(self, task: EncodedTask) -> TaskReport:
        """What the method has reported of a task so far."""
        return self.report.tasks.get(task.name, TaskReport())

    def expected(self, task: EncodedTask) -> int:
        """How many runs a task has once all are done."""
        runs = self.reported(task).runs
        return len(self.labels(task) if runs is None else runs)

    def scores(self, *, partial: bool) -> HeadScores:
        """What has landed, as HeadScores; what has not is missing (NaN)."""
        return results.scores(self, partial=partial)

    def snapshot(self) -> HeadScores:
        """What can be shown now: what has landed of every task; the rest is missing (NaN)."""
        return results.snapshot(self)
