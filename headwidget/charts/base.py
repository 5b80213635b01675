"""What all charts have in common: a title, a figure that can be read on light and dark, and letting go of the explorer when either is closed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import ipywidgets  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from headwidget.widget import Explorer

ACCENT, PLAIN, GREY = "#d9720d", "#3f87c8", "#8a8a8a"
"""What is chosen, what is not, and what stands behind: apart in every kind of colour vision, and on white and near black alike."""
TASKS = ("#0090f0", "#f07800", "#006048", "#a80090", "#90a878", "#784800", "#7800f0", "#d890c0")
"""A task's colour: at least 2.4 : 1 against white and against #111, and 30 apart (CIELAB) for every kind of colour vision."""
DASHES = ("solid", "dashed", "dotted")
"""The lines of the first eight tasks, of the next eight and of all others."""

# bqplot writes in orange on JupyterLab's dark theme; its variables are set on the figure itself.
STYLE = """<style>
.hw-chart .bqplot { --bq-content-font-color: var(--jp-ui-font-color1, #777); --bq-axislabel-fill: var(--jp-ui-font-color1, #777);
  --bq-axis-tick-text-fill: var(--jp-ui-font-color1, #777); --bq-axis-border-color: #8a8a8a; --bq-grid-color: #8a8a8a40;
  --bq-axislabel-font: 12px sans-serif; --bq-font: 11px sans-serif; --bq-default-stroke: none; --bq-selector-fill: #8a8a8a;
  --bq-background: transparent; --bq-plotarea-background-fill: transparent; }
.hw-chart .bqplot .toolbar_div { display: none }
.hw-chart .hw-chart-text { line-height: 1.35; overflow-wrap: anywhere; color: var(--jp-ui-font-color1, inherit); font-size: 13px }
.hw-chart .hw-chart-key { display: inline-block; width: 1.4em; border-top: 3px; vertical-align: middle; margin: 0 0.35em 0 0.9em }
.hw-chart .hw-chart-key:first-child { margin-left: 0 }
</style>"""


class Chart(ipywidgets.VBox):  # type: ignore[misc]
    """A chart beside the heatmaps. It follows its explorer until one of them is closed."""

    figure: Any
    """The bqplot figure."""

    def __init__(self, scales: Sequence[Any], marks: Sequence[Any], axes: Sequence[Any], *, interaction: Any = None, choices: Sequence[Any] = ()) -> None:
        self._scales, self._followed = list(scales), list[tuple["Explorer", tuple[str, ...]]]()
        self._style = ipywidgets.HTML(STYLE, layout={"display": "none"})
        self._title, self._note = (ipywidgets.HTML(layout={"margin": "0", "flex": "0 0 auto"}) for _ in range(2))
        self.figure = bqplot.Figure(
            marks=list(marks),
            axes=list(axes),
            interaction=interaction,
            fig_margin={"top": 8, "bottom": 44, "left": 56, "right": 12},
            padding_x=0.0,
            layout={"width": "auto", "min_width": "0", "height": "230px", "flex": "0 0 auto"},
        )
        top = [ipywidgets.HBox(list(choices), layout={"flex_flow": "row wrap"})] if choices else []
        super().__init__([self._style, self._title, *top, self.figure, self._note], layout={"width": "auto", "max_width": "620px", "overflow": "visible"})
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
        lines = [
            f'<span class="hw-chart-key" style="border-top-style: {dashes}; border-top-color: {colour}"></span>{_plain(n)}' for n, colour, dashes in entries
        ]
        self._note.value = _text("".join(lines))

    # ---- following and letting go ----

    def _follow(self, explorer: Explorer, *names: str) -> None:
        """Draw again when one of these traits changes, or the scores do."""
        watched = (*names, "_header", "_buffer")
        explorer.observe(self._changed, watched)
        explorer.observe(self._gone, "comm")
        self._followed.append((explorer, watched))

    def _changed(self, _: Any) -> None:
        self._draw()

    def _draw(self) -> None:
        raise NotImplementedError

    def _gone(self, change: Any) -> None:
        if change["new"] is None:  # the explorer was closed; the chart keeps what it shows
            self._let_go()

    def _let_go(self) -> None:
        for explorer, names in self._followed:
            explorer.unobserve(self._changed, names)
            explorer.unobserve(self._gone, "comm")
        self._followed = []

    def close(self) -> None:
        """Close the chart and all its parts; the explorer no longer knows of it."""
        self._let_go()
        parts = [self.figure.interaction, *self.figure.marks, *self.figure.axes, *self._scales, *self.children]
        for part in (p for p in parts if p is not None):
            part.close()
        super().close()


def axis(scale: Any, label: str = "", *, upright: bool = False, **options: Any) -> Any:
    """An axis with few ticks and its label close by."""
    offset = "44px" if upright else "32px"
    return bqplot.Axis(
        scale=scale, label=label, label_offset=offset, num_ticks=5, side="left" if upright else "bottom", grid_lines="solid" if upright else "none", **options
    )


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
    return escape(text).replace("$", "<span>$</span>")  # JupyterLab typesets what stands between dollars


def _text(html: str) -> str:
    return f'<div class="hw-chart-text">{html}</div>'
