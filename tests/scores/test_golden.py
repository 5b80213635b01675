"""The Python twins agree with the golden fixtures that js/tests reads too."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwidget
from headwidget.display import scales, wire
from headwidget.scores import HeadScores, rank, reduce

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "reduce.json").read_text(encoding="utf-8"))
SCALES = json.loads((GOLDEN / "scales.json").read_text(encoding="utf-8"))
RANKS = json.loads((GOLDEN / "rank.json").read_text(encoding="utf-8"))
WIRE = json.loads((GOLDEN / "wire.json").read_text(encoding="utf-8"))


@pytest.fixture(params=CASES, ids=[c["name"] for c in CASES])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**request.param, "values": np.array(request.param["values"], np.float32)}


def test_reductions_are_the_golden_ones(case: dict[str, Any]) -> None:
    values, expected = case["values"], case["expected"]
    for how in ("mean", "median", "always", "any"):
        assert reduce.reduce(values, how).ravel().tolist() == expected[how], how
    mean = reduce.mean(values)
    np.testing.assert_allclose(reduce.share(mean).ravel(), expected["share"], rtol=1e-6)
    assert reduce.elbow(mean) == expected["elbow"]
    assert [list(head) for head in reduce.top(mean, 4)] == expected["top"]


def test_agreement_is_the_golden_one(case: dict[str, Any]) -> None:
    values, runs = case["values"], len(case["values"])
    kept = reduce.kept_statistics(runs)
    assert kept == case["expected"]["ranks"]
    for text, expected in case["expected"]["agreement"].items():
        agreement = float(text)
        assert reduce.runs_needed(agreement, runs) == expected["runs_needed"]
        assert reduce.order_statistic(values, agreement).ravel().tolist() == expected["exact"]
        index = reduce.kept_rank(kept, runs, agreement)
        assert index == expected["kept_index"]
        assert np.sort(values, axis=0)[kept][index].ravel().tolist() == expected["kept"]


def test_thresholds_count_the_golden_heads(case: dict[str, Any]) -> None:
    values, mean = case["values"], reduce.mean(case["values"])
    for text, expected in case["expected"]["threshold"].items():
        threshold = float(text)
        assert reduce.reaches(mean, threshold).astype(int).ravel().tolist() == expected["mean"]
        assert (
            reduce.reaches(np.abs(mean), threshold).astype(int).ravel().tolist() == expected["size"]
        )
        for name, agreement in (("always", 1.0), ("any", 0.0), ("half", 0.5)):
            assert (
                reduce.on(values, threshold, agreement).astype(int).ravel().tolist()
                == expected[name]
            ), name


@pytest.mark.parametrize("case", RANKS, ids=[c["name"] for c in RANKS])
def test_ranks_are_the_golden_ones(case: dict[str, Any]) -> None:
    scores = HeadScores.from_arrays(
        {"a": [case["means"]]}, method="mine", ranked_by=case["ranked_by"]
    )
    assert rank.ranks(scores, "a").ravel().tolist() == case["ranks"]
    assert [head for _, head in scores.top("a", len(case["means"]))] == case["first"]


def test_the_wire_carries_the_golden_scores() -> None:
    header, buffer = wire.encode(HeadScores.from_arrays(WIRE["values"], **WIRE["given"]))
    golden = base64.b64decode(WIRE["buffer"])
    assert header["about"][-1] == ["drawn by", f"headwidget {headwidget.__version__}"]
    assert {**header, "about": header["about"][:-1]} == {
        **WIRE["header"],
        "about": WIRE["header"]["about"][:-1],
    }
    assert json.loads(json.dumps(header)) == header
    for task, same, expected in zip(
        wire.decode(header, golden), wire.decode(header, buffer), WIRE["tasks"]
    ):
        for name in ("mean", "median"):
            assert task[name].ravel().tolist() == expected[name]
        assert [m.ravel().tolist() for m in task["order"]] == expected["order"]
        assert same["order"].tobytes() == task["order"].tobytes()
        for ends in (
            "low",
            "high",
        ):  # drawn with a matrix product, whose last digit is the machine's own
            np.testing.assert_allclose(same[ends], task[ends], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["short", "long", "ragged", "version", "bits"])
def test_a_buffer_that_does_not_fit_is_refused_with_a_sentence(change: str) -> None:
    header, buffer = WIRE["header"], base64.b64decode(WIRE["buffer"])
    buffer = {"short": buffer[:-4], "long": buffer + bytes(4), "ragged": buffer[:-1]}.get(
        change, buffer
    )
    header = {**header, "version": 1} if change == "version" else header
    header = (
        {**header, "tasks": [{**task, "bits": 12} for task in header["tasks"]]}
        if change == "bits"
        else header
    )
    sentence = {
        "version": "is wire version 1; this headwidget reads version 3",
        "bits": "'<b>syntax</b>' has 3 order statistics of 12 bits",
    }
    with pytest.raises(
        ValueError, match=sentence.get(change, r"holds \d+ bytes; its header promises \d+\.")
    ):
        wire.decode(header, buffer)


@pytest.mark.parametrize("case", SCALES["ranges"])
def test_colours_span_the_golden_range(case: dict[str, Any]) -> None:
    span = scales.colour_range([np.array([case["values"]], np.float32)], case["signed"])
    assert (span.low, span.high, span.step) == (case["low"], case["high"], case["step"])
