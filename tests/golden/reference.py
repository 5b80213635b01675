"""What each view shows, worked out the slow way from the definitions.

A third opinion beside ``headwidget/display/views`` and ``js/display/views``. Plain Python, one
head at a time, with exact fractions where rounding could matter. A map is a flat list, layer
after layer. None is a score that was not measured, and what follows from none.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

Map = list[Any]  # numbers, or None
Runs = list[list[list[Any]]]  # [run][layer][head]
NEAR = Fraction(1, 1_000_000)  # float32 has seven digits: 0.3 and float32's 0.30000001 are one tick


def f32(x: float) -> float:
    """The float32 nearest to x; infinite beyond the largest."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def needed(agreement: float, runs: int) -> int:
    """The smallest k >= 1 with k / runs >= agreement, allowing for the last digits of a double."""
    return next(k for k in range(1, runs + 1) if k >= agreement * runs - 1e-9)


def knee(size: Map) -> float:
    """The value farthest below the straight line from the largest (at 0) to the smallest (at 1)."""
    if len(size) < 3 or size[0] == size[-1]:
        return float(size[0]) if size else 0.0
    last = len(size) - 1
    below = [1 - i / last - (v - size[-1]) / (size[0] - size[-1]) for i, v in enumerate(size)]
    return float(size[below.index(max(below))])


