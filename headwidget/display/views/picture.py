"""What a view draws: its panels, colours, labels and ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwidget.display.scales import SIXES

if TYPE_CHECKING:
    from headwidget.display.scales import Range
    from headwidget.scores.reduce import Array, Mask


@dataclass(frozen=True)
class Panel:
    """One map: its values (layer, head), and which heads are bright (None: all of them).

    A value is NaN where the head was not measured.
    """

    title: str
    values: Array
    passes: Mask | None
    task: str | None = None
    range: Range | None = None
    """What its own colours span; None: as the picture's."""
    quiet: float | None = None
    """The largest ``|score|``, where it is too small to be seen on a shared scale."""


@dataclass(frozen=True)
class Entry:
    """A class of the categories' legend: its name and how many heads it has."""

    name: str
    count: int


@dataclass(frozen=True)
class Picture:
    """All that a view draws. Figures and panels ask the picture, never which view it is of."""

    panels: tuple[Panel, ...]
    range: Range
    colours: str
    """The colour map's name; "categories" when values are places in the legend."""
    label: str
    """What the numbers are."""
    layers_on: str
    """The axis that has the layers, "y" or "x"."""
    columns: int | None
    """How many tasks stand side by side; None: as many as fit."""
    passing: Mask | None
    """Heads that pass in at least one task shown; None: no threshold."""
    floor: float | None = None
    """What a score reaches by chance alone, on the scale of the numbers.

    The largest of the tasks shown; None where it is not known.
    """
    legend: tuple[Entry, ...] = ()
    """The classes of heads by place, where values are places in a legend.

    0 is Unclassified, then each category, then "2 categories" and so on.
    """
    slots: tuple[tuple[int, int], ...] | None = None
    """The task of each panel and its place in it, where a task may have several panels; None:
    one each."""
    span: int = 1
    """How many panels a task has at most; they stand side by side."""
    layer_ticks: Sequence[int] = SIXES
    """How far apart the ticks of layers may stand (:func:`headwidget.display.scales.ticks`)."""
    count_word: str | None = "pass"
    """The word behind the number of passing heads in a panel's title; None: no number."""
