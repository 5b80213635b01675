"""What the wire promises of any scores: nothing overstated, in order, ends exact, small."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headwidget as hw
from headwidget.display import wire
from headwidget.scores import provenance, reduce

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def crossed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order statistics kept of (run, head) values, and what is decoded: (rank, head) each."""
    header, buffer = wire.encode(hw.HeadScores.from_arrays({"a": values[:, None]}, method="mine"))
    true = np.sort(values, axis=0)[reduce.kept_statistics(len(values))]
    return true, wire.decode(header, buffer)[0]["order"][:, 0]


def hold(true: np.ndarray, got: np.ndarray) -> None:
    """Never overstated, in order, by less than a step understated, ends exact."""
    assert got.dtype == np.float32
    assert (got <= true).all()
    assert (np.diff(got.astype(np.float64), axis=0) >= 0).all()
    assert (got >= got[0]).all()
    assert got[0].tobytes() == true[0].tobytes() and got[-1].tobytes() == true[-1].tobytes()
    assert (got == true)[true == true[-1]].all()  # runs at the maximum stay there
    step = (true[-1].astype(np.float64) - true[0]) / 65535
    digit = np.abs(true.astype(np.float64)) * 2**-23 + SMALLEST  # the last one of a float32
    assert (true.astype(np.float64) - got <= 2 * step + digit).all()


# Half of float32's range, so that a mean over runs is itself a float32: far beyond any score.
ANY = st.floats(
    width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126
)
EXTREME = st.sampled_from(
    [
        0.0,
        -0.0,
        SMALLEST,
        -SMALLEST,
        2 * SMALLEST,
        1e-38,
        1.0,
        1 + 2**-23,
        1 - 2**-24,
        -1.0,
        1e30,
        8e37,
        -8e37,
    ]
)


@given(
    arrays(np.float32, st.tuples(st.integers(34, 70), st.integers(1, 4)), elements=ANY | EXTREME)
)
@example(np.full((40, 1), -0.0, np.float32))
@example(np.full((40, 2), 0.7, np.float32))
@example(np.linspace(-8e37, 8e37, 50, dtype=np.float32)[:, None])
@example((np.arange(50, dtype=np.float32) * np.float32(SMALLEST))[:, None])
@example(np.float32(1) + (np.arange(50, dtype=np.float32)[:, None] % 3) * np.float32(2**-23))
@example(np.array([-8e37, *[SMALLEST] * 39, 1e-38], np.float32)[:, None])
def test_more_runs_than_are_kept_are_never_overstated(values: np.ndarray) -> None:
    hold(*crossed(values))


@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False)
        | st.sampled_from([LARGEST, -LARGEST]),
        min_size=3,
        max_size=40,
    )
)
@example([-LARGEST, 0.0, SMALLEST, LARGEST])
@example([-LARGEST, -LARGEST, LARGEST, LARGEST])
def test_steps_hold_over_all_of_float32(column: list[float]) -> None:
    true = np.sort(np.array(column, np.float32))[:, None, None]
    steps = wire._steps(true)
    hold(true, np.concatenate([true[:1], wire._value(steps, true[0], true[-1]), true[-1:]]))
    above = wire._value(np.minimum(steps, wire.STEPS - 1) + np.uint16(1), true[0], true[-1])
    assert (above >= true[1:-1]).all()  # what the browser takes a score for where less is more


@given(arrays(np.float32, st.tuples(st.integers(1, 33), st.integers(1, 3)), elements=ANY | EXTREME))
def test_up_to_33_runs_are_exact(values: np.ndarray) -> None:
    true, got = crossed(values)
    assert got.tobytes() == true.tobytes()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_a_head_the_browser_counts_as_on_is_on(share: float) -> None:
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(64, 400)) + rng.normal(0, 3, size=400)).astype(np.float32)
    kept = reduce.kept_rank(reduce.kept_statistics(64), 64, share)
    seen = crossed(values)[1][kept] >= np.float32(0.2)
    on = reduce.on(values[:, None], 0.2, share)[0]
    assert not (seen & ~on).any()
    assert (seen & on).sum() > 0.8 * on.sum()


