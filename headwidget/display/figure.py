"""The views as matplotlib figures: for papers, for servers, and where no widget can run.

:func:`headwidget.display.views.picture` says what is drawn, so a figure has the widget's
numbers, colours, ticks and titles. :mod:`headwidget.display.figure_layout` says where.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.display import figure_layout, palette
from headwidget.display.figure_layout import BAR, EDGE, LABEL, TICK, TITLE
from headwidget.display.figure_text import fitted, width
from headwidget.display.views import VIEWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headwidget.display.settings import Settings
    from headwidget.display.views.picture import Panel, Picture
    from headwidget.scores import HeadScores

DPI = 200
DIMMED = 0.13
"""Opacity, over white, of a head that does not pass."""
EMPTY = "No task is shown."
INK, GREY = "#1a1a1a", "#6e6e6e"
PLAIN: dict[str, Any] = {"parse_math": False}  # names are text: "$" and "_" mean nothing


def figure(scores: HeadScores, settings: Settings, *, dpi: float = DPI) -> Figure:
    """The view that the settings ask for.

    Cells are whole pixels at ``dpi``, which is also the resolution of maps in PDF and SVG.
    """
    view = VIEWS[settings.view]
    with style():
        if not view.tasks(scores, settings):
            return _note(EMPTY, dpi)
        return _figure(scores, view.picture(scores, settings), dpi)


def png(scores: HeadScores, settings: Settings, *, dpi: float = 160) -> bytes:
    """The figure as a PNG; the same bytes for the same input."""
    drawing, out = figure(scores, settings, dpi=dpi), io.BytesIO()
    with style():
        drawing.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


def svg(scores: HeadScores, settings: Settings) -> bytes:
    """The figure as an SVG whose text stays text; the same bytes for the same input."""
    drawing, out = figure(scores, settings), io.BytesIO()
    with style(**{"svg.fonttype": "none", "svg.hashsalt": "headwidget"}):
        drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


@contextmanager
def style(**more: Any) -> Iterator[None]:
    """matplotlib's defaults with the user's fonts: a grid or a dark style would spoil the maps."""
    import matplotlib

    # Not items(): asking for the backend would import pyplot.
    fonts = [
        name for name in matplotlib.rcParams if name.startswith("font.") and name != "font.size"
    ]
    kept: dict[Any, Any] = {name: matplotlib.rcParams[name] for name in fonts}
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(kept | dict.fromkeys(inked, INK) | more)
        yield


# ---- colours ----


def table(picture: Picture) -> np.ndarray:
    """(colour, 3) bytes: 256 colours from low to high, or one for each class of the legend."""
    if picture.legend:  # n categories have 2 n classes
        return _bytes(palette.category_colours(len(picture.legend) // 2))
    stops = _bytes(palette.stops(picture.colours)).astype(np.float64)
    at = np.arange(256) / 255 * (len(stops) - 1)
    low = np.minimum(at.astype(int), len(stops) - 2)
    between: np.ndarray = stops[low] + (stops[low + 1] - stops[low]) * (at - low)[:, None]
    return np.floor(between + 0.5).astype(np.uint8)


def cells(panel: Panel, picture: Picture) -> np.ndarray:
    """The colour of each cell, dimmed where its head does not pass, white where not measured.

    (layer, head, 3) bytes, or (head, layer, 3) with layers along x.
    """
    colours, span = table(picture), panel.range or picture.range
    last = len(colours) - 1
    missing = np.isnan(panel.values)
    values = np.where(missing, span.low, panel.values).astype(np.float64)
    place = (values - span.low) * (last / (span.high - span.low))
    out: np.ndarray = colours[np.floor(place + 0.5).clip(0, last).astype(int)]
    if panel.passes is not None:
        dim = np.floor(255 * (1 - DIMMED) + DIMMED * out + 0.5).astype(np.uint8)
        out = np.where(panel.passes[:, :, None], out, dim)
    out = np.where(missing[:, :, None], np.uint8(255), out)
    return out.swapaxes(0, 1) if picture.layers_on == "x" else out


def _bytes(colours: Sequence[str]) -> np.ndarray:
    return np.array([list(bytes.fromhex(colour[1:])) for colour in colours], np.uint8)


# ---- drawing ----


def _figure(scores: HeadScores, picture: Picture, dpi: float) -> Figure:
    from matplotlib.figure import Figure

    grid = figure_layout.grid(scores, picture, dpi)
    height = grid.bottom + 0.42  # tick labels and the axis label
    key = figure_layout.key(picture, grid, height) if picture.legend else None
    bar = None if picture.legend else figure_layout.bar(scores, picture, grid, height)
    beside = key or bar
    assert beside is not None
    right = max(grid.end, beside.left + beside.width) + EDGE
    bottom = max(height, beside.top + beside.height + EDGE)
    size = (math.ceil(right * dpi) / dpi, math.ceil(bottom * dpi) / dpi)
    drawing = Figure(figsize=size, dpi=dpi, facecolor="white")
    for index in range(len(picture.panels)):
        _draw_panel(drawing, picture, grid, index)
    if key is not None:
        _draw_key(drawing, picture, key)
    if bar is not None:
        _draw_bar(drawing, picture, bar)
    return drawing


def _draw_panel(drawing: Figure, picture: Picture, grid: figure_layout.Grid, index: int) -> None:
    """One map with its title and ticks."""
    row, column = grid.slots[index]
    axes = _placed(drawing, grid.left + column * grid.pitch, grid.tops[row], *grid.pixels)
    axes.imshow(cells(picture.panels[index], picture), interpolation="nearest", aspect="auto")
    _hatch(axes, picture.panels[index], picture)
    _title(axes, grid.titles[index], grid.counts[index], grid.width)
    axes.set_xticks(grid.x.ticks, grid.x.names)
    axes.set_yticks(grid.y.ticks, grid.y.names)
    for line, dividers in ((axes.axvline, grid.x.dividers), (axes.axhline, grid.y.dividers)):
        for place in dividers:
            line(place, color="white", linewidth=1.6)
            line(place, color=INK, linewidth=0.6)
    axes.tick_params(labelsize=TICK, length=2, width=0.5, pad=2)
    if column == 0:
        label = fitted(grid.y.label, LABEL, grid.height, 1)
        axes.set_ylabel(label, fontsize=LABEL, labelpad=3, **PLAIN)
    if not any((below, column) in grid.slots for below in range(row + 1, len(grid.tops))):
        label = fitted(grid.x.label, LABEL, grid.pitch, 1)
        axes.set_xlabel(label, fontsize=LABEL, labelpad=2, **PLAIN)


def _hatch(axes: Axes, panel: Panel, picture: Picture) -> None:
    """Stripes over the heads that were not measured; a sentence where none was."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    missing = np.isnan(panel.values)  # (layer, head)
    rows, columns = np.nonzero(missing if picture.layers_on == "y" else missing.T)
    if not len(rows):
        return
    if missing.all():
        place: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "center"}
        axes.text(0.5, 0.5, "Not scored yet", fontsize=TICK, color=GREY, **place)
        return
    squares = [Rectangle((x - 0.5, y - 0.5), 1, 1) for y, x in zip(rows, columns)]
    stripes = PatchCollection(squares, facecolor="none", edgecolor=GREY, linewidth=0, hatch="/////")
    axes.add_collection(stripes)


