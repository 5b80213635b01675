"""Gates of heads, as the array that Python sets and as the list that the browser sends."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Gates = npt.NDArray[np.float32]
"""(layer, head): the factor of each head's output; 1 leaves it as it is."""
LARGEST = float(np.finfo(np.float32).max)
"""The largest factor that is finite in float32."""


def checked(shape: tuple[int, int], value: Any) -> Gates:
    """Gates as a read-only array of the model's shape; ``ValueError`` for anything else."""
    gates: Any = np.empty(0, np.float32)
    with contextlib.suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        numbers = np.asarray(value)
        # An array of objects holds whole numbers beyond 64 bits, among others.
        if numbers.dtype.kind in "fiubO":
            gates = np.array(numbers, np.float32)
    is_finite = np.isfinite(gates)
    if gates.shape != shape or not is_finite.all():
        got = f"{value!r:.60}"
        if gates.ndim == 2:
            rows, columns = gates.shape
            got = f"{rows} x {columns}, {is_finite.sum()} of them finite in float32"
        raise ValueError(
            f"gates is a (layer, head) array of {shape[0]} x {shape[1]} finite numbers; got {got}."
        )
    gates.setflags(write=False)  # a change in place would notify no observer
    return cast(Gates, gates)


def checked_scaled(layers: Sequence[int], n_heads: int, value: Any) -> list[list[Any]]:
    """A list of [layer, head, factor] as :func:`to_scaled` gives it; else ``ValueError``."""
    if not isinstance(value, list):
        raise ValueError(f"_scaled is a list of [layer, head, factor]; got {value!r:.60}.")
    for entry in value:
        if not _is_scaled(entry, layers, n_heads):
            raise ValueError(
                "a head is scaled by [layer, head, factor], a head that the model has and a "
                f"number that float32 can hold; got {entry!r:.60}."
            )
    return to_scaled(from_scaled(value, layers, n_heads), layers)


def _is_scaled(entry: Any, layers: Sequence[int], n_heads: int) -> bool:
    if not isinstance(entry, (list, tuple)) or [type(number) for number in entry[:2]] != [int, int]:
        return False
    if len(entry) != 3 or type(entry[2]) not in (int, float):
        return False
    layer, head, factor = entry
    return layer in layers and 0 <= head < n_heads and abs(factor) <= LARGEST


def to_scaled(gates: Gates, layers: Sequence[int]) -> list[list[Any]]:
    """[layer, head, factor] of every head whose gate is not 1.

    >>> to_scaled(np.array([[1, 1], [0.15, 1]], np.float32), layers=[3, 4])
    [[4, 0, 0.15]]
    """
    rows = np.argwhere(gates != 1)
    return [[layers[row], int(head), shortest(gates[row, head])] for row, head in rows]


def shortest(gate: np.float32) -> float:
    """The number with the fewest digits that float32 holds as this gate.

    >>> float(np.float32(0.15)), shortest(np.float32(0.15))
    (0.15000000596046448, 0.15)
    """
    short = float(np.format_float_scientific(gate, unique=True))
    # The fewest digits of float32's largest numbers can lie beyond its range.
    is_same = abs(short) <= LARGEST and np.float32(short) == gate
    return short if is_same else float(gate)


def from_scaled(scaled: Sequence[Sequence[Any]], layers: Sequence[int], n_heads: int) -> Gates:
    """The gates that scale these heads: the inverse of :func:`to_scaled`.

    >>> from_scaled([[4, 0, 0.5]], layers=[3, 4], n_heads=2).tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """
    gates = np.ones((len(layers), n_heads), np.float32)
    for layer, head, factor in scaled:
        gates[layers.index(layer), head] = factor
    return gates
