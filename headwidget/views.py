"""What each view shows, as numbers: panels of (layer, head) values, which heads pass, and the range of colours.

Twin of ``js/views.ts``; ``tests/golden/views.json`` holds the two together. The widget draws these pictures in the
browser and :mod:`headwidget.figure` draws them with matplotlib, so both show the same thing.

- **tasks**: one panel a task, the mean (or median, or share) over runs.
- **agreement**: a row a task with what it reaches Always and in Any run, and between them the agreement asked for.
  Without a threshold the colour is that order statistic; with one it is the fraction of runs that reach it.
- **categories**: which categories a head belongs to: those with a task whose threshold it passes.

A head's *strength* is what a threshold is compared with: the score, or for signed scores the score (``sign="helps"``), its
negative (``"hurts"``) or its size (``"either"``). Every rule gives each task one *cut*: heads whose strength reaches it pass.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headwidget import provenance, reduce
from headwidget.settings import START, Settings, percentile

if TYPE_CHECKING:
    from headwidget.reduce import Array, Mask
    from headwidget.scores import HeadScores

ANY_POSITIVE = np.float32(1e-45)  # the smallest float32 above zero: what a cut of signed scores never falls below
ALL = "All Categories"
UNCLASSIFIED = "Unclassified"


@dataclass(frozen=True)
class Range:
    """What the colours span, and where the bar has ticks. A capped end carries a "+": some scores lie beyond it."""

    low: float
    high: float
    step: float
    low_capped: bool = False
    high_capped: bool = False


@dataclass(frozen=True)
class Panel:
    """One map: its values (layer, head), and which heads are bright (None: all of them)."""

    title: str
    values: Array
    passes: Mask | None
    task: str | None = None


@dataclass(frozen=True)
class Entry:
    """A class of the categories' legend: its name and how many heads it has."""

    name: str
    count: int


@dataclass(frozen=True)
class Picture:
    """All that a view draws."""

    panels: tuple[Panel, ...]
    range: Range
    colours: str
    """The colour map's name; "categories" when values are places in the legend."""
    label: str
    """What the numbers are."""
    layers_on: str
    """The axis that has the layers, "y" or "x"."""
    columns: int | None
    """How many panels stand side by side; None: as many as fit."""
    passing: Mask | None
    """Heads that pass in a task shown, or more; None: no threshold."""
    floor: float | None = None
    """What a score reaches by chance alone, the largest of the tasks shown, on the scale of the numbers; None where it is not known."""
    legend: tuple[Entry, ...] = ()
    """The categories view's classes, by place: 0 is Unclassified, then each category, then "2 categories" and so on."""


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """What the view asked for shows."""
    return {"tasks": _tasks, "agreement": _agreement, "categories": _categories}[settings.view](scores, settings)


def shown(scores: HeadScores, settings: Settings) -> list[str]:
    """The tasks that are drawn, in order: one alone when ``task`` names it."""
    if settings.task is not None:
        return [settings.task]
    return list(scores.tasks if settings.tasks is None else settings.tasks)


# ---- strength and cut ----


def number(scores: HeadScores, task: str, settings: Settings) -> Array:
    """The map of a task: mean or median over runs, or its share of the whole."""
    found = reduce.reduce(scores.values(task), "median" if settings.reduction == "median" else "mean")
    return reduce.share(found) if settings.normalize == "share" else found


def strength(scores: HeadScores, task: str, settings: Settings) -> Array:
    """What a task's threshold is compared with."""
    shares = number(scores, task, settings)
    if not scores.signed:
        return shares
    if settings.sign == "either":
        return np.abs(shares)
    direction = 1 if settings.sign == "helps" else -1
    signs = np.sign(reduce.reduce(scores.values(task), "median" if settings.reduction == "median" else "mean"))
    out: Array = (np.abs(shares) * (signs * direction)).astype(np.float32)
    return out


