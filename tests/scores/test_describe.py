"""describe: one sentence about a head, which says no more than the scores do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headwidget as hw


def scores(
    value: float, *, method: str = "mine", signed: bool = False, **more: Any
) -> hw.HeadScores:
    """120 heads of small scores, and one whose 30 runs are all close to ``value``."""
    rng = np.random.default_rng(0)
    runs = np.abs(rng.normal(0, 0.01, (30, 10, 12)))
    runs[:, 4, 7] = value * (
        0.9 + 0.2 * np.arange(30) / 29
    )  # mean 1, 95% of its mean within about 0.02
    return hw.HeadScores.from_arrays(
        {"copy": runs, "other": np.abs(rng.normal(0, 0.01, (30, 10, 12)))},
        method=method,
        signed=signed,
        **more,
    )


def test_a_head_that_stands_out_is_said_to() -> None:
    assert (
        hw.describe(scores(0.5), 4, 7)
        == "Head 4.7, of 120: mine: 1st for copy with 0.5 (95% interval 0.49 to 0.51)."
    )
    assert (
        hw.describe(scores(-0.5, signed=True), 4, 7)
        == "Head 4.7, of 120: mine: last for copy (it hurts) with -0.5 "
        "(95% interval -0.51 to -0.49)."
    )


def test_a_head_that_does_not_is_said_not_to() -> None:
    assert hw.describe(scores(0.008), 4, 7).startswith(
        "Head 4.7, of 120: mine: nothing stands out (at best "
    )
    uneven = np.zeros((40, 5, 5))
    uneven[0, 2, 2] = 1.0  # first of all heads by one run of forty
    said = hw.describe(hw.HeadScores.from_arrays({"copy": uneven}, method="mine"), 2, 2)
    assert (
        said == "Head 2.2, of 25: mine: nothing stands out "
        "(at best 1st, for copy; its interval holds zero)."
    )
    assert (
        hw.describe(
            hw.HeadScores.from_arrays({"a": np.zeros((3, 4, 4))}, method="mine"), 0, 0
        ).count("nothing stands out")
        == 1
    )


def test_what_speaks_against_a_score_is_said() -> None:
    meta: dict[str, Any] = {
        "floor": {"copy": 0.6},
        "tasks": {"copy": {"warning": "Only 7 of its 9 pairs are left."}},
    }
    assert (
        "nothing stands out (at best 1st, for copy; no more than chance gives; "
        "only 7 of its 9 pairs are left)" in hw.describe(scores(0.5, meta=meta), 4, 7)
    )
    meta["floor"]["copy"] = 0.4
    assert (
        "1st for copy with 0.5 (95% interval 0.49 to 0.51; only 7 of its 9 pairs are left)."
        in hw.describe(scores(0.5, meta=meta), 4, 7)
    )
    below = {"display": {"threshold": 0.6}}
    assert "at best 1st, for copy; below the threshold of 0.6" in hw.describe(
        scores(0.5, meta=below), 4, 7
    )
    one = hw.HeadScores.from_arrays({"copy": np.eye(6)}, method="mine")
    assert "1st for copy with 1 (one run, so no interval)" in hw.describe(one, 0, 0)


def test_several_scores_make_one_sentence() -> None:
    both = [scores(0.5), scores(0.001, method="probe")]
    said = hw.describe(both, 4, 7)
    assert (
        said.startswith("Head 4.7, of 120: mine: 1st for copy")
        and "; probe: nothing stands out (at best " in said
        and said.count(".") == said.count("0.") + 2
    )
    assert hw.describe({"before": both[0], "after": both[1]}, 4, 7).startswith(
        "Head 4.7, of 120: before: 1st"
    )
    twice = hw.describe([both[0], both[0]], 4, 7)
    assert "mine (1): 1st" in twice and "mine (2): 1st" in twice
    aspects = {"suppression": {name: both[0].values(name) for name in both[0].tasks}}
    said = hw.describe(scores(0.001, aspects=aspects), 4, 7)
    assert (
        "mine: nothing stands out" in said and "; mine (suppression): 1st for copy with 0.5" in said
    )


def test_wrong_input_to_describe_gets_a_sentence() -> None:
    with pytest.raises(
        ValueError,
        match="there is no head 12 in layer 4 of the mine scores: "
        "they have layers 0 to 9, heads 0 to 11",
    ):
        hw.describe(scores(0.5), 4, 12)
    for wrong in ("scores", [], [3], None):
        with pytest.raises(
            TypeError, match="describe takes HeadScores, a list of them or a dict of them by name"
        ):
            hw.describe(wrong, 0, 0)  # type: ignore[arg-type]


def test_a_head_may_be_a_pair_as_top_gives_it() -> None:
    strong = scores(1.0)
    assert hw.describe(strong, strong.top("copy", 1)[0]) == hw.describe(strong, 4, 7)
    with pytest.raises(TypeError, match=r"a layer and a head, or both as a pair.*got 4\.$"):
        hw.describe(strong, 4)
