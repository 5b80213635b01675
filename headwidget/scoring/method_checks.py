"""Checks of what a method yields: each raises a sentence that names the method."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores.record import checked_json
from headwidget.scoring.contract import Chunk, Report, TaskReport

if TYPE_CHECKING:
    from headwidget.models import Model
    from headwidget.scoring.encode import EncodedTask

ROUNDING = {4: 1e-3, 2: 5e-2}
"""How large a chunk's ``discrepancy`` may be, by the bytes of a number of the model's dtype."""


@dataclass(frozen=True)
class Checker:
    """Checks the chunks and reports of one method on one model."""

    method: str
    model: Model
    heads_scaled: bool = False
    """Does the method run the model with some heads' outputs scaled?"""

    def known_kind(self, item: object) -> Chunk | Report:
        """What was yielded, if it is a chunk or a report."""
        if not isinstance(item, (Chunk, Report)):
            raise TypeError(
                f"method {self.method!r} yielded a {type(item).__name__}; a method yields Chunk "
                "and Report objects of headwidget.scoring.contract."
            )
        return item

    def steps(self, counted: Any) -> tuple[float, str]:
        """What the method's ``steps`` returned, if it is a number and a unit."""
        is_pair = isinstance(counted, (tuple, list)) and len(counted) == 2
        if not is_pair or not _is_count(counted[0]) or not isinstance(counted[1], str):
            raise TypeError(
                f"method {self.method!r}: steps(tasks, options) returns how many steps there are "
                f"and their unit, such as (8, 'prompts'); got {counted!r:.80}."
            )
        return counted[0], counted[1]

    def iterable(self, yielded: object) -> None:
        """Check what the method's ``run`` returned."""
        if not hasattr(yielded, "__iter__"):
            raise TypeError(
                f"method {self.method!r}: run(job) returned a {type(yielded).__name__}; "
                "it must be a generator that yields Chunk objects."
            )

    def task(self, name: object, tasks: Sequence[EncodedTask]) -> EncodedTask:
        """The task that a chunk or a report is about."""
        for task in tasks:
            if task.name == name:
                return task
        asked = ", ".join(repr(task.name) for task in tasks)
        raise ValueError(
            f"method {self.method!r} yielded scores of a task {name!r}, "
            f"but it was asked to score {asked}."
        )

    def report(self, report: Report, tasks: Sequence[EncodedTask]) -> None:
        """Check the names, sizes and records in a report."""
        if not isinstance(report.tasks, Mapping):
            raise TypeError(
                f"method {self.method!r}: a Report's tasks is a dict of TaskReports by the tasks' "
                f"names; got a {type(report.tasks).__name__}."
            )
        self._record(report.record, f"method {self.method!r}")
        if "merged" in report.record:
            raise ValueError(
                f"method {self.method!r} reported 'merged', which stands for scores that were "
                "put together; give that fact another name."
            )
        for name, task_report in report.tasks.items():
            task = self.task(name, tasks)
            if not isinstance(task_report, TaskReport):
                raise TypeError(
                    f"{self._where(task)}: a Report holds a TaskReport for each task; "
                    f"got a {type(task_report).__name__}."
                )
            self._record(task_report.record, self._where(task))
            self._task_report(task_report, task)

    def _record(self, record: Any, where: str) -> None:
        """Check that the scores' record can hold what is reported."""
        if not isinstance(record, Mapping):
            raise TypeError(
                f"{where}: a report's record is a dict, {{}} where there is nothing to report; "
                f"got a {type(record).__name__}."
            )
        for key, value in record.items():
            try:
                checked_json({"record": {key: value}})
            except ValueError as error:
                raise ValueError(
                    f"{where} reported {key!r}, which cannot be kept in the scores' record: use "
                    "text, finite numbers, or lists and dicts of them; "
                    f"got a {type(value).__name__}, {value!r:.80}."
                ) from error
        warning = record.get("warning")
        if warning is not None and not isinstance(warning, str):
            raise TypeError(f"{where}: a report's warning is a sentence; got {warning!r:.80}.")

    def _task_report(self, report: TaskReport, task: EncodedTask) -> None:
        where, examples = self._where(task), len(task.examples)
        if report.labels is not None and not _are_labels(report.labels):
            raise ValueError(
                f"{where}: labels are texts, one or more, in a tuple or list; "
                f"got {report.labels!r:.80}."
            )
        if report.runs is not None:
            self._indices(report.runs, examples, f"{where} reported runs")
        if report.right is not None and np.shape(report.right) != (2, examples):
            raise ValueError(
                f"{where}: right is an array of shape (2, {examples}), a column for each "
                f"example; got {_shape(np.shape(report.right))}."
            )
        if report.right is not None:
            self._yes_or_no(report.right, "right", where)

    def fits_landed(
        self, report: TaskReport, task: EncodedTask, landed: Sequence[int], size: int | None
    ) -> None:
        """Check all that was reported of a task against the runs that have ``landed``.

        ``size`` is how many runs the task had when its first chunk came.
        """
        where = self._where(task)
        if report.labels is not None and report.runs is not None:
            raise ValueError(
                f"{where} reported both runs and labels; report runs where runs are some of the "
                "examples, and labels where they are not examples."
            )
        if size is not None and report.labels is not None and len(report.labels) != size:
            raise ValueError(
                f"{where}: {len(report.labels)} labels were "
                f"reported after chunks of {size} runs; report labels first."
            )
        self.among_reported(report, task, landed)

    def among_reported(self, report: TaskReport, task: EncodedTask, runs: Sequence[int]) -> None:
        """Check that runs are among those that were reported, where that was done."""
        if report.runs is None:
            return
        reported = {int(run) for run in report.runs}
        outside = [run for run in runs if run not in reported]
        if outside:
            raise ValueError(
                f"{self._where(task)} yielded scores of run {outside[0]}, which is not among the "
                "runs that it reported; report every run that is scored."
            )

    def chunk(self, chunk: Chunk, task: EncodedTask, labels: Sequence[str]) -> Chunk:
        """A chunk that fits the task, its numbers as float32 arrays."""
        where = self._where(task)
        runs = self._indices(chunk.runs, len(labels), f"{where} yielded runs")
        if not isinstance(chunk.layers, slice):
            raise TypeError(
                f"{where}: layers is a slice of the model's layers, slice(None) for all; "
                f"got {chunk.layers!r}."
            )
        rows = len(range(*chunk.layers.indices(self.model.shape[0])))
        shape = len(runs), rows, self.model.shape[1]
        values = self._numbers(chunk.values, "values", shape, where)
        aspects = {}
        for name, numbers in self._aspects(chunk.aspects, where).items():
            aspects[name] = self._numbers(numbers, f"aspect {name!r}", shape, where)
        chunk = dataclasses.replace(chunk, runs=runs, values=values, aspects=aspects)
        for numbers in (values, *aspects.values()):
            self._finite(numbers, chunk, task, labels)
        if chunk.discrepancy is not None:
            self._close(self._numbers(chunk.discrepancy, "discrepancy", (len(runs),), where))
        if chunk.correct is None:
            return chunk
        if np.shape(chunk.correct) != (2, len(runs)):
            raise ValueError(
                f"{where}: correct has shape {_shape(np.shape(chunk.correct))}; "
                f"expected (2, {len(runs)}), a column for each run."
            )
        return dataclasses.replace(chunk, correct=self._yes_or_no(chunk.correct, "correct", where))

    def answers(self, chunk: Chunk, report: TaskReport, task: EncodedTask) -> None:
        """Check that a chunk whose runs are not examples does not say which were answered."""
        if chunk.correct is not None and report.labels is not None:
            raise ValueError(
                f"{self._where(task)}: correct is about examples, but runs with reported labels "
                "are not examples; report right instead."
            )

    def complete(self, task: EncodedTask, expected: int, done: int) -> None:
        """Check that a method that has ended scored all runs of a task."""
        if done == 0:
            raise RuntimeError(
                f"{self._where(task)} ended without any run scored at all layers; "
                "run(job) must yield a Chunk for every run and layer."
            )
        if done < expected:
            raise RuntimeError(
                f"{self._where(task)} ended with {done} of {expected} runs scored; "
                "run(job) must yield a Chunk for every run and layer."
            )

    def _where(self, task: EncodedTask) -> str:
        return f"method {self.method!r}, task {task.name!r}"

    def _aspects(self, aspects: Any, where: str) -> Mapping[str, Any]:
        """A chunk's aspects, if they have names; "" would stand for the score itself."""
        if not isinstance(aspects, Mapping):
            raise TypeError(
                f"{where}: aspects is a dict of arrays by name, {{}} where there are none; "
                f"got a {type(aspects).__name__}."
            )
        for name in aspects:
            if not is_text(name):
                raise ValueError(
                    f"{where}: an aspect's name is text that is not empty; got {name!r}."
                )
        return aspects

    def _indices(self, runs: Any, count: int, what: str) -> tuple[int, ...]:
        try:
            indices = tuple(operator.index(run) for run in runs)
            has_bools = any(isinstance(run, (bool, np.bool_)) for run in runs)
            sound = len(indices) == len(runs) == len(set(indices)) > 0 and not has_bools
        except (TypeError, ValueError):
            indices, sound = (), False
        if not sound:
            raise ValueError(f"{what} {runs!r:.80}; runs are whole numbers, each once.")
        if min(indices) < 0 or max(indices) >= count:
            wrong = next(run for run in indices if not 0 <= run < count)
            raise ValueError(f"{what} with number {wrong}; it has runs 0 to {count - 1}.")
        return indices

    def _yes_or_no(self, answers: Any, name: str, where: str) -> npt.NDArray[np.bool_]:
        array = np.asarray(answers)
        is_sound = array.dtype.kind in "biuf" and not np.ma.is_masked(answers)
        if not is_sound or not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"{where}: {name} holds True or False for each run; got {array.dtype} "
                f"such as {array.flat[0]!r:.40}."
            )
        return array.astype(bool)

    def _numbers(
        self, numbers: Any, name: str, shape: tuple[int, ...], where: str
    ) -> npt.NDArray[np.float32]:
        of_what = "(run, layer, head)" if len(shape) == 3 else "(run)"
        wanted = f"{where}: {name} is an array of numbers on the host, {of_what}"
        try:
            array = np.asarray(numbers)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{wanted}; got a {type(numbers).__name__} ({error}).") from error
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{wanted}; got a {type(numbers).__name__} of {array.dtype}.")
        if np.ma.is_masked(numbers):
            raise ValueError(f"{wanted}; got an array with masked cells: give every number.")
        if array.shape != shape:
            of_each = "the chunk's runs, its layers, and the model's heads"
            raise ValueError(
                f"{where}: {name} has shape {_shape(array.shape)}; expected {_shape(shape)}: "
                f"{of_each if len(shape) == 3 else 'a number for each run'}."
            )
        return array.astype(np.float32, copy=False)

    def _finite(
        self,
        numbers: npt.NDArray[np.float32],
        chunk: Chunk,
        task: EncodedTask,
        labels: Sequence[str],
    ) -> None:
        if np.isfinite(numbers).all():
            return
        from headwidget.models import not_finite  # it needs torch

        run = int(np.argwhere(~np.isfinite(numbers))[0][0])
        label = labels[chunk.runs[run]]
        advice = not_finite.advice(self.model, heads_scaled=self.heads_scaled)
        raise FloatingPointError(
            f"task {task.name!r}: {self.method} gave a score that is not a number for "
            f"{label[:80]!r}. {advice}"
        )

    def _close(self, difference: npt.NDArray[np.float32]) -> None:
        """Refuse a computation that is further from the model's forward than rounding."""
        if not difference.max() <= ROUNDING[min(4, self.model.dtype.itemsize)]:
            raise RuntimeError(
                f"{self.model.name} run layer by layer gives log-probabilities up to "
                f"{difference.max():.1%} away from its own forward, so its {self.method} scores "
                "would be wrong. Use method='gradient', and please report the model."
            )


def is_text(value: object) -> bool:
    """Is it text that is not empty and that a file can hold?

    >>> is_text("mine"), is_text(" "), is_text("\\ud800"), is_text(7)
    (True, False, False, False)
    """
    if not isinstance(value, str) or not value.strip():
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _is_count(value: object) -> bool:
    """Is it a finite number, 0 or more?"""
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    return is_number and not isinstance(value, bool) and bool(0 <= value < np.inf)  # type: ignore[operator]


def _are_labels(labels: object) -> bool:
    """Are they texts in a tuple or list, one or more? Text alone would be a label a letter."""
    if not isinstance(labels, (tuple, list)) or not labels:
        return False
    return all(isinstance(label, str) for label in labels)


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
