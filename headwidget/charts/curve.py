"""The knock-out curve: what turning off the top k heads does.

Beside it stands what random heads of the same layers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bqplot
import ipywidgets  # type: ignore[import-untyped]
import numpy as np

from headwidget.charts.base import ACCENT, GREY, Chart, axis, span, together
from headwidget.charts.shown import shown
from headwidget.display.effect import MEASURES, Effect

if TYPE_CHECKING:
    import pandas as pd

    from headwidget.display.explorer import ExplorerBase

Pair = tuple[str, str]
"""(method, the task whose heads they are)."""
UNITS = {
    "log_probability": "change in log-probability (nats)",
    "accuracy": "change in accuracy (fraction)",
    "beats_foil": "change in beats its foil (fraction)",
}
SUMMARY = {
    *("method", "heads_of", "k", "top", "control", "control_low", "control_high"),
    *("draws", "beats_control"),
}
"""The columns that are read of a summary."""
FRAME = {
    *("method", "heads_of", "task", "k", "kind", "draw"),
    *MEASURES,
    *(f"{name}_change" for name in MEASURES),
}
"""The columns that are read of a frame."""
TAKES = "knockout_curve takes what hw.knockout gives, its .frame or its .summary()"
WIDE = 8
"""From so many times the smallest k on, k is on a logarithmic axis."""


class KnockoutCurve(Chart):
    """The change that a task's top k heads make, and the mean and range of the controls."""

    def __init__(
        self,
        tables: dict[str, pd.DataFrame],
        explorer: ExplorerBase | None,
        measure: str,
        factor: float | None,
    ) -> None:
        self.explorer, self._tables, self._factor = explorer, tables, factor
        self.pair = ipywidgets.Dropdown(options=_pairs(tables[measure]), layout={"width": "auto"})
        self.measure = ipywidgets.Dropdown(
            options={MEASURES.get(name, name): name for name in tables},
            value=measure,
            layout={"width": "auto"},
        )
        ks = np.unique(
            np.concatenate([table["k"].to_numpy(np.float64) for table in tables.values()])
        )
        self._x = bqplot.LogScale() if ks[-1] >= WIDE * ks[0] else bqplot.LinearScale()
        room = (0.85, 1.18) if isinstance(self._x, bqplot.LogScale) else (1.0, 1.0)
        side = 0.0 if room[0] < 1 else 0.06 * (ks[-1] - ks[0]) or 0.5
        self._x.min, self._x.max = float(ks[0] * room[0] - side), float(ks[-1] * room[1] + side)
        self._y = bqplot.LinearScale()
        scales = {"x": self._x, "y": self._y}
        self.zero = bqplot.Lines(
            x=[self._x.min, self._x.max],
            y=[0.0, 0.0],
            scales=scales,
            colors=[GREY],
            stroke_width=1,
            line_style="dotted",
        )
        self.range = bqplot.Lines(
            x=[], y=[], scales=scales, colors=[GREY], stroke_width=5, opacities=[0.45] * len(ks)
        )
        self.control = bqplot.Lines(
            x=[],
            y=[],
            scales=scales,
            colors=[GREY],
            stroke_width=2,
            line_style="dashed",
            marker="square",
            marker_size=36,
        )
        self.top = bqplot.Lines(
            x=[],
            y=[],
            scales=scales,
            colors=[ACCENT],
            stroke_width=2.5,
            marker="circle",
            marker_size=44,
        )
        self._across = axis(
            self._x,
            "heads turned off, k" if factor in (0, None) else f"heads × {factor:g}, k",
            tick_values=_ticks(ks),
            tick_format="d",
        )
        self._up = axis(self._y, upright=True)
        both = (self.pair, self.measure)
        choices = [choice for choice in both if len(choice.options) > 1]
        super().__init__(
            [self.zero, self.range, self.control, self.top],
            [self._across, self._up],
            choices=choices,
            hidden=[choice for choice in both if choice not in choices],
        )
        for choice in both:
            self._observe(choice, self._changed, "value")
        if explorer is not None:
            self._follow(explorer, "tasks", "task")
            self._choose()
        self._draw()

    def _changed(self, change: Any) -> None:
        if change["owner"] is self.explorer:
            self._choose()
        self._draw()

    def _choose(self) -> None:
        """Go to the first task that the explorer shows and that heads were turned off for.

        Of several methods, the explorer's own.
        """
        assert self.explorer is not None
        now = shown(self.explorer)
        pairs = [pair for pair in self.pair.options.values() if pair[1] in now.tasks]
        pairs.sort(key=lambda pair: (pair[0] != now.scores.method, now.tasks.index(pair[1])))
        if pairs and (self.explorer.task is not None or self.pair.value[1] not in now.tasks):
            self.pair.value = pairs[0]

    def _draw(self) -> None:
        (method, task), measure = self.pair.value, self.measure.value
        table = self._tables[measure]
        rows = table[(table["method"] == method) & (table["heads_of"] == task)].sort_values("k")
        k, top, mean, low, high = (
            rows[name].to_numpy(np.float64)
            for name in ("k", "top", "control", "control_low", "control_high")
        )
        reach = np.concatenate([low, high, top, [0.0]])
        reach = reach[np.isfinite(reach)]
        room = 0.06 * (reach.max() - reach.min()) or 0.5
        with together(self._y, self._up, self.range, self.control, self.top):
            span(self._up, float(reach.min() - room), float(reach.max() + room))
            self._up.label = UNITS.get(measure, "change")
            self.range.x, self.range.y = np.stack([k, k], axis=1), np.stack([low, high], axis=1)
            self.control.x, self.control.y = k, mean
            self.top.x, self.top.y = k, top
        beats = rows["beats_control"].astype(bool)
        self._set_text(
            task, f"{method}: top heads beyond every control at {int(beats.sum())} of {len(rows)} k"
        )
        draws = sorted(set(rows["draws"].astype(int)))
        count = f"{draws[0]}" if len(draws) == 1 else f"{draws[0]} to {draws[-1]}"
        controls = f"random heads of the same layers, mean and range of {count} draws"
        self._key([("top k heads", ACCENT, "solid"), (controls, GREY, "dashed")])


