"""The views as matplotlib figures: for papers, for servers without a browser, and for notebooks shown without the widget.

:func:`headwidget.display.views.picture` says what is drawn, so a figure has the widget's numbers, colours, ticks and titles. Every part
is placed by hand, in whole pixels: all cells of a map are equally large, and maps line up however long their titles are.
"""

from __future__ import annotations

import bisect
import io
import math
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.display import palette, scales, views
from headwidget.scores import provenance

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

MOST_COLUMNS = 4
LARGEST = {1: 3.2, 2: 2.6}
"""The longer side of a map in inches, by how many stand side by side; more than two get :data:`USUAL`."""
USUAL = 2.1
FLATTEST = 0.6  # a map's shorter side is at least this much of the longer one, as long as cells stay below LARGEST_CELL
LARGEST_CELL, SMALLEST_CELL = 0.4, 3  # inches, pixels
TITLE, LABEL, TICK = 10.0, 9.0, 8.0  # font sizes in points
ROOM = 2.0  # inches that a long title may ask for above a narrow map; longer ones get a second line
EDGE, GAP, BAR = (
    0.08,
    0.16,
    0.14,
)  # inches around everything, between maps, and the width of the colour bar
INK, GREY = "#1a1a1a", "#6e6e6e"
PLAIN: dict[str, Any] = {"parse_math": False}  # names are text: "$" and "_" mean nothing


def figure(scores: HeadScores, settings: Settings, *, dpi: float = DPI) -> Figure:
    """The view that the settings ask for. Cells are whole pixels at ``dpi``, which is also the resolution of maps in PDF and SVG."""
    with style():
        if settings.tasks == () and (settings.task is None or settings.view == "categories"):
            return _note(EMPTY, dpi)
        return _drawn(scores, settings, views.picture(scores, settings), dpi)


def png(scores: HeadScores, settings: Settings, *, dpi: float = 160) -> bytes:
    """The figure as a PNG; the same bytes for the same input."""
    made, out = figure(scores, settings, dpi=dpi), io.BytesIO()
    with style():
        made.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


def svg(scores: HeadScores, settings: Settings) -> bytes:
    """The figure as an SVG whose text stays text; the same bytes for the same input."""
    made, out = figure(scores, settings), io.BytesIO()
    with style(**{"svg.fonttype": "none", "svg.hashsalt": "headwidget"}):
        made.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


@contextmanager
def style(**more: Any) -> Iterator[None]:
    """matplotlib's defaults but for the user's fonts, for as long as it lasts: a grid or a dark style would spoil the maps."""
    import matplotlib

    fonts = [
        name for name in matplotlib.rcParams if name.startswith("font.") and name != "font.size"
    ]
    style: dict[Any, Any] = {
        name: matplotlib.rcParams[name] for name in fonts
    }  # not items(): asking for the backend would import pyplot
    style |= dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    )
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from", category=UserWarning
        )  # it is drawn as a box
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style | more)
        yield


# ---- colours ----


