"""What an explorer shows now, as numbers for charts: the same strengths, cuts and counts as :mod:`headwidget.display.views`, kept while a threshold is dragged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from headwidget.display import settings
from headwidget.display.settings import Settings
from headwidget.display.views.picture import number_name
from headwidget.scores import reduce, threshold

if TYPE_CHECKING:
    from headwidget.display.explorer import Explorer
    from headwidget.scores import HeadScores
    from headwidget.scores.reduce import Array, Mask

_KEPT: WeakKeyDictionary[HeadScores, dict[tuple[str, str, Settings], Array]] = WeakKeyDictionary()
MOST_KEPT = 128
"""Maps kept for each scores: no reduction over runs is done twice while only the threshold moves."""


@dataclass(frozen=True)
class Shown:
    """Scores, and the settings they are shown with; ``tasks`` are those drawn, in order."""

    scores: HeadScores
    settings: Settings
    tasks: tuple[str, ...]

    @property
    def heads(self) -> int:
        """How many heads the model has."""
        return math.prod(self.scores.shape)

    def number(self, task: str) -> Array:
        """(layer, head): the task's mean or median over runs, or its share of the whole."""
        return self._kept(
            "number", task, lambda: threshold.number(self.scores, task, self.settings)
        )

    def strength(self, task: str) -> Array:
        """(layer, head): what the threshold is compared with, on its scale. In the agreement view that is what enough of the runs reach."""
        if self.settings.view != "agreement":
            return self._kept(
                "strength", task, lambda: threshold.strength(self.scores, task, self.settings)
            )
        whole = self._whole(task)
        return (
            self._reached(task) / np.float32(whole)
            if whole > 0
            else np.zeros_like(self._reached(task))
        )

    def cut(self, task: str) -> float | None:
        """The strength that a head of the task must reach; None without a threshold."""
        if self.settings.threshold is None:
            return None
        if self.settings.view != "agreement":
            found = threshold.cut(self.strength(task), self.settings, self.scores.signed)
            return None if found is None else float(found)
        if self.settings.rule == "value":
            return self.settings.threshold
        return float(threshold.run_cut(self.scores, task, self.settings)) / (
            self._whole(task) or 1.0
        )

    def passes(self, task: str) -> Mask | None:
        """(layer, head): which heads pass in the task; None without a threshold."""
        if self.settings.threshold is None:
            return None
        if self.settings.view == "agreement":
            return self._reached(task) >= threshold.run_cut(self.scores, task, self.settings)
        strengths = self.strength(task)
        edge = threshold.cut(strengths, self.settings, self.scores.signed)
        return None if edge is None else strengths >= edge

    def passing(self) -> Mask | None:
        """(layer, head): heads that pass in a task shown, or more; the explorer counts these."""
        return threshold.either([self.passes(task) for task in self.tasks])

    def name(self) -> str:
        """What a strength is called on an axis."""
        if self.settings.view == "agreement":
            what = {0.0: "reached in any run", 1.0: "reached in every run"}.get(
                self.settings.agreement, f"reached in {self.settings.agreement:.0%} of runs"
            )
            what = f"{'share' if self.settings.normalize else 'score'} {what}"
        else:
            what = number_name(self.scores, self.settings)
        if self.scores.signed and self.settings.sign == "either":
            what = f"|{what}|" if self.settings.view != "agreement" else f"{what}, either sign"
        elif self.scores.signed:
            what = f"{what}, {self.settings.sign}"
        return f"{self.scores.method} · {what}"

    def number_name(self) -> str:
        """What a number is called on an axis."""
        return f"{self.scores.method} · {number_name(self.scores, self.settings)}"

    def _reached(self, task: str) -> Array:
        """(layer, head): what at least the fraction ``agreement`` of a task's runs reach, in the direction that the threshold counts."""
        values, asked = self.scores.values(task), self.settings.agreement
        ways: list[Callable[[], Array]] = []
        if not self.scores.signed or self.settings.sign != "hurts":
            ways.append(lambda: reduce.order_statistic(values, asked))
        if self.scores.signed and self.settings.sign != "helps":
            ways.append(lambda: reduce.order_statistic(-values, asked))
        return self._kept("reached", task, lambda: np.max([way() for way in ways], axis=0))

    def _whole(self, task: str) -> float:
        """What a share of the task is a share of; 1 where scores are shown as they are."""
        if self.settings.normalize is None:
            return 1.0
        return reduce.whole(
            threshold.number(self.scores, task, replace(self.settings, normalize=None))
        )

    def _kept(self, kind: str, task: str, make: Callable[[], Array]) -> Array:
        asked = self.settings
        key = Settings(
            view=asked.view,
            agreement=asked.agreement,
            sign=asked.sign,
            reduction=asked.reduction,
            normalize=asked.normalize,
        )
        kept = _KEPT.setdefault(self.scores, {})
        found = kept.get((kind, task, key))
        if found is None:
            if len(kept) >= MOST_KEPT:
                kept.clear()
            found = kept[kind, task, key] = make()
        return found


def shown(explorer: Explorer) -> Shown:
    """What an explorer shows now; names that its scores (which may just have been exchanged) do not have are left out, and tasks that are not scored yet."""
    scores = explorer._shown
    asked = Settings(**{name: getattr(explorer, name) for name in settings.NAMES})
    scored = [name for name in scores.tasks if name not in scores.record.unscored]
    tasks = tuple(name for name in asked.tasks or () if name in scored)
    alone = asked.task if asked.task in scored else None
    asked = replace(asked, tasks=tasks, task=alone)
    if asked.view == "categories":  # it has no large map of one task, and a threshold always
        return Shown(scores, threshold.for_categories(asked), tasks)
    return Shown(scores, asked, tasks if alone is None else (alone,))
