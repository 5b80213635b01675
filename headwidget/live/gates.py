"""Gates of heads, as the array that Python sets and as the list that the browser sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Gates = npt.NDArray[np.float32]
"""(layer, head): the factor of each head's output; 1 leaves it as it is."""


def checked(value: Any, shape: tuple[int, int]) -> Gates:
    """Gates as a read-only array of the model's shape; ``ValueError`` for anything else."""
    try:
        gates = np.array(value, np.float32)
    except (TypeError, ValueError):
        gates = np.empty(0, np.float32)
    is_finite = np.isfinite(gates)
    if gates.shape != shape or not is_finite.all():
        got = f"{value!r:.60}"
        if gates.ndim == 2:
            got = f"{gates.shape[0]} x {gates.shape[1]}, {is_finite.sum()} of them finite"
        raise ValueError(
            f"gates is a (layer, head) array of {shape[0]} x {shape[1]} finite numbers; got {got}."
        )
    gates.setflags(write=False)  # a change in place would notify no observer
    return gates


def checked_scaled(value: Any, layers: Sequence[int], n_heads: int) -> list[list[Any]]:
    """A list of [layer, head, factor] with heads that the model has; else ``ValueError``."""
    for entry in value:
        try:
            layer, head, factor = entry
            is_head = layer in layers and type(head) is int and 0 <= head < n_heads
            is_right = is_head and math.isfinite(factor)
        except (TypeError, ValueError):
            is_right = False
        if not is_right:
            raise ValueError(
                "a head is scaled by [layer, head, factor], a head that the model has and a "
                f"finite number; got {entry!r:.60}."
            )
    return list(value)


def to_scaled(gates: Gates, layers: Sequence[int]) -> list[list[Any]]:
    """[layer, head, factor] of every head whose gate is not 1.

    >>> to_scaled(np.array([[1, 1], [0.5, 1]], np.float32), layers=[3, 4])
    [[4, 0, 0.5]]
    """
    rows = np.argwhere(gates != 1)
    return [[layers[row], int(head), float(gates[row, head])] for row, head in rows]


def from_scaled(scaled: Sequence[Sequence[Any]], layers: Sequence[int], n_heads: int) -> Gates:
    """The gates that scale these heads: the inverse of :func:`to_scaled`.

    >>> from_scaled([[4, 0, 0.5]], layers=[3, 4], n_heads=2).tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """
    gates = np.ones((len(layers), n_heads), np.float32)
    for layer, head, factor in scaled:
        gates[layers.index(layer), head] = factor
    return gates
