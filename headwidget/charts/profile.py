"""The layer profile: where in the model a task's heads are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import bqplot
import ipywidgets  # type: ignore[import-untyped]
import numpy as np

from headwidget.charts.base import DASHES, Chart, axis, look, names, span, together
from headwidget.charts.shown import STRENGTH_TRAITS, Shown, shown
from headwidget.display import scales

if TYPE_CHECKING:
    from headwidget.display.explorer import ExplorerBase

Of = Literal["mean", "max", "passing"]
CHOICES: dict[str, Of] = {
    "mean over heads": "mean",
    "strongest head": "max",
    "heads that pass": "passing",
}


class LayerProfile(Chart):
    """A line a task: the mean, the strongest or the number of passing heads of every layer."""

    def __init__(self, explorer: ExplorerBase, of: Of) -> None:
        self.explorer = explorer
        self._x, self._y = bqplot.LinearScale(), bqplot.LinearScale()
        scales = {"x": self._x, "y": self._y}
        self.lines = [
            bqplot.Lines(x=[], y=[], scales=scales, stroke_width=2, line_style=dashes)
            for dashes in DASHES
        ]
        self.of = ipywidgets.Dropdown(options=CHOICES, value=of, layout={"width": "160px"})
        self._across = axis(self._x, "layer", tick_format="d")
        self._up = axis(self._y, upright=True)
        super().__init__(self.lines, [self._across, self._up], choices=[self.of])
        self._observe(self.of, self._changed, "value")
        self._follow(explorer, *STRENGTH_TRAITS)
        self._draw()

    def _draw(self) -> None:
        now, of = shown(self.explorer), self.of.value
        order = list(now.scores.tasks)
        looks = {task: look(order.index(task)) for task in now.tasks}
        along = {task: _along(now, task, of) for task in now.tasks}  # each (layer,)
        values = np.array([*along.values()] or [np.zeros(1)])
        values = values[~np.isnan(values)]  # a layer that was not measured is a gap
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        layers = np.array(now.scores.layers, np.float64)
        with together(self._x, self._y, self._across, self._up, *self.lines):
            # A single layer is a level line as wide as the figure: a point would not be seen.
            ends = layers if len(layers) > 1 else layers[0] + np.array([-0.5, 0.5])
            self._x.min, self._x.max = float(ends.min()), float(ends.max())
            self._across.tick_values = layers[list(scales.ticks(len(layers), scales.SIXES))]
            span(self._up, low, high if high > low else low + 1.0)
            for dashes, line in zip(DASHES, self.lines):
                tasks = [task for task in now.tasks if looks[task][1] == dashes]
                line.colors = [looks[task][0] for task in tasks] or ["#000000"]
                line.x = ends if tasks else np.zeros(0)
                # (task, layer); a single layer's number is broadcast to both ends
                line.y = np.array([along[task] + np.zeros(len(ends)) for task in tasks])
            self._up.label = "heads that pass" if of == "passing" else now.number_name()
        what = {"mean": "mean over heads", "max": "strongest head", "passing": "heads that pass"}[
            of
        ]
        if of == "passing" and now.settings.threshold is None:
            self._set_text(names(now.tasks) or "no task", "heads that pass: set a threshold first")
        else:
            self._set_text(names(now.tasks) or "no task", f"{what} of each layer")
        self._key([(task, *looks[task]) for task in now.tasks])


def _along(now: Shown, task: str, of: Of) -> np.ndarray:
    """(layer,): what is drawn of a task. The strongest head keeps its sign."""
    if of == "passing":
        passes = now.passes(task)
        if passes is None:
            return np.zeros(now.scores.shape[0])
        counts: np.ndarray = passes.sum(axis=1).astype(np.float64)
        return counts
    numbers = now.number(task).astype(np.float64)  # (layer, head)
    there = ~np.isnan(numbers)
    if of == "mean":
        with np.errstate(invalid="ignore"):  # a layer that was not measured has no mean
            mean: np.ndarray = numbers.sum(axis=1, where=there) / there.sum(axis=1)
        return mean
    strongest = np.where(there, np.abs(numbers), -1.0).argmax(axis=1)  # (layer,)
    values: np.ndarray = numbers[np.arange(len(numbers)), strongest]
    return values
