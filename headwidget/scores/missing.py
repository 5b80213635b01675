"""Scores that were not measured: NaN, never zero.

Twin of ``js/scores/missing.ts``. A run that was stopped, or that gave up on weak heads early,
has some heads in fewer runs than others. What is said of a head is said of the runs in which
it was measured; a head that no run measured has no number, no rank, and passes no threshold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
Cells = npt.NDArray[np.intp] | slice

AT_ONCE = 2**21
"""How many scores are looked at together: what bounds the memory."""


def measured(values: npt.NDArray[np.floating]) -> Counts:
    """In how many runs each head was measured, (layer, head).

    >>> measured(np.array([[[1.0, np.nan]], [[2.0, 3.0]]], np.float32)).tolist()
    [[2, 1]]
    """
    counts = np.zeros(values.shape[1:], np.int64)
    at_once = max(1, AT_ONCE // max(1, counts.size))
    for start in range(0, len(values), at_once):
        counts += np.count_nonzero(~np.isnan(values[start : start + at_once]), axis=0)
    return counts


def known(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The numbers of a map, flat, without what is missing.

    >>> known(np.array([[1.0, np.nan], [3.0, 4.0]])).tolist()
    [1.0, 3.0, 4.0]
    """
    flat = scores.ravel()
    there = ~np.isnan(flat)
    return flat if there.all() else flat[there]


def by_count(values: Array) -> Iterator[tuple[int, Cells, Array]]:
    """Heads by the number of runs in which they were measured.

    For each number: the heads, as places in the flat map, and their scores alone, (run, head),
    in the order of the runs. Heads that were never measured are left out.
    """
    runs = len(values)
    flat = values.reshape(runs, -1)  # (run, layer * head)
    counts = measured(values).ravel()
    if (counts == runs).all():
        yield runs, slice(None), flat
        return
    for count in np.unique(counts[counts > 0]).tolist():
        cells = np.flatnonzero(counts == count)
        some = flat[:, cells]
        first = np.argsort(np.isnan(some), axis=0, kind="stable")[:count]  # those measured
        yield count, cells, np.take_along_axis(some, first, axis=0)
