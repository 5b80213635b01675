"""Charts beside the heatmaps, linked by traits: each is an ipywidget drawn by bqplot.

Needs no torch.

>>> import headwidget as hw
>>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9], [0.2, 0.3]]}, method="mine")
>>> hw.charts.histogram(hw.explore(scores, threshold=0.25)).title
'copy · 2 of 4 heads pass'
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from headwidget.display.explorer import ExplorerBase
from headwidget.scores import HeadScores

if TYPE_CHECKING:
    import pandas as pd

    from headwidget.display.effect import Effect

__all__ = ["dashboard", "histogram", "knockout_curve", "layer_profile", "scatter"]


def histogram(explorer: ExplorerBase) -> Any:
    """How strong the heads of the tasks shown are, and how many pass.

    Dragging its brush sets ``explorer.threshold``. What is counted is what the threshold is
    compared with: the score, for signed scores its size, or what helps or hurts
    (``explorer.sign``), and in the agreement view what enough of the runs reach. Dashed lines
    show where ``rule`` "top", "percent" or "elbow" cuts; brushing makes it "value".
    """
    _explorer(explorer, "histogram")
    if (unavailable := _unavailable()) is not None:
        return unavailable
    from headwidget.charts.histogram_chart import Histogram

    return Histogram(explorer)


def layer_profile(explorer: ExplorerBase, of: Literal["mean", "max", "passing"] = "mean") -> Any:
    """A line a task over the layers.

    It is the mean over heads, the strongest head (``of="max"``), or how many heads pass
    (``of="passing"``).

    >>> import headwidget as hw
    >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9], [0.2, 0.3]]}, method="mine")
    >>> hw.charts.layer_profile(hw.explore(scores), of="max").title
    'copy · strongest head of each layer'
    """
    _explorer(explorer, "layer_profile")
    if of not in ("mean", "max", "passing"):
        raise ValueError(f"of is 'mean', 'max' or 'passing'; got {of!r}.")
    if (unavailable := _unavailable()) is not None:
        return unavailable
    from headwidget.charts.profile import LayerProfile

    return LayerProfile(explorer, of)


def scatter(
    explorer: ExplorerBase,
    other: ExplorerBase | HeadScores | None = None,
    x: str | None = None,
    y: str | None = None,
) -> Any:
    """One task against another, with Spearman's rank correlation.

    With ``other`` (an explorer or scores of the same heads) it is the same task in both. A dot
    is a head; drawing round dots sets ``explorer.selected``. ``x`` is a task of the explorer,
    ``y`` one of ``other`` where that is given; by default the first tasks shown that both have.

    >>> import headwidget as hw
    >>> maps = {"copy": [[0.1, 0.9], [0.2, 0.3]], "add": [[0.2, 0.8], [0.1, 0.3]]}
    >>> scores = hw.HeadScores.from_arrays(maps, method="mine")
    >>> hw.charts.scatter(hw.explore(scores)).title
    'copy against add · rank correlation 0.80 (4 heads)'
    """
    _explorer(explorer, "scatter")
    if other is not None and not isinstance(other, (ExplorerBase, HeadScores)):
        raise TypeError(f"other is an explorer or HeadScores; got {_kind(other)}.")
    here = explorer.shown
    there = here if other is None else other.shown if isinstance(other, ExplorerBase) else other
    first = [explorer.task] if explorer.task is not None else list(explorer.tasks or here.tasks)
    if x is None:  # the first task that both have
        x = next((task for task in first if task in there.tasks), first[0])
    if y is None:
        y = _against(x, there, [*explorer.tasks, *here.tasks] if other is None else None)
    from headwidget.charts import scatter_chart

    if problem := scatter_chart.differ(here, there, x, y):
        raise ValueError(problem)
    if (unavailable := _unavailable()) is not None:
        return unavailable
    return scatter_chart.Scatter(explorer, other, x, y)


def knockout_curve(
    effect: Effect | pd.DataFrame,
    explorer: ExplorerBase | None = None,
    *,
    measure: Literal["log_probability", "accuracy", "beats_foil"] = "log_probability",
) -> Any:
    """What turning off the top k heads of a task does, against k.

    Beside it stand the mean and the range of as many random heads of the same layers.
    ``effect`` is what :func:`headwidget.knockout` or :func:`headwidget.amplify` gives, or its
    ``frame`` (read as heads turned off) or ``summary()`` (of ``measure``). With an explorer it
    goes to the task that is shown there.
    """
    from headwidget.charts import curve
    from headwidget.display.effect import MEASURES

    if explorer is not None:
        _explorer(explorer, "knockout_curve")
    if measure not in MEASURES:
        raise ValueError(f"measure is {', '.join(map(repr, MEASURES))}; got {measure!r}.")
    summaries, factor = curve.tables(effect, measure)
    if measure not in summaries or not len(summaries[measure]):
        raise ValueError(
            f"there is no {MEASURES[measure]} to draw: no top heads were measured beside a control."
        )
    if (unavailable := _unavailable()) is not None:
        return unavailable
    return curve.KnockoutCurve(summaries, explorer, measure, factor)


def dashboard(explorer: ExplorerBase, charts: Iterable[Any] | None = None) -> Any:
    """The explorer with charts at its side (below it on a narrow page).

    It is an ``ipywidgets.AppLayout``. ``charts`` are names ("histogram", "layer_profile",
    "scatter"), charts made before, or any widgets; by default those three, the scatter where
    there are two tasks. Closing the dashboard closes the charts it made.

    >>> import headwidget as hw
    >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9], [0.2, 0.3]]}, method="mine")
    >>> [chart.title for chart in hw.dashboard(hw.explore(scores)).charts]
    ['copy · 4 heads', 'copy · mean over heads of each layer']
    """
    _explorer(explorer, "dashboard")
    named = {"histogram": histogram, "layer_profile": layer_profile, "scatter": scatter}
    several = len(explorer.shown.tasks) > 1
    usual = list(named) if several else ["histogram", "layer_profile"]
    wanted = usual if charts is None else _listed(charts)
    for chart in wanted:
        if isinstance(chart, str) and chart not in named:
            raise ValueError(
                f"no chart {chart!r}; by name there are {', '.join(map(repr, named))}, "
                "others are made before, e.g. hw.charts.knockout_curve(effect)."
            )
    if (unavailable := _unavailable()) is not None:
        return unavailable.below(explorer)
    import ipywidgets  # type: ignore[import-untyped]

    from headwidget.charts.dashboard_layout import Dashboard

    for chart in wanted:
        if not isinstance(chart, (str, ipywidgets.Widget)):
            raise TypeError(f"charts are names or widgets; got {_kind(chart)}.")
    widgets = [named[chart](explorer) if isinstance(chart, str) else chart for chart in wanted]
    owned = [widget for widget, name in zip(widgets, wanted) if isinstance(name, str)]
    return Dashboard(explorer, widgets, owned)


# ---- where there are no charts ----


class UnavailableChart:
    """Shown in marimo in place of a chart: a sentence that says why."""

    text = (
        "marimo shows no bqplot charts: it runs anywidgets such as the explorer, but no classic "
        "ipywidgets. The heatmaps and their threshold work here; for the charts open the scores "
        "in JupyterLab, Notebook 7 or Voila, or draw hw.HeadScores.figure and effect.plot() "
        "with matplotlib."
    )

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.text)}</p>"

    def below(self, explorer: ExplorerBase) -> Any:
        """The explorer, and below it the sentence."""
        return sys.modules["marimo"].vstack([explorer, self])


def _unavailable() -> UnavailableChart | None:
    """The sentence in marimo, which has no classic ipywidgets; None where charts can be shown."""
    marimo = sys.modules.get("marimo")
    return UnavailableChart() if marimo is not None and marimo.running_in_notebook() else None


# ---- checks ----


def _explorer(value: Any, what: str) -> None:
    if not isinstance(value, ExplorerBase):
        do = (
            "hw.explore(scores) makes one"
            if isinstance(value, HeadScores)
            else "make one with hw.explore(scores)"
        )
        raise TypeError(f"{what} takes an explorer, which it follows; got {_kind(value)}: {do}.")


def _against(x: str, there: HeadScores, same: list[str] | None) -> str:
    """The task that goes up when none is named.

    Another one of the ``same`` scores, or the same one of other scores.
    """
    if same is not None:
        others = [name for name in same if name != x]
        if not others:
            raise ValueError(
                f"these scores have one task, {x!r}; give scatter other scores to draw it "
                "against, e.g. scatter(explorer, other)."
            )
        return others[0]
    if x in there.tasks:
        return x
    if len(there.tasks) == 1:
        return there.tasks[0]
    raise ValueError(
        f"the other scores have no task {x!r}; "
        f"say which of {', '.join(map(repr, there.tasks))} goes up, as y=."
    )


def _listed(charts: Any) -> list[Any]:
    if isinstance(charts, str) or not isinstance(charts, Iterable):
        raise TypeError(
            f"charts is a list of names and charts, e.g. ['histogram', 'scatter']; got {charts!r}."
        )
    return list(charts)


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