def cut(strengths: Array, settings: Settings, signed: bool) -> np.float32 | None:
    """The strength a head must reach under the rule; None without a threshold. Heads that tie with the last one pass too."""
    if settings.threshold is None:
        return None
    if settings.rule == "value":
        return reduce.float32(settings.threshold)
    if settings.rule == "elbow":
        found = reduce.float32(settings.threshold * reduce.elbow(np.maximum(strengths, 0) if signed else strengths))
    else:
        k = kept(settings.rule, settings.threshold, strengths.size)
        if k == 0:
            return np.float32(np.inf)
        found = np.sort(strengths.ravel())[::-1][k - 1]
    return max(found, ANY_POSITIVE) if signed else found


def kept(rule: str, threshold: float, heads: int) -> int:
    """How many heads "top" or "percent" keep.

    >>> kept("top", 3.0, 9), kept("percent", 5.0, 270), kept("top", 99, 9)
    (3, 14, 9)
    """
    k = math.floor(threshold) if rule == "top" else math.ceil(threshold / 100 * heads - 1e-9)
    return min(max(k, 0), heads)


def passing(scores: HeadScores, task: str, settings: Settings) -> Mask | None:
    """Which heads of a task pass the threshold; None without one."""
    strengths = strength(scores, task, settings)
    edge = cut(strengths, settings, scores.signed)
    return None if edge is None else strengths >= edge


# ---- the tasks view ----


def _tasks(scores: HeadScores, settings: Settings) -> Picture:
    panels = tuple(Panel(name, number(scores, name, settings), passing(scores, name, settings), name) for name in shown(scores, settings))
    signed = scores.signed and settings.normalize is None
    # Every task counts, hidden ones too, so that no colour changes when a task is hidden.
    span = colour_range([number(scores, name, settings) for name in scores.tasks], signed, settings.cap)
    return Picture(
        panels=panels,
        range=span,
        colours=settings.colormap or ("blue-orange" if signed else "viridis"),
        label=number_name(scores, settings),
        layers_on=settings.orientation or "y",
        columns=settings.columns,
        passing=_either([panel.passes for panel in panels]),
        floor=max((f for name in shown(scores, settings) if (f := _floor(scores, name, settings)) is not None), default=None),
    )


def _floor(scores: HeadScores, task: str, settings: Settings) -> float | None:
    found = provenance.floor(scores, task)
    if found is None or settings.normalize is None:
        return found
    total = reduce.whole(number(scores, task, replace(settings, normalize=None)))
    return found / total if total > 0 else None


def number_name(scores: HeadScores, settings: Settings) -> str:
    """What a cell's number is called."""
    many = any(len(scores.values(name)) > 1 for name in scores.tasks)
    name = settings.reduction if many else "score"
    return f"share of {name}" if settings.normalize == "share" else name


# ---- the agreement view ----


def _agreement(scores: HeadScores, settings: Settings) -> Picture:
    panels: list[Panel] = []
    on: list[Mask | None] = []
    flip = scores.signed and settings.sign == "hurts"
    for name in shown(scores, settings):
        runs = len(scores.values(name))
        values = -scores.values(name) if flip else scores.values(name)
        counts = _reaching(scores, name, settings)
        for title, agreement in _columns(settings.agreement, runs):
            if counts is None:
                found = reduce.order_statistic(values, agreement)
                panels.append(Panel(f"{name} ({title})", -found if flip else found, None, name))
            else:
                fraction = (counts / runs).astype(np.float32)
                panels.append(Panel(f"{name} ({title})", fraction, counts >= reduce.runs_needed(agreement, runs), name))
        on.append(None if counts is None else counts >= reduce.runs_needed(settings.agreement, runs))
    fractions = settings.threshold is not None
    ends = [] if fractions else [reduce.reduce(scores.values(name), how) for name in scores.tasks for how in ("always", "any")]
    columns = max((len(_columns(settings.agreement, len(scores.values(name)))) for name in shown(scores, settings)), default=2)
    return Picture(
        panels=tuple(panels),
        range=Range(0.0, 1.0, 0.25) if fractions else colour_range(ends, scores.signed, settings.cap),
        colours=settings.colormap or ("blue-orange" if scores.signed and not fractions else "turbo"),
        label="fraction of runs" if fractions else "score",
        layers_on=settings.orientation or "y",
        columns=columns,
        passing=_either(on),
    )