def table(picture: Picture) -> np.ndarray:
    """(colour, 3) bytes: 256 colours from low to high, or one for each class of the legend."""
    if picture.colours == "categories":
        return _bytes(
            palette.category_colours(len(picture.legend) // 2)
        )  # n categories have 2 n classes
    stops = _bytes(palette.stops(picture.colours)).astype(np.float64)
    at = np.arange(256) / 255 * (len(stops) - 1)
    low = np.minimum(at.astype(int), len(stops) - 2)
    between: np.ndarray = stops[low] + (stops[low + 1] - stops[low]) * (at - low)[:, None]
    return np.floor(between + 0.5).astype(np.uint8)


def cells(panel: Panel, picture: Picture) -> np.ndarray:
    """(layer, head, 3) bytes, or (head, layer, 3) with layers along x: the colour of each cell, dimmed where its head does not pass."""
    colours, span = table(picture), picture.range
    scale = (len(colours) - 1) / (span.high - span.low)
    place = (
        np.floor((panel.values.astype(np.float64) - span.low) * scale + 0.5)
        .clip(0, len(colours) - 1)
        .astype(int)
    )
    out: np.ndarray = colours[place]
    if panel.passes is not None:
        dim = np.floor(255 * (1 - DIMMED) + DIMMED * out + 0.5).astype(np.uint8)
        out = np.where(panel.passes[:, :, None], out, dim)
    return out.swapaxes(0, 1) if picture.layers_on == "x" else out


def _bytes(colours: Sequence[str]) -> np.ndarray:
    return np.array([list(bytes.fromhex(c[1:])) for c in colours], np.uint8)


# ---- where everything stands ----


@dataclass(frozen=True)
class _Axis:
    """What stands along one side of every map."""

    label: str
    ticks: list[int]
    names: list[str]
    count: int


def _axes(scores: HeadScores, settings: Settings, picture: Picture) -> tuple[_Axis, _Axis]:
    """The x and the y axis."""
    layers, heads = scores.shape
    names = provenance.axes(scores)
    rows = list(
        scales.ticks(layers, scales.EIGHTS if settings.view == "categories" else scales.SIXES)
    )
    columns = list(scales.ticks(heads, scales.SIXES))
    layer = _Axis(names[0], rows, [str(scores.layers[row]) for row in rows], layers)
    head = _Axis(names[1], columns, [str(column) for column in columns], heads)
    return (layer, head) if picture.layers_on == "x" else (head, layer)


def _slots(picture: Picture, settings: Settings) -> list[tuple[int, int]]:
    """The row and column of each panel."""
    count = len(picture.panels)
    if settings.view == "agreement":  # a row a task
        rows: dict[str | None, list[Panel]] = {}
        for panel in picture.panels:
            rows.setdefault(panel.task, []).append(panel)
        last = (picture.columns or 2) - 1
        # A task with one run has no column between: its Any stands under the others' Any.
        return [
            (r, last if c == len(row) - 1 else c)
            for r, row in enumerate(rows.values())
            for c in range(len(row))
        ]
    across = (
        min(picture.columns, count)
        if picture.columns
        else math.ceil(count / math.ceil(count / MOST_COLUMNS))
    )  # 5 maps: 3 and 2
    return [divmod(i, across) for i in range(count)]


def _map_size(x: _Axis, y: _Axis, across: int, dpi: float) -> tuple[int, int]:
    """Width and height of a map in pixels. Cells are square where that gives no sliver."""
    longer = LARGEST.get(across, USUAL)
    ratio = min(max(x.count / y.count, FLATTEST), 1 / FLATTEST)
    sides = (longer * min(1, ratio), longer * min(1, 1 / ratio))
    sizes = [min(side / axis.count, LARGEST_CELL) * dpi for side, axis in zip(sides, (x, y))]
    width, height = (max(SMALLEST_CELL, round(size)) for size in sizes)
    return width * x.count, height * y.count


@dataclass(frozen=True)
class _Grid:
    """Where the maps stand, in inches from the left and from the top."""

    x: _Axis
    y: _Axis
    slots: list[tuple[int, int]]
    """The row and column of each panel."""
    titles: list[str]
    counts: list[str]
    """What follows a title: how many heads pass."""
    pixels: tuple[int, int]
    """Width and height of a map."""
    width: float
    height: float
    left: float
    """Where the first column's maps begin."""
    pitch: float
    """From one column to the next."""
    tops: list[float]
    """Where each row's maps begin."""
    end: float
    """Where the last column ends."""

    @property
    def bottom(self) -> float:
        return self.tops[-1] + self.height


def _grid(scores: HeadScores, settings: Settings, picture: Picture, dpi: float) -> _Grid:
    x, y = _axes(scores, settings, picture)
    slots = _slots(picture, settings)
    across, down = max(column for _, column in slots) + 1, max(row for row, _ in slots) + 1
    pixels = _map_size(x, y, across, dpi)
    width, height = (side / dpi for side in pixels)
    beside = max(_width(name, TICK) for name in y.names) + 0.07  # tick labels left of a map
    word = "on" if settings.view == "agreement" else "pass"
    counts = [
        ""
        if panel.passes is None or settings.view == "categories"
        else f" · {int(panel.passes.sum())} {word}"
        for panel in picture.panels
    ]
    longest = max(
        _width(_drawable(_marked(scores, panel)), TITLE) + _width(count, TICK)
        for panel, count in zip(picture.panels, counts)
    )
    room = max(width, min(longest, ROOM))  # small maps stand in the middle of it
    pitch = beside + room + GAP
    left = EDGE + 0.21 + beside + (room - width) / 2
    titles = [
        _fitted(_marked(scores, panel), TITLE, pitch - 0.1 - _width(count, TICK), 2)
        for panel, count in zip(picture.panels, counts)
    ]
    tops: list[float] = []
    for row in range(down):
        lines = max(title.count("\n") + 1 for title, slot in zip(titles, slots) if slot[0] == row)
        above = tops[-1] + height + 0.22 if tops else EDGE  # below the last row's tick labels
        tops.append(above + 0.165 * lines + 0.07)
    return _Grid(
        x,
        y,
        slots,
        titles,
        counts,
        pixels,
        width,
        height,
        left,
        pitch,
        tops,
        left + (across - 1) * pitch + (room + width) / 2,
    )


def _marked(scores: HeadScores, panel: Panel) -> str:
    """A panel's title, with a sign where something speaks against its scores."""
    doubted = panel.task is not None and provenance.warning(scores, panel.task) is not None
    return f"{'⚠ ' * doubted}{panel.title}"


def _drawn(scores: HeadScores, settings: Settings, picture: Picture, dpi: float) -> Figure:
    from matplotlib.figure import Figure

    grid = _grid(scores, settings, picture, dpi)
    height = grid.bottom + 0.42  # tick labels and the axis label
    beside: _Key | _Bar = (
        _key(picture, grid, height) if picture.legend else _bar(scores, picture, grid, height)
    )
    size = [
        math.ceil(side * dpi) / dpi
        for side in (
            max(grid.end, beside.left + beside.width) + EDGE,
            max(height, beside.top + beside.height + EDGE),
        )
    ]
    made = Figure(figsize=(size[0], size[1]), dpi=dpi, facecolor="white")
    taken = set(grid.slots)
    for panel, title, count, (row, column) in zip(
        picture.panels, grid.titles, grid.counts, grid.slots
    ):
        axes = _placed(made, grid.left + column * grid.pitch, grid.tops[row], *grid.pixels)
        axes.imshow(cells(panel, picture), interpolation="nearest", aspect="auto")
        _title(axes, title, count, grid.width)
        axes.set_xticks(grid.x.ticks, grid.x.names)
        axes.set_yticks(grid.y.ticks, grid.y.names)
        axes.tick_params(labelsize=TICK, length=2, width=0.5, pad=2)
        if column == 0:
            axes.set_ylabel(
                _fitted(grid.y.label, LABEL, grid.height, 1), fontsize=LABEL, labelpad=3, **PLAIN
            )
        if not any((below, column) in taken for below in range(row + 1, len(grid.tops))):
            axes.set_xlabel(
                _fitted(grid.x.label, LABEL, grid.pitch, 1), fontsize=LABEL, labelpad=2, **PLAIN
            )
    if isinstance(beside, _Key):
        _draw_key(made, picture, beside)
    else:
        _draw_bar(made, picture, beside)
    return made


def _placed(made: Figure, left: float, top: float, width: int, height: int) -> Axes:
    """Axes at so many inches from the left and from the top, of so many pixels."""
    across, down = (round(side * made.dpi) for side in made.get_size_inches())
    begin, end = round(left * made.dpi), round(top * made.dpi) + height
    axes = made.add_axes((begin / across, 1 - end / down, width / across, height / down))
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)
    return axes


