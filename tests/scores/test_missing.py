"""Scores that were not measured: reduced, ranked, saved and compared as if they were not there."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headwidget as hw
from headwidget.display import wire
from headwidget.scores import missing, rank, reduce

NAN = np.nan
SOME = arrays(
    np.float32,
    st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 4)),
    elements=st.sampled_from([NAN, NAN, -0.5, 0.0, 0.25, 0.25, 1.0]),
)


def some_scores() -> hw.HeadScores:
    """Head 0 in all runs, head 1 in two of three, head 2 in none; another task not begun."""
    runs = [[[3.0, 1.0, NAN]], [[1.0, NAN, NAN]], [[2.0, 3.0, NAN]]]
    return hw.HeadScores.from_arrays({"a": runs, "late": np.full((1, 1, 3), NAN)}, method="mine")


@given(SOME)
def test_a_head_is_reduced_over_the_runs_that_measured_it(values: np.ndarray) -> None:
    low, high = reduce.interval(values, draws=50)
    reduced = {how: reduce.reduce(values, how) for how in ("mean", "median", 0.0, 0.4, 1.0)}
    counts = missing.measured(values)
    for layer, head in np.ndindex(values.shape[1:]):
        column = values[:, layer, head]
        own = column[~np.isnan(column)]
        assert counts[layer, head] == len(own)
        numbers = {how: a[layer, head] for how, a in reduced.items()}
        ends = (low[layer, head], high[layer, head])
        if not len(own):
            assert np.isnan([*numbers.values(), *ends]).all()
            continue
        alone = own[:, None, None]  # the same head without the other runs
        for how, number in numbers.items():
            assert number == reduce.reduce(alone, how)[0, 0], how
        for end, plain in zip(ends, reduce.interval(alone, draws=50)):
            np.testing.assert_allclose(end, plain[0, 0], rtol=1e-5, atol=1e-6)
        needed = reduce.runs_needed(0.4, len(own))
        assert reduce.on(values, 0.25, 0.4)[layer, head] == ((own >= 0.25).sum() >= needed)


@given(SOME)
def test_what_crosses_the_wire_tells_every_run_of_every_head(values: np.ndarray) -> None:
    header, buffer = wire.encode(hw.HeadScores.from_arrays({"a": values}, method="mine"))
    (task,) = wire.decode(header, buffer)
    assert task.get("missing", False) == bool(np.isnan(values).any())
    for layer, head in np.ndindex(values.shape[1:]):
        column = values[:, layer, head]
        own = np.sort(column[~np.isnan(column)])
        got = task["order"][:, layer, head]
        if not len(own):
            assert np.isnan(got).all()
            continue
        ranks = reduce.spread_ranks(len(own), len(task["ranks"]))
        assert set(ranks) == set(range(len(own)))
        assert got.tolist() == own[ranks].tolist()
        if task.get("missing"):
            assert task["measured"][layer, head] == len(own)


def test_no_rank_no_place_and_no_threshold_for_what_was_not_measured() -> None:
    scores = some_scores()
    assert scores.measured("a").tolist() == [[3, 2, 0]]
    assert scores.reduce("mean")[0, 0, :2].tolist() == [2.0, 2.0]
    assert rank.ranks(scores, "a").tolist() == [[1, 1, 0]]
    assert rank.ranks_from_bottom(scores, "a").tolist() == [[1, 1, 0]]
    assert scores.top("a", 5) == [(0, 0), (0, 1)] and scores.top("late", 5) == []
    assert scores.on(0.0, 0.0)[:, 0].tolist() == [[True, True, False], [False] * 3]
    np.testing.assert_array_equal(scores.share()[0, 0], np.float32([0.5, 0.5, NAN]))
    assert scores.elbow("a") == 2.0 and scores.elbow("late") == 0.0
    low, high = scores.interval()
    assert low[0, 0, 1] == 1.0 and high[0, 0, 1] == 3.0 and np.isnan(low[0, 0, 2])


def test_none_and_masked_cells_are_missing_too() -> None:
    given_none = hw.HeadScores.from_arrays({"a": [[1.0, None]]}, method="mine")  # type: ignore[dict-item]
    masked = np.ma.masked_array([[1.0, 7.0]], mask=[[False, True]])
    for scores in (given_none, hw.HeadScores.from_arrays({"a": masked}, method="mine")):
        np.testing.assert_array_equal(scores.values("a"), np.float32([[[1.0, NAN]]]))
    nothing_hidden = np.ma.masked_array([[1.0, 7.0]])
    scores = hw.HeadScores.from_arrays({"a": nothing_hidden}, method="mine")
    assert scores.values("a").tolist() == [[[1.0, 7.0]]]


def test_files_frames_and_pickles_keep_what_is_missing(tmp_path: Path) -> None:
    scores = some_scores()
    saved = hw.open(scores.save(tmp_path / "some.safetensors"))
    for again in (saved, pickle.loads(pickle.dumps(scores)), scores.select(["late", "a"])):
        for task in scores.tasks:
            np.testing.assert_array_equal(again.values(task), scores.values(task))
    frame = scores.to_pandas()
    assert len(frame) == 12 and frame["score"].isna().sum() == 4 + 3
    xarray = pytest.importorskip("xarray")
    assert isinstance(scores.to_xarray(), xarray.Dataset)
    assert int(scores.to_xarray()["score"].isnull().sum()) == 18 - 5


def test_a_head_that_was_not_measured_is_said() -> None:
    scores = some_scores()
    assert hw.describe(scores, 0, 2) == "Head 0.2, of 3: mine: not measured."
    assert "1st" in hw.describe(scores, 0, 0)


def test_every_view_and_figure_draws_scores_with_gaps() -> None:
    scores = some_scores()
    for view in ("tasks", "agreement", "categories"):
        for threshold in (None, 2.0):
            figure = scores.figure(view, threshold=threshold)
            figure.canvas.draw()
    nothing = scores.select(["late"])
    explorer = hw.explore(nothing)
    assert explorer._header["tasks"][0]["missing"]
    nothing.figure().canvas.draw()


def test_merged_runs_may_have_gaps() -> None:
    a = hw.HeadScores.from_arrays({"t": [[[1.0, NAN]]]}, method="mine", runs={"t": ["x"]})
    b = hw.HeadScores.from_arrays({"t": [[[NAN, 5.0]]]}, method="mine", runs={"t": ["y"]})
    assert (a + b).measured("t").tolist() == [[1, 1]]
    again = hw.HeadScores.from_arrays({"t": [[[1.0, 2.0]]]}, method="mine", runs={"t": ["x"]})
    with pytest.raises(ValueError, match="1 of the runs are in both"):
        a + again


def test_differences_are_of_the_runs_that_both_measured() -> None:
    before = np.float32([[[1.0, NAN, 3.0]], [[2.0, 5.0, NAN]]])
    after = np.float32([[[2.0, 1.0, NAN]], [[4.0, 6.0, NAN]]])
    labels = {"t": ["x", "y"]}
    sides = [
        hw.HeadScores.from_arrays({"t": values}, method="mine", runs=labels)
        for values in (after, before)
    ]
    change = hw.difference(*sides, names=("after", "before"), heads="index")
    np.testing.assert_array_equal(
        change.values("t: after − before"), np.float32([[[1, NAN, NAN]], [[2, 1, NAN]]])
    )
    by_rank = hw.difference(*sides, names=("after", "before"), heads="rank")
    assert not np.isnan(by_rank.reduce("mean")[:, 0, 0]).any()  # the strongest were measured


def test_differences_of_other_prompts_use_each_heads_own_runs() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 1, 3)), rng.normal(size=(5, 1, 3))
    a[3:, 0, 1] = NAN  # measured in three runs
    b[:, 0, 2] = NAN  # never measured
    sides = [hw.HeadScores.from_arrays({"t": v}, method="mine") for v in (a, b)]
    change = hw.difference(*sides, names=("a", "b"), heads="index").values("t: a − b")
    assert missing.measured(change).tolist() == [[5, 3, 0]]
    means = reduce.wide_mean(change)[0]
    np.testing.assert_allclose(means[0], a[:, 0, 0].mean() - b[:, 0, 0].mean(), rtol=1e-5)
    np.testing.assert_allclose(means[1], a[:3, 0, 1].mean() - b[:, 0, 1].mean(), rtol=1e-5)
    n, m = 3, 5
    variance = n * (a[:3, 0, 1].var(ddof=1) / n + b[:, 0, 1].var(ddof=1) / m)
    own = change[:3, 0, 1]
    assert own.var(ddof=1) > 0 and variance > 0
