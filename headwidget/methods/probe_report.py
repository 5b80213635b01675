"""What a probe's scores are worth: accuracy against chance and surface, noise floor, warnings.

All accuracies are on held-out examples. The control is a probe trained on shuffled labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import chance
from headwidget.scores.record import Display, ProbeRecord, TaskRecord
from headwidget.scoring.contract import (
    Chunk,
    Job,
    Report,
    TaskReport,
    check_shapes,
    taken_up,
)
from headwidget.tasks import Task, surface_accuracy

Labels = npt.NDArray[np.int64]

QUANTILE = 0.95
"""Share of the heads below the noise floor when labels are shuffled: one in twenty is above."""

_FOLDS = "folds"


class Evaluation:
    """Results of all probes and controls of a job, collected fold by fold."""

    def __init__(self, job: Job, folds: int | None, seeds: int) -> None:
        self.job, self.tasks, self.folds, self.seeds = job, job.tasks, folds, seeds
        self.starts = np.cumsum([0] + [len(task.examples) for task in self.tasks])
        self.labels: Labels = np.repeat(np.arange(len(self.tasks)), np.diff(self.starts))
        # (example,): each example's task
        self.epochs: list[int] = []
        self.trained = self.validated = 0
        self.runs: dict[str, tuple[int, ...]] = {}
        self.confusion = np.zeros((len(self.tasks), len(self.tasks)), int)
        # (task, taken for), summed over probes
        self.control_confusion = self.confusion.copy()
        self.surface = surface(job.sources, job.seed)
        self.control_sum: Any = 0.0
        # importance in the control, (task, layer, head), summed over held-out examples

    def expect(self, held_out: Sequence[int]) -> Report:
        """Report the examples that will be runs, given by their place among all examples."""
        reports = {}
        for number, task in enumerate(self.tasks):
            start = int(self.starts[number])
            runs = tuple(sorted(i - start for i in held_out if self.labels[i] == number))
            self.runs[task.name] = runs
            reports[task.name] = TaskReport(runs=runs)
        return Report(reports)

    def answered(self, right: npt.NDArray[np.bool_]) -> Report:
        """Report how the model itself did, (2, example)."""
        reports = {}
        for number, task in enumerate(self.tasks):
            columns = slice(self.starts[number], self.starts[number + 1])
            reports[task.name] = TaskReport(right=right[:, columns])
        return Report(reports)

    def note_epoch(self, on: str) -> Callable[[int], None]:
        """The function to call after each epoch of training ``on`` true or shuffled labels."""
        fits = (self.folds or 1) * self.seeds
        which = ""
        if fits > 1 and on == "labels":
            which = f", probe {len(self.epochs) + 1} of {fits}"
        elif fits > 1:
            which = f", control {len(self.epochs)} of {fits}"
        return lambda epoch: self.job.note(f"training on {on}{which}, epoch {epoch}", 0)

    def fitted(
        self, epochs: int, trained: int, validated: int, labels: Labels, choices: Labels
    ) -> None:
        """Add a probe: its held-out examples' tasks, and what it takes them for."""
        self.epochs.append(epochs)
        self.trained, self.validated = trained, validated
        np.add.at(self.confusion, (labels, choices), 1)

    def controlled(
        self, labels: Labels, choices: Labels, importance: npt.NDArray[np.float32]
    ) -> None:
        """Add a control with its shuffled labels; ``importance`` is (example, layer, head)."""
        np.add.at(self.control_confusion, (labels, choices), 1)
        sums = [importance[labels == task].sum(0) for task in range(len(self.tasks))]
        self.control_sum = self.control_sum + np.stack(sums)

    def keep(self) -> None:
        """Keep the results so far, of whole folds, for a run that goes on here."""
        facts = {"epochs": self.epochs, "trained": self.trained, "validated": self.validated}
        confusions = {"confusion": self.confusion, "control": self.control_confusion}
        self.job.kept.put(self._name(), facts, {**confusions, "sum": self.control_sum})

    def go_on(self) -> int:
        """Take the results that were kept; of how many folds they are."""
        if (kept := self.job.kept.get(self._name())) is None:
            return 0
        count = len(self.tasks)
        with taken_up("the folds"):
            square = (count, count)
            shapes = {"confusion": square, "control": square, "sum": (count, *self.job.model.shape)}
            check_shapes(kept.arrays, shapes)
            epochs = [int(number) for number in kept.facts["epochs"]]
            if len(epochs) % self.seeds or len(epochs) > self.seeds * (self.folds or 1):
                raise ValueError(f"{len(epochs)} probes are trained")
            trained, validated = int(kept.facts["trained"]), int(kept.facts["validated"])
        self.epochs, self.trained, self.validated = epochs, trained, validated
        self.confusion, self.control_confusion = kept.arrays["confusion"], kept.arrays["control"]
        self.control_sum = kept.arrays["sum"]
        return len(self.epochs) // self.seeds

    def _name(self) -> str:
        """What the results are kept under: other batches round otherwise."""
        return f"{_FOLDS}, batches of {self.job.batch_size}"

    def chunks(
        self,
        examples: Sequence[int],
        values: npt.NDArray[np.float32],
        right: npt.NDArray[np.bool_],
    ) -> Iterator[Chunk]:
        """Scores (example, layer, head) of examples of all tasks, as a chunk for each task."""
        places = np.asarray(examples)
        for number, task in enumerate(self.tasks):
            at = np.flatnonzero(self.labels[places] == number)
            if len(at):
                runs = tuple(int(i) for i in places[at] - self.starts[number])
                yield Chunk(task.name, runs, slice(None), values[at], right[:, at])

    def report(self) -> Report:
        """All that is known after the folds so far."""
        names = [task.name for task in self.tasks]
        asked = self.confusion.sum(1)  # held-out examples of each task, once for every probe
        by_task = self.confusion.diagonal() / asked
        count = int(asked.sum()) // self.seeds
        accuracy = float(self.confusion.trace() / asked.sum())
        majority = float(asked.max() / asked.sum())
        enough = chance.needed(count, majority)
        probe = ProbeRecord(
            accuracy=accuracy,
            accuracy_by_task=dict(zip(names, by_task.tolist())),
            chance=majority,
            chance_by_task=1 / len(names),
            above_chance_from=None if enough is None else enough / count,
            surface=self.surface,
            control_accuracy=float(self.control_confusion.trace() / asked.sum()),
            tasks=tuple(names),
            confusion=tuple(map(tuple, self.confusion.tolist())),
            epochs=tuple(self.epochs),
            seeds=self.seeds,
            folds=self.folds,
            train=self.trained,
            validation=self.validated,
            held_out=count,
        )
        overall = _warning(
            accuracy, count, majority, f"held-out examples of these {len(names)} tasks"
        )
        reports = {}
        for number, task in enumerate(self.tasks):
            held_out = len(self.runs[task.name]) // (self.folds or 1)  # in one fold
            warning = overall or _warning(
                float(by_task[number]),
                int(asked[number]) // self.seeds,
                1 / len(names),
                "held-out examples of this task",
            )
            fitted_on = len(task.examples) - held_out
            record = TaskRecord(fitted_on=fitted_on, warning=warning)
            reports[task.name] = TaskReport(record=record.to_json())
        of_all = {
            "probe": probe.to_json(unknown=True),
            "floor": dict(zip(names, self.floor())),
            "display": Display(normalize="share").to_json(),
        }
        return Report(reports, of_all)

    def floor(self) -> list[float]:
        """For each task, what 95% of the heads stay below when labels are shuffled.

        It is taken of the control's |mean importance| over its held-out examples.
        """
        mean = self.control_sum / self.control_confusion.sum(1)[:, None, None]
        sizes = np.abs(mean).reshape(len(mean), -1)  # (task, layer * head)
        return [float(value) for value in np.quantile(sizes, QUANTILE, axis=1)]


def _warning(accuracy: float, count: int, guess: float, what: str) -> str | None:
    """A sentence where the probe does no better than guessing.

    None where it does better, or where so few examples could never show it.
    """
    if chance.needed(count, guess) is None or not chance.at_chance(
        int(accuracy * count + 1e-9), count, guess
    ):
        return None
    return (
        f"The probe gets {accuracy:.0%} of {count} {what} right, no better than chance "
        f"({guess:.0%}): its head scores are noise."
    )


def surface(tasks: Sequence[Task], seed: int) -> float | None:
    """How well the prompts' words alone tell the tasks apart; None without their text."""
    return float(surface_accuracy(tasks, seed=seed)["accuracy"]) if tasks else None
