"""Where everything stands in a figure, in inches from the left and from the top.

Cells are whole pixels: all cells of a map are equally large, and maps line up however long
their titles are.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwidget.display import scales
from headwidget.display.figure_text import drawable, fitted, width
from headwidget.scores import provenance

if TYPE_CHECKING:
    from headwidget.display.views.picture import Panel, Picture
    from headwidget.scores import HeadScores

MOST_COLUMNS = 4
LARGEST = {1: 3.2, 2: 2.6}
"""The longer side of a map in inches, by how many stand side by side; else :data:`USUAL`."""
USUAL = 2.1
FLATTEST = 0.6
"""A map's shorter side over its longer one, at least, while cells stay below LARGEST_CELL."""
LARGEST_CELL = 0.4  # inches
SMALLEST_CELL = 3  # pixels
TITLE, LABEL, TICK = 10.0, 9.0, 8.0  # font sizes in points
ROOM = 2.0
"""Inches that a long title may ask for above a narrow map; longer ones get a second line."""
EDGE = 0.08  # inches around everything
GAP = 0.16  # inches between maps
BAR = 0.14  # width of the colour bar in inches


@dataclass(frozen=True)
class Axis:
    """What stands along one side of every map."""

    label: str
    ticks: list[int]
    names: list[str]
    count: int
    dividers: list[float] = field(default_factory=list)
    """Between which cells one section of the layers ends and the next begins."""


@dataclass(frozen=True)
class Grid:
    """Where the maps stand."""

    x: Axis
    y: Axis
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
        """Where the last row's maps end."""
        return self.tops[-1] + self.height


@dataclass(frozen=True)
class Bar:
    """A colour bar's ticks and label, and the room it takes."""

    ticks: list[tuple[float, str]]
    label: str
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Key:
    """A legend's texts, top to bottom, and the room it takes."""

    texts: list[str]
    columns: int
    left: float
    top: float
    width: float
    height: float


# ---- the maps ----


def grid(scores: HeadScores, picture: Picture, dpi: float) -> Grid:
    """Where the maps of a picture stand."""
    x, y = _axes(scores, picture)
    slots = _slots(picture)
    across = max(column for _, column in slots) + 1
    pixels = _map_size(x, y, across, dpi)
    map_width, map_height = (side / dpi for side in pixels)
    beside = max(width(name, TICK) for name in y.names) + 0.07  # tick labels left of a map
    names = [_marked(scores, panel) for panel in picture.panels]
    counts = [_count(panel, picture) for panel in picture.panels]
    longest = max(
        width(drawable(name), TITLE) + width(count, TICK) for name, count in zip(names, counts)
    )
    room = max(map_width, min(longest, ROOM))  # small maps stand in the middle of it
    pitch = beside + room + GAP
    left = EDGE + 0.21 + beside + (room - map_width) / 2
    titles = [
        fitted(name, TITLE, pitch - 0.1 - width(count, TICK), 2)
        for name, count in zip(names, counts)
    ]
    return Grid(
        x=x,
        y=y,
        slots=slots,
        titles=titles,
        counts=counts,
        pixels=pixels,
        width=map_width,
        height=map_height,
        left=left,
        pitch=pitch,
        tops=_tops(titles, slots, map_height),
        end=left + (across - 1) * pitch + (room + map_width) / 2,
    )


def _axes(scores: HeadScores, picture: Picture) -> tuple[Axis, Axis]:
    """The x and the y axis."""
    layers, heads = scores.shape
    layer_name, head_name = provenance.axes(scores)
    labels = provenance.layer_labels(scores)
    ends = itertools.accumulate(count for _, count in provenance.sections(scores))
    dividers = [end - 0.5 for end in ends if end < layers]
    rows = list(scales.ticks(layers, picture.layer_ticks))
    columns = list(scales.ticks(heads, scales.SIXES))
    layer = Axis(layer_name, rows, [labels[row] for row in rows], layers, dividers)
    head = Axis(head_name, columns, [str(column) for column in columns], heads)
    return (layer, head) if picture.layers_on == "x" else (head, layer)


