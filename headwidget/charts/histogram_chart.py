"""The histogram of heads, whose brush is the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np

from headwidget.charts.base import ACCENT, PLAIN, Chart, axis, names, span, together
from headwidget.charts.shown import STRENGTH_TRAITS, Shown, shown
from headwidget.display import scales

if TYPE_CHECKING:
    from headwidget.display.explorer import ExplorerBase

BINS = 40
BASE = 0.5
"""Where bars begin on the logarithmic axis: a bin of one head can be seen, an empty one cannot."""


class Histogram(Chart):
    """How strong heads are. The brush begins where heads pass, and moves with the threshold."""

    def __init__(self, explorer: ExplorerBase) -> None:
        self.explorer = explorer
        self._x = bqplot.LinearScale(min=0.0, max=1.0, allow_padding=False)
        self._y = bqplot.LogScale(min=BASE, max=10.0)
        scales = {"x": self._x, "y": self._y}
        look: dict[str, Any] = {
            "scales": scales,
            "type": "grouped",
            "base": BASE,
            "padding": 0.08,
            "x": [0.0],
            "y": [BASE],
        }
        self.heads = bqplot.Bars(colors=[PLAIN], opacities=[0.55], **look)
        self.passing = bqplot.Bars(colors=[ACCENT], **look)
        self.cuts = bqplot.Lines(
            x=[], y=[], scales=scales, colors=[ACCENT], stroke_width=2, line_style="dashed"
        )
        self.brush = bqplot.interacts.BrushIntervalSelector(scale=self._x, color=ACCENT)
        self._placed: tuple[float, float] | None = None
        self._ends = (0.0, 1.0)  # of the axis; the page could change the scale's own
        self._across = axis(self._x)
        self._up = axis(self._y, upright=True, tick_format=",d")
        super().__init__(
            [self.heads, self.passing, self.cuts],
            [self._across, self._up],
            interaction=self.brush,
        )
        self._observe(self.brush, self._brushed, "selected", "brushing")
        self._follow(explorer, *STRENGTH_TRAITS)
        self._draw()

    def _draw(self) -> None:
        now = shown(self.explorer)
        maps = [now.strength(task) for task in now.tasks]
        strengths = np.array(maps, np.float64).ravel()  # (task x layer x head,)
        masks = [mask for mask in map(now.passes, now.tasks) if mask is not None]
        there = ~np.isnan(strengths)  # heads that were measured
        passes = np.array(masks, bool).ravel()[there if masks else slice(None)]
        strengths = strengths[there]
        low, high = self._ends = _ends(strengths)
        edges = np.linspace(low, high, BINS + 1)
        every = np.histogram(strengths, edges)[0]
        on = np.histogram(strengths[passes], edges)[0] if passes.size else np.zeros(BINS, int)
        most = max(10, int(every.max(initial=0)))
        cuts = [] if now.settings.rule == "value" else _cuts(now, low, high)
        with together(
            self._x, self._y, self.heads, self.passing, self.cuts, self._across, self._up
        ):
            span(self._across, low, high)
            self._y.max = most * 1.25
            for bars, counts in ((self.heads, every), (self.passing, on)):
                bars.x, bars.y = (edges[:-1] + edges[1:]) / 2, np.maximum(counts, BASE)
            self.cuts.x = np.array([[cut, cut] for cut in cuts])
            self.cuts.y = np.array([[BASE, most * 1.25] for _ in cuts])
            self._across.label = now.name()
            self._up.label = (
                "heads (log scale)" if len(now.tasks) < 2 else "heads of all tasks (log scale)"
            )
            self._up.tick_values = 10.0 ** np.arange(int(np.log10(most)) + 1)
        self._set_text(names(now.tasks) or "no task", _passing(now), _how(now))
        self._place(now)

    # ---- the brush ----

    def _place(self, now: Shown) -> None:
        """Put the brush where heads pass.

        Not while it is held, and not for a rule that has another cut for each task.
        """
        if self.brush.brushing:
            return
        cut = now.settings.threshold if now.settings.rule == "value" and now.tasks else None
        low, high = self._ends
        self._placed = None if cut is None else (min(max(cut, low), high), high)
        self.brush.selected = None if self._placed is None else np.array(self._placed)

    def _brushed(self, _: Any) -> None:
        brushed = self.brush.selected
        edges = None if brushed is None else _edges(brushed)
        is_brush = brushed is None or len(brushed) == 0 or edges is not None
        if is_brush and edges != self._placed:
            self._placed = edges
            threshold = None if edges is None else self._rounded(edges[0])
            with self.explorer.hold_sync():
                if self.explorer.rule != "value":
                    self.explorer.rule = "value"
                self.explorer.threshold = threshold
        self._place(shown(self.explorer))

    def _rounded(self, edge: float) -> float:
        """A threshold as fine as a pixel, without digits beyond that."""
        low, high = self._ends
        step = scales.nice_step((high - low) / 1000)
        return scales.clean(round(edge / step) * step)


def _edges(brushed: Any) -> tuple[float, float] | None:
    """The two ends of a brush; None for what is no brush."""
    try:
        low, high = (float(edge) for edge in brushed)
    except (TypeError, ValueError):
        return None
    return (low, high) if np.isfinite([low, high]).all() else None


def _ends(strengths: np.ndarray) -> tuple[float, float]:
    """The axis: from zero, or from the least strength below it, to the largest."""
    low, high = float(min(strengths.min(initial=0.0), 0.0)), float(strengths.max(initial=0.0))
    return (low, high) if high > low else (low, low + 1.0)


def _cuts(now: Shown, low: float, high: float) -> list[float]:
    """Where heads begin to pass, for each task, within the axis."""
    cuts = {now.cut(task) for task in now.tasks}
    return sorted(cut for cut in cuts if cut is not None and low <= cut <= high)


def _passing(now: Shown) -> str:
    """How many heads pass, as the explorer counts them."""
    passing, every = now.passing(), f"{now.heads} {'head' if now.heads == 1 else 'heads'}"
    return every if passing is None else f"{int(passing.sum())} of {every} pass"


def _how(now: Shown) -> str:
    asked = now.settings
    if asked.threshold is None:
        return "Drag across the bars to set a threshold."
    rule = {
        "value": "at or above {:g}",
        "top": "the strongest {:.0f}",
        "percent": "the strongest {:g}%",
        "elbow": "{:g} × the elbow",
    }[asked.rule]
    several = " in a task or more" if len(now.tasks) > 1 else ""
    return f"Orange: heads that pass, {rule.format(asked.threshold)}{several}."
