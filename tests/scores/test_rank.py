"""Rank: one definition, and every module that says a rank or picks the first heads uses it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwidget as hw
from headwidget.display import wire
from headwidget.interventions.head_sets import head_sets
from headwidget.live import payloads
from headwidget.scores import rank
from tests.support import tiny

KINDS: dict[str, dict[str, Any]] = {
    "signed": {"signed": True, "ranked_by": "mean"},
    "unsigned": {"signed": False, "ranked_by": "mean"},
    "size": {"signed": True, "ranked_by": "size"},
}


def random_scores(kind: str, seed: int, shape: tuple[int, int] = (3, 4)) -> hw.HeadScores:
    """Few different values, so that some heads tie."""
    rng = np.random.default_rng(seed)
    runs = rng.integers(-3, 4, size=(2, *shape)) / 4
    runs = np.abs(runs) if kind == "unsigned" else runs
    return hw.HeadScores.from_arrays({"copy": runs}, method="mine", **KINDS[kind])


def by_definition(scores: hw.HeadScores) -> dict[tuple[int, int], int]:
    """1 plus the number of heads with a strictly larger mean, or |mean|: a plain loop."""
    layers, heads = scores.shape
    value = {}
    for layer in range(layers):
        for head in range(heads):
            runs = [float(run[layer, head]) for run in scores.values("copy")]
            mean = sum(runs) / len(runs)
            value[layer, head] = abs(mean) if scores.ranked_by == "size" else mean
    return {at: 1 + sum(other > own for other in value.values()) for at, own in value.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_all_that_say_a_rank_agree(kind: str, seed: int) -> None:
    model = tiny.model("llama")
    scores = random_scores(kind, seed, model.shape)
    ranks = by_definition(scores)
    heads = list(ranks)
    expected = sorted(heads, key=lambda at: (ranks[at], at))

    array = rank.ranks(scores, "copy")
    assert {at: int(array[at]) for at in heads} == ranks
    assert scores.top("copy", len(heads)) == expected

    sets = head_sets({"mine": scores}, ["copy"], [1, 5], 1, None, 0, model)
    assert [head_set.heads for head_set in sets if head_set.kind == "top"] == [
        tuple(expected[:1]),
        tuple(expected[:5]),
    ]
    for at in heads:
        (payload,) = payloads.ranks({"mine": scores}, *at)
        assert (payload["rank"], payload["of"]) == (ranks[at], len(heads))

    header, buffer = wire.encode(scores)  # what the hover card has to go by
    (task,) = wire.decode(header, buffer)
    means = np.abs(task["mean"]) if header["ranked_by"] == "size" else task["mean"]
    assert {at: 1 + int((means > means[at]).sum()) for at in heads} == ranks

    for at in heads:
        mean = float(task["mean"][at])
        assert place_in_sentence(hw.describe(scores, *at)) == (
            ("bottom", 1 + int((task["mean"] < task["mean"][at]).sum()))
            if kind == "signed" and mean < 0
            else ("top", ranks[at])
        )


def place_in_sentence(sentence: str) -> tuple[str, int]:
    if re.search(r"\b(mine: |at best )last\b", sentence):
        return "bottom", 1
    place = re.search(r"(\d+)(?:st|nd|rd|th)( from the bottom)?", sentence)
    assert place is not None, sentence
    return ("bottom" if place[2] else "top"), int(place[1])


def test_a_head_that_hurts_is_described_from_the_bottom() -> None:
    runs = np.random.default_rng(0).normal(0, 0.001, (20, 10, 12))
    runs[:, 4, 7] -= 0.5
    runs[:, 2, 2] -= 0.9
    scores = hw.HeadScores.from_arrays({"Math": runs}, method="mine")
    assert hw.describe(scores, 4, 7).startswith(
        "Head 4.7, of 120: mine: 2nd from the bottom for Math (it hurts) with -0.5 "
        "(95% interval -0.5"
    )
    assert "mine: last for Math (it hurts) with -0.9" in hw.describe(scores, 2, 2)
    by_size = hw.HeadScores.from_arrays({"Math": runs}, method="mine", ranked_by="size")
    assert "mine: 2nd by size for Math (it hurts) with -0.5" in hw.describe(by_size, 4, 7)


def test_what_scores_are_ranked_by_is_kept(tmp_path: Path) -> None:
    arrays = {"a": np.array([[1.0, -3.0]]), "b": np.array([[1.0, -3.0]])}
    scores = hw.HeadScores.from_arrays(
        arrays, method="mine", ranked_by="size", aspects={"other": arrays}
    )
    again = [
        pickle.loads(pickle.dumps(scores)),
        hw.open(scores.save(tmp_path / "s.safetensors")),
        scores.select("a"),
        scores.select("a") + scores.select("b"),
        scores.aspects["other"],
        hw.difference(scores, scores, names=("x", "y")),
    ]
    assert [s.ranked_by for s in again] == ["size"] * len(again)
    assert scores.by_size and scores.top("a", 1) == [(0, 1)]
    assert wire.encode(scores)[0]["ranked_by"] == "size"
    other = hw.HeadScores.from_arrays(arrays, method="mine")
    assert other.ranked_by == "mean" and hw.difference(scores, other).ranked_by == "mean"


def test_the_field_comes_before_the_display_hint() -> None:
    meta = {"display": {"normalize": "share"}}

    def scores(**more: Any) -> hw.HeadScores:
        return hw.HeadScores.from_arrays({"a": [[1.0, -3.0]]}, method="mine", meta=meta, **more)

    assert scores().ranked_by == "size"  # as files from before the field say it
    assert scores(ranked_by="mean").ranked_by == "mean"
    with pytest.raises(ValueError, match="ranked_by is 'mean' or 'size' .of the mean.; got 'sum'"):
        scores(ranked_by="sum")


def test_the_strongest_heads_of_a_layer_are_compared_by_the_same_rule() -> None:
    one = {"copy": [[1.0, -3.0, 2.0]]}
    a = hw.HeadScores.from_arrays(one, method="mine", ranked_by="size")
    b = hw.HeadScores.from_arrays(one, method="mine")
    assert hw.difference(a, a, heads="rank").meta["compare"]["sides"][0]["heads"] == {
        "copy": [[1, 2, 0]]
    }
    assert hw.difference(b, b, heads="rank").meta["compare"]["sides"][0]["heads"] == {
        "copy": [[2, 0, 1]]
    }


@pytest.mark.parametrize("sides", [("size", "mean"), ("mean", "size"), ("size", "size")])
def test_merged_scores_rank_by_size_where_either_does(sides: tuple[str, str]) -> None:
    first, second = (
        hw.HeadScores.from_arrays({task: [[1.0, -3.0]]}, method="mine", ranked_by=ranked_by)
        for task, ranked_by in zip("ab", sides)
    )
    assert (first + second).ranked_by == "size"
