"""Intervals and order statistics of many runs: the same numbers, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import headwidget as hw
from headwidget.display import wire
from headwidget.scores import reduce
from headwidget.scores.reduce import PLAIN_RUNS, Array

MANY = PLAIN_RUNS + 1
HEADS = 40


def plain_bootstrap(values: Array, draws: int, level: float = 0.95) -> tuple[Array, Array]:
    """The definition: means of as many runs as there are, drawn with replacement."""
    rng = np.random.default_rng(17)
    flat = values.reshape(len(values), -1).astype(np.float64)
    means = np.stack(
        [flat[rng.integers(len(flat), size=len(flat))].mean(axis=0) for _ in range(draws)]
    )
    low, high = np.quantile(means, (0.5 - level / 2, 0.5 + level / 2), axis=0)
    return low.astype(np.float32), high.astype(np.float32)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(3, 2, shape).astype(np.float32)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.lognormal(0, 1.5, shape).astype(np.float32)


def yes_or_no(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (rng.random(shape) < 0.3).astype(np.float32)


def far_from_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(1000, 1, shape).astype(np.float32)


@pytest.mark.parametrize("runs", [300, MANY])
@pytest.mark.parametrize("scores", [normal, skewed, yes_or_no, far_from_zero])
def test_intervals_are_those_of_the_plain_bootstrap(
    scores: Callable[..., Array], runs: int
) -> None:
    """Up to the resamples' noise: an end of 2000 has a standard deviation of 0.06 errors."""
    values = scores(np.random.default_rng(3), (runs, 1, HEADS))
    low, high = (end.ravel() for end in reduce.interval(values, draws=2000))
    true_low, true_high = plain_bootstrap(values, 2000)
    error = values.astype(np.float64).std(axis=0).ravel() / np.sqrt(runs)
    for end, true_end in ((low, true_low), (high, true_high)):
        apart = (end - true_end) / error
        # all heads have the same resamples, but their own scores: the noise averages out
        assert np.abs(apart).max() < 0.4 and abs(apart.mean()) < 0.05
    width = (high - low).mean() / (true_high - true_low).mean()
    assert width == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("runs", [300, MANY, 20 * MANY])
def test_what_happens_in_ten_runs_of_many_has_the_interval_of_a_count_of_ten(runs: int) -> None:
    """Of ones among zeros, a resample's count is binomial: 4 to 17. The normal limit has 3.8."""
    values = np.zeros((runs, 1, 1), np.float32)
    values[:10] = 1
    low, high = reduce.interval(values, draws=4000)
    assert runs * low.item() == pytest.approx(4, abs=0.4)
    assert runs * high.item() == pytest.approx(17, abs=0.9)


def test_a_single_run_far_off_is_drawn_no_less_than_never() -> None:
    """The normal limit would put the low end below zero."""
    values = np.zeros((20 * MANY, 1, 1), np.float32)
    values[7] = 1e6
    low, high = reduce.interval(values)
    assert low.item() == 0
    assert len(values) * high.item() == pytest.approx(3e6, rel=0.05)  # 3 times in 1000


def test_other_levels_and_seeds_are_heeded() -> None:
    values = np.random.default_rng(0).normal(size=(MANY, 1, 3)).astype(np.float32)
    narrow, wide = (reduce.interval(values, level=level) for level in (0.5, 0.99))
    assert (wide[0] < narrow[0]).all() and (narrow[1] < wide[1]).all()
    error = values.std(axis=0) / np.sqrt(MANY)
    np.testing.assert_allclose(narrow[1] - narrow[0], 2 * 0.6745 * error, rtol=0.1)
    np.testing.assert_allclose(wide[1] - wide[0], 2 * 2.5758 * error, rtol=0.1)
    again, other = reduce.interval(values, seed=0), reduce.interval(values, seed=1)
    np.testing.assert_array_equal(again, reduce.interval(values))
    assert (np.array(again) != np.array(other)).all()


def test_the_largest_scores_have_finite_intervals() -> None:
    most = np.finfo(np.float32).max
    values = np.full((3 * MANY, 1, 2), most, np.float32)
    values[::2, 0, 1] = -most
    low, high = reduce.interval(values)
    assert np.isfinite(low).all() and np.isfinite(high).all()
    assert low[0, 0] == pytest.approx(most) and high[0, 0] == pytest.approx(most)


def test_intervals_do_not_depend_on_how_many_heads_are_done_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for runs in (50, MANY):
        values = np.random.default_rng(0).normal(size=(runs, 3, 7)).astype(np.float32)
        monkeypatch.setattr(reduce, "HEADS_AT_ONCE", 4096)
        whole = reduce.interval(values)
        monkeypatch.setattr(reduce, "HEADS_AT_ONCE", 5)
        np.testing.assert_allclose(reduce.interval(values), whole, rtol=1e-4, atol=1e-6)


def test_few_runs_at_a_time_give_the_resamples_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain bootstrap's numbers, in chunks of draws."""
    values = np.random.default_rng(0).normal(size=(60, 2, 3)).astype(np.float32)
    whole = reduce.interval(values)
    monkeypatch.setattr(reduce, "AT_ONCE", 60 * 7)
    np.testing.assert_allclose(reduce.interval(values), whole, rtol=1e-5, atol=1e-6)


def peak(call: Callable[[], object]) -> int:
    """The most bytes that a call holds at once."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_runs() -> None:
    """A weight for every draw and run would be 240 MB, a sorted copy 30 MB."""
    values = np.random.default_rng(0).normal(size=(60_000, 8, 16)).astype(np.float32)
    scores = hw.HeadScores.from_arrays({"a": values}, method="mine")
    for call in (
        lambda: reduce.interval(values, draws=200),
        lambda: reduce.median(values),
        lambda: reduce.order_statistic(values, 0.7),
        lambda: reduce.order_statistics(values, reduce.kept_statistics),
        lambda: wire.encode(scores),
    ):
        assert peak(call) < 28_000_000
    few = peak(lambda: reduce.interval(values[: 2 * MANY], draws=1000))
    assert peak(lambda: reduce.interval(values, draws=1000)) < 1.1 * few


@pytest.mark.parametrize("runs", [1, 2, 9, 10, 501])
def test_order_statistics_are_those_of_the_sorted_runs(
    runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(runs).normal(size=(runs, 3, 5)).astype(np.float32)
    ordered = np.sort(values, axis=0)
    ranks = reduce.kept_statistics(runs, most=4)
    middle = np.median(values.astype(np.float64), axis=0).astype(np.float32)
    for at_once in (reduce.AT_ONCE, 4 * runs, 1):
        monkeypatch.setattr(reduce, "AT_ONCE", at_once)
        np.testing.assert_array_equal(
            reduce.order_statistics(values, lambda _: ranks), ordered[ranks]
        )
        np.testing.assert_array_equal(
            reduce.order_statistics(values, lambda runs: [runs // 2])[0], ordered[runs // 2]
        )
        np.testing.assert_array_equal(reduce.median(values), middle)
