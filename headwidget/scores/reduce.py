"""Reductions of many runs to one number a head, in numpy: what every view shows.

Twin of ``js/scores/reduce.ts``; ``tests/golden/reduce.json`` holds the two together.
Everything here takes plain arrays: ``values`` is (run, layer, head), a *map* is (layer,
head). Scores are float32 on both sides and thresholds are rounded to float32 before they
are compared, so that Python and the browser agree on every head, also at the edge. A score
that was not measured is NaN: a head is reduced over the runs in which it was measured, and is
NaN where there is none (:mod:`headwidget.scores.missing`).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from headwidget.scores.missing import Counts, by_count, known

Array = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
How = Literal["mean", "median", "always", "any"] | float

QUICK = 100_000_000
"""Multiplications of a matrix product that one core does in a moment."""
ONE_THREAD = 262_144
"""Multiplications of a matrix product that OpenBLAS leaves to one thread."""
MOST_STATISTICS = 33
"""At most this many order statistics a head cross the wire, minimum and maximum among them."""
AT_ONCE = 2**21
"""How many scores are sorted, or weights drawn, at a time: what bounds the memory."""
HEADS_AT_ONCE = 4096
PLAIN_RUNS = 2048
"""With more runs than these, intervals are those of the Poisson bootstrap."""
POISSON_LEVELS = 2**16
"""A Poisson number is looked up in a table with a uniform number below this."""


def runs_needed(agreement: float, runs: int) -> int:
    """How many of ``runs`` make up the fraction ``agreement``.

    0 means any (one run), 1 means always (all of them).

    >>> runs_needed(0.5, 10), runs_needed(0.0, 10), runs_needed(1.0, 10)
    (5, 1, 10)
    """
    if not 0.0 <= agreement <= 1.0:
        raise ValueError(
            f"agreement is a fraction of the runs, from 0 (any) to 1 (always); got {agreement!r}."
        )
    return max(1, math.ceil(agreement * runs - 1e-9))  # 0.1 * 30 is 3.0000000000000004


def runs_needed_of(agreement: float, measured: Counts) -> npt.NDArray[np.float64]:
    """The same for every head, of the runs in which it was measured; infinite for none."""
    needed = np.full(measured.shape, np.inf)
    for runs in np.unique(measured[measured > 0]).tolist():
        needed[measured == runs] = runs_needed(agreement, runs)
    return needed


def mean(values: Array) -> Array:
    """The mean over runs, summed in float64."""
    means: Array = wide_mean(values).astype(np.float32)
    return means


def wide_mean(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The mean over the runs in which a head was measured, in float64; NaN where there is none."""
    means: npt.NDArray[np.float64] = values.mean(axis=0, dtype=np.float64)
    if not np.isnan(means).any():
        return means
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
        means = values.sum(axis=0, dtype=np.float64, where=there) / there.sum(axis=0)
    return means


def order_statistic(values: Array, agreement: float) -> Array:
    """The value reached by at least the fraction ``agreement`` of the runs.

    >>> v = np.array([[[1.0]], [[2.0]], [[3.0]]], dtype=np.float32)
    >>> [float(order_statistic(v, q)[0, 0]) for q in (0.0, 0.5, 1.0)]
    [3.0, 2.0, 1.0]
    """
    reached: Array = order_statistics(values, lambda runs: [runs - runs_needed(agreement, runs)])[0]
    return reached


