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
from headwidget.scores.record import Dropped, Record, TaskRecord, digest
from headwidget.scoring import doubts, facts, trust
from headwidget.scoring.batch import answered, plan
from headwidget.scoring.contract import Chunk, Job, Portioned, Report, TaskReport
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
    _dropped: dict[str, Dropped] = field(default_factory=dict)
    _accuracy: dict[str, TaskRecord] = field(default_factory=dict)
    """By task, where it was measured before scoring."""

    def __post_init__(self) -> None:
        self._score_store = ScoreStore(self.model.shape)
        self._checker = Checker(self.method.name, self.model)
        self._aspects: list[str] | None = None
        self._weights: tuple[int, str] | None = None  # what they were when scoring began

    # ---- running ----

    def steps(self) -> tuple[float, str]:
        """The number of steps and their unit."""
        return self._checker.steps(self.method.steps(self.tasks, self.options))

    def land(self, note: Note) -> Iterator[tuple[EncodedTask, Chunk]]:
        """Score everything; yield each chunk once it is stored.

        ``note(what, steps)`` is called for every step that is done.
        """
        note("checking the model", 0)
        self._begin()
        counted = self._counted(note)
        groups = [self.tasks] if self.method.together else [[task] for task in self.tasks]
        for tasks in groups:
            start = functools.partial(self._run, tasks, counted)
            for yielded in self._halving(start):
                task, chunk = self._store(yielded, tasks)
                if not self.method.together:
                    note(task.name, len(chunk.runs) * chunk.values.shape[1] / self.model.shape[0])
                yield task, chunk
            for task in tasks:
                self._checker.complete(task, self._expected(task), len(self.done(task)))

    def _begin(self) -> None:
        """Check the model once, and note what its weights are."""
        if self._weights is None and self.method.runs_model:
            self.check_model()
            self._weights = trust.weight_versions(self.model), self.model.fingerprint()

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

    def _disturbances(self, fingerprint: str | None) -> list[str]:
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
        sources = self._sources_of(tasks, left)
        job = Job(
            self.model,
            tuple(rest),
            self.batch_size,
            self.options,
            self.seed,
            sources,
            note,
            self.portions,
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

        Only where a task's runs are its examples can a part be scored alone.
        """
        task = tasks[0]
        done, report = set(self.done(task)), self._reported(task)
        runs_are_examples = report.labels is None and report.runs is None
        if self.method.together or not done or not runs_are_examples:
            return tasks, None
        left = [i for i in range(len(task.examples)) if i not in done]
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

    def _take(self, report: Report, tasks: Sequence[EncodedTask]) -> None:
        """Add a report to what was reported before."""
        self._checker.report(report, tasks)
        later = self.report.extended(report)
        for task in tasks:
            landed = self._score_store.of(task.name)
            size = None if landed is None else len(landed)
            reported = later.tasks.get(task.name, TaskReport())
            self._checker.fits_landed(reported, task, self.begun(task), size)
        self.report = later

    def _store(self, chunk: Chunk, tasks: Sequence[EncodedTask]) -> tuple[EncodedTask, Chunk]:
        """Check a chunk and store it; its task, and the chunk as arrays."""
        task = self._checker.task(chunk.task, tasks)
        labels = self.labels(task)
        chunk = self._checker.chunk(chunk, task, labels)
        self._checker.among_reported(self._reported(task), task, chunk.runs)
        self._checker.answers(chunk, self._reported(task), task)
        aspects = sorted(chunk.aspects)
        if self._aspects is not None and aspects != self._aspects:
            raise ValueError(
                f"method {self.method.name!r} yielded chunks with the aspects {self._aspects} "
                f"and with {aspects}; all chunks must have the same."
            )
        self._aspects = aspects
        self._score_store.put(chunk, len(labels))
        return task, chunk

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
            self.batch_size = size
            self.halved.append(size)

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
                self._dropped[task.name] = Dropped(why, len(wrong), tuple(wrong))
            self._accuracy[task.name] = facts.accuracy(task.examples, right)
            tasks.append(task.only(kept))
            sources.append(source.only(kept))
        self.tasks, self.sources = tasks, sources
        self.method.check_tasks(self.model, tasks, self.options)

    # ---- results ----

    def labels(self, task: EncodedTask) -> Sequence[str]:
        """The labels of a task's runs: its prompts, unless the method reported others."""
        reported = self._reported(task).labels
        return reported or [example.label for example in task.examples]

    def done(self, task: EncodedTask) -> list[int]:
        """The runs of a task that are scored at every head."""
        return self._score_store.done(task.name)

    def begun(self, task: EncodedTask) -> list[int]:
        """The runs of a task that are scored at some heads."""
        return self._score_store.begun(task.name)

    def _reported(self, task: EncodedTask) -> TaskReport:
        return self.report.tasks.get(task.name, TaskReport())

    def _expected(self, task: EncodedTask) -> int:
        """How many runs a task has once all are done."""
        runs = self._reported(task).runs
        return len(self.labels(task) if runs is None else runs)

    def scores(self, *, partial: bool) -> HeadScores:
        """What has landed, as HeadScores; what has not is missing (NaN)."""
        begun = {task.name: self.begun(task) for task in self.tasks}
        tasks = [task for task in self.tasks if begun[task.name]]
        arrays: dict[str, dict[str, npt.NDArray[np.float32]]] = {}
        for aspect in self._score_store.aspects:
            arrays[aspect] = {}
            for task in tasks:
                values = self._score_store.of(task.name, aspect)
                assert values is not None  # every chunk has all aspects
                arrays[aspect][task.name] = values[begun[task.name]]
        labels = {}
        for task in tasks:
            names = self.labels(task)
            labels[task.name] = [names[i] for i in begun[task.name]]
        record = facts.of_run(self.model, self.options, self.seed, self.batch_size)
        disturbances = self._disturbances(record.weights)
        task_records = {t.name: self._task_record(t, begun[t.name], disturbances) for t in tasks}
        record = dataclasses.replace(
            record,
            **facts.of_method(self.method, self.options),
            out_of_memory=f"the batch was halved to {self.halved[-1]}" if self.halved else None,
            partial=partial,
            tasks=task_records,
            heads_changed=self._heads_changed(),
            heads_not_heeded=self.not_heeded or None,
        )
        return self._head_scores(arrays, labels, facts.as_json(record, self.report.record))

    def _heads_changed(self) -> tuple[str, ...]:
        """The heads that are scaled, in words."""
        if self.gates is None:
            return ()
        names = []
        for row, head in np.argwhere(self.gates != 1):
            factor = float(self.gates[row, head])
            names.append(f"L{self.model.layers[row].index} H{head} × {factor:g}")
        return tuple(names)

    def snapshot(self) -> HeadScores:
        """What can be shown now: what has landed of every task; the rest is missing (NaN)."""
        shown, labels = {}, {}
        for task in self.tasks:
            values, runs = self._score_store.of(task.name), self.begun(task)
            names = self.labels(task)
            if values is None or not runs:
                values = np.full((1, *self.model.shape), np.nan, np.float32)
                labels[task.name] = ["not scored yet"]
            else:
                values, labels[task.name] = values[runs], [names[i] for i in runs]
            shown[task.name] = values
        display = Record.from_json(self.report.record).display
        record = Record(
            model=self.model.name,
            sections=self.model.sections,
            **facts.of_method(self.method, self.options),
            partial=True,
            display=display,
        )
        return self._head_scores({"": shown}, labels, record)

    def _head_scores(
        self,
        arrays: dict[str, dict[str, npt.NDArray[np.float32]]],
        runs: dict[str, list[str]],
        meta: dict[str, Any] | Record,
    ) -> HeadScores:
        categories = {
            task.name: task.category
            for task in self.tasks
            if task.category is not None and task.name in runs
        }
        return HeadScores.from_arrays(
            arrays.pop("", {}),
            method=self.method.name,
            runs=runs,
            layers=[layer.index for layer in self.model.layers],
            signed=self.method.is_signed(self.options),
            ranked_by=self.method.ranked_by,
            categories=categories,
            meta=meta,
            aspects=arrays,
        )

    def _task_record(
        self, task: EncodedTask, begun: list[int], disturbances: Sequence[str]
    ) -> TaskRecord:
        """What is known of a task: prompts, what was dropped, accuracy, warnings.

        What the method reported of the task itself comes first.
        """
        dropped = [self._dropped[task.name]] if task.name in self._dropped else []
        if missing := self._expected(task) - len(begun):
            dropped.append(Dropped("scoring was stopped before it", missing))
        accuracy = self._task_accuracy(task, begun)
        report = self._reported(task)
        # Where runs are fits, or held-out prompts, the method was fitted on the task's examples.
        fitted = report.labels is not None or report.runs is not None
        measured = dataclasses.replace(
            accuracy,
            prompts=len(task.examples) if report.labels is not None else len(begun),
            dropped=tuple(dropped),
            before_prompt=task.before,
            tokenised_differently_with_answer=task.joint_differs,
            made_from=tuple(digest(e.label) for e in task.examples) if fitted else (),
        )
        record = TaskRecord.from_json({**measured.to_json(), **report.record})
        chance = doubts.no_better_than_chance(accuracy, self.method.chance_consequence)
        warnings = [record.warning, chance, self.few_right(task.name, accuracy), *disturbances]
        text = " ".join(warning for warning in warnings if warning)
        return dataclasses.replace(record, warning=text or None)

    def few_right(self, name: str, accuracy: TaskRecord) -> str | None:
        """A sentence where the model answers (nearly) none of a task's prompts right."""
        asked = [source.examples for source in self.sources if source.name == name]
        model = self.model
        continues = not (model.encoder or model.encoder_decoder or model.classifier)
        return doubts.few_right(accuracy, asked[0] if asked else (), continues=continues)

    def _task_accuracy(self, task: EncodedTask, begun: list[int]) -> TaskRecord:
        """How well the model does a task: measured before, reported, or seen while scoring."""
        if task.name in self._accuracy:
            return self._accuracy[task.name]
        if (right := self._reported(task).right) is not None:
            return facts.accuracy(task.examples, right)
        asked = [run for run in self._score_store.asked(task.name) if run in set(begun)]
        if not asked:
            return TaskRecord()
        right = self._score_store.correct(task.name)
        return facts.accuracy([task.examples[i] for i in asked], right[:, asked])
