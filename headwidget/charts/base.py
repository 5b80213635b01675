"""What all charts have in common: title, figure, key, and following an explorer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import bqplot
import ipywidgets  # type: ignore[import-untyped]
import numpy as np

from headwidget.charts.parts import parts
from headwidget.display import scales
from headwidget.display.explorer import SCORE_TRAITS, ExplorerBase

ACCENT, PLAIN, GREY = "#d9720d", "#3f87c8", "#8a8a8a"
"""What is chosen, what is not, and what stands behind.

They stay apart in every kind of colour vision, on white and near black alike.
"""
TASKS = ("#4060a0", "#f08000", "#10b0b0", "#c02010", "#8020f0", "#a0a070", "#f060f0", "#905060")
"""The colours of tasks.

Contrast is at least 2.6 : 1 against white and 3 : 1 against #111; they lie 26 apart (CIELAB)
for every kind of colour vision.
"""
DASHES = ("solid", "dashed", "dotted")
"""The lines of the first eight tasks, of the next eight and of all others."""

# bqplot writes in orange on JupyterLab's dark theme; its variables are set on the figure itself.
STYLE = """<style>
.hw-chart .bqplot {
  --bq-content-font-color: var(--jp-ui-font-color1, #777);
  --bq-axislabel-fill: var(--jp-ui-font-color1, #777);
  --bq-axis-tick-text-fill: var(--jp-ui-font-color1, #777);
  --bq-axis-border-color: #8a8a8a; --bq-grid-color: #8a8a8a40;
  --bq-axislabel-font: 12px sans-serif; --bq-font: 11px sans-serif;
  --bq-default-stroke: none; --bq-stick-stroke: #8a8a8a; --bq-selector-fill: #8a8a8a;
  --bq-background: transparent; --bq-plotarea-background-fill: transparent; }
.hw-chart .hw-chart-text {
  line-height: 1.35; overflow-wrap: anywhere; font-size: 13px;
  color: var(--jp-ui-font-color1, inherit) }
.hw-chart .hw-chart-entry { display: inline-block; margin-right: 0.9em }
.hw-chart .hw-chart-key {
  display: inline-block; width: 1.4em; border-top: 3px; vertical-align: middle;
  margin-right: 0.35em }
</style>"""


class Chart(ipywidgets.VBox):  # type: ignore[misc]
    """A chart beside the heatmaps. It follows its explorer until one of them is closed."""

    figure: Any
    """The bqplot figure."""

    def __init__(
        self,
        marks: Sequence[Any],
        axes: Sequence[Any],
        *,
        interaction: Any = None,
        choices: Sequence[Any] = (),
        hidden: Sequence[Any] = (),
    ) -> None:
        self._observed: list[tuple[Any, Callable[[Any], None], tuple[str, ...]]] = []
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
        # Noted now: the page could put other widgets in their place.
        self._parts = parts(self.layout, *self.children, *hidden)

    # ---- its text ----

    @property
    def title(self) -> str:
        """The line above the figure: what is shown, and what came out."""
        return self._texts[0]

    @property
    def note(self) -> str:
        """The line below the figure."""
        return self._texts[1]

    _texts = ("", "")  # the title and the note, as plain text

    def _set_text(self, title: str, result: str = "", note: str = "") -> None:
        self._texts = (f"{title} · {result}" if result else title, note)
        self._title.value = _text(f"<b>{_plain(title)}</b>{' · ' * bool(result)}{_plain(result)}")
        self._note.value = _text(_plain(note)) if note else ""

    def _key(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """Show a key below the figure: (name, colour, dashes) of each line."""
        self._texts = (self._texts[0], ", ".join(name for name, _, _ in entries))
        lines = [_entry(name, colour, dashes) for name, colour, dashes in entries]
        self._note.value = _text(" ".join(lines))

    # ---- observing and closing ----

    def _follow(self, explorer: ExplorerBase, *names: str) -> None:
        """Draw again when one of these traits changes, or the scores do."""
        self._observe(explorer, self._changed, *names, *SCORE_TRAITS)
        self._observe(explorer, self._explorer_closed, "comm")

    def _observe(self, widget: Any, handler: Callable[[Any], None], *names: str) -> None:
        widget.observe(handler, names)
        self._observed.append((widget, handler, names))

    def _changed(self, _: Any) -> None:
        self._draw()

    def _draw(self) -> None:
        raise NotImplementedError

    def _explorer_closed(self, change: Any) -> None:
        if change["new"] is None:  # the explorer was closed; the chart keeps what it shows
            self._unobserve(change["owner"])

    def _unobserve(self, of: Any = None) -> None:
        """Observe a widget no longer, or none of them."""
        for entry in [entry for entry in self._observed if of in (None, entry[0])]:
            widget, handler, names = entry
            widget.unobserve(handler, names)
            self._observed.remove(entry)

    def close(self) -> None:
        """Close the chart and all its parts, and stop observing. A second time does nothing."""
        self._unobserve()
        super().close()
        for part in self._parts:
            part.close()


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
    """Let an axis reach from ``low`` to ``high``, with ticks at round numbers.

    bqplot's own ticks are not at round numbers.
    """
    axis.scale.min, axis.scale.max = low, high
    step = scales.nice_step((high - low) / 5)
    digits = scales.decimals(step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    axis.tick_values = np.array([scales.clean(k * step) for k in range(first, last + 1)])
    axis.tick_format = ".1e" if digits < 0 else f",.{digits}f"


@contextlib.contextmanager
def together(*widgets: Any) -> Iterator[None]:
    """Send all changes of each widget in one message."""
    with contextlib.ExitStack() as stack:
        for widget in widgets:
            stack.enter_context(widget.hold_sync())
        yield


def names(tasks: Sequence[str]) -> str:
    """Tasks as a title has them: by name while they are few."""
    return ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} tasks"


def look(task: int) -> tuple[str, str]:
    """The colour and the dashes of a task, by its place among the scores' tasks.

    It keeps them when others are hidden.
    """
    return TASKS[task % len(TASKS)], DASHES[min(task // len(TASKS), len(DASHES) - 1)]


def _plain(text: str) -> str:
    # JupyterLab typesets what stands between dollars.
    return escape(text).replace("$", "<span>$</span>")


def _entry(name: str, colour: str, dashes: str) -> str:
    """One line of a key, as HTML."""
    look = f"border-top-style: {dashes}; border-top-color: {colour}"
    return (
        f'<span class="hw-chart-entry"><span class="hw-chart-key" style="{look}"></span>'
        f"{_plain(name)}</span>"
    )


def _text(html: str) -> str:
    return f'<div class="hw-chart-text">{html}</div>'
