"""What an explorer shows now, as numbers for charts.

The strengths, cuts and counts are those of :mod:`headwidget.display.views`, kept while a
threshold is dragged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from headwidget.display import settings
from headwidget.display.settings import Settings
from headwidget.display.views import VIEWS
from headwidget.display.views.view import View, mean_name
from headwidget.scores import provenance, threshold

if TYPE_CHECKING:
    from headwidget.display.explorer import ExplorerBase
    from headwidget.scores import HeadScores
    from headwidget.scores.reduce import Array, Mask

_KEPT: WeakKeyDictionary[HeadScores, dict[tuple[str, str, Settings], Array]] = WeakKeyDictionary()
MOST_KEPT = 128
"""Maps kept for each scores, so that a threshold can be dragged without reducing runs again."""
STRENGTH_TRAITS = (
    *("view", "tasks", "task", "threshold", "rule", "agreement", "sign"),
    *("reduction", "normalize"),
)
"""The traits that decide how strong heads are and which pass."""


@dataclass(frozen=True)
class Shown:
    """Scores, and the settings they are shown with; ``tasks`` are those drawn, in order."""

    scores: HeadScores
    settings: Settings
    tasks: tuple[str, ...]

    @property
    def heads(self) -> int:
        """How many heads were measured in a task shown."""
        there = [self.scores.measured(task) > 0 for task in self.tasks]
        return int(np.logical_or.reduce(there).sum()) if there else math.prod(self.scores.shape)

    @property
    def view(self) -> View:
        """The view that is shown."""
        return VIEWS[self.settings.view]

    def number(self, task: str) -> Array:
        """(layer, head): the task's mean or median over runs, or its share of the whole."""
        return self._kept(
            "number", task, lambda: threshold.number(self.scores, task, self.settings)
        )

    def strength(self, task: str) -> Array:
        """(layer, head): what the view's threshold is compared with, on its scale."""
        return self._kept(
            "strength", task, lambda: self.view.strength(self.scores, task, self.settings)
        )

    def cut(self, task: str) -> float | None:
        """The strength that a head of the task must reach; None without a threshold."""
        return self.view.cut(self.scores, task, self.settings, self.strength(task))

    def passes(self, task: str) -> Mask | None:
        """(layer, head): which heads pass in the task; None without a threshold."""
        return self.view.passes(self.scores, task, self.settings, self.strength(task))

    def passing(self) -> Mask | None:
        """(layer, head): heads that pass in at least one task shown; the explorer counts these."""
        return threshold.either([self.passes(task) for task in self.tasks])

    def name(self) -> str:
        """What a strength is called on an axis."""
        strength = self.view.strength_name(self.scores, self.settings)
        return f"{provenance.method_name(self.scores)} · {strength}"

    def number_name(self) -> str:
        """What a number is called on an axis."""
        return f"{provenance.method_name(self.scores)} · {mean_name(self.scores, self.settings)}"

    def _kept(self, kind: str, task: str, make: Callable[[], Array]) -> Array:
        """A map that does not depend on the threshold: worked out once."""
        asked = self.settings
        key = Settings(
            view=asked.view,
            agreement=asked.agreement,
            sign=asked.sign,
            reduction=asked.reduction,
            normalize=asked.normalize,
        )
        maps = _KEPT.setdefault(self.scores, {})
        kept = maps.get((kind, task, key))
        if kept is None:
            if len(maps) >= MOST_KEPT:
                maps.clear()
            kept = maps[kind, task, key] = make()
        return kept


def shown(explorer: ExplorerBase) -> Shown:
    """What an explorer shows now.

    Tasks that are not scored yet are left out, and names that its scores, which a lab
    exchanges, do not have.
    """
    scores = explorer.shown
    asked = Settings(**{name: getattr(explorer, name) for name in settings.NAMES})
    scored = [name for name in scores.tasks if scores.measured(name).any()]
    tasks = tuple(name for name in asked.tasks or () if name in scored)
    alone = asked.task if asked.task in scored else None
    asked = replace(asked, tasks=tasks, task=alone)
    view = VIEWS[asked.view]
    return Shown(scores, view.effective(asked), tuple(view.tasks(scores, asked)))
