"""Effect: what turning heads down or up did to every task, beside the same number of random heads. Needs no torch."""

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
TOP, CONTROL, OTHERS = "#b5580f", "#6e6e6e", "#1a5ba3"


@dataclass(frozen=True, eq=False)
class Effect:
    """What :func:`headwidget.knockout` and :func:`headwidget.amplify` found.

    A change is after minus before: negative is worse. ``frame`` has every number, :meth:`summary` says whether the top heads
    did more than every control, :meth:`plot` draws it.
    """

    frame: pd.DataFrame
    """A row for each set of heads and task it was measured on: ``method``, ``heads_of`` (the task whose heads they are), ``task`` (measured on),
    ``k``, ``kind`` ("top" or "control"), ``draw`` (0 for the top heads, controls from 1), ``accuracy``, ``beats_foil``, ``log_probability`` (means
    over prompts), their ``…_change`` against the untouched model, ``heads`` as (layer, head), and how many a control has in common
    with the top heads (``in_top``)."""
    untouched: pd.DataFrame
    """The model as it is, a row a task: its three measures, ``prompts``, how many of them have a foil (``foils``), are held out (``held_out``),
    and were among those that the heads were scored on (``scored_on``)."""
    factor: float
    """What the heads' outputs were multiplied by: 0 turns them off."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Model, seed and what else was asked."""

    @property
    def partial(self) -> bool:
        """True when it was stopped before everything was measured."""
        return bool(self.meta.get("partial", False))

    def summary(self, measure: str = "log_probability") -> pd.DataFrame:
        """A row for each method, task and k: does turning the top heads change ``measure`` more than every control did?

        ``before``: the untouched model. ``top``: the change that the task's top heads make on it. ``control``, ``control_low``, ``control_high``: mean
        and range of the changes that ``draws`` random sets of the same layers make. ``beats_control``: the top heads change it further than every
        draw, downwards (upwards for a factor above 1); by luck alone that happens once in ``draws`` + 1. ``others`` and ``others_control``: the mean
        change on the other tasks, under the top heads and under the controls.
        """
        import pandas as pd

        _known(measure)
        change, before = (
            f"{measure}_change",
            dict(zip(self.untouched["task"], self.untouched[measure])),
        )
        rows = []
        for (method, heads_of, k), part in self.frame.groupby(
            ["method", "heads_of", "k"], sort=False
        ):
            on_own, is_top = part["task"] == heads_of, part["kind"] == "top"
            top, control = part[on_own & is_top][change], part[on_own & ~is_top][change]
            if not len(top) or not len(control):  # stopped before it
                continue
            low, high, own = float(control.min()), float(control.max()), float(top.iloc[0])
            rows.append(
                {
                    "method": method,
                    "heads_of": heads_of,
                    "k": k,
                    "before": before[str(heads_of)],
                    "top": own,
                    "control": float(control.mean()),
                    "control_low": low,
                    "control_high": high,
                    "draws": len(control),
                    "beats_control": own < low if self.factor < 1 else own > high,
                    "others": part[~on_own & is_top][change].mean(),
                    "others_control": part[~on_own & ~is_top][change].mean(),
                }
            )
        columns = [
            "method",
            "heads_of",
            "k",
            "before",
            "top",
            "control",
            "control_low",
            "control_high",
            "draws",
            "beats_control",
            "others",
            "others_control",
        ]
        return pd.DataFrame(rows, columns=columns)

    def plot(self, measure: str = "log_probability") -> Figure:
        """A panel a task, a row a method: ``measure`` against k with the task's top heads changed, the mean and range of the controls,
        and the mean of the other tasks with the same top heads changed."""
        from matplotlib.figure import Figure

        from headwidget.display.figure import DPI, style

        _known(measure)
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
            made = Figure(
                figsize=(0.4 + 2.3 * across, 0.7 + 1.9 * down),
                dpi=DPI,
                facecolor="white",
                layout="constrained",
            )
            grid = made.subplots(
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
            made.supxlabel(what + (", stopped early" if self.partial else ""), fontsize=9)
            made.legend(
                list(lines.values()),
                list(lines),
                loc="outside upper center",
                ncols=3,
                fontsize=8,
                frameon=False,
            )
        return made

    def _draw(self, axes: Axes, measure: str, method: str, heads_of: str) -> None:
        part = self.frame[(self.frame["method"] == method) & (self.frame["heads_of"] == heads_of)]
        ks = sorted(int(k) for k in part["k"].unique())
        before = self.untouched.set_index("task")[measure]
        others = before.drop(heads_of, errors="ignore")
        start = float(before.get(heads_of, math.nan))

        def along(chosen: Any, how: str) -> list[float]:
            return [float(x) for x in part[chosen].groupby("k")[measure].agg(how).reindex(ks)]

        top, own = part["kind"] == "top", part["task"] == heads_of
        at = range(len(ks) + 1)  # evenly spaced: 0 heads, then each k
        low, high, mean = ([start, *along(own & ~top, how)] for how in ("min", "max", "mean"))
        axes.fill_between(at, low, high, color=CONTROL, alpha=0.25, linewidth=0)
        axes.plot(at, mean, color=CONTROL, linewidth=1.2, label="random heads, same layers")
        if len(others) and not np.isnan(elsewhere := along(~own & top, "mean")).all():
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
            [start, *along(own & top, "mean")],
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
        found = self.summary()
        verb = "turned off" if self.factor == 0 else f"multiplied by {self.factor:g}"
        beat = f"the top heads change their own task's log-probability more than every control in {int(found['beats_control'].sum())} of {len(found)} cases"
        return f"{self.meta.get('model', 'a model')}, heads {verb}: {beat}{'; stopped before all was measured' if self.partial else ''}"

    def __repr__(self) -> str:
        return f"Effect({self._sentence()})\n{self.summary().round(3).to_string(index=False)}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._sentence())}.</p>{self.summary().round(3).to_html(index=False, border=0)}"


def _known(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(f"measure is {', '.join(map(repr, MEASURES))}; got {measure!r}.")
