"""Scores of the same model and method, of more runs or tasks, merged into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.scores.missing import known
from headwidget.scores.record import Record, TaskRecord, tells_weights

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array

_SAME = ("model", "revision", "hooks", "heads_changed", "options")
"""The fields of a record that must agree."""
_SHARES = {"accuracy": "asked", "beats_foil": "foils"}
"""Shares of a task, and the number of prompts that each is taken over."""
_COUNTS = ("prompts", "asked", "foils", "tokenised_differently_with_answer")


def merged(a: HeadScores, b: HeadScores, *, trust: bool = False) -> dict[str, Any]:
    """The runs of both, as keyword arguments of ``HeadScores.from_arrays``.

    Tasks that only one has are kept as they are. ``trust`` takes the word of the caller that
    both are of the same weights, where their records do not tell.
    """
    _check_same(a, b)
    _check_weights(a.record.weights, b.record.weights, trust)
    tasks = list(dict.fromkeys(a.tasks + b.tasks))
    holders = {task: [s for s in (a, b) if task in s.tasks] for task in tasks}
    for task in tasks:
        if task in a.tasks and task in b.tasks and (repeated := _repeated(a, b, task)):
            raise ValueError(
                f"task {task!r}: {repeated} of the runs are in both scores; "
                "merging them would count them twice."
            )
    runs: dict[str, tuple[str, ...]] = {}
    for task, sides in holders.items():
        runs[task] = sum((side.runs(task) for side in sides), ())
    return {
        "arrays": _concatenated(holders),
        "method": a.method,
        "runs": runs,
        "layers": a.layers,
        "signed": a.signed or b.signed,
        "ranked_by": "size" if "size" in (a.ranked_by, b.ranked_by) else "mean",
        "categories": {**b.categories, **a.categories},
        "meta": _merged_records(a.record, b.record),
        "aspects": {
            aspect: _concatenated(
                {task: [s.aspects[aspect] for s in sides] for task, sides in holders.items()}
            )
            for aspect in a.aspects
            if aspect in b.aspects
        },
    }


def _concatenated(holders: Mapping[str, list[HeadScores]]) -> dict[str, Array]:
    return {
        task: np.concatenate([side.values(task) for side in sides])
        for task, sides in holders.items()
    }


def _check_same(a: HeadScores, b: HeadScores) -> None:
    """Refuse to merge what cannot be compared."""
    pairs: list[tuple[str, Any, Any]] = [
        ("method", a.method, b.method),
        ("layers", a.layers, b.layers),
        ("shape", a.shape, b.shape),
    ]
    pairs += [(field, a.record.as_written(field), b.record.as_written(field)) for field in _SAME]
    for what, here, there in pairs:
        if here != there:
            raise ValueError(
                "only runs of the same model and method can be merged; "
                f"{what} is {here!r} here and {there!r} there."
            )


def _check_weights(here: str | None, there: str | None, trust: bool) -> None:
    """Refuse scores of other weights, and those whose weights were not there to read."""
    if tells_weights(here) and tells_weights(there) and here != there:
        raise ValueError(
            "only runs of the same model and method can be merged; "
            f"weights is {here!r} here and {there!r} there."
        )
    unclear = not (tells_weights(here) and tells_weights(there))
    if unclear and (here, there) != (None, None) and not trust:
        raise ValueError(
            f"whether both scores are of the same weights is not known: weights is {here!r} here "
            f"and {there!r} there (offloaded, or scored by an older headwidget). If you know "
            "that they are, merge them by a.merge(b, trust=True)."
        )


def _repeated(a: HeadScores, b: HeadScores, task: str) -> int:
    """How many runs are in both: the same label, and the same numbers but for rounding."""
    by_label: dict[str, list[Array]] = {}
    for label, values in zip(a.runs(task), a.values(task)):
        by_label.setdefault(label, []).append(values)
    largest = np.abs(known(a.values(task))).max(initial=0.0)
    tolerance = 1e-3 * max(float(largest), 1e-12)
    return sum(
        any(_same(values, other, tolerance) for other in by_label.get(label, ()))
        for label, values in zip(b.runs(task), b.values(task))
    )


def _same(values: Array, other: Array, tolerance: float) -> bool:
    """Have two runs the same numbers, wherever both were measured and there is such a head?"""
    both = ~(np.isnan(values) | np.isnan(other))
    return bool(both.any()) and np.allclose(values[both], other[both], rtol=0, atol=tolerance)


def _merged_records(a: Record, b: Record) -> Record:
    tasks = {**b.tasks, **a.tasks}
    for task in a.tasks.keys() & b.tasks.keys():
        tasks[task] = _merged_task(a.tasks[task], b.tasks[task])
    return replace(a, partial=a.partial or b.partial, merged=(*a.sources, *b.sources), tasks=tasks)


def _merged_task(a: TaskRecord, b: TaskRecord) -> TaskRecord:
    """What is known of a task in both: counts add up, and shares are weighted by their counts."""
    values = {field.name: getattr(a, field.name) for field in fields(a)}
    for name, value in values.items():
        if value is None or value in ((), {}):
            values[name] = getattr(b, name)
    values["extra"] = {**b.extra, **a.extra}
    values["dropped"] = a.dropped + b.dropped
    for share, count in _SHARES.items():
        taken = [
            (getattr(record, share), getattr(record, count))
            for record in (a, b)
            if getattr(record, share) is not None and getattr(record, count)
        ]
        if taken:
            values[share] = sum(x * n for x, n in taken) / sum(n for _, n in taken)
    for count in _COUNTS:
        counts = [getattr(record, count) for record in (a, b)]
        if any(n is not None for n in counts):
            values[count] = sum(n or 0 for n in counts)
    values["slopes_off"] = max((r.slopes_off for r in (a, b) if r.slopes_off), default=None)
    return TaskRecord(**values)
