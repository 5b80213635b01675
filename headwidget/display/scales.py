"""From numbers to what is drawn: the range of colours, the ticks, and numbers as text. Twin of ``js/display/scales.ts``."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headwidget.scores.reduce import Array


@dataclass(frozen=True)
class Range:
    """What the colours span, and where the bar has ticks. A capped end carries a "+": some scores lie beyond it."""

    low: float
    high: float
    step: float
    low_capped: bool = False
    high_capped: bool = False


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
    return Range(
        low, high, step, low_capped=least < low * 1.000001, high_capped=most > high * 1.000001
    )


def percentile(cap: float | str | None) -> float:
    """The percentile of ``|score|`` where colours end, when ``cap`` is no number.

    It is 99.5 unless the cap says another, such as "99%".
    """
    return float(cap[:-1]) if isinstance(cap, str) else 99.5


def bar_ticks(span: Range) -> list[tuple[float, str]]:
    """The labels of a colour bar, low to high: every step, and both ends."""
    inner = [
        clean(k * span.step)
        for k in range(
            math.ceil(span.low / span.step - 0.5), math.floor(span.high / span.step + 0.5) + 1
        )
    ]
    near = span.step / 2
    places = [
        span.low,
        *(p for p in inner if p > span.low + near and p < span.high - near),
        span.high,
    ]
    digits = max(decimals(span.step), decimals(span.high))
    labels = [
        _fixed(p, digits if min(decimals(span.step), decimals(span.high)) >= 0 else -1)
        for p in places
    ]
    labels[0] += "+" * span.low_capped
    labels[-1] += "+" * span.high_capped
    return list(zip(places, labels))


def decimals(step: float) -> int:
    """Digits that a number needs after its point, or -1 where powers of ten read better."""
    if step < 1e-5 or step >= 1e5:
        return -1
    return next(
        (d for d in range(8) if abs(step * 10**d - math.floor(step * 10**d + 0.5)) <= 1e-6), 8
    )


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
