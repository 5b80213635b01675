"""The scatter of one task, or one method, against another, whose lasso is the selection."""

from __future__ import annotations

from typing import Any

import bqplot
import numpy as np
import numpy.typing as npt

from headwidget.charts.base import ACCENT, PLAIN, Chart, axis, span, together
from headwidget.charts.shown import Shown, shown
from headwidget.display import settings
from headwidget.display.explorer import ExplorerBase
from headwidget.scores import HeadScores, provenance

LISTED = 8
"""So many selected heads are named; of more, only the count."""

Wide = npt.NDArray[np.float64]


class Scatter(Chart):
    """A dot a head. What the lasso goes round is selected; what is selected is orange."""

    def __init__(
        self, explorer: ExplorerBase, other: ExplorerBase | HeadScores | None, x: str, y: str
    ) -> None:
        self.explorer, self.other, self.x, self.y = explorer, other, x, y
        self._heads = np.zeros(0, np.intp)  # the place of each dot's head in the flat map
        self._x, self._y = bqplot.LinearScale(), bqplot.LinearScale()
        scales = {"x": self._x, "y": self._y}
        self.dots = bqplot.Scatter(
            x=[],
            y=[],
            scales=scales,
            colors=[PLAIN],
            opacities=[0.55],
            default_size=22,
            stroke_width=0,
        )
        self.chosen = bqplot.Scatter(
            x=[],
            y=[],
            scales=scales,
            colors=[ACCENT],
            default_size=70,
            stroke="white",
            stroke_width=1,
        )
        self.lasso = bqplot.interacts.LassoSelector(
            x_scale=self._x, y_scale=self._y, marks=[self.dots], color=ACCENT
        )
        self._across, self._up = axis(self._x), axis(self._y, upright=True)
        super().__init__(
            [self.dots, self.chosen],
            [self._across, self._up],
            interaction=self.lasso,
        )
        self._observe(self.dots, self._lassoed, "selected")
        self._follow(explorer, "reduction", "normalize", "selected")
        if isinstance(other, ExplorerBase) and other is not explorer:
            self._follow(other, "reduction", "normalize")
        self._draw()

    def _draw(self) -> None:
        here, there = shown(self.explorer), self._there()
        # A lab exchanges its scores while the chart is there.
        if problem := differ(here.scores, there.scores, self.x, self.y):
            self._empty()
            self._set_text(f"{self.x} against {self.y}", problem)
            return
        sides = ((here, self.x), (there, self.y))
        across, up = (now.number(task).ravel().astype(np.float64) for now, task in sides)
        dot_of = self._find_dots(across, up)
        across, up = across[self._heads], up[self._heads]
        places = [_place(here.scores, layer, head) for layer, head in self.explorer.selected]
        at = [dot_of[place] for place in places if place in dot_of]
        with together(self._x, self._y, self.dots, self.chosen, self._across, self._up):
            for side, values in ((self._across, across), (self._up, up)):
                span(side, *_ends(values))
            self.dots.x, self.dots.y = across, up
            self.chosen.x, self.chosen.y = across[at], up[at]
            labels = (f"{task}: {now.number_name()}" for now, task in sides)
            self._across.label, self._up.label = labels
        if self.figure.interaction is None:
            self.figure.interaction = self.lasso
        versus = f"{self.x} against {self.y}"
        if here.scores.method != there.scores.method:
            versus = f"{self.x}: {here.scores.method} against {there.scores.method}"
        self._set_text(versus, correlation(across, up), self._selection())

    def _empty(self) -> None:
        """Remove dots, ticks, labels and lasso: those of earlier scores would mislead."""
        self._heads = np.zeros(0, np.intp)
        nothing = np.zeros(0)
        with together(self.dots, self.chosen, self._across, self._up):
            for dots in (self.dots, self.chosen):
                dots.x, dots.y = nothing, nothing
            for side in (self._across, self._up):
                side.tick_values, side.label = nothing, ""
        self.figure.interaction = None

    def _find_dots(self, across: Wide, up: Wide) -> dict[int | None, int]:
        """A dot for every head that was measured on both sides: the heads' places, and back."""
        self._heads = np.flatnonzero(~np.isnan(across) & ~np.isnan(up))
        return {int(place): dot for dot, place in enumerate(self._heads)}

    def _there(self) -> Shown:
        """What is on the axis up: the other explorer, or other scores with this one's settings."""
        if isinstance(self.other, ExplorerBase):
            return shown(self.other)
        here = shown(self.explorer)
        return here if self.other is None else Shown(self.other, here.settings, self.other.tasks)

    def _selection(self) -> str:
        heads = self.explorer.selected
        if not heads:
            return "Draw round dots to select heads."
        if len(heads) > LISTED:
            return f"{len(heads)} selected"
        scores = self.explorer.shown
        names = [provenance.head_name(scores, layer, head) for layer, head in heads]
        return f"{len(heads)} selected: {', '.join(names)}"

    def _lassoed(self, change: Any) -> None:
        """Select the heads inside a lasso that was drawn, and remove it.

        A lasso that stayed could lie round heads that are no longer selected.
        """
        if change["new"] is None:
            return
        if not self._heads.size:  # the dots were removed while the lasso was drawn
            self.dots.selected = None
            return
        heads, layers = self.explorer.shown.shape[1], self.explorer.shown.layers
        places = [int(self._heads[dot]) for dot in _places(change["new"], len(self._heads))]
        self.explorer.selected = [[layers[place // heads], place % heads] for place in places]
        self.dots.selected = None  # so that the same lasso can be drawn again
        self.figure.interaction = None  # bqplot's own reset would say that nothing is selected
        self.figure.interaction = self.lasso


def differ(here: HeadScores, there: HeadScores, x: str, y: str) -> str | None:
    """Why these cannot be drawn against each other; None when they can."""
    for scores, name in ((here, x), (there, y)):
        try:
            settings.check(scores, "task", name)
        except ValueError as error:
            return str(error)
    if here.shape != there.shape or here.layers != there.layers:
        return (
            "a dot is one head of both: the two need the same layers and heads, and have "
            f"{_size(here)} and {_size(there)}; "
            "hw.compare puts models of different shape side by side."
        )
    return None


def _size(scores: HeadScores) -> str:
    layers = scores.layers
    return f"{len(layers)} layers ({layers[0]} to {layers[-1]}) of {scores.shape[1]} heads"


def correlation(a: Wide, b: Wide) -> str:
    """The rank correlation in words.

    >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    'rank correlation 1.00 (3 heads)'
    """
    rho, count = spearman(a, b)
    text = f"{rho:.2f}".replace("-", "−") if np.isfinite(rho) else "not defined"
    return f"rank correlation {text} ({count} heads)"


def spearman(a: Wide, b: Wide) -> tuple[float, int]:
    """Spearman's rank correlation, and over how many pairs.

    Ties share their mean rank; a pair with a number missing is left out.

    >>> spearman(np.array([1.0, 2.0, 2.0, np.nan]), np.array([3.0, 1.0, 1.0, 0.0]))
    (-1.0, 3)
    """
    both = np.isfinite(a) & np.isfinite(b)
    x, y = (_ranks(v[both]) for v in (a, b))
    x, y = x - x.mean() if x.size else x, y - y.mean() if y.size else y
    size = float(np.sqrt((x @ x) * (y @ y)))
    return (float(np.clip(x @ y / size, -1.0, 1.0)) if size > 0 else float("nan")), int(both.sum())


def _ranks(values: Wide) -> Wide:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Wide = (last - (counts - 1) / 2.0)[inverse.ravel()]
    return ranks


def _places(lassoed: Any, dots: int) -> list[int]:
    """The dots in a lasso, by their place; what the page sends that is no dot is left out."""
    try:
        numbers = np.asarray(lassoed, np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        return []
    is_dot = (numbers >= 0) & (numbers < dots) & (numbers == np.floor(numbers))
    return [int(number) for number in numbers[is_dot]]


def _place(scores: HeadScores, layer: int, head: int) -> int | None:
    """A head's place among the dots; None for one that these scores do not have."""
    if layer not in scores.layers or head >= scores.shape[1]:
        return None
    return scores.layers.index(layer) * scores.shape[1] + head


def _ends(values: Wide) -> tuple[float, float]:
    """An axis with a little room, so that no dot lies on its edge."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room
