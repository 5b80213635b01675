"""Scores as they cross to the browser: one JSON header and one flat buffer of little-endian float32.

Twin of ``js/wire.ts``; ``tests/golden/wire.json`` holds the two together. The buffer has, for every task in order,
the maps ``mean``, ``low`` and ``high`` (95% bootstrap interval of the mean), then one map for each kept order statistic,
smallest first. A map is layer-major: layers x heads. Its size does not grow with the number of prompts (``reduce.MOST_RANKS``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget import reduce

if TYPE_CHECKING:
    from headwidget.scores import HeadScores

VERSION = 1
MAPS = ("mean", "low", "high")
"""The maps of every task that stand before its order statistics."""


def encode(scores: HeadScores) -> tuple[dict[str, Any], bytes]:
    """The header (JSON) and the buffer for the browser."""
    tasks: list[dict[str, Any]] = []
    parts: list[np.ndarray] = []
    for name in scores.tasks:
        values = scores.values(name)
        low, high = reduce.interval(values)
        kept = reduce.ranks(len(values))
        ordered = np.sort(values, axis=0)[kept]  # (rank, layer, head)
        parts += [reduce.mean(values)[None], low[None], high[None], ordered]
        tasks.append({"name": name, "category": scores.categories.get(name), "runs": len(values), "ranks": kept})
    header = {
        "version": VERSION,
        "method": scores.method,
        "signed": scores.signed,
        "model": str(scores.meta.get("model", "")),
        "partial": bool(scores.meta.get("partial", False)),
        "layers": list(scores.layers),
        "heads": scores.shape[1],
        "tasks": tasks,
    }
    flat = np.concatenate([p.reshape(-1) for p in parts]) if parts else np.empty(0)
    return header, flat.astype("<f4").tobytes()


def decode(header: dict[str, Any], buffer: bytes) -> list[dict[str, Any]]:
    """What the browser reads back, task by task: the maps by name, and ``order`` as (rank, layer, head)."""
    if header["version"] != VERSION:
        raise ValueError(f"this buffer is wire version {header['version']}; this headwidget reads version {VERSION}.")
    layers, heads = len(header["layers"]), header["heads"]
    promised = sum(len(MAPS) + len(task["ranks"]) for task in header["tasks"]) * layers * heads
    if len(buffer) != 4 * promised:
        raise ValueError(f"the buffer holds {len(buffer) / 4:g} numbers; its header promises {promised}.")
    flat = np.frombuffer(buffer, dtype="<f4")
    at, out = 0, []
    for task in header["tasks"]:
        count = len(MAPS) + len(task["ranks"])
        maps = flat[at : at + count * layers * heads].reshape(count, layers, heads)
        at += count * layers * heads
        out.append({**task, **dict(zip(MAPS, maps)), "order": maps[len(MAPS) :]})
    return out
