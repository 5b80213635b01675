"""A task that the model gets wrong is called so, with the likely cause."""

from __future__ import annotations

import warnings

import pytest

import headwidget as hw
from headwidget.display import wire
from headwidget.scores.record import TaskRecord
from headwidget.scoring import doubts
from headwidget.tasks import Example
from tests.support import tiny

CAPITALS = [("The capital of France is", "Paris"), ("The capital of Italy is", "Rome")]
WRONG = TaskRecord(asked=20, accuracy=0.05)


def spaced(before: str, behind: str) -> hw.Task:
    return hw.Task("capitals", [(prompt + before, behind + answer) for prompt, answer in CAPITALS])


@pytest.mark.parametrize(
    ("task", "cause"),
    [
        (spaced("", ""), "the answers lack their leading space (write ' Paris', not 'Paris')"),
        (spaced(" ", ""), "the prompts end with a space; it belongs to the front of the answer"),
    ],
)
def test_answers_without_their_space_are_a_warning_on_the_map_and_in_python(
    task: hw.Task, cause: str
) -> None:
    sentence = f"The model's first choice is right on 0% of 2 prompts; likely cause: {cause}."
    with pytest.warns(UserWarning) as caught:
        scores = hw.score(hw.load(), task, progress=False)
    assert [str(warning.message) for warning in caught] == [f"task 'capitals': {sentence}"]
    assert caught[0].filename == __file__, "it names the user's own line"
    assert scores.record.task("capitals").warning == sentence
    header, _ = wire.encode(scores)
    assert header["tasks"][0]["warning"] == sentence


def test_a_task_that_is_answered_right_has_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = hw.score(hw.load(), spaced("", " "), progress=False)
    assert scores.record.task("capitals").warning is None


@pytest.mark.parametrize("method", ["gradient", "ablation", "attribution"])
def test_every_method_that_asks_for_answers_says_so(method: str) -> None:
    examples = list(tiny.task().examples)
    task = hw.Task("odd", examples * 3)  # enough that none right is no accident
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = hw.score(tiny.model("llama"), task, method, progress=False)
    record = scores.record.task("odd")
    assert record.accuracy == 0
    said = [str(warning.message) for warning in caught]
    assert len(said) == 1
    assert "'odd': The model's first choice is right on 0% of" in said[0]


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [("法国的首都是", "巴黎"), ("2 + 2 =", " 4"), ("He said: (", "yes"), ("", "Paris")],
)
def test_no_space_is_missed_where_none_belongs(prompt: str, answer: str) -> None:
    said = doubts.few_right(WRONG, [Example(prompt, answer)], continues=True)
    assert said is not None
    assert "space" not in said


def test_a_space_means_nothing_where_the_answer_does_not_continue_the_prompt() -> None:
    said = doubts.few_right(WRONG, [Example("Paris is in [MASK].", "France")], continues=False)
    assert said is not None
    assert "space" not in said


@pytest.mark.parametrize(("asked", "is_told"), [(2, False), (10, False), (11, True)])
def test_so_few_right_are_told_without_a_cause_only_where_it_is_no_accident(
    asked: int, is_told: bool
) -> None:
    """Where one answer of four is right, none of ten is in 6% of draws, none of eleven in 4%."""
    record = TaskRecord(asked=asked, accuracy=0.0)
    said = doubts.few_right(record, [Example("2 + 2 =", " 4")], continues=True)
    assert (said is not None) == is_told
    glued = [Example("The capital of France is", "Paris")]
    assert "leading space" in (doubts.few_right(record, glued, continues=True) or "")


@pytest.mark.parametrize(
    "record",
    [
        TaskRecord(),
        TaskRecord(asked=1, accuracy=0.0),
        TaskRecord(asked=20, accuracy=0.1),
    ],
)
def test_nothing_is_said_where_nothing_is_known_or_some_are_right(record: TaskRecord) -> None:
    assert doubts.few_right(record, [Example("a", "b")], continues=True) is None