def _slots(picture: Picture) -> list[tuple[int, int]]:
    """The row and column of each panel."""
    if picture.slots is not None:
        beside = picture.columns or 1  # a row a task, as in the figure of Nam et al. (2025)
        return [
            (task // beside, task % beside * picture.span + place) for task, place in picture.slots
        ]
    count = len(picture.panels)
    if picture.columns:
        across = min(picture.columns, count)
    else:
        across = math.ceil(count / math.ceil(count / MOST_COLUMNS))  # 5 maps: 3 and 2
    return [divmod(i, across) for i in range(count)]


def _map_size(x: Axis, y: Axis, across: int, dpi: float) -> tuple[int, int]:
    """Width and height of a map in pixels. Cells are square where that gives no sliver."""
    longer = LARGEST.get(across, USUAL)
    ratio = min(max(x.count / y.count, FLATTEST), 1 / FLATTEST)
    sides = (longer * min(1, ratio), longer * min(1, 1 / ratio))
    cells = [min(side / axis.count, LARGEST_CELL) * dpi for side, axis in zip(sides, (x, y))]
    cell_width, cell_height = (max(SMALLEST_CELL, round(cell)) for cell in cells)
    return cell_width * x.count, cell_height * y.count


def _marked(scores: HeadScores, panel: Panel) -> str:
    """A panel's title, with a sign where something speaks against its scores."""
    doubted = panel.task is not None and provenance.warning(scores, panel.task) is not None
    return f"{'⚠ ' * doubted}{panel.title}"


def _count(panel: Panel, picture: Picture) -> str:
    """What follows a panel's title: how many heads pass, and what its own scale spans."""
    parts = []
    if panel.passes is not None and picture.count_word is not None:
        parts.append(f"{int(panel.passes.sum())} {picture.count_word}")
    if panel.range is not None:
        parts.append(f"to {scales.end_text(panel.range)}")
    if panel.quiet is not None:
        parts.append(f"at most {panel.quiet:.2g}")
    return "".join(f" · {part}" for part in parts)


def _tops(titles: list[str], slots: list[tuple[int, int]], map_height: float) -> list[float]:
    """Where each row's maps begin, below titles of one line or two."""
    lines = dict.fromkeys(range(max(row for row, _ in slots) + 1), 1)
    for title, (row, _) in zip(titles, slots):
        lines[row] = max(lines[row], title.count("\n") + 1)
    tops: list[float] = []
    for row in lines:
        above = tops[-1] + map_height + 0.22 if tops else EDGE  # below the last row's tick labels
        tops.append(above + 0.165 * lines[row] + 0.07)
    return tops


# ---- what stands beside them ----


def bar(scores: HeadScores, picture: Picture, maps: Grid, height: float) -> Bar:
    """A colour bar as high as the maps together, but for very few and very many."""
    ticks = scales.bar_ticks(picture.range)
    if any(panel.range for panel in picture.panels):
        # Where the colours of each map end stands behind its title.
        ticks = [(picture.range.low, "low"), (picture.range.high, "high")]
    maps_height = maps.bottom - maps.tops[0]
    length = max(1.0, min(maps_height, 2 * LARGEST[2]))
    label = fitted(
        f"{provenance.method_name(scores)} · {picture.label}",
        LABEL,
        max(length, height - 2 * EDGE),
        2,
    )
    widest = max(width(text, TICK) for _, text in ticks)
    return Bar(
        ticks=ticks,
        label=label,
        left=maps.end + 0.22,
        top=max(EDGE + 0.05, maps.tops[0] + (maps_height - length) / 2),
        width=BAR + 0.07 + widest + 0.2 + 0.15 * label.count("\n"),
        height=length,
    )


def key(picture: Picture, maps: Grid, height: float) -> Key:
    """The legend: where the last row has no map, if it fits there, else right of the maps.

    It has as many columns as the maps' height asks for. Several categories come first and
    Unclassified last, as in the figure of Elhelo and Geva (2025).
    """
    texts = [
        f"{fitted(entry.name, LABEL, 2.0, 1)} ({entry.count})" for entry in reversed(picture.legend)
    ]
    em = LABEL / 72
    line, column = 1.6 * em, max(width(text, LABEL) for text in texts) + 1.6 * em
    vacant = maps.left + (maps.slots[-1][1] + 1) * maps.pitch
    if vacant + column <= maps.end and len(texts) * line <= maps.height + 0.3:
        return Key(texts, 1, vacant, maps.tops[-1], column, len(texts) * line)
    columns = math.ceil(len(texts) * line / max(height - maps.tops[0], 8 * line))
    return Key(
        texts=texts,
        columns=columns,
        left=maps.end + 0.22,
        top=maps.tops[0],
        width=columns * column + (columns - 1) * 1.5 * em,
        height=math.ceil(len(texts) / columns) * line,
    )
