"""What all charts have in common: a title, a figure that can be read on light and dark, and letting go of the explorer when either is closed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import bqplot
import ipywidgets  # type: ignore[import-untyped]
import numpy as np

from headwidget.display import scales
from headwidget.display.explorer import SCORE_TRAITS, ExplorerBase

ACCENT, PLAIN, GREY = "#d9720d", "#3f87c8", "#8a8a8a"
"""What is chosen, what is not, and what stands behind: apart in every kind of colour vision, and on white and near black alike."""
TASKS = ("#4060a0", "#f08000", "#10b0b0", "#c02010", "#8020f0", "#a0a070", "#f060f0", "#905060")
"""A task's colour: at least 2.6 : 1 against white and 3 : 1 against #111, and 26 apart (CIELAB) for every kind of colour vision."""
DASHES = ("solid", "dashed", "dotted")
"""The lines of the first eight tasks, of the next eight and of all others."""

# bqplot writes in orange on JupyterLab's dark theme; its variables are set on the figure itself.
STYLE = """<style>
.hw-chart .bqplot { --bq-content-font-color: var(--jp-ui-font-color1, #777); --bq-axislabel-fill: var(--jp-ui-font-color1, #777);
  --bq-axis-tick-text-fill: var(--jp-ui-font-color1, #777); --bq-axis-border-color: #8a8a8a; --bq-grid-color: #8a8a8a40;
  --bq-axislabel-font: 12px sans-serif; --bq-font: 11px sans-serif; --bq-default-stroke: none; --bq-stick-stroke: #8a8a8a; --bq-selector-fill: #8a8a8a;
  --bq-background: transparent; --bq-plotarea-background-fill: transparent; }
.hw-chart .hw-chart-text { line-height: 1.35; overflow-wrap: anywhere; color: var(--jp-ui-font-color1, inherit); font-size: 13px }
.hw-chart .hw-chart-entry { display: inline-block; margin-right: 0.9em }
.hw-chart .hw-chart-key { display: inline-block; width: 1.4em; border-top: 3px; vertical-align: middle; margin-right: 0.35em }
</style>"""


class Chart(ipywidgets.VBox):  # type: ignore[misc]
    """A chart beside the heatmaps. It follows its explorer until one of them is closed."""

    figure: Any
    """The bqplot figure."""

    def __init__(
        self,
        scales: Sequence[Any],
        marks: Sequence[Any],
        axes: Sequence[Any],
        *,
        interaction: Any = None,
        choices: Sequence[Any] = (),
    ) -> None:
        self._scales, self._choices = list(scales), list(choices)
        self._heard: list[tuple[Any, Callable[[Any], None], tuple[str, ...]]] = []
        self._style = ipywidgets.HTML(STYLE, layout={"display": "none"})
        self._title, self._note = (
            ipywidgets.HTML(layout={"margin": "0", "flex": "0 0 auto"}) for _ in range(2)
        )
        self.figure = bqplot.Figure(
            marks=list(marks),
            axes=list(axes),
            interaction=interaction,
            fig_margin={"top": 8, "bottom": 44, "left": 56, "right": 12},
            padding_x=0.0,
            display_toolbar=False,
            layout={"width": "auto", "min_width": "0", "height": "230px", "flex": "0 0 auto"},
        )
        top = [ipywidgets.HBox(list(choices), layout={"flex_flow": "row wrap"})] if choices else []
        super().__init__(
            [self._style, self._title, *top, self.figure, self._note],
            layout={"width": "auto", "max_width": "620px", "overflow": "visible"},
        )
        self.add_class("hw-chart")

    # ---- what it says ----

    @property
    def title(self) -> str:
        """The line above the figure: what is shown, and what was found."""
        return self._said[0]

    @property
    def note(self) -> str:
        """The line below the figure."""
        return self._said[1]

    _said = ("", "")

    def _say(self, title: str, found: str = "", note: str = "") -> None:
        self._said = (f"{title} · {found}" if found else title, note)
        self._title.value = _text(f"<b>{_plain(title)}</b>{' · ' * bool(found)}{_plain(found)}")
        self._note.value = _text(_plain(note)) if note else ""

    def _key(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """A key below the figure: (name, colour, dashes) of each line."""
        self._said = (self._said[0], ", ".join(name for name, _, _ in entries))
        line = '<span class="hw-chart-entry"><span class="hw-chart-key" style="border-top-style: {}; border-top-color: {}"></span>{}</span>'
        self._note.value = _text(
            " ".join(line.format(dashes, colour, _plain(name)) for name, colour, dashes in entries)
        )

    # ---- following and letting go ----

    def _follow(self, explorer: ExplorerBase, *names: str) -> None:
        """Draw again when one of these traits changes, or the scores do."""
        self._hear(explorer, self._changed, *names, *SCORE_TRAITS)
        self._hear(explorer, self._gone, "comm")

    def _hear(self, widget: Any, handler: Callable[[Any], None], *names: str) -> None:
        widget.observe(handler, names)
        self._heard.append((widget, handler, names))

    def _changed(self, _: Any) -> None:
        self._draw()

    def _draw(self) -> None:
        raise NotImplementedError

    def _gone(self, change: Any) -> None:
        if change["new"] is None:  # the explorer was closed; the chart keeps what it shows
            self._let_go(change["owner"])

    def _let_go(self, of: Any = None) -> None:
        """Hear no more of a widget, or of any."""
        for widget, handler, names in [heard for heard in self._heard if of in (None, heard[0])]:
            widget.unobserve(handler, names)
            self._heard.remove((widget, handler, names))

    def close(self) -> None:
        """Close the chart and all its parts; the explorer no longer knows of it. A second time does nothing."""
        self._let_go()
        for part in [
            self.figure.interaction,
            *self.figure.marks,
            *self.figure.axes,
            *self._scales,
            *self._choices,
            *self.children,
        ]:
            if part is not None:
                part.close()
        super().close()


def axis(scale: Any, label: str = "", *, upright: bool = False, **options: Any) -> Any:
    """An axis with few ticks and its label close by."""
    offset = "44px" if upright else "32px"
    return bqplot.Axis(
        scale=scale,
        label=label,
        label_offset=offset,
        side="left" if upright else "bottom",
        grid_lines="solid" if upright else "none",
        **options,
    )


def span(axis: Any, low: float, high: float) -> None:
    """An axis from ``low`` to ``high`` with ticks at round numbers; bqplot's own are as far apart as it takes."""
    axis.scale.min, axis.scale.max = low, high
    step = scales.nice_step((high - low) / 5)
    digits = scales.decimals(step)
    axis.tick_values = np.array(
        [
            scales.clean(k * step)
            for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        ]
    )
    axis.tick_format = ".1e" if digits < 0 else f",.{digits}f"


@contextlib.contextmanager
def together(*widgets: Any) -> Iterator[None]:
    """All that changes of a widget goes over in one message."""
    with contextlib.ExitStack() as stack:
        for widget in widgets:
            stack.enter_context(widget.hold_sync())
        yield


def names(tasks: Sequence[str]) -> str:
    """Tasks as a title has them: by name while they are few."""
    return ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} tasks"


def look(task: int) -> tuple[str, str]:
    """The colour and the dashes of a task, by its place among the scores' tasks: it keeps them when others are hidden."""
    return TASKS[task % len(TASKS)], DASHES[min(task // len(TASKS), len(DASHES) - 1)]


def _plain(text: str) -> str:
    return escape(text).replace(
        "$", "<span>$</span>"
    )  # JupyterLab typesets what stands between dollars


def _text(html: str) -> str:
    return f'<div class="hw-chart-text">{html}</div>'