def test_tasks_of_many_and_of_few_runs_share_a_buffer() -> None:
    rng = np.random.default_rng(0)
    values = {f"t{n}": rng.normal(size=(n, 3, 5)).astype(np.float32) for n in (64, 1, 100, 33, 34)}
    header, buffer = wire.encode(hw.HeadScores.from_arrays(values, method="mine", layers=[2, 4, 8]))
    assert [task["bits"] for task in header["tasks"]] == [16, 32, 16, 32, 16]
    for task, runs in zip(wire.decode(header, buffer), values.values()):
        true = np.sort(runs, axis=0)[reduce.kept_statistics(len(runs))]
        np.testing.assert_array_equal(task["mean"], reduce.mean(runs))
        np.testing.assert_array_equal(
            task["median"], np.median(runs.astype(np.float64), axis=0).astype(np.float32)
        )
        hold(true.reshape(len(true), -1), task["order"].reshape(len(true), -1))
        low, high = reduce.interval(runs)
        np.testing.assert_array_equal(task["low"], low)
        np.testing.assert_array_equal(task["high"], high)


def test_the_header_says_where_the_scores_come_from_and_only_what_is_known() -> None:
    meta = {
        "model": "tiny",
        "revision": None,
        "weights": "0123abcd",
        "seed": 0,
        "options": {"replace": "mean", "where": "all", "heads": None},
        "versions": {"torch": "2.9", "numpy": "2.3"},
        "partial": True,
    }
    header, _ = wire.encode(hw.HeadScores.from_arrays({"a": [[1.0]]}, method="ablation", meta=meta))
    assert header["about"] == [
        ["model", "tiny"],
        ["method", "ablation"],
        ["weights", "0123abcd"],
        ["seed", "0"],
        ["options", "replace mean, where all, heads none"],
        ["versions", "torch 2.9, numpy 2.3"],
        ["partial", "stopped before all was scored"],
        ["drawn by", f"headwidget {hw.__version__}"],
    ]
    assert header["axes"] == ["Layer", "Head"] and header["tasks"][0]["note"] is None
    assert json.loads(json.dumps(header)) == header


def test_merged_scores_name_what_each_was_made_with() -> None:
    one, two = (
        hw.HeadScores.from_arrays({"a": [[x]]}, method="mine", meta={"seed": x, "device": "cpu"})
        for x in (1, 2)
    )
    assert provenance.about(one + two)[1:3] == [["device", "cpu"], ["seed", "1; 2"]]


@pytest.mark.parametrize(
    ("known", "note"),
    [
        ({"accuracy": 1.0}, "100% right"),
        ({"accuracy": 0.9999, "dropped": []}, "99% right"),
        ({"accuracy": 0.29}, "29% right"),
        ({"beats_foil": 0.5, "dropped": [{"count": 1}]}, "beats its foil 50%, 1 prompt dropped"),
        ({"dropped": [{"count": 2}, {"why": "…"}, {"count": 3}]}, "5 prompts dropped"),
        ({"accuracy": "high", "beats_foil": None, "dropped": 4}, None),
        ({}, None),
    ],
)
def test_what_is_known_of_a_task_is_a_short_note(
    known: dict[str, object], note: str | None
) -> None:
    assert (
        provenance.note(
            hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta={"tasks": {"a": known}}),
            "a",
        )
        == note
    )


@pytest.mark.parametrize(
    ("given", "axes"),
    [
        (["Block", "Expert"], ["Block", "Expert"]),
        (["one"], ["Layer", "Head"]),
        ([1, 2], ["Layer", "Head"]),
        ("ab", ["Layer", "Head"]),
    ],
)
def test_axes_have_the_names_that_are_given(given: object, axes: list[str]) -> None:
    assert (
        provenance.axes(
            hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta={"axes": given})
        )
        == axes
    )


def test_the_header_has_the_settings_that_the_method_asks_for() -> None:
    asked = {"display": {"normalize": "share"}}
    for meta in (asked, {}):
        scores = hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta=meta)
        assert wire.encode(scores)[0].get("display", {}) == meta.get("display", {})
