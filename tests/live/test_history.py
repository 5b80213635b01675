"""Past runs of a lab: kept, listed, shown again and compared."""

from __future__ import annotations

import numpy as np
import pytest

import headwidget as hw
from headwidget.live import history
from tests.support.lab_tools import TASKS, at_each_block, fresh


def test_runs_are_kept_listed_shown_again_and_compared() -> None:
    lab = hw.live(fresh(), TASKS, "attribution", prompts=None)
    assert lab.history == [] and lab._past == []
    assert lab.run().wait(60) and lab.run(method="gradient", tasks=["two"]).wait(60)
    newest, oldest = lab.history
    assert [scores.method for scores in (newest, oldest)] == ["gradient", "attribution"]
    facts = [(past["method"], past["tasks"], past["shown"]) for past in lab._past]
    assert facts == [("gradient", ["two"], True), ("attribution", ["one", "two"], False)]
    assert (lab._past[0]["prompts"], lab._past[0]["partial"], lab._past[0]["heads"]) == (
        len(TASKS[1]), False, None,
    )  # fmt: skip
    lab._on_message(None, {"ask": "return", "index": 1}, [])
    assert lab.shown is lab.scores is oldest and lab.state == "done"
    assert [past["shown"] for past in lab._past] == [False, True] and lab._state["again"]
    assert hw.compare(lab.history[0], lab.history[1]).tasks
    for index in (2, -1, "0", None):
        lab._on_message(None, {"ask": "return", "index": index}, [])
        assert "there are 2 past runs" in lab._trouble and lab.shown is oldest


def test_the_oldest_run_goes_when_there_are_too_many() -> None:
    kept = history.History()
    runs = [
        hw.HeadScores.from_arrays({"t": np.full((1, 2, 2), i)}, method="mine")
        for i in range(history.MOST + 2)
    ]
    for scores in runs:
        kept.add(scores)
    assert [past.scores for past in kept] == runs[:1:-1]


def test_a_run_under_way_is_not_covered_by_an_earlier_one() -> None:
    lab = hw.live(fresh(), TASKS, "attribution", prompts=None)
    assert lab.run().wait(60)
    said: list[str] = []

    def back(_: int) -> None:
        try:
            lab.show_again(0)
        except ValueError as error:
            said.append(str(error))

    with at_each_block(lab._model, back):
        assert lab.run(method="gradient").wait(60)
    assert said and "a run is under way" in said[0]
    assert lab.scores is not None and lab.scores.method == "gradient"


def test_a_stopped_run_is_in_the_list_and_says_so() -> None:
    lab = hw.live(fresh(), TASKS, "gradient", prompts=None)

    def stop(_: int) -> None:
        if lab.scores is not None:
            lab.stop()

    with at_each_block(lab._model, stop):
        lab.run().wait(60)
    assert lab.state == "stopped" and [past["partial"] for past in lab._past] == [True]


def test_a_keyword_that_live_does_not_take_is_named_with_what_was_meant() -> None:
    with pytest.raises(TypeError, match=r"hw.live has no 'promt'. Did you mean 'prompt'\? It ta"):
        hw.live(fresh(), TASKS, promt="abc")
    with pytest.raises(TypeError, match="hw.live has no 'zzz'. It takes model, tasks, method"):
        hw.live(fresh(), TASKS, zzz=1)
