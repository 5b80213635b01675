"""Scores as they cross to the browser: one JSON header and one flat buffer of bytes.

Twin of ``js/display/wire.ts``; ``tests/golden/wire.json`` holds the two together. The buffer
has two parts, and a map in it is layer-major, layers x heads:

- Exact numbers, float32. For every task in order the maps ``mean``, ``median``, ``low`` and
  ``high`` (95% bootstrap interval of the mean), where the header says ``missing`` a map
  ``measured`` (in how many runs each head was), then its order statistics, smallest first:
  all of them where the header says 32 bits, else the minimum and the maximum alone.
- Steps, uint16, for the tasks of 16 bits: for each order statistic in between, a map of how
  many steps it lies above the one before it. A step is 1/65535 of the head's own range;
  :func:`_value` says what a number of steps stands for. Steps are rounded down and the score
  lies at most one step above: the browser reads both bounds, so that in neither direction
  (helps, hurts) it overstates agreement.

The header's ``ranks`` are those of a head that was measured in every run. One that was
measured in fewer has its own runs spread over as many places (``reduce.spread_ranks``); one
that was never measured has NaN in all maps.

Steps are written in byte planes (the lower byte of every number, then the upper one), which
deflate packs better in an exported page. The size does not grow with the number of prompts
(``reduce.MOST_STATISTICS``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import provenance, reduce

if TYPE_CHECKING:
    from headwidget.scores import HeadScores
    from headwidget.scores.reduce import Array

VERSION = 3
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
    for name in scores.tasks:
        values = scores.values(name)
        low, high = reduce.interval(values)
        measured = scores.measured(name)
        missing = bool((measured < len(values)).any())
        kept = reduce.kept_statistics(len(values))

        def ranks(runs: int, places: int = len(kept)) -> list[int]:
            return [*reduce.spread_ranks(runs, places), *reduce.middle_ranks(runs)]

        *statistics, lower, upper = reduce.order_statistics(values, ranks)  # one sort for all
        ordered = np.stack(statistics)  # (rank, layer, head)
        # Where many runs tie, steps would put them all below a threshold that is their value:
        # such scores stay exact.
        packed = len(kept) < len(values) and 4 * np.unique(ordered).size > ordered.size
        exact += [
            np.stack([reduce.mean(values), reduce.middle(lower, upper), low, high]),
            *([measured[None].astype(np.float32)] if missing else []),
            ordered[[0, -1]] if packed else ordered,
        ]
        if packed:
            rises.append(np.diff(_steps(np.nan_to_num(ordered)), axis=0, prepend=np.uint16(0)))
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
                **({"missing": True} if missing else {}),
            }
        )
    header = {
        "version": VERSION,
        "method": scores.method,
        **({"changed": changed} if (changed := provenance.heads_changed(scores)) else {}),
        **provenance.method(scores),
        **({"display": display} if (display := provenance.display(scores)) else {}),
        "signed": scores.signed,
        "ranked_by": scores.ranked_by,
        "model": scores.record.model or "",
        "partial": scores.partial,
        "about": provenance.about(scores),
        "axes": provenance.axes(scores),
        "layers": list(scores.layers),
        **({"sections": provenance.sections(scores)} if provenance.sections(scores) else {}),
        "heads": scores.shape[1],
        "tasks": tasks,
    }
    numbers = [maps.astype("<f4").tobytes() for maps in exact]
    return header, b"".join(numbers) + _planes(rises)


def decode(header: dict[str, Any], buffer: bytes) -> list[dict[str, Any]]:
    """What the browser reads back, task by task.

    The maps by name, and ``order`` as (rank, layer, head).
    """
    if header["version"] != VERSION:
        raise ValueError(
            f"this buffer is wire version {header['version']}; "
            f"this headwidget reads version {VERSION}."
        )
    for task in header["tasks"]:
        _check_bits(task)
    shape = (len(header["layers"]), header["heads"])
    exact = [_exact_maps(task) for task in header["tasks"]]
    between = [len(task["ranks"]) - 2 if task["bits"] == 16 else 0 for task in header["tasks"]]
    cells = shape[0] * shape[1]
    exact_bytes = 4 * sum(exact) * cells
    promised = exact_bytes + 2 * sum(between) * cells
    if len(buffer) != promised:
        raise ValueError(f"the buffer holds {len(buffer)} bytes; its header promises {promised}.")
    maps = np.frombuffer(buffer[:exact_bytes], "<f4").reshape(-1, *shape)
    rises = _numbers(buffer[exact_bytes:]).reshape(-1, *shape)
    decoded = []
    for task, count, packed in zip(header["tasks"], exact, between):
        task_maps, maps = maps[:count], maps[count:]
        names = _names(task)
        order = task_maps[len(names) :]
        if packed:
            steps, rises = rises[:packed].cumsum(axis=0, dtype=np.uint16), rises[packed:]
            order = np.concatenate([order[:1], _value(steps, order[0], order[-1]), order[-1:]])
        decoded.append({**task, **dict(zip(names, task_maps)), "order": order})
    return decoded


def _check_bits(task: dict[str, Any]) -> None:
    ranks, bits = len(task["ranks"]), task["bits"]
    if bits != 32 and (bits != 16 or ranks < 3):
        raise ValueError(
            f"task {task['name']!r} has {ranks} order statistics of {bits} bits; "
            "this headwidget reads 32 bits, or 16 where there are 3 or more."
        )


def _names(task: dict[str, Any]) -> tuple[str, ...]:
    """The maps that stand before the order statistics."""
    return (*MAPS, "measured") if task.get("missing") else MAPS


def _exact_maps(task: dict[str, Any]) -> int:
    """How many maps of the task are exact."""
    return len(_names(task)) + (2 if task["bits"] == 16 else len(task["ranks"]))


def _value(steps: Steps, least: Array, most: Array) -> Array:
    """The scores that stand ``steps`` above the minimum, (rank, layer, head).

    At the last step that is the maximum itself. Worked out in float64 and rounded once, in
    this order, as in ``js/display/wire.ts``: the two agree in every bit.
    """
    step = (most.astype(np.float64) - least) / STEPS
    return np.where(steps == STEPS, most, (least + steps * step).astype(np.float32))


def _steps(ordered: Array) -> Steps:
    """How many steps above the minimum each order statistic lies, rounded down.

    (rank, layer, head), of those between the first and the last.
    """
    least, most, inner = ordered[0], ordered[-1], ordered[1:-1]
    span = most.astype(np.float64) - least
    fraction = (inner.astype(np.float64) - least) / np.where(span == 0, 1, span)
    steps: Steps = np.floor(fraction * STEPS).astype(np.uint16)
    # Where rounding overshot, one step back is enough: a step is far larger than any rounding.
    steps -= _value(steps, least, most) > inner
    return steps


def _planes(rises: list[Steps]) -> bytes:
    """The steps of all tasks as two planes of bytes, the lower bytes first."""
    rows = [steps.reshape(-1).astype("<u2") for steps in rises]
    flat = np.concatenate([np.empty(0, "<u2"), *rows])
    return flat.view(np.uint8).reshape(-1, 2).T.tobytes()


def _numbers(planes: bytes) -> Steps:
    """The steps that were written as two planes of bytes."""
    pairs = np.frombuffer(planes, np.uint8).reshape(2, -1).T  # (number, byte)
    return np.ascontiguousarray(pairs).view("<u2").reshape(-1)