def _columns(agreement: float, runs: int) -> list[tuple[str, float]]:
    """Always and Any, and between them the agreement asked for when it is neither.

    >>> _columns(1.0, 10), _columns(0.75, 10)
    ([('Always', 1.0), ('Any', 0.0)], [('Always', 1.0), ('≥ 8 of 10', 0.75), ('Any', 0.0)])
    """
    needed = reduce.runs_needed(agreement, runs)
    between = [] if needed in (1, runs) else [(f"≥ {needed} of {runs}", agreement)]
    return [("Always", 1.0), *between, ("Any", 0.0)]


def _reaching(scores: HeadScores, task: str, settings: Settings) -> np.ndarray | None:
    """(layer, head): how many runs reach the threshold; of either sign, in the direction that more of them do."""
    if settings.threshold is None:
        return None
    edge = _raw_cut(scores, task, settings)
    values = scores.values(task)
    counts = []
    if not scores.signed or settings.sign != "hurts":
        counts.append((values >= edge).sum(axis=0))
    if scores.signed and settings.sign != "helps":
        counts.append((-values >= edge).sum(axis=0))
    found: np.ndarray = np.max(counts, axis=0)
    return found


def _raw_cut(scores: HeadScores, task: str, settings: Settings) -> np.float32:
    """The cut on the scale of the runs: top, percent and elbow do not depend on scale, and a share is turned back."""
    plain = Settings(threshold=settings.threshold, rule=settings.rule, sign=settings.sign, reduction=settings.reduction)
    edge = cut(strength(scores, task, plain), plain, scores.signed)
    assert edge is not None
    if settings.normalize is None or settings.rule != "value":
        return edge
    whole = reduce.whole(number(scores, task, plain))
    if whole == 0 and edge > 0:
        return np.float32(np.inf)  # of nothing, every share is zero
    return reduce.float32(float(edge) * whole)


# ---- the categories view ----


def categories_of(scores: HeadScores) -> dict[str, list[str]]:
    """Each category and its tasks, in the order of the tasks; a task that has no category is one of its own."""
    out: dict[str, list[str]] = {}
    for name in scores.tasks:
        out.setdefault(scores.categories.get(name, name), []).append(name)
    return out


def for_categories(settings: Settings) -> Settings:
    """Without a threshold, heads are classified at each task's elbow."""
    if settings.threshold is not None:
        return settings
    return Settings(**{**settings.__dict__, "rule": "elbow", "threshold": START["elbow"]})


def members(scores: HeadScores, settings: Settings) -> dict[str, Mask]:
    """Each category that has a task shown, and the heads that pass in one of those: (layer, head)."""
    at = for_categories(settings)
    wanted = scores.tasks if settings.tasks is None else settings.tasks
    found: dict[str, Mask] = {}
    for category, names in categories_of(scores).items():
        passes = [passing(scores, name, at) for name in names if name in wanted]
        if passes:
            found[category] = np.logical_or.reduce([mask for mask in passes if mask is not None])
    return found


def _categories(scores: HeadScores, settings: Settings) -> Picture:
    groups, found = categories_of(scores), members(scores, settings)
    place = {category: i for i, category in enumerate(groups, start=1)}  # a hidden category keeps its colour
    count = np.sum([*found.values(), np.zeros(scores.shape, bool)], axis=0)
    classes = np.where(count > 1, len(groups) + count - 1, np.sum([mask * place[c] for c, mask in found.items()] or [count], axis=0))
    names = [UNCLASSIFIED, *groups, *(f"{n} categories" for n in range(2, len(groups) + 1))]
    legend = tuple(Entry(name, int((classes == i).sum())) for i, name in enumerate(names))
    keep = None if settings.isolated not in names else classes == names.index(settings.isolated)
    panels = [Panel(ALL, classes.astype(np.float32), keep)]
    for category, mask in found.items():
        panels.append(Panel(category, np.where(mask, place[category], 0).astype(np.float32), None if keep is None else keep & mask))
    return Picture(
        panels=tuple(panels),
        range=Range(0.0, float(len(names) - 1), 1.0),
        colours="categories",
        label="categories",
        layers_on=settings.orientation or "x",
        columns=settings.columns,
        passing=count > 0,
        legend=legend,
    )


