"""From numbers to what is drawn: the range of colours, the ticks, and numbers as text.

Twin of ``js/display/scales.ts``.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwidget.scores.missing import known

if TYPE_CHECKING:
    from headwidget.scores.reduce import Array


@dataclass(frozen=True)
class Range:
    """What the colours span, and how far apart the bar's ticks are.

    A capped end carries a "+": some scores lie beyond it.
    """

    low: float
    high: float
    step: float
    low_capped: bool = False
    high_capped: bool = False


MOST_TICKS = 12


def colour_range(maps: Sequence[Array], signed: bool, cap: float | str | None = None) -> Range:
    """What the colours of some maps span.

    The top is the cap, or a percentile of ``|score|`` rounded up to a tick: a handful of
    strong heads would otherwise make all others look alike. Signed scores reach as far on
    both sides of zero.
    """
    numbers = [known(m).astype(np.float64) for m in maps]
    values = np.concatenate([*numbers, np.zeros(0 if any(map(len, numbers)) else 1)])
    least, most = min(0.0, float(values.min())), max(0.0, float(values.max()))
    intervals = 3 if signed else 4
    if isinstance(cap, float):
        high, step = cap, nice_step(cap / intervals)
    else:
        size = np.sort(np.abs(values))
        reach = float(size[min(len(size) - 1, math.floor(len(size) * percentile(cap) / 100))])
        step = nice_step((reach or 1.0) / intervals)
        high = clean(max(1, math.ceil(reach / step - 1e-6)) * step)
    low = -high if signed else clean(math.floor(least / step + 1e-6) * step)
    if (high - low) / step > MOST_TICKS:
        step = nice_step((high - low) / intervals)
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
    first = math.ceil(span.low / span.step - 0.5)
    last = math.floor(span.high / span.step + 0.5)
    steps = [clean(k * span.step) for k in range(first, last + 1)]
    near = span.step / 2
    inner = [place for place in steps if span.low + near < place < span.high - near]
    places = [span.low, *inner, span.high]
    needed = (decimals(span.step), decimals(span.high))
    digits = max(needed) if min(needed) >= 0 else -1
    labels = [_fixed(place, digits) for place in places]
    labels[0] += "+" * span.low_capped
    labels[-1] += "+" * span.high_capped
    return list(zip(places, labels))


def end_text(span: Range) -> str:
    """Where a map's own colours end, in few letters.

    >>> end_text(Range(0.0, 0.3, 0.1, high_capped=True)), end_text(Range(-0.3, 0.3, 0.1))
    ('0.3+', '±0.3')
    """
    labels = [label for _, label in bar_ticks(span)]
    if span.low == 0:
        return labels[-1]
    return f"±{labels[-1]}" if span.low == -span.high else f"{labels[0]} to {labels[-1]}"


def decimals(step: float) -> int:
    """Digits that a number needs after its point, or -1 where powers of ten read better."""
    if step < 1e-5 or step >= 1e5:
        return -1
    for digits in range(8):
        scaled = step * 10**digits
        if abs(scaled - math.floor(scaled + 0.5)) <= 1e-6:
            return digits
    return 8


def _fixed(value: float, digits: int) -> str:
    if digits < 0 and value == 0:
        return "0"
    with decimal.localcontext() as context:
        context.rounding = decimal.ROUND_HALF_UP  # as the browser does
        text = format(decimal.Decimal(value), ".1e" if digits < 0 else f".{digits}f")
    if float(text) == 0:
        text = text.replace("-", "")
    return text.replace("-", "−")


def nice_step(size: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``size``."""
    power = 10.0 ** math.floor(math.log10(size) + 1e-9)
    return clean(next((n for n in (1, 2, 2.5, 5) if n * power >= size * 0.999999), 10) * power)


def clean(value: float) -> float:
    """0.30000000000000004 is 0.3."""
    return float(f"{value:.12g}")


SIXES = (1, 2, 3, 6, 12, 24, 48, 96)
EIGHTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""How far apart ticks may stand.

Sixes give every 6th, as in the grids of Ma et al. (2025); eights every 16th of 80 layers,
as in the categories figure of Elhelo and Geva (2025).
"""


def ticks(count: int, steps: Sequence[int]) -> range:
    """Rows or columns with a tick: the closest spacing of ``steps`` with at most eight ticks."""
    spacing = next((step for step in steps if count / step <= 8.5), math.ceil(count / 4))
    return range(0, count, spacing)
