"""Rows of the table, and how they are timed: in turn, so that a busy machine slows both sides."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    what: str
    ratios: list[float]
    at_most: float | None = None
    at_least: float | None = None

    @property
    def promise(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"

    def verdict(self) -> str:
        median = statistics.median(self.ratios)
        if self.at_most is not None:
            return "yes" if median <= self.at_most else "NO"
        if self.at_least is not None:
            return "yes" if median >= self.at_least else "NO"
        return ""


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """How long a call took, in seconds, and what it returned."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def against(
    base: Callable[[], object], calls: Mapping[str, Callable[[], object]], rounds: int = 5
) -> dict[str, list[float]]:
    """Each call's time over the base's, round by round.

    The base is timed before and after each call: their mean is what the call is divided by.
    """
    base()
    for call in calls.values():
        call()
    ratios: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            before = seconds(base)
            taken = seconds(call)
            ratios[name].append(2 * taken / (before + seconds(base)))
    return ratios
