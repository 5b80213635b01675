"""Effect: what turning heads down or up did to every task, beside as many random heads.

Needs no torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {
    "log_probability": "log-probability",
    "accuracy": "accuracy",
    "beats_foil": "beats its foil",
}
"""What is measured, and how it is called on an axis."""
SUMMARY = [
    *("method", "heads_of", "k", "before", "top", "control", "control_low", "control_high"),
    *("draws", "beats_control", "others", "others_control"),
]
"""The columns of :meth:`Effect.summary`."""
TOP, CONTROL, OTHERS = "#b5580f", "#6e6e6e", "#1a5ba3"


@dataclass(frozen=True, eq=False)
class Effect:
    """What :func:`headwidget.knockout` and :func:`headwidget.amplify` found.

    A change is after minus before: negative is worse. ``frame`` has every number,
    :meth:`summary` says whether the top heads did more than every control, :meth:`plot` draws
    it.
    """

    frame: pd.DataFrame
    """A row for each set of heads and task it was measured on: ``method``, ``heads_of`` (the
    task whose heads they are), ``task`` (measured on), ``k``, ``kind`` ("top" or "control"),
    ``draw`` (0 for the top heads, controls from 1), ``accuracy``, ``beats_foil``,
    ``log_probability`` (means over prompts), their ``…_change`` against the untouched model,
    ``heads`` as (layer, head), and how many a control has in common with the top heads
    (``in_top``)."""
    untouched: pd.DataFrame
    """The model as it is, a row a task: its three measures, ``prompts``, how many of them have
    a foil (``foils``), are held out (``held_out``), and were among those that the heads were
    scored on (``scored_on``)."""
    factor: float
    """What the heads' outputs were multiplied by: 0 turns them off."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Model, seed and what else was asked."""

    @property
    def partial(self) -> bool:
        """True when it was stopped before everything was measured."""
        return bool(self.meta.get("partial", False))

    def summary(self, measure: str = "log_probability") -> pd.DataFrame:
        """Whether the top heads change ``measure`` more than every control did.

        A row for each method, task and k. ``before``: the untouched model. ``top``: the change
        that the task's top heads make on it. ``control``, ``control_low``, ``control_high``:
        mean and range of the changes that ``draws`` random sets of the same layers make.
        ``beats_control``: the top heads change it further than every draw, downwards (upwards
        for a factor above 1); by luck alone that happens once in ``draws`` + 1. ``others`` and
        ``others_control``: the mean change on the other tasks, under the top heads and under
        the controls.
        """
        import pandas as pd

        _check(measure)
        change = f"{measure}_change"
        before = dict(zip(self.untouched["task"], self.untouched[measure]))
        rows = []
        for (method, heads_of, k), table in self.frame.groupby(
            ["method", "heads_of", "k"], sort=False
        ):
            same_task, is_top = table["task"] == heads_of, table["kind"] == "top"
            tops, controls = table[same_task & is_top], table[same_task & ~is_top]
            if not len(tops) or not len(controls):  # stopped before it
                continue
            top, control = float(tops[change].iloc[0]), controls[change]
            low, high = float(control.min()), float(control.max())
            rows.append(
                {
                    "method": method,
                    "heads_of": heads_of,
                    "k": k,
                    "before": before[str(heads_of)],
                    "top": top,
                    "control": float(control.mean()),
                    "control_low": low,
                    "control_high": high,
                    "draws": len(control),
                    "beats_control": top < low if self.factor < 1 else top > high,
                    "others": table[~same_task & is_top][change].mean(),
                    "others_control": table[~same_task & ~is_top][change].mean(),
                }
            )
        return pd.DataFrame(rows, columns=SUMMARY)

    def plot(self, measure: str = "log_probability") -> Figure:
        """Draw ``measure`` against k, a panel a task and a row a method.

        The lines are the task with its top heads changed, the mean and range of the controls,
        and the mean of the other tasks with the same top heads changed.
        """
        from matplotlib.figure import Figure

        from headwidget.display.figure import DPI, style

        _check(measure)
        pairs = list(
            self.frame[["method", "heads_of"]].drop_duplicates().itertuples(index=False, name=None)
        )
        methods, tasks = (list(dict.fromkeys(column)) for column in zip(*pairs))
        across = len(tasks) if len(methods) > 1 else min(4, len(tasks))
        where = {
            pair: (methods.index(pair[0]), tasks.index(pair[1]))
            if len(methods) > 1
            else divmod(tasks.index(pair[1]), across)
            for pair in pairs
        }
        down = max(row for row, _ in where.values()) + 1
        with style():
            drawing = Figure(
                figsize=(0.4 + 2.3 * across, 0.7 + 1.9 * down),
                dpi=DPI,
                facecolor="white",
                layout="constrained",
            )
            grid = drawing.subplots(
                down, across, squeeze=False, sharey="col" if len(methods) > 1 else False
            )
            for axes in grid.ravel():
                axes.set_visible(False)
            for (method, heads_of), slot in where.items():
                axes = grid[slot]
                axes.set_visible(True)
                self._draw(axes, measure, method, heads_of)
                axes.set_title(
                    f"{heads_of} · {method}" if len(methods) > 1 else heads_of,
                    fontsize=9,
                    parse_math=False,
                )
                if slot[1] == 0:
                    axes.set_ylabel(MEASURES[measure], fontsize=8)
            lines: dict[str, Any] = {}
            for axes in grid.ravel():
                lines |= {str(line.get_label()): line for line in axes.get_lines()}
            what = (
                "heads turned off" if self.factor == 0 else f"heads multiplied by {self.factor:g}"
            )
            drawing.supxlabel(what + (", stopped early" if self.partial else ""), fontsize=9)
            drawing.legend(
                list(lines.values()),
                list(lines),
                loc="outside upper center",
                ncols=3,
                fontsize=8,
                frameon=False,
            )
        return drawing

    def _draw(self, axes: Axes, measure: str, method: str, heads_of: str) -> None:
        chosen = (self.frame["method"] == method) & (self.frame["heads_of"] == heads_of)
        table = self.frame[chosen]
        ks = sorted(int(k) for k in table["k"].unique())
        before = self.untouched.set_index("task")[measure]
        others = before.drop(heads_of, errors="ignore")
        start = float(before.get(heads_of, math.nan))

        def along(rows: Any, how: str) -> list[float]:
            by_k = table[rows].groupby("k")[measure].agg(how).reindex(ks)
            return [float(value) for value in by_k]

        top, same_task = table["kind"] == "top", table["task"] == heads_of
        at = range(len(ks) + 1)  # evenly spaced: 0 heads, then each k
        low, high, mean = ([start, *along(same_task & ~top, how)] for how in ("min", "max", "mean"))
        axes.fill_between(at, low, high, color=CONTROL, alpha=0.25, linewidth=0)
        axes.plot(at, mean, color=CONTROL, linewidth=1.2, label="random heads, same layers")
        if len(others) and not np.isnan(elsewhere := along(~same_task & top, "mean")).all():
            axes.plot(
                at,
                [float(others.mean()), *elsewhere],
                color=OTHERS,
                linewidth=1.2,
                linestyle="--",
                label="top heads, other tasks",
            )
        axes.plot(
            at,
            [start, *along(same_task & top, "mean")],
            color=TOP,
            linewidth=1.6,
            marker="o",
            markersize=3.5,
            label="top heads",
        )
        axes.set_xticks(list(at), ["0", *map(str, ks)])
        axes.tick_params(labelsize=7.5, length=2, width=0.5)
        if measure != "log_probability":
            axes.set_ylim(-0.04, 1.04)

    def _sentence(self) -> str:
        beats = self.summary()["beats_control"]
        model = self.meta.get("model", "a model")
        verb = "turned off" if self.factor == 0 else f"multiplied by {self.factor:g}"
        stopped = "; stopped before all was measured" if self.partial else ""
        way = "raise" if self.factor > 1 else "lower"
        return (
            f"{model}, heads {verb}: the top heads {way} their own task's log-probability "
            f"further than every control in {int(beats.sum())} of {len(beats)} cases{stopped}"
        )

    def __repr__(self) -> str:
        return f"Effect({self._sentence()})\n{self.summary().round(3).to_string(index=False)}"

    def _repr_html_(self) -> str:
        table = self.summary().round(3).to_html(index=False, border=0)
        return f"<p>{escape(self._sentence())}.</p>{table}"


def _check(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(f"measure is {', '.join(map(repr, MEASURES))}; got {measure!r}.")
