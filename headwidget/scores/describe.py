"""One honest sentence about a head, from its scores over all methods at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headwidget.scores import provenance, reduce
from headwidget.scores.head_scores import HeadScores

LEADING = 0.02
"""A head stands out on a task where it is in this leading share of all heads, but no further than third in small models."""
NOTHING = "nothing stands out"
MOST = 4
"""How many tasks of a method are named."""


@dataclass(frozen=True)
class _Finding:
    """What a method says of a head on one task."""

    task: str
    place: int
    """1 is the first of all heads."""
    value: float
    interval: tuple[float, float] | None
    """None for a single run."""
    doubts: tuple[str, ...]
    stands_out: bool

    def text(self, signed: bool) -> str:
        way = (" (it hurts)" if self.value < 0 else " (it helps)") if signed else ""
        near = (
            f"95% interval {self.interval[0]:.2g} to {self.interval[1]:.2g}"
            if self.interval
            else "one run, so no interval"
        )
        doubts = "".join(f"; {doubt}" for doubt in self.doubts)
        return f"{_ordinal(self.place)}{' by size' * signed} for {self.task}{way} with {self.value:.2g} ({near}{doubts})"


def describe(
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores], layer: int, head: int
) -> str:
    """What the scores say of one head, in a sentence: where it stands out, with rank, mean and interval; what speaks against it; or that nothing does.

    ``scores`` are one HeadScores, several, or several by a name that the sentence then uses. A head stands out on a task where it is among the first 2%
    of all heads, its interval lies on one side of zero, and the mean is beyond what the method reaches by chance and the threshold that it starts with.
    Aspects (suppression, …) are named where the head stands out in them.

    >>> import headwidget as hw, numpy as np
    >>> runs = np.random.default_rng(0).normal(0, 0.01, (20, 4, 4)) + 0.9 * (np.arange(16).reshape(4, 4) == 9)
    >>> describe(hw.HeadScores.from_arrays({"copy": runs}, method="mine"), 2, 1)
    'Head 2.1, of 16: mine: 1st by size for copy (it helps) with 0.9 (95% interval 0.9 to 0.91).'
    >>> describe(hw.HeadScores.from_arrays({"copy": runs}, method="mine"), 0, 3)
    'Head 0.3, of 16: mine: nothing stands out (at best 13th, for copy; its interval holds zero).'
    """
    named = _named(scores)
    parts = []
    for name, one in named.items():
        parts.append(f"{name}: {_said(one, layer, head)}")
        said = {aspect: _said(of, layer, head) for aspect, of in one.aspects.items()}
        parts += [
            f"{name} ({aspect}): {text}"
            for aspect, text in said.items()
            if not text.startswith(NOTHING)
        ]
    sizes = {one.shape[0] * one.shape[1] for one in named.values()}
    return f"Head {layer}.{head}, of {' or '.join(str(size) for size in sorted(sizes))}: {'; '.join(parts)}."


def _named(
    given: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
) -> dict[str, HeadScores]:
    if isinstance(given, HeadScores):
        return {given.method: given}
    if isinstance(given, Mapping):
        found = {str(name): one for name, one in given.items()}
    else:
        listed = (
            list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        )
        methods = [getattr(one, "method", "") for one in listed]
        found = {
            m if methods.count(m) == 1 else f"{m} ({i + 1})": one
            for i, (m, one) in enumerate(zip(methods, listed))
        }
    wrong = [one for one in found.values() if not isinstance(one, HeadScores)]
    if wrong or not found:
        raise TypeError(
            f"describe takes HeadScores, a list of them or a dict of them by name; got {f'a {type(wrong[0]).__name__}' if wrong else 'none'}."
        )
    return found


def _said(scores: HeadScores, layer: int, head: int) -> str:
    if layer not in scores.layers or type(head) is not int or not 0 <= head < scores.shape[1]:
        have = f"layers {scores.layers[0]} to {scores.layers[-1]}, heads 0 to {scores.shape[1] - 1}"
        raise ValueError(
            f"there is no head {head!r} in layer {layer!r} of the {scores.method} scores: they have {have}."
        )
    findings = sorted(
        (_finding(scores, task, scores.layers.index(layer), head) for task in scores.tasks),
        key=lambda f: (f.place, -abs(f.value)),
    )
    out = [f for f in findings if f.stands_out]
    if not out:
        best = findings[0]
        doubts = f"; {'; '.join(best.doubts)}" if best.doubts else ""
        return f"{NOTHING} (at best {_ordinal(best.place)}, for {best.task}{doubts})"
    more = f" and {len(out) - MOST} more" if len(out) > MOST else ""
    return ", ".join(f.text(scores.signed) for f in out[:MOST]) + more


def _finding(scores: HeadScores, task: str, row: int, head: int) -> _Finding:
    values = scores.values(task)
    means = reduce.mean(values)
    sizes = np.abs(means) if scores.signed else means
    value, heads = float(means[row, head]), means.size
    place = 1 + int((sizes > sizes[row, head]).sum())
    interval, doubts = None, []
    if len(values) > 1:
        low, high = reduce.interval(np.ascontiguousarray(values[:, row : row + 1, head : head + 1]))
        interval = float(low[0, 0]), float(high[0, 0])
    sure = interval is None or interval[0] > 0 or (scores.signed and interval[1] < 0)
    floor, start = provenance.floor(scores, task), provenance.display(scores).get("threshold", 0.0)
    if not sure:
        doubts.append("its interval holds zero")
    if floor is not None and abs(value) <= floor:
        doubts.append("no more than chance gives")
    if abs(value) < start:
        doubts.append(f"below the threshold of {start:g}")
    stands_out = place <= max(LEADING * heads, min(3, heads - 1)) and not doubts and value != 0
    if warning := provenance.warning(scores, task):
        doubts.append(warning.rstrip(".")[0].lower() + warning.rstrip(".")[1:])
    return _Finding(task, place, value, interval, tuple(doubts), stands_out)


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
