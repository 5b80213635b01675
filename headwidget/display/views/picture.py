"""What a view draws: its panels, colours and labels, and which tasks are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwidget.display.scales import Range
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array, Mask


@dataclass(frozen=True)
class Panel:
    """One map: its values (layer, head), and which heads are bright (None: all of them)."""

    title: str
    values: Array
    passes: Mask | None
    task: str | None = None


@dataclass(frozen=True)
class Entry:
    """A class of the categories' legend: its name and how many heads it has."""

    name: str
    count: int


@dataclass(frozen=True)
class Picture:
    """All that a view draws."""

    panels: tuple[Panel, ...]
    range: Range
    colours: str
    """The colour map's name; "categories" when values are places in the legend."""
    label: str
    """What the numbers are."""
    layers_on: str
    """The axis that has the layers, "y" or "x"."""
    columns: int | None
    """How many panels stand side by side; None: as many as fit."""
    passing: Mask | None
    """Heads that pass in a task shown, or more; None: no threshold."""
    floor: float | None = None
    """What a score reaches by chance alone, the largest of the tasks shown, on the scale of the numbers; None where it is not known."""
    legend: tuple[Entry, ...] = ()
    """The categories view's classes, by place: 0 is Unclassified, then each category, then "2 categories" and so on."""


def shown(scores: HeadScores, settings: Settings) -> list[str]:
    """The tasks that are drawn, in order: one alone when ``task`` names it."""
    if settings.task is not None:
        return [settings.task]
    return list(scores.tasks if settings.tasks is None else settings.tasks)


def number_name(scores: HeadScores, settings: Settings) -> str:
    """What a cell's number is called."""
    many = any(len(scores.values(name)) > 1 for name in scores.tasks)
    name = settings.reduction if many else "score"
    return f"share of {name}" if settings.normalize == "share" else name
