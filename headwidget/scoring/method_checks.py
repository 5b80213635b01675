"""Checks of what a method yields: each raises a sentence that names the method."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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

    def known_kind(self, item: object) -> Chunk | Report:
        """What was yielded, if it is a chunk or a report."""
        if not isinstance(item, (Chunk, Report)):
            raise TypeError(
                f"method {self.method!r} yielded a {type(item).__name__}; a method yields Chunk "
                "and Report objects of headwidget.scoring.contract."
            )
        return item

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
        """Check the names and sizes in a report."""
        for name, task_report in report.tasks.items():
            self._task_report(task_report, self.task(name, tasks))

    def _task_report(self, report: TaskReport, task: EncodedTask) -> None:
        where, examples = self._where(task), len(task.examples)
        if report.labels is not None and not (
            report.labels and all(isinstance(label, str) for label in report.labels)
        ):
            raise ValueError(f"{where}: labels are texts, one or more; got {report.labels!r}.")
        if report.runs is not None:
            self._indices(report.runs, examples, f"{where} reported runs")
        if report.right is not None and np.shape(report.right) != (2, examples):
            raise ValueError(
                f"{where}: right is an array of shape (2, {examples}), a column for each "
                f"example; got {_shape(np.shape(report.right))}."
            )

    def chunk(self, chunk: Chunk, task: EncodedTask, labels: Sequence[str]) -> Chunk:
        """A chunk that fits the task, its numbers as float32 arrays."""
        where = self._where(task)
        self._indices(chunk.runs, len(labels), f"{where} yielded runs")
        if not isinstance(chunk.layers, slice):
            raise TypeError(
                f"{where}: layers is a slice of the model's layers, slice(None) for all; "
                f"got {chunk.layers!r}."
            )
        rows = len(range(*chunk.layers.indices(self.model.shape[0])))
        shape = len(chunk.runs), rows, self.model.shape[1]
        values = self._numbers(chunk.values, "values", shape, where)
        aspects = {
            name: self._numbers(numbers, f"aspect {name!r}", shape, where)
            for name, numbers in chunk.aspects.items()
        }
        for numbers in (values, *aspects.values()):
            self._finite(numbers, chunk, task, labels)
        if chunk.correct is not None and np.shape(chunk.correct) != (2, len(chunk.runs)):
            raise ValueError(
                f"{where}: correct has shape {_shape(np.shape(chunk.correct))}; "
                f"expected (2, {len(chunk.runs)}), a column for each run."
            )
        if chunk.discrepancy is not None:
            self._close(np.asarray(chunk.discrepancy, np.float32))
        return dataclasses.replace(chunk, values=values, aspects=aspects)

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

    def _indices(self, runs: Any, count: int, what: str) -> None:
        try:
            indices = [int(run) for run in runs if run == int(run)]
            sound = len(indices) == len(runs) == len(set(indices)) > 0
        except (TypeError, ValueError):
            indices, sound = [], False
        if not sound:
            raise ValueError(f"{what} {runs!r:.80}; runs are whole numbers, each once.")
        if min(indices) < 0 or max(indices) >= count:
            wrong = next(run for run in indices if not 0 <= run < count)
            raise ValueError(f"{what} with number {wrong}; it has runs 0 to {count - 1}.")

    def _numbers(
        self, numbers: Any, name: str, shape: tuple[int, ...], where: str
    ) -> npt.NDArray[np.float32]:
        try:
            array = np.asarray(numbers, np.float32)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"{where}: {name} is an array of numbers on the host, (run, layer, head); "
                f"got a {type(numbers).__name__} ({error})."
            ) from error
        if array.shape != shape:
            raise ValueError(
                f"{where}: {name} has shape {_shape(array.shape)}; expected {_shape(shape)}: "
                "the chunk's runs, its layers, and the model's heads."
            )
        return array

    def _finite(
        self,
        numbers: npt.NDArray[np.float32],
        chunk: Chunk,
        task: EncodedTask,
        labels: Sequence[str],
    ) -> None:
        if np.isfinite(numbers).all():
            return
        run = int(np.argwhere(~np.isfinite(numbers))[0][0])
        label = labels[chunk.runs[run]]
        raise FloatingPointError(
            f"task {task.name!r}: {self.method} gave a score that is not a number for "
            f"{label[:80]!r} ({self.model.dtype}); load the model with dtype=torch.float32."
        )

    def _close(self, difference: npt.NDArray[np.float32]) -> None:
        """Refuse a computation that is further from the model's forward than rounding."""
        if not difference.max() <= ROUNDING[min(4, self.model.dtype.itemsize)]:
            raise RuntimeError(
                f"{self.model.name} run layer by layer gives log-probabilities up to "
                f"{difference.max():.1%} away from its own forward, so its {self.method} scores "
                "would be wrong. Use method='gradient', and please report the model."
            )


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