def tables(effect: Any, measure: str) -> tuple[dict[str, pd.DataFrame], float | None]:
    """A summary for each measure, from an Effect, its frame or its summary.

    The second value is what the heads were multiplied by, where that is known.
    """
    import pandas as pd

    if isinstance(effect, Effect):
        summaries = {name: _whole(effect.summary(name)) for name in (measure, *MEASURES)}
        return {name: table for name, table in summaries.items() if len(table)}, effect.factor
    if not isinstance(effect, pd.DataFrame):
        raise TypeError(f"{TAKES}; got a {type(effect).__name__}.")
    columns = set(effect.columns)
    if columns >= SUMMARY:
        return {measure: _whole(effect)}, None
    if missing := sorted(FRAME - columns):
        raise ValueError(
            f"this frame lacks {', '.join(missing)}; give knockout_curve what hw.knockout gives, "
            "its .frame or its .summary()."
        )
    untouched = {name: effect[name] - effect[f"{name}_change"] for name in MEASURES}
    before = effect[["task"]].assign(**untouched).drop_duplicates("task")
    return tables(Effect(effect, before, 0.0), measure)


def _pairs(table: pd.DataFrame) -> dict[str, Pair]:
    """What can be chosen, by name: each task whose heads were turned off, for each method."""
    rows = table[["method", "heads_of"]].itertuples(index=False, name=None)
    pairs = dict.fromkeys((str(method), str(task)) for method, task in rows)
    several = len({method for method, _ in pairs}) > 1
    return {f"{task} · {method}" if several else task: (method, task) for method, task in pairs}


def _whole(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with all their numbers: a task without foils has none for them."""
    return table.dropna(subset=["top", "control", "control_low", "control_high"])


def _ticks(ks: np.ndarray) -> np.ndarray:
    """Every k while they are few, else some of them."""
    return ks if len(ks) <= 8 else ks[np.linspace(0, len(ks) - 1, 6).round().astype(int)]
