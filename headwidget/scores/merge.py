"""Scores of the same model and method, of more runs or tasks, as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array


def merged(a: HeadScores, b: HeadScores) -> dict[str, Any]:
    """The runs of both, as keyword arguments of ``HeadScores.from_arrays``; tasks that only one has are kept as they are."""
    _same(a, b)
    names = list(dict.fromkeys(a.tasks + b.tasks))
    parts = {n: [s for s in (a, b) if n in s.tasks] for n in names}
    for n, have in parts.items():
        if len(have) == 2 and (twice := _repeated(have[0], have[1], n)):
            raise ValueError(
                f"task {n!r}: {twice} of the runs are in both scores; merging them would count them twice."
            )
    aspects = [name for name in a.aspects if name in b.aspects]
    return dict(  # noqa: C408
        arrays={n: np.concatenate([s.values(n) for s in have]) for n, have in parts.items()},
        method=a.method,
        runs={n: sum((s.runs(n) for s in have), ()) for n, have in parts.items()},
        layers=a.layers,
        signed=a.signed or b.signed,
        ranked_by="size" if "size" in (a.ranked_by, b.ranked_by) else "mean",
        categories={**b.categories, **a.categories},
        meta={
            **a.meta,
            "partial": a.partial or b.partial,
            "merged": [
                *a.meta.get("merged", [dict(a.meta)]),
                *b.meta.get("merged", [dict(b.meta)]),
            ],
            "tasks": _merged_tasks(a.meta.get("tasks", {}), b.meta.get("tasks", {})),
        },
        aspects={
            x: {
                n: np.concatenate([s.aspects[x].values(n) for s in have])
                for n, have in parts.items()
            }
            for x in aspects
        },
    )


def _same(a: HeadScores, b: HeadScores) -> None:
    """Refuse to mix what cannot be compared."""
    pairs: list[tuple[str, Any, Any]] = [
        ("method", a.method, b.method),
        ("layers", a.layers, b.layers),
        ("shape", a.shape, b.shape),
    ]
    pairs += [
        (k, a.meta.get(k), b.meta.get(k)) for k in ("model", "revision", "weights", "options")
    ]
    for what, mine, theirs in pairs:
        if mine != theirs:
            raise ValueError(
                f"only runs of the same model and method can be merged; {what} is {mine!r} here and {theirs!r} there."
            )


def _repeated(a: HeadScores, b: HeadScores, task: str) -> int:
    """How many runs stand in both: the same label, and the same numbers but for rounding."""
    seen: dict[str, list[Array]] = {}
    for label, v in zip(a.runs(task), a.values(task)):
        seen.setdefault(label, []).append(v)
    near = 1e-3 * max(float(np.abs(a.values(task)).max()), 1e-12)
    return sum(
        any(np.allclose(v, w, rtol=0, atol=near) for w in seen.get(label, ()))
        for label, v in zip(b.runs(task), b.values(task))
    )


def _merged_tasks(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of each task in either; for a task in both, counts add up and a share is weighed by what it was taken over."""
    out = {**b, **a}
    for name in a.keys() & b.keys():
        both = [a[name], b[name]]
        out[name] = merged = {
            **b[name],
            **a[name],
            "dropped": [drop for one in both for drop in one.get("dropped", [])],
        }
        for share, count in (("accuracy", "asked"), ("beats_foil", "foils")):
            known = [(one[share], one[count]) for one in both if share in one and one.get(count)]
            if known:
                merged[share] = sum(x * n for x, n in known) / sum(n for _, n in known)
        for count in ("prompts", "asked", "foils", "tokenised_differently_with_answer"):
            if any(count in one for one in both):
                merged[count] = sum(one.get(count, 0) for one in both)
    return out