def _placed(drawing: Figure, left: float, top: float, pixels_x: int, pixels_y: int) -> Axes:
    """Axes at so many inches from the left and from the top, of so many pixels."""
    across, down = (round(side * drawing.dpi) for side in drawing.get_size_inches())
    begin, end = round(left * drawing.dpi), round(top * drawing.dpi) + pixels_y
    axes = drawing.add_axes((begin / across, 1 - end / down, pixels_x / across, pixels_y / down))
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)
    return axes


def _title(axes: Axes, title: str, count: str, map_width: float) -> None:
    """The name, and smaller and grey behind it how many heads pass; centred together."""
    name = axes.set_title(
        title,
        x=0.5 - width(count, TICK) / 2 / map_width,
        fontsize=TITLE,
        pad=4,
        linespacing=1.1,
        **PLAIN,
    )
    if count:
        axes.annotate(
            count,
            (1, 0),
            xycoords=name,
            xytext=(0, 0.5),
            textcoords="offset points",
            va="bottom",
            fontsize=TICK,
            color=GREY,
        )


def _draw_bar(drawing: Figure, picture: Picture, bar: figure_layout.Bar) -> None:
    """The colour bar: an image, so that no viewer shows seams between its colours."""
    pixels = (round(BAR * drawing.dpi), round(bar.height * drawing.dpi))
    axes = _placed(drawing, bar.left, bar.top, *pixels)
    span = picture.range
    axes.imshow(
        table(picture)[::-1, None],
        extent=(0, 1, span.low, span.high),
        interpolation="nearest",
        aspect="auto",
    )
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_xticks([])
    axes.set_yticks([value for value, _ in bar.ticks], [text for _, text in bar.ticks])
    axes.tick_params(labelsize=TICK, length=2, width=0.5, pad=2)
    axes.set_ylabel(bar.label, fontsize=LABEL, labelpad=4, linespacing=1.1, **PLAIN)
    floors = () if picture.floor is None else (picture.floor, -picture.floor)
    for floor in floors:
        if span.low < floor < span.high:
            axes.axhline(floor, color="white", linewidth=1.6)
            axes.axhline(floor, color=INK, linewidth=0.8, linestyle=(0, (2, 1)))


def _draw_key(drawing: Figure, picture: Picture, key: figure_layout.Key) -> None:
    """A square, a name and a count for each class."""
    from matplotlib.patches import Patch

    squares = [
        Patch(facecolor=f"#{bytes(colour).hex()}", linewidth=0) for colour in table(picture)[::-1]
    ]
    drawing_width, drawing_height = drawing.get_size_inches()
    legend = drawing.legend(
        squares,
        ["-"] * len(squares),  # a label given here is left out when it starts with "_"
        loc="upper left",
        bbox_to_anchor=(key.left / drawing_width, 1 - key.top / drawing_height),
        ncols=key.columns,
        frameon=False,
        fontsize=LABEL,
        handlelength=1.0,
        handleheight=1.0,
        handletextpad=0.6,
        labelspacing=0.4,
        columnspacing=1.5,
        borderpad=0,
        borderaxespad=0,
    )
    for label, text in zip(legend.get_texts(), key.texts):
        label.set_parse_math(False)
        label.set_text(text)


def _note(text: str, dpi: float) -> Figure:
    """A figure that only says something."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(3.2, 0.8), dpi=dpi, facecolor="white")
    drawing.text(0.5, 0.5, text, ha="center", va="center", fontsize=TITLE, color=GREY)
    return drawing