def _either(masks: Sequence[Mask | None]) -> Mask | None:
    found = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(found) if found else None


# ---- the range of colours ----


MOST_TICKS = 12


def colour_range(maps: Sequence[Array], signed: bool, cap: float | str | None = None) -> Range:
    """The top is the cap, or a percentile of ``|score|`` rounded up to a tick; signed scores reach as far on both sides of zero.

    A handful of strong heads would otherwise make all others look alike.
    """
    values = np.concatenate([m.ravel() for m in maps]).astype(np.float64) if maps else np.zeros(1)
    least, most = min(0.0, float(values.min())), max(0.0, float(values.max()))
    parts = 3 if signed else 4
    if isinstance(cap, float):
        high, step = cap, nice_step(cap / parts)
    else:
        size = np.sort(np.abs(values))
        reach = float(size[min(len(size) - 1, math.floor(len(size) * percentile(cap) / 100))])
        step = nice_step((reach or 1.0) / parts)
        high = clean(max(1, math.ceil(reach / step - 1e-6)) * step)
    low = -high if signed else clean(math.floor(least / step + 1e-6) * step)
    if (high - low) / step > MOST_TICKS:
        step = nice_step((high - low) / parts)
    return Range(low, high, step, low_capped=least < low * 1.000001, high_capped=most > high * 1.000001)


def bar_ticks(span: Range) -> list[tuple[float, str]]:
    """The labels of a colour bar, low to high: every step, and both ends."""
    inner = [clean(k * span.step) for k in range(math.ceil(span.low / span.step - 0.5), math.floor(span.high / span.step + 0.5) + 1)]
    near = span.step / 2
    places = [span.low, *(p for p in inner if p > span.low + near and p < span.high - near), span.high]
    digits = max(decimals(span.step), decimals(span.high))
    labels = [_fixed(p, digits if min(decimals(span.step), decimals(span.high)) >= 0 else -1) for p in places]
    labels[0] += "+" * span.low_capped
    labels[-1] += "+" * span.high_capped
    return list(zip(places, labels))


def decimals(step: float) -> int:
    """Digits that a number needs after its point, or -1 where powers of ten read better."""
    if step < 1e-5 or step >= 1e5:
        return -1
    return next((d for d in range(8) if abs(step * 10**d - math.floor(step * 10**d + 0.5)) <= 1e-6), 8)


def _fixed(value: float, digits: int) -> str:
    if digits < 0 and value == 0:
        return "0"
    with decimal.localcontext() as context:
        context.rounding = decimal.ROUND_HALF_UP  # as the browser does
        text = f"{decimal.Decimal(value):{'.1e' if digits < 0 else f'.{digits}f'}}"
    return (text.replace("-", "") if float(text) == 0 else text).replace("-", "−")


def nice_step(size: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``size``."""
    power = 10.0 ** math.floor(math.log10(size) + 1e-9)
    return clean(next((n for n in (1, 2, 2.5, 5) if n * power >= size * 0.999999), 10) * power)


def clean(value: float) -> float:
    """0.30000000000000004 is 0.3."""
    return float(f"{value:.12g}")


SIXES = (1, 2, 3, 6, 12, 24, 48, 96)
EIGHTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""How far apart ticks may stand: sixes give every 6 in grids as in the papers; the categories view has every 16 of its 80 layers."""


def ticks(count: int, steps: Sequence[int]) -> range:
    """Rows or columns that get a tick: the closest spacing of ``steps`` with eight ticks or fewer."""
    return range(0, count, next((s for s in steps if count / s <= 8.5), math.ceil(count / 4)))
