"""What changed heads do to answers: the prompts measured, and the rows of an effect's frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.display.effect import MEASURES, Effect
from headwidget.interventions.head_sets import HeadSet
from headwidget.interventions.sampling import Head, unseen_first
from headwidget.models import Model, not_finite
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import EncodedTask, encode, has_foil
from headwidget.tasks import Task


@dataclass(eq=False)
class MeasuredTask:
    """The prompts of a task that are measured, and their answers as far as they have landed."""

    name: str
    encoded: EncodedTask
    held_out: int
    """How many of the prompts were held out."""
    scored_on: int
    """How many of the prompts some scores were made from."""
    settings: dict[frozenset[Head], int] = field(default_factory=dict)
    """The index of each set of changed heads; the untouched model, an empty set, is first."""
    values: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0, 3), np.float32))
    """(setting, run, 3), as ``gated_forward.Landed`` has them; NaN before they land."""

    def ask(self, settings: Iterable[frozenset[Head]]) -> None:
        """Measure these sets of changed heads, and the untouched model before them."""
        different = dict.fromkeys([frozenset[Head](), *settings])
        self.settings = {heads: index for index, heads in enumerate(different)}
        shape = (len(self.settings), len(self.encoded.examples), 3)
        self.values = np.full(shape, np.nan, np.float32)

    def add(self, landed: gated_forward.Landed, model: Model) -> None:
        """Put answers in their place."""
        if not np.isfinite(landed.values).all():
            run = landed.runs[int(np.argwhere(~np.isfinite(landed.values))[0][1])]
            label = self.encoded.examples[run].label[:80]
            advice = not_finite.advice(model)
            # The first setting changes no head.
            if landed.settings.start or np.isfinite(landed.values[0]).all():
                advice = "With no head changed it is one: choose a smaller factor."
            raise FloatingPointError(
                f"task {self.name!r}: log p(answer) is not a number for the prompt {label!r}. "
                f"{advice}"
            )
        self.values[landed.settings, list(landed.runs)] = landed.values

    def means(self, heads: frozenset[Head]) -> dict[str, float] | None:
        """The three measures with ``heads`` changed; None where they are not all there."""
        index = self.settings.get(heads)
        if index is None or not np.isfinite(self.values[index]).all():
            return None
        return mean_answers(self.values[index], self.encoded)

    def foils(self) -> int:
        """How many prompts have a foil."""
        return int(has_foil(self.encoded.examples).sum())


def mean_answers(values: npt.NDArray[np.float32], task: EncodedTask) -> dict[str, float]:
    """The three measures of one setting, from ``values`` (run, 3) of all the task's examples."""
    log_p, right, beats = values.astype(np.float64).T
    foiled = has_foil(task.examples)
    return {
        "accuracy": float(right.mean()),
        "beats_foil": float(beats[foiled].mean()) if foiled.any() else math.nan,
        "log_probability": float(log_p.mean()),
    }


def measured_task(
    task: Task, named: Mapping[str, HeadScores], count: int, seed: int, model: Model
) -> MeasuredTask:
    """``count`` of a task's prompts: unseen before seen, and held out before the others."""
    held_out = set(getattr(task, "held_out", ()))
    labels = [example.prompt + example.answer for example in task.examples]
    sample = unseen_first(labels, task.name, named.values(), count, seed, held_out)
    chosen = sorted(sample.indices)
    encoded = encode(Task(task.name, [task.examples[i] for i in chosen], task.category), model)
    return MeasuredTask(task.name, encoded, len(held_out & set(chosen)), sample.scored_on)


class Work:
    """All that is to be measured; sets of heads that are alike are measured once."""

    def __init__(
        self,
        model: Model,
        factor: float,
        sets: list[HeadSet],
        tasks: list[MeasuredTask],
        others: str,
    ) -> None:
        self.model, self.factor, self.sets = model, factor, sets
        self.tasks, self.others = tasks, others
        for task in tasks:
            from_task = [s for s in sets if s.heads_of == task.name]
            from_others = [s for s in sets if s.heads_of != task.name and self._asked(s, task)]
            task.ask(self._changed(head_set) for head_set in (*from_task, *from_others))

    def _asked(self, head_set: HeadSet, task: MeasuredTask) -> bool:
        """Is the set measured on the task?"""
        return (
            head_set.heads_of == task.name
            or self.others == "all"
            or (self.others == "top" and head_set.kind == "top")
        )

    @property
    def total(self) -> int:
        """Prompts to run, each once a setting."""
        return sum(task.values.shape[0] * task.values.shape[1] for task in self.tasks)

    def _changed(self, head_set: HeadSet) -> frozenset[Head]:
        return frozenset() if self.factor == 1 else frozenset(head_set.heads)

    def gates(self, task: MeasuredTask) -> npt.NDArray[np.float32]:
        """(setting, layer, head)."""
        gates = np.ones((len(task.settings), *self.model.shape), np.float32)
        for heads, index in task.settings.items():
            for row, head in heads:
                gates[index, row, head] = self.factor
        return gates

    def rows(self) -> list[dict[str, Any]]:
        """The frame's rows, as far as they have landed."""
        untouched = {task.name: task.means(frozenset()) for task in self.tasks}
        rows = []
        for head_set in self.sets:
            for task in self.tasks:
                # A control may happen to be a set that was measured here for others.
                if not self._asked(head_set, task):
                    continue
                before, after = untouched[task.name], task.means(self._changed(head_set))
                if before is not None and after is not None:
                    rows.append(self._row(head_set, task, before, after))
        return rows

    def _row(
        self,
        head_set: HeadSet,
        task: MeasuredTask,
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> dict[str, Any]:
        return {
            "method": head_set.method,
            "heads_of": head_set.heads_of,
            "task": task.name,
            "k": head_set.k,
            "kind": head_set.kind,
            "draw": head_set.draw,
            **after,
            **{f"{measure}_change": after[measure] - before[measure] for measure in MEASURES},
            "in_top": head_set.in_top,
            "heads": tuple((self.model.layers[row].index, head) for row, head in head_set.heads),
        }

    def effect(self, meta: Mapping[str, Any]) -> Effect:
        """What has landed, as an Effect."""
        import pandas as pd

        untouched = []
        for task in self.tasks:
            if (means := task.means(frozenset())) is not None:
                counts = {
                    "prompts": len(task.encoded.examples),
                    "foils": task.foils(),
                    "held_out": task.held_out,
                    "scored_on": task.scored_on,
                }
                untouched.append({"task": task.name, **means, **counts})
        return Effect(pd.DataFrame(self.rows()), pd.DataFrame(untouched), self.factor, meta)
