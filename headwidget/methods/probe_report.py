"""What a probe's scores are worth: held-out accuracy against chance and against the prompts' surface, the control's noise floor, and warnings."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import chance
from headwidget.scoring.contract import Chunk, Together
from headwidget.scoring.encode import EncodedTask
from headwidget.tasks import Task

Labels = npt.NDArray[np.int64]

QUANTILE = 0.95
"""The noise floor of a task: what this share of the heads stay below when the labels are shuffled. One head in twenty is above it by luck."""


class Report:
    """Filled in fit by fit; :meth:`write` puts what is known so far where the scores' meta is made."""

    def __init__(
        self, tasks: Sequence[EncodedTask], folds: int | None, seeds: int, its: Together
    ) -> None:
        self.tasks, self.folds, self.seeds, self.its = tasks, folds, seeds, its
        self.starts = np.cumsum([0] + [len(task.examples) for task in tasks])
        self.labels: Labels = np.repeat(
            np.arange(len(tasks)), np.diff(self.starts)
        )  # (example,): each example's task
        self.epochs: list[int] = []
        self.trained = self.validated = 0
        self.confusion = np.zeros(
            (len(tasks), len(tasks)), int
        )  # (task, taken for), summed over probes
        self.control_confusion = self.confusion.copy()
        self.surface = surface(its.sources, its.seed)
        self.control_sum: Any = (
            0.0  # importance in the control, (task, layer, head), summed over its held-out examples
        )

    def expect(self, held_out: Sequence[int]) -> None:
        """These examples, by their place among all, will be runs."""
        for number, task in enumerate(self.tasks):
            self.its.runs[task.name] = tuple(
                sorted(i - int(self.starts[number]) for i in held_out if self.labels[i] == number)
            )

    def answered(self, right: npt.NDArray[np.bool_]) -> None:
        """How the model itself did, (2, example)."""
        for number, task in enumerate(self.tasks):
            self.its.right[task.name] = right[:, self.starts[number] : self.starts[number + 1]]

    def training(self, on: str) -> Callable[[int], None]:
        """What to call after each epoch."""
        fits = (self.folds or 1) * self.seeds
        which = (
            f", probe {len(self.epochs) + 1} of {fits}"
            if fits > 1 and on == "labels"
            else f", control {len(self.epochs)} of {fits}"
            if fits > 1
            else ""
        )
        return lambda epoch: self.its.note(f"training on {on}{which}, epoch {epoch}", 0)

    def fitted(
        self, epochs: int, trained: int, validated: int, labels: Labels, choices: Labels
    ) -> None:
        """A probe's held-out examples: what they are, and what it takes them for."""
        self.epochs.append(epochs)
        self.trained, self.validated = trained, validated
        np.add.at(self.confusion, (labels, choices), 1)

    def controlled(
        self, labels: Labels, choices: Labels, importance: npt.NDArray[np.float32]
    ) -> None:
        """The same of its control, whose labels are shuffled, and what importance (example, layer, head) comes to there."""
        np.add.at(self.control_confusion, (labels, choices), 1)
        self.control_sum = self.control_sum + np.stack(
            [importance[labels == task].sum(0) for task in range(len(self.tasks))]
        )

    def by_task(self, chunk: Chunk) -> Iterator[tuple[EncodedTask, Chunk]]:
        """A chunk of all tasks' examples as one for each."""
        runs = np.asarray(chunk.runs)
        for number, task in enumerate(self.tasks):
            own = np.flatnonzero(self.labels[runs] == number)
            if len(own):
                local = tuple(int(i) for i in runs[own] - self.starts[number])
                yield (
                    task,
                    Chunk(
                        local,
                        chunk.layers,
                        chunk.values[own],
                        None if chunk.correct is None else chunk.correct[:, own],
                    ),
                )

    def write(self) -> None:
        """All that is known so far, for the scores' meta."""
        names = [task.name for task in self.tasks]
        asked = self.confusion.sum(1)  # held-out examples of each task, once for every probe
        by_task = self.confusion.diagonal() / asked
        count = int(asked.sum()) // self.seeds
        accuracy = float(self.confusion.trace() / asked.sum())
        majority = float(asked.max() / asked.sum())
        enough = chance.needed(count, majority)
        self.its.meta |= {
            "probe": {
                "accuracy": accuracy,
                "accuracy_by_task": dict(zip(names, by_task.tolist())),
                "chance": majority,
                "chance_by_task": 1 / len(names),
                "above_chance_from": None if enough is None else enough / count,
                "surface": self.surface,
                "control_accuracy": float(self.control_confusion.trace() / asked.sum()),
                "tasks": names,
                "confusion": self.confusion.tolist(),
                "epochs": list(self.epochs),
                "seeds": self.seeds,
                "folds": self.folds,
                "train": self.trained,
                "validation": self.validated,
                "held_out": count,
            },
            "floor": dict(zip(names, self.floor())),
            "display": {"normalize": "share"},
        }
        overall = self._warning(
            accuracy, count, majority, f"held-out examples of these {len(names)} tasks"
        )
        for number, task in enumerate(self.tasks):
            own = overall or self._warning(
                float(by_task[number]),
                int(asked[number]) // self.seeds,
                1 / len(names),
                "held-out examples of this task",
            )
            runs = len(self.its.runs[task.name])
            fitted = (
                {"fitted_on": len(task.examples) - runs}
                if self.folds is None
                else {"fitted_on": len(task.examples) - runs // self.folds}
            )
            self.its.tasks[task.name] = {**fitted, **({"warning": own} if own else {})}

    def floor(self) -> list[float]:
        """For each task, what 95% of the heads stay below when labels are shuffled: the control's |mean importance| over its held-out examples."""
        mean = self.control_sum / self.control_confusion.sum(1)[:, None, None]
        return [
            float(value)
            for value in np.quantile(np.abs(mean).reshape(len(mean), -1), QUANTILE, axis=1)
        ]

    @staticmethod
    def _warning(accuracy: float, count: int, guess: float, what: str) -> str | None:
        """A sentence where the probe does no better than guessing; None where it does, or where so few examples could never tell."""
        if chance.needed(count, guess) is None or not chance.at_chance(
            int(accuracy * count + 1e-9), count, guess
        ):
            return None
        return f"The probe gets {accuracy:.0%} of {count} {what} right, no better than chance ({guess:.0%}): its head scores are noise."


def surface(tasks: Sequence[Task], seed: int) -> float | None:
    """How well the prompts' words alone tell the tasks apart; None where that is not known."""
    if not tasks or importlib.util.find_spec("headwidget.tasks.surface") is None:
        return None
    found = importlib.import_module("headwidget.tasks.surface").surface_accuracy(tasks, seed=seed)
    return float(found["accuracy"])
