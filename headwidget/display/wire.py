"""Scores as they cross to the browser: one JSON header and one flat buffer of bytes.

Twin of ``js/wire.ts``; ``tests/golden/wire.json`` holds the two together. The buffer has two parts, and a map in it is
layer-major, layers x heads:

- Exact numbers, float32. For every task in order the maps ``mean``, ``median``, ``low`` and ``high`` (95% bootstrap interval
  of the mean), then its order statistics, smallest first: all of them where the header says 32 bits, else the minimum and the
  maximum alone.
- Steps, uint16, for the tasks of 16 bits: for each order statistic in between, a map of how many steps it lies above the
  one before it. A step is 1/65535 of the head's own range; :func:`_value` says what a number of steps stands for. Steps
  are rounded down and the score lies at most one step above: the browser reads both bounds, so that in neither direction
  (helps, hurts) it overstates agreement.

Steps are written in byte planes (the lower byte of every number, then the upper one), which deflate packs better in an
exported page. The size does not grow with the number of prompts (``reduce.MOST_RANKS``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import provenance, reduce

if TYPE_CHECKING:
    from headwidget.scores import HeadScores
    from headwidget.scores.reduce import Array

VERSION = 2
MAPS = ("mean", "median", "low", "high")
"""The maps of every task that stand before its order statistics."""
STEPS = 65535
"""How many steps the range of a head has: 0 is its minimum, this its maximum."""

Steps = npt.NDArray[np.uint16]


def encode(scores: HeadScores) -> tuple[dict[str, Any], bytes]:
    """The header (JSON) and the buffer for the browser."""
    tasks: list[dict[str, Any]] = []
    exact: list[Array] = []  # each (map, layer, head)
    rises: list[Steps] = []  # each (rank, layer, head)
    unscored = _unscored(scores)
    for name in scores.tasks:
        values = scores.values(name)
        low, high = reduce.interval(values)
        kept = reduce.ranks(len(values))
        ordered = np.sort(values, axis=0)[kept]  # (rank, layer, head)
        # Where many runs tie, steps would put them all below a threshold that is their value: such scores stay exact.
        packed = len(kept) < len(values) and 4 * np.unique(ordered).size > ordered.size
        exact += [
            np.stack([reduce.mean(values), reduce.reduce(values, "median"), low, high]),
            ordered[[0, -1]] if packed else ordered,
        ]
        if packed:
            rises.append(np.diff(_steps(ordered), axis=0, prepend=np.uint16(0)))
        tasks.append(
            {
                "name": name,
                "category": scores.categories.get(name),
                "note": provenance.note(scores, name),
                "warning": provenance.warning(scores, name),
                "floor": provenance.floor(scores, name),
                "runs": len(values),
                "ranks": kept,
                "bits": 16 if packed else 32,
                **({"unscored": unscored[name]} if name in unscored else {}),
            }
        )
    header = {
        "version": VERSION,
        "method": scores.method,
        "signed": scores.signed,
        "ranked_by": scores.ranked_by,
        "model": scores.record.model or "",
        "partial": scores.partial,
        "about": provenance.about(scores),
        "axes": provenance.axes(scores),
        "layers": list(scores.layers),
        "heads": scores.shape[1],
        "tasks": tasks,
    }
    return header, b"".join(part.astype("<f4").tobytes() for part in exact) + _planes(rises)


def _unscored(scores: HeadScores) -> dict[str, list[int]]:
    """The rows of each task that a live run has not come to yet."""
    unscored = scores.record.unscored
    rows = range(scores.shape[0])
    return {
        task: [row for row in unscored[task] if row in rows]
        for task in scores.tasks
        if task in unscored
    }


def decode(header: dict[str, Any], buffer: bytes) -> list[dict[str, Any]]:
    """What the browser reads back, task by task: the maps by name, and ``order`` as (rank, layer, head)."""
    if header["version"] != VERSION:
        raise ValueError(
            f"this buffer is wire version {header['version']}; this headwidget reads version {VERSION}."
        )
    for task in header["tasks"]:
        if task["bits"] != 32 and (task["bits"] != 16 or len(task["ranks"]) < 3):
            have = f"{len(task['ranks'])} order statistics of {task['bits']} bits"
            raise ValueError(
                f"task {task['name']!r} has {have}; this headwidget reads 32 bits, or 16 where there are 3 or more."
            )
    shape = (len(header["layers"]), header["heads"])
    exact = [
        len(MAPS) + (2 if task["bits"] == 16 else len(task["ranks"])) for task in header["tasks"]
    ]  # maps of each task
    between = [len(task["ranks"]) - 2 if task["bits"] == 16 else 0 for task in header["tasks"]]
    cells = shape[0] * shape[1]
    numbers = 4 * sum(exact) * cells  # bytes
    promised = numbers + 2 * sum(between) * cells
    if len(buffer) != promised:
        raise ValueError(f"the buffer holds {len(buffer)} bytes; its header promises {promised}.")
    maps = np.frombuffer(buffer[:numbers], "<f4").reshape(-1, *shape)
    rises = _numbers(buffer[numbers:]).reshape(-1, *shape)
    out = []
    for task, count, packed in zip(header["tasks"], exact, between):
        mine, maps = maps[:count], maps[count:]
        order = mine[len(MAPS) :]
        if packed:
            steps, rises = rises[:packed].cumsum(axis=0, dtype=np.uint16), rises[packed:]
            order = np.concatenate([order[:1], _value(steps, order[0], order[-1]), order[-1:]])
        out.append({**task, **dict(zip(MAPS, mine)), "order": order})
    return out


def _value(steps: Steps, least: Array, most: Array) -> Array:
    """The scores that stand ``steps`` above the minimum, (rank, layer, head): at the last step the maximum itself.

    Worked out in float64 and rounded once, in this order, as in ``js/wire.ts``: the two agree in every bit.
    """
    step = (most.astype(np.float64) - least) / STEPS
    return np.where(steps == STEPS, most, (least + steps * step).astype(np.float32))


def _steps(ordered: Array) -> Steps:
    """How many steps above the minimum each order statistic between first and last lies, rounded down: (rank, layer, head)."""
    least, most, inner = ordered[0], ordered[-1], ordered[1:-1]
    span = most.astype(np.float64) - least
    part = (inner.astype(np.float64) - least) / np.where(span == 0, 1, span)
    steps: Steps = np.floor(part * STEPS).astype(np.uint16)
    steps -= (
        _value(steps, least, most) > inner
    )  # where rounding overshot; a step is far larger than any rounding
    return steps


def _planes(parts: list[Steps]) -> bytes:
    """The steps of all parts, the lower bytes first."""
    flat = np.concatenate([np.empty(0, "<u2"), *(part.reshape(-1).astype("<u2") for part in parts)])
    return flat.view(np.uint8).reshape(-1, 2).T.tobytes()


def _numbers(planes: bytes) -> Steps:
    """The steps that were written as two planes of bytes."""
    return (
        np.ascontiguousarray(np.frombuffer(planes, np.uint8).reshape(2, -1).T)
        .view("<u2")
        .reshape(-1)
    )
