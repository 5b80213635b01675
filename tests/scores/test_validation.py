"""What scores cannot be made from: a sentence when they are made, never when they are saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import headwidget as hw
from headwidget.scores.validation import MOST_NESTED

HALF = "a\ud800b"
MAP = [[1.0, 2.0]]


def make(**arguments: Any) -> hw.HeadScores:
    return hw.HeadScores.from_arrays(**{"arrays": {"a": MAP}, "method": "mine", **arguments})


def nested(depth: int) -> dict[str, Any]:
    """A record of ``depth`` dicts inside one another."""
    record: dict[str, Any] = {}
    for _ in range(depth - 1):
        record = {"options": record}
    return record


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"arrays": {HALF: MAP}}, "a task's name"),
        ({"method": HALF}, "the method's name"),
        ({"categories": {"a": HALF}}, "the category of task 'a'"),
        ({"runs": {"a": [HALF]}}, "task 'a': the label of run 0"),
        ({"aspects": {HALF: {"a": MAP}}}, "an aspect's name"),
    ],
)
def test_half_a_letter_is_refused_when_scores_are_made(
    arguments: dict[str, Any], what: str
) -> None:
    with pytest.raises(ValueError, match=f"{what} has half a letter .* which no file can hold"):
        make(**arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"runs": "x"}, "runs is a dict; got 'x'"),
        ({"runs": ""}, "runs is a dict; got ''"),
        ({"runs": ["x"]}, r"runs is a dict; got \['x'\]"),
        ({"runs": {"a": "x"}}, "task 'a': run labels are a list of texts, .* 1 runs; got 'x'"),
        ({"runs": {"a": b"x"}}, "run labels are a list of texts"),
        ({"runs": {"a": 3}}, "run labels are a list of texts, .*; got 3"),
        ({"layers": "0"}, "layers is a list of 1 whole numbers, .*; got '0'"),
        ({"layers": 0}, "layers is a list of 1 whole numbers, .*; got 0"),
        ({"categories": "x"}, "categories is a dict; got 'x'"),
        ({"categories": ["x"]}, "categories is a dict"),
        ({"aspects": "x"}, "aspects is a dict; got 'x'"),
        ({"aspects": {"x": MAP}}, "aspect 'x' is a dict"),
        ({"meta": "x"}, "meta is a dict; got 'x'"),
        ({"meta": [("model", "m")]}, "meta is a dict"),
    ],
)
def test_text_or_a_list_where_a_dict_or_a_list_belongs_is_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        make(**arguments)


def test_a_record_that_is_nested_too_deeply_is_refused_and_another_can_be_shown() -> None:
    scores = make(meta=nested(MOST_NESTED))
    assert hw.explore(scores).shown is scores
    for depth in (MOST_NESTED + 1, 900, 100_000):
        with pytest.raises(ValueError, match=r"meta (is nested more than|must be plain JSON)"):
            make(meta=nested(depth))


@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 400, 900, 100_000])
def test_a_file_whose_record_is_nested_too_deeply_is_refused(depth: int, tmp_path: Path) -> None:
    header = {
        "version": 1,
        "method": "m",
        "signed": True,
        "layers": [0],
        "heads": 2,
        "tasks": [{"name": "a", "runs": ["x"]}],
        "meta": {},
    }
    deep = '{"options":' * (depth - 1) + "{}" + "}" * (depth - 1)
    text = json.dumps(header).replace('"meta": {}', f'"meta": {deep}')
    path = tmp_path / "s"
    save_file({"task0": np.zeros((1, 1, 2), np.float32)}, path, {"headwidget": text})
    with pytest.raises(ValueError, match="cannot be read as head scores: .*nested"):
        hw.open(path)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hw.difference(make(), make(), names=(HALF, "b")), "names=… has half a letter"),
        (lambda: hw.difference(make(), make(), names=3), "names are two texts.*; got 3"),
        (lambda: hw.explore(make()).to_html("unused", title=HALF), "the title has half a letter"),
        (lambda: hw.explore(make()).to_html("unused", title=3), "the title must be text"),
    ],
)
def test_names_of_sides_and_titles_are_checked_too(
    call: Callable[[], object], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda scores: scores.select(3), "select takes a task's name or a list of them; got 3"),
        (lambda scores: scores.select([["a"]]), r"no task \['a'\] in these scores"),
        (lambda scores: scores.values(["a"]), r"no task \['a'\] in these scores"),
        (lambda scores: scores.interval("0.95"), "level is a fraction between 0 and 1"),
        (lambda scores: scores.interval(draws=1.5), "draws 1 or more; got 0.95 and 1.5"),
        (lambda scores: scores.on(None), "threshold is a finite number; got None"),
        (lambda scores: scores.on("1"), "threshold is a finite number; got '1'"),
    ],
)
def test_what_scores_are_asked_for_is_checked(
    call: Callable[[hw.HeadScores], object], sentence: str
) -> None:
    with pytest.raises((ValueError, TypeError, KeyError), match=sentence):
        call(make())


def test_a_number_that_no_float_holds_is_no_threshold() -> None:
    for threshold, shown in ((10**400, None), (-(10**400), None), (0.25, 0.25)):
        scores = make(meta={"display": {"threshold": threshold}, "floor": {"a": threshold}})
        assert hw.explore(scores).threshold == shown
