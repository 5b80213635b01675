"""Two models' heads on one grid of layers and heads, and the runs of their difference."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headwidget.scores import rank, reduce
from headwidget.scores.missing import measured
from headwidget.scores.rank import RankedBy

Wide = npt.NDArray[np.float64]  # (run, row, column) of the common grid


@dataclass(frozen=True)
class Grid:
    """Where the cells of the common grid are read in one side's scores."""

    layers: npt.NDArray[np.intp]  # (row,)
    heads: npt.NDArray[np.intp]  # (row, column)

    @classmethod
    def of(cls, values: Wide, rows: int, columns: int, *, ranked_by: RankedBy | None) -> Grid:
        """The grid of (run, layer, head) values.

        Heads stand in order of their rank within a layer; where ``ranked_by`` is None, of
        their number.
        """
        layer_count, head_count = values.shape[1:]
        if ranked_by is None:
            order = np.tile(np.arange(head_count), (layer_count, 1))  # (layer, rank)
        else:
            ranking = rank.ranking_values(reduce.wide_mean(values), ranked_by)
            order = np.argsort(-ranking, axis=1, kind="stable")  # (layer, rank), NaN last
        layers = _relative(rows, layer_count)
        return cls(layers, order[layers][:, _relative(columns, head_count)])

    @property
    def by_number(self) -> bool:
        """True when every cell holds the head of its own number."""
        numbers = np.broadcast_to(np.arange(self.heads.shape[1]), self.heads.shape)
        return np.array_equal(self.heads, numbers)

    def spread(self, values: Wide) -> Wide:
        """(run, layer, head) values of the side, on the grid."""
        return values[:, self.layers[:, None], self.heads]


def _relative(cells: int, count: int) -> npt.NDArray[np.intp]:
    """For each of ``cells`` places, which of ``count`` lies at the same relative place.

    It is floor((i + 0.5) * count / cells).
    """
    return (2 * np.arange(cells) + 1) * count // (2 * cells)


def as_share(values: Wide) -> Wide:
    """Values over the sum of ``|mean|`` of their map, sign kept."""
    total = np.nansum(np.abs(reduce.wide_mean(values)))
    return values / total if total > 0 else values


def paired(a: Sequence[str], b: Sequence[str]) -> list[int] | None:
    """Which run of ``b`` belongs to each run of ``a``; None where they are not the same runs.

    A label that is there twice pairs only where the order is the same.
    """
    if tuple(a) == tuple(b):
        return list(range(len(a)))
    place = {label: i for i, label in enumerate(b)}
    if len(a) == len(b) == len(place) and set(a) == set(place):
        return [place[label] for label in a]
    return None


def shuffled(labels: Sequence[str]) -> list[int]:
    """An order of the runs that depends on their labels alone, and is the same every time.

    Prompts are often listed with easy ones first, which would correlate unrelated runs.
    """
    digests = [hashlib.sha256(label.encode(errors="surrogatepass")).digest() for label in labels]
    return sorted(range(len(labels)), key=digests.__getitem__)


def independent(a: Wide, b: Wide) -> Wide:
    """Scheffé's runs for the difference of the means of two independent samples.

    They are uncorrelated, of one mean and one variance. A head that was measured in fewer runs
    has fewer of them; the others are NaN.
    """
    runs: Wide = np.full((min(len(a), len(b)), *a.shape[1:]), np.nan)
    counts = np.stack([measured(a), measured(b)])  # (side, row, column)
    for n, m in np.unique(counts.reshape(2, -1), axis=1).T:
        if n and m:
            cells = (counts[0] == n) & (counts[1] == m)
            runs[: min(n, m), cells] = _scheffe(_only(a[:, cells], n), _only(b[:, cells], m))
    return runs


def _only(values: Wide, count: int) -> Wide:
    """Of (run, head) values with ``count`` measured runs each, those, in the order of the runs."""
    first = np.argsort(np.isnan(values), axis=0, kind="stable")[:count]
    return np.take_along_axis(values, first, axis=0)


def _scheffe(a: Wide, b: Wide) -> Wide:
    """The runs of the difference for (run, head) values, all of them measured."""
    if len(a) > len(b):
        return -_scheffe(b, a)
    n, m = len(a), len(b)
    if n == m:
        return a - b  # the other terms cancel, but for rounding
    runs: Wide = a - np.sqrt(n / m) * b[:n] + b[:n].sum(axis=0) / np.sqrt(n * m) - b.mean(axis=0)
    return runs