def order_statistics(values: Array, ranks_of: Callable[[int], Sequence[int]]) -> Array:
    """The scores at some ranks of each head's sorted runs, 0 the smallest, (rank, layer, head).

    ``ranks_of`` gives the ranks for a number of runs, as many for any number. A copy of some
    heads is sorted at a time.
    """
    runs, ranks = len(values), list(ranks_of(len(values)))
    flat = values.reshape(runs, -1)  # (run, layer * head)
    chosen = np.empty((len(ranks), flat.shape[1]), np.float32)
    at_once = max(1, AT_ONCE // runs)
    for start in range(0, flat.shape[1], at_once):
        some = flat[:, start : start + at_once]
        if len(ranks) > 1:
            ordered = np.sort(some, axis=0)
        else:
            ordered = np.partition(some, [*ranks, runs - 1], axis=0)
        chosen[:, start : start + at_once] = ordered[ranks]
        missing = np.flatnonzero(np.isnan(ordered[-1]))  # NaN is sorted to the end
        if len(missing):
            chosen[:, start + missing] = _of_measured(some[:, missing], ranks_of)
    return chosen.reshape(len(ranks), *values.shape[1:])


def _of_measured(flat: Array, ranks_of: Callable[[int], Sequence[int]]) -> Array:
    """The same of heads that were not measured in every run, (rank, head)."""
    chosen = np.full((len(ranks_of(len(flat))), flat.shape[1]), np.nan, np.float32)
    for count, cells, some in by_count(flat[:, None]):
        chosen[:, cells] = np.sort(some, axis=0)[list(ranks_of(count))]
    return chosen


def median(values: Array) -> Array:
    """The median over runs; of an even number, the mean of the two in the middle."""
    return middle(*order_statistics(values, middle_ranks))


def middle_ranks(runs: int) -> list[int]:
    """The ranks of the two in the middle; the same one twice where ``runs`` is odd."""
    return [(runs - 1) // 2, runs // 2]


def middle(lower: Array, upper: Array) -> Array:
    """Halfway between two maps, worked out in float64."""
    return ((lower.astype(np.float64) + upper) / 2).astype(np.float32)


def reduce(values: Array, how: How = "mean") -> Array:
    """One map from many runs.

    ``how`` is ``"mean"``, ``"median"``, ``"always"`` (min), ``"any"`` (max), or an
    agreement from 0 to 1.
    """
    if how == "mean":
        return mean(values)
    if how == "median":
        return median(values)
    if how == "always":
        return order_statistic(values, 1.0)
    if how == "any":
        return order_statistic(values, 0.0)
    if isinstance(how, numbers.Real) and not isinstance(how, bool):
        return order_statistic(values, float(how))
    raise ValueError(
        f"reduction {how!r} is not known; use 'mean', 'median', 'always', 'any' or a number "
        "from 0 to 1."
    )


def float32(threshold: float) -> np.float32:
    """A threshold as it is compared; infinite where it is beyond the largest float32."""
    with np.errstate(over="ignore"):
        return np.float32(threshold)


def reaches(values: Array, threshold: float) -> Mask:
    """Where a score reaches the threshold, compared in float32 as the browser does."""
    return values >= float32(threshold)


def on(values: Array, threshold: float, agreement: float = 1.0) -> Mask:
    """Heads that reach ``threshold`` in at least the fraction ``agreement`` of their runs."""
    return reaches(order_statistic(values, agreement), threshold)


def whole(scores: Array) -> float:
    """The sum of ``|score|`` over a map, added up in the order the browser adds."""
    sizes = np.abs(known(scores).astype(np.float64))
    return float(np.cumsum(sizes)[-1]) if sizes.size else 0.0


def share(scores: Array) -> Array:
    """A map as shares of its whole: ``|score| / sum |score|`` (all zero when the map is)."""
    size, total = np.abs(scores.astype(np.float64)), whole(scores)
    return (size / total if total > 0 else size).astype(np.float32)


def elbow(scores: Array) -> float:
    """The cut-off of Ma et al. (2025): where sorted ``|score|`` lies farthest below its chord.

    The chord goes from the largest to the smallest.

    >>> elbow(np.array([[10.0, 9.0, 1.0, 0.5, 0.0]], dtype=np.float32))
    1.0
    """
    size = np.sort(np.abs(known(scores).astype(np.float64)))[::-1]
    if len(size) < 3 or size[0] == size[-1]:
        return float(size[0]) if len(size) else 0.0
    along = np.arange(len(size)) / (len(size) - 1)
    drop = (size - size[-1]) / (size[0] - size[-1])
    distance = 1.0 - along - drop  # from the chord, up to a constant factor
    return float(size[int(np.argmax(distance))])


def top(scores: Array, k: int) -> list[tuple[int, int]]:
    """The ``k`` largest heads of a map as (layer, head), largest first.

    Of heads that tie, the lower layer, then head, is first. Heads that were not measured are
    left out.
    """
    heads = scores.shape[1]
    k = min(max(0, k), known(scores).size)
    order = np.argsort(-scores.ravel().astype(np.float64), kind="stable")[:k]  # NaN comes last
    return [(int(i) // heads, int(i) % heads) for i in order]


def interval(
    values: Array, *, level: float = 0.95, draws: int = 1000, seed: int = 0
) -> tuple[Array, Array]:
    """Bootstrap interval of the mean over runs: the lower and the upper map.

    Its ends are percentiles of the means of ``draws`` resamples. Up to ``PLAIN_RUNS`` runs, a
    resample draws as many runs as there are, with replacement. Of more runs, each counts as
    often as a Poisson number of mean 1 says, and the mean is taken over the sum of these (the
    Poisson bootstrap, Hanley and MacGibbon 2006): the same but for a part in the number of
    runs, and it needs a few runs at a time only. Of one run, both ends are that run.
    """
    low, high = np.full((2, values[0].size), np.nan, np.float32)
    for count, cells, some in by_count(values):
        if count == 1:
            low[cells] = high[cells] = some[0]
        else:
            low[cells], high[cells] = _interval(some, level, draws, seed)
    return low.reshape(values.shape[1:]), high.reshape(values.shape[1:])


def _interval(flat: Array, level: float, draws: int, seed: int) -> tuple[Array, Array]:
    """The same of (run, head) scores, two runs or more, all of them measured."""
    resampled_means = _plain_bootstrap if len(flat) <= PLAIN_RUNS else _poisson_bootstrap
    low, high = np.empty((2, flat.shape[1]), np.float32)
    ends = (0.5 - level / 2, 0.5 + level / 2)
    for start in range(0, flat.shape[1], HEADS_AT_ONCE):
        heads = slice(start, start + HEADS_AT_ONCE)
        # every head has the same resamples
        means = resampled_means(flat[:, heads], draws, np.random.default_rng(seed))
        low[heads], high[heads] = np.quantile(means, ends, axis=0)
    return low, high


def _plain_bootstrap(flat: Array, draws: int, rng: np.random.Generator) -> Array:
    """The mean of each resample, (draw, head)."""
    runs = len(flat)
    means = np.empty((draws, flat.shape[1]), np.float32)
    at_once = max(1, AT_ONCE // runs)
    for start in range(0, draws, at_once):
        size = min(at_once, draws - start)
        counts = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=size)  # (draw, run)
        weights = counts.astype(np.float32) / np.float32(runs)
        means[start : start + size] = _means(weights, flat)
    return means


def _poisson_bootstrap(
    flat: Array, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """The mean of each resample, (draw, head), added up in float64 over chunks of runs."""
    at_once = max(1, AT_ONCE // draws)
    counts = _poisson_table()
    # scaled so that no sum of a chunk is beyond float32, whatever the scores
    table = (counts / (counts[-1] * at_once)).astype(np.float32)
    sums, totals = np.zeros((draws, flat.shape[1])), np.zeros((draws, 1))
    for start in range(0, len(flat), at_once):
        some = flat[start : start + at_once]
        drawn = rng.integers(POISSON_LEVELS, size=(draws, len(some)), dtype=np.uint16)
        weights = table[drawn]  # (draw, run)
        sums += weights @ some
        totals += weights @ np.ones((len(some), 1), np.float32)
    means: npt.NDArray[np.float64] = sums / totals
    return means


def _poisson_table() -> npt.NDArray[np.int64]:
    """The Poisson number of mean 1 for each of ``POISSON_LEVELS`` equally likely levels."""
    up_to = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(20)])
    levels = (np.arange(POISSON_LEVELS) + 0.5) / POISSON_LEVELS
    return np.searchsorted(up_to, levels)


def _means(weights: Array, flat: Array) -> Array:
    """``weights @ flat``, (draw, head), by one thread where that is quick.

    OpenBLAS' other threads spin for 0.1 s after their work, which slows a live run.
    """
    draws, runs = weights.shape
    if draws * flat.size > QUICK:
        return weights @ flat
    means = np.empty((draws, flat.shape[1]), np.float32)
    at_once = max(1, ONE_THREAD // (8 * runs))  # draws, for 8 heads
    for start in range(0, draws, at_once):
        rows = slice(start, start + at_once)
        for head in range(0, flat.shape[1], 8):
            columns = slice(head, head + 8)
            np.matmul(weights[rows], flat[:, columns], out=means[rows, columns])
    return means


def kept_statistics(runs: int, most: int = MOST_STATISTICS) -> list[int]:
    """Which order statistics of ``runs`` sorted runs are kept: at most ``most``, evenly spread.

    >>> kept_statistics(4), kept_statistics(100, most=3)
    ([0, 1, 2, 3], [0, 50, 99])
    """
    return spread_ranks(runs, min(runs, most))


def spread_ranks(runs: int, places: int) -> list[int]:
    """The ranks of ``runs`` sorted runs at so many places, evenly spread from first to last.

    A head that was measured in fewer runs than others has as many places; some of its runs
    stand at several.

    >>> spread_ranks(3, 5)
    [0, 1, 1, 2, 2]
    """
    if places == 1:
        return [0]
    return [math.floor(place * (runs - 1) / (places - 1) + 0.5) for place in range(places)]


def kept_rank(kept: Sequence[int], runs: int, agreement: float) -> int:
    """Index into ``kept`` of the order statistic for ``agreement``.

    Where that rank was not kept, the next lower one is used: the browser may understate
    agreement, never overstate it.
    """
    rank = runs - runs_needed(agreement, runs)
    return max(i for i, r in enumerate(kept) if r <= rank)
