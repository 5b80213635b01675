"""The contract of a view: what it is called, which settings it reads, and what it draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headwidget.display.scales import colour_range
from headwidget.scores import reduce, threshold
from headwidget.scores.missing import known

if TYPE_CHECKING:
    from headwidget.display.scales import Range
    from headwidget.display.settings import Settings
    from headwidget.display.views.picture import Picture
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array, Mask


class View(ABC):
    """One way to show scores.

    Methods that a view does not override behave as in the tasks view.
    """

    name: ClassVar[str]
    """What ``explorer.view`` calls it."""
    title: ClassVar[str]
    """What people call it."""
    uses: ClassVar[frozenset[str]]
    """The settings that its picture depends on, besides ``view``."""

    @abstractmethod
    def picture(self, scores: HeadScores, settings: Settings) -> Picture:
        """All that the view draws."""

    def tasks(self, scores: HeadScores, settings: Settings) -> list[str]:
        """The tasks that are drawn, in order: one alone when ``task`` names it."""
        if "task" in self.uses and settings.task is not None:
            return [settings.task]
        return list(scores.tasks if settings.tasks is None else settings.tasks)

    def effective(self, settings: Settings) -> Settings:
        """The settings that decide which heads pass, where the view does not take them as is."""
        return settings

    def strength(self, scores: HeadScores, task: str, settings: Settings) -> Array:
        """(layer, head): what the threshold is compared with, on its scale."""
        return threshold.strength(scores, task, settings)

    def cut(
        self, scores: HeadScores, task: str, settings: Settings, strengths: Array | None = None
    ) -> float | None:
        """The strength that a head must reach; None without a threshold.

        ``strengths`` are the task's, for a caller that has them already.
        """
        _, edge = self._strengths_and_edge(scores, task, settings, strengths)
        return None if edge is None else float(edge)

    def passes(
        self, scores: HeadScores, task: str, settings: Settings, strengths: Array | None = None
    ) -> Mask | None:
        """(layer, head): which heads of a task pass, as the view counts it; None: no threshold.

        ``strengths`` are the task's, for a caller that has them already.
        """
        strengths, edge = self._strengths_and_edge(scores, task, settings, strengths)
        return None if edge is None else strengths >= edge

    def _strengths_and_edge(
        self, scores: HeadScores, task: str, settings: Settings, strengths: Array | None
    ) -> tuple[Array, np.float32 | None]:
        """The strengths of a task, and the least of them that passes."""
        effective = self.effective(settings)
        if strengths is None:
            strengths = self.strength(scores, task, effective)
        return strengths, threshold.cut(strengths, effective, scores.signed)

    def number_name(self, scores: HeadScores, settings: Settings) -> str:
        """What the number is called that the threshold is compared with."""
        return mean_name(scores, settings)

    def strength_name(self, scores: HeadScores, settings: Settings) -> str:
        """What a strength is called on an axis."""
        name = self.number_name(scores, settings)
        if not scores.signed:
            return name
        return f"|{name}|" if settings.sign == "either" else f"{name}, {settings.sign}"


QUIET = 0.15
"""A task whose largest |score| is below this part of where the colours end can hardly be seen."""


def scale_for(
    maps: Sequence[Array], shared: Range, signed: bool, settings: Settings
) -> dict[str, Any]:
    """A panel's ``range`` and ``quiet``, for the maps of its task."""
    if settings.scale == "own":
        return {"range": colour_range(maps, signed, settings.cap)}
    most = max((float(np.abs(values).max()) for m in maps if len(values := known(m))), default=0.0)
    return {"quiet": most if 0 < most < QUIET * shared.high else None}


def whole(scores: HeadScores, task: str, settings: Settings) -> float:
    """The sum of |score| over the heads of a task, which a share is a share of."""
    return reduce.whole(threshold.number(scores, task, replace(settings, normalize=None)))


def mean_name(scores: HeadScores, settings: Settings) -> str:
    """What the runs of a head taken together are called."""
    several = any(len(scores.values(task)) > 1 for task in scores.tasks)
    name = settings.reduction if several else "score"
    return f"share of {name}" if settings.normalize == "share" else name