def _title(axes: Axes, title: str, count: str, map_width: float) -> None:
    """The name, and smaller and grey behind it how many heads pass; centred together."""
    name = axes.set_title(
        title,
        x=0.5 - _width(count, TICK) / 2 / map_width,
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


# ---- the colour bar ----


@dataclass(frozen=True)
class _Bar:
    """A colour bar's ticks and label, and the room it takes, in inches."""

    ticks: list[tuple[float, str]]
    label: str
    left: float
    top: float
    width: float
    height: float


def _bar(scores: HeadScores, picture: Picture, grid: _Grid, height: float) -> _Bar:
    """As high as the maps together, but for very few and very many."""
    ticks = scales.bar_ticks(picture.range)
    maps = grid.bottom - grid.tops[0]
    own = max(1.0, min(maps, 2 * LARGEST[2]))
    label = _fitted(f"{scores.method} · {picture.label}", LABEL, max(own, height - 2 * EDGE), 2)
    width = (
        BAR + 0.07 + max(_width(text, TICK) for _, text in ticks) + 0.2 + 0.15 * label.count("\n")
    )
    return _Bar(
        ticks, label, grid.end + 0.22, max(EDGE + 0.05, grid.tops[0] + (maps - own) / 2), width, own
    )


def _draw_bar(made: Figure, picture: Picture, bar: _Bar) -> None:
    """An image, so that no viewer shows seams between its colours."""
    axes = _placed(made, bar.left, bar.top, round(BAR * made.dpi), round(bar.height * made.dpi))
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
    for value in (
        () if picture.floor is None else (picture.floor, -picture.floor)
    ):  # the noise floor
        if span.low < value < span.high:
            axes.axhline(value, color="white", linewidth=1.6)
            axes.axhline(value, color=INK, linewidth=0.8, linestyle=(0, (2, 1)))


# ---- the categories' legend ----


@dataclass(frozen=True)
class _Key:
    """The legend's texts, top to bottom, and the room it takes, in inches."""

    texts: list[str]
    columns: int
    left: float
    top: float
    width: float
    height: float


def _key(picture: Picture, grid: _Grid, height: float) -> _Key:
    """Where the last row has no map, if the legend fits there; else right of the maps, in as many columns as their height asks for."""
    texts = [
        f"{_fitted(entry.name, LABEL, 2.0, 1)} ({entry.count})"
        for entry in reversed(picture.legend)
    ]
    em = LABEL / 72
    line, each = 1.6 * em, max(_width(text, LABEL) for text in texts) + 1.6 * em
    vacant = grid.left + (grid.slots[-1][1] + 1) * grid.pitch
    if vacant + each <= grid.end and len(texts) * line <= grid.height + 0.3:
        return _Key(texts, 1, vacant, grid.tops[-1], each, len(texts) * line)
    columns = math.ceil(len(texts) * line / max(height - grid.tops[0], 8 * line))
    return _Key(
        texts,
        columns,
        grid.end + 0.22,
        grid.tops[0],
        columns * each + (columns - 1) * 1.5 * em,
        math.ceil(len(texts) / columns) * line,
    )


def _draw_key(made: Figure, picture: Picture, key: _Key) -> None:
    """A square, a name and a count for each class, in the order of the published figure: several categories first, Unclassified last."""
    from matplotlib.patches import Patch

    squares = [
        Patch(facecolor=f"#{bytes(colour).hex()}", linewidth=0) for colour in table(picture)[::-1]
    ]
    width, height = made.get_size_inches()
    legend = made.legend(
        squares,
        ["-"] * len(squares),  # a label given here is left out when it starts with "_"
        loc="upper left",
        bbox_to_anchor=(key.left / width, 1 - key.top / height),
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
    for drawn, text in zip(legend.get_texts(), key.texts):
        drawn.set_parse_math(False)
        drawn.set_text(text)


def _note(text: str, dpi: float) -> Figure:
    """A figure that only says something."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(3.2, 0.8), dpi=dpi, facecolor="white")
    made.text(0.5, 0.5, text, ha="center", va="center", fontsize=TITLE, color=GREY)
    return made


# ---- text ----


def _width(text: str, size: float) -> float:
    """How wide a line is, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return (
        text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]
        / 72
        if text
        else 0.0
    )


def _fitted(text: str, size: float, room: float, most: int) -> str:
    """The text in at most so many lines that fit, broken at spaces; what is left over becomes "…"."""
    text = _drawable(text)
    lines: list[str] = []
    while _width(text, size) > room:
        fits = max(
            1,
            bisect.bisect_right(
                range(1, len(text)), room, key=lambda n: _width(text[:n] + "…", size)
            ),
        )
        if len(lines) == most - 1:
            text = text[:fits].rstrip() + "…"
            break
        space = text.rfind(" ", 1, fits + 2)
        fits = space if space > 0 else fits
        lines.append(text[:fits].rstrip())
        text = text[fits:].lstrip()
    return "\n".join([*lines, text])


def _drawable(text: str) -> str:
    """The text in one line, without letters that no file could hold, and no longer than could ever be shown."""
    kinds = [(letter, unicodedata.category(letter)) for letter in text[:500]]
    return " ".join(
        "".join(
            " " if kind == "Cc" else "\ufffd" if kind == "Cn" else letter for letter, kind in kinds
        ).split()
    )