def middle(head: Map) -> float:
    """The median of sorted runs."""
    return float(head[len(head) // 2] + head[(len(head) - 1) // 2]) / 2


def mean(head: Map) -> float:
    """The mean of runs."""
    return math.fsum(head) / len(head)


class Task:
    """The runs of a task and what follows from them under some settings."""

    def __init__(self, runs: Runs, signed: bool, at: dict[str, Any]) -> None:
        """``at`` has every setting."""
        self.runs, self.signed, self.at = len(runs), signed, at
        flat = [[score for layer in run for score in layer] for run in runs]
        self.heads = [
            sorted(run[i] for run in flat if run[i] is not None) for i in range(len(flat[0]))
        ]  # of each head, its runs, smallest first
        reduce = middle if at["reduction"] == "median" else mean
        self.plain: Map = [f32(reduce(head)) if head else None for head in self.heads]
        self.whole = math.fsum(abs(x) for x in self.plain if x is not None)
        shares = [
            None if x is None else f32(abs(x) / self.whole) if self.whole else 0.0
            for x in self.plain
        ]
        self.number = shares if at["normalize"] == "share" else self.plain

    def strengths(self, numbers: Map) -> Map:
        """What counts as strong: the number, or a signed score's size in the direction asked."""
        if not self.signed:
            return numbers
        sign = self.at["sign"]
        if sign == "either":
            return [None if x is None else abs(x) for x in numbers]
        towards = 1 if sign == "helps" else -1
        return [
            None if n is None else abs(n) if p * towards > 0 else -abs(n)
            for n, p in zip(numbers, self.plain)
        ]

    def least(self, numbers: Map) -> float:
        """The strength that heads must reach; infinite when none may pass.

        Of signed scores top, percent and elbow want more than zero.
        """
        rule, threshold = self.at["rule"], self.at["threshold"]
        strengths = [s for s in self.strengths(numbers) if s is not None]
        if rule == "value":
            return f32(threshold)
        if rule == "elbow":
            size = [max(s, 0.0) for s in strengths] if self.signed else [abs(s) for s in strengths]
            edge = f32(threshold * knee(sorted(size, reverse=True)))
        else:
            wanted = (
                math.floor(threshold)
                if rule == "top"
                else math.ceil(Fraction(str(threshold)) * len(strengths) / 100)
            )
            if wanted < 1 or not strengths:
                return math.inf
            edge = sorted(strengths, reverse=True)[min(wanted, len(strengths)) - 1]
        return max(edge, 2.0**-149) if self.signed else edge

    def passes(self) -> list[bool] | None:
        """Heads whose strength reaches the threshold."""
        if self.at["threshold"] is None:
            return None
        edge = self.least(self.number)
        return [s is not None and s >= edge for s in self.strengths(self.number)]

    def counts(self) -> list[int] | None:
        """How many runs of each head reach the threshold in the direction asked for.

        For either direction, in the better one.
        """
        if self.at["threshold"] is None:
            return None
        edge = self.least(self.plain)
        if self.at["normalize"] == "share" and self.at["rule"] == "value":
            edge = f32(
                edge * self.whole
            )  # the score whose share of the task's whole is the threshold
            if self.whole == 0 and self.at["threshold"] > 0:
                edge = math.inf  # of nothing, every share is zero
        helps = [sum(score >= edge for score in head) for head in self.heads]
        hurts = [sum(-score >= edge for score in head) for head in self.heads]
        if not self.signed or self.at["sign"] == "helps":
            return helps
        return hurts if self.at["sign"] == "hurts" else [max(pair) for pair in zip(helps, hurts)]

    def reached(self, agreement: float) -> Map:
        """The score that enough runs of each head reach; of hurting, by being as far below zero."""
        hurts = self.signed and self.at["sign"] == "hurts"
        scores: Map = []
        for head in self.heads:
            k = needed(agreement, len(head)) if head else 0
            scores.append((head[k - 1] if hurts else head[-k]) if head else None)
        return scores

    def enough(self, agreement: float, counts: list[int]) -> list[bool]:
        """Heads with so many of their own runs."""
        return [
            bool(head) and n >= needed(agreement, len(head)) for head, n in zip(self.heads, counts)
        ]


def picture(scores: dict[str, Any], at: dict[str, Any]) -> dict[str, Any]:
    """All that a view draws.

    ``scores`` has values, signed and categories; ``at`` has every setting.
    """
    tasks = {name: Task(runs, scores["signed"], at) for name, runs in scores["values"].items()}
    shown = list(tasks) if at["tasks"] is None else at["tasks"]
    if at["view"] == "categories":
        return categories(scores, tasks, shown, at)
    shown = shown if at["task"] is None else [at["task"]]
    panels: list[tuple[str, Map, list[bool] | None]] = []
    of: list[str] = []  # the task of each panel
    numbers: dict[str, Map] = {}  # of each task, the scores that its colours stand for
    good: list[list[bool] | None] = []  # of each task shown, the heads that count as passing
    if at["view"] == "tasks":
        for name in shown:
            good.append(tasks[name].passes())
            panels.append((name, tasks[name].number, good[-1]))
            of.append(name)
            numbers[name] = tasks[name].number
        diverging = scores["signed"] and at["normalize"] is None
        span = spanned([x for task in tasks.values() for x in task.number], diverging, at["cap"])
        many = any(task.runs > 1 for task in tasks.values())
        what = at["reduction"] if many else "score"
        label, colours, most = (
            (f"share of {what}" if at["normalize"] else what),
            ("blue-orange" if diverging else "viridis"),
            1,
        )
    else:
        most, diverging = 2, scores["signed"]
        for name in shown:
            task, counts = tasks[name], tasks[name].counts()
            k = needed(at["agreement"], task.runs)
            rows = {"Always": 1.0, f"≥ {k} of {task.runs}": at["agreement"], "Any": 0.0}
            if k in (1, task.runs):
                del rows[f"≥ {k} of {task.runs}"]
            most = max(most, len(rows))
            if counts is None:
                numbers[name] = [x for head in task.heads if head for x in (head[0], head[-1])]
            for title, agreement in rows.items():
                of.append(name)
                if counts is None:
                    panels.append((f"{name} ({title})", task.reached(agreement), None))
                    continue
                fractions = [f32(n / len(h)) if h else None for n, h in zip(counts, task.heads)]
                panels.append((f"{name} ({title})", fractions, task.enough(agreement, counts)))
            good.append(None if counts is None else task.enough(at["agreement"], counts))
        thresholded = at["threshold"] is not None
        heads = [head for task in tasks.values() for head in task.heads if head]
        extremes = [x for head in heads for x in (head[0], head[-1])]
        span = (
            {"low": 0, "high": 1, "step": 0.25, "lowCapped": False, "highCapped": False}
            if thresholded
            else spanned(extremes, scores["signed"], at["cap"])
        )
        label, colours = (
            ("fraction of runs", "turbo")
            if thresholded
            else ("score", "blue-orange" if scores["signed"] else "turbo")
        )
    masks = [mask for mask in good if mask is not None]
    own = at["scale"] == "own"
    return {
        "panels": panels,
        "own": [
            spanned(numbers[name], diverging, at["cap"]) if own and name in numbers else None
            for name in of
        ],
        "quiet": [None if own else quiet(numbers.get(name, []), span) for name in of],
        "span": most,
        "range": span,
        "colours": at["colormap"] or colours,
        "label": label,
        "layersOn": at["orientation"] or "y",
        "columns": at["columns"],
        "passing": [any(head) for head in zip(*masks)] if masks else None,
        "legend": [],
    }


def categories(
    scores: dict[str, Any], tasks: dict[str, Task], shown: list[str], at: dict[str, Any]
) -> dict[str, Any]:
    """A head belongs to a category when it passes in any shown task of it.

    Without a threshold it passes at the task's elbow.
    """
    at = at if at["threshold"] is not None else {**at, "rule": "elbow", "threshold": 1.0}
    category_of = {name: scores["categories"].get(name, name) for name in tasks}
    groups = list(dict.fromkeys(category_of.values()))
    drawn = [g for g in groups if any(category_of[name] == g for name in shown)]
    passes = {
        name: Task(scores["values"][name], scores["signed"], at).passes() or [] for name in shown
    }
    size = len(next(iter(tasks.values())).heads)
    of_head = [
        [g for g in drawn if any(category_of[name] == g and passes[name][i] for name in shown)]
        for i in range(size)
    ]
    classes = ["Unclassified", *groups, *(f"{n} categories" for n in range(2, len(groups) + 1))]
    mine = [
        c[0] if len(c) == 1 else f"{len(c)} categories" if c else "Unclassified" for c in of_head
    ]
    keep = [m == at["isolated"] for m in mine] if at["isolated"] in classes else None
    there = [
        [any(tasks[name].heads[i] for name in shown if category_of[name] == g) for g in drawn]
        for i in range(size)
    ]  # of each head, whether it was measured in each category drawn
    nowhere = [bool(drawn) and not any(one) for one in there]
    everything = [None if none else float(classes.index(m)) for m, none in zip(mine, nowhere)]
    panels = [("All Categories", everything, keep)]
    for at_g, g in enumerate(drawn):
        # a head of the isolated class stands out in the maps of its own categories
        own = None if keep is None else [one and g in c for one, c in zip(keep, of_head)]
        values = [
            None if not one[at_g] else float(classes.index(g)) if g in c else 0.0
            for c, one in zip(of_head, there)
        ]
        panels.append((g, values, own))
    counted = [m for m, none in zip(mine, nowhere) if not none]
    return {
        "panels": panels,
        "own": [None] * len(panels),
        "quiet": [None] * len(panels),
        "span": 1,
        "range": {
            "low": 0,
            "high": len(classes) - 1,
            "step": 1,
            "lowCapped": False,
            "highCapped": False,
        },
        "colours": "categories",
        "label": "categories",
        "layersOn": at["orientation"] or "x",
        "columns": at["columns"],
        "passing": [bool(c) for c in of_head],
        "legend": [[name, counted.count(name)] for name in classes],
    }


def quiet(numbers: Map, span: dict[str, Any]) -> float | None:
    """The largest size, where it is less than 15% of the way to the end of the colours."""
    most = max((abs(x) for x in numbers if x is not None), default=0.0)
    return most if 0 < most < 0.15 * span["high"] else None


# ---- the range of colours and the labels of its bar ----


def spanned(values: Map, diverging: bool, cap: float | str | None) -> dict[str, Any]:
    """From zero, or as far below it as above, to the cap.

    Without a cap, to a percentile of the size rounded up to a tick.
    """
    values = [x for x in values if x is not None] or [0.0]
    size = sorted(abs(Fraction(x)) for x in values)
    least, most = min(Fraction(0), Fraction(min(values))), max(Fraction(0), Fraction(max(values)))
    parts = 3 if diverging else 4
    if isinstance(cap, (int, float)):
        high = Fraction(str(cap))
        step = tick(high / parts)
    else:
        percent = Fraction(cap.rstrip("%")) if cap else Fraction("99.5")
        reach = size[min(len(size) - 1, math.floor(len(size) * percent / 100))]
        step = tick((reach or Fraction(1)) / parts)
        high = next(k * step for k in range(1, 99) if k * step >= reach - NEAR * step)
    low = (
        -high
        if diverging
        else next(-k * step for k in range(10**6) if -k * step <= least + NEAR * step)
    )
    if (high - low) / step > 12:
        step = tick((high - low) / parts)
    beyond = {"lowCapped": least < low * (1 + NEAR), "highCapped": most > high * (1 + NEAR)}
    return {"low": float(low), "high": float(high), "step": float(step), **beyond}


def tick(size: Fraction) -> Fraction:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``size``."""
    every = (
        Fraction(n) * Fraction(10) ** e for e in range(-50, 50) for n in ("1", "2", "2.5", "5")
    )
    return next(one for one in every if one >= size * (1 - NEAR))


def bar(span: dict[str, Any]) -> list[str]:
    """The labels of a colour bar.

    Both ends, and every multiple of the step that is half a step or more away from them.
    """
    low, high, step = (Fraction(str(span[name])) for name in ("low", "high", "step"))
    inner = [k * step for k in range(math.floor(low / step), math.ceil(high / step) + 1)]
    places = [low, *(p for p in inner if low + step / 2 < p < high - step / 2), high]
    powers = any(not Fraction(1, 100_000) <= x < 100_000 for x in (step, high))
    digits = next(
        d for d in range(9) if d == 8 or all((x * 10**d).denominator == 1 for x in (step, high))
    )
    labels = [power(p) if powers else plain(p, digits) for p in places]
    labels[0] += "+" if span["lowCapped"] else ""
    labels[-1] += "+" if span["highCapped"] else ""
    return labels


def ends(span: dict[str, Any]) -> str:
    """Where a map's own colours end: the last label, and the first where it is no mirror."""
    first, *_, last = bar(span)
    if span["low"] == 0:
        return last
    return f"±{last}" if span["low"] == -span["high"] else f"{first} to {last}"


def plain(value: Fraction, digits: int) -> str:
    text = str(
        (Decimal(value.numerator) / Decimal(value.denominator)).quantize(
            Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP
        )
    )
    return text.replace("-", "−" if value else "")


def power(value: Fraction) -> str:
    """2.5e−7"""
    if not value:
        return "0"
    exponent = next(e for e in range(50, -50, -1) if abs(value) >= Fraction(10) ** e)
    return (
        plain(value / Fraction(10) ** exponent, 1)
        + ("e−" if exponent < 0 else "e+")
        + str(abs(exponent))
    )


# ---- colours ----


def along(colours: str, place: int, count: int) -> str:
    """The colour at ``place`` of ``count``, evenly spread along the stops, halves upwards."""
    stops = [[int(one[i : i + 2], 16) for i in (0, 2, 4)] for one in colours.split()]
    at = Fraction(place, count - 1) * (len(stops) - 1)
    below = min(math.floor(at), len(stops) - 2)
    mixed = [a + (b - a) * (at - below) for a, b in zip(stops[below], stops[below + 1])]
    return "".join(f"{math.floor(part + Fraction(1, 2)):02x}" for part in mixed)
