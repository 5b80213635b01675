"""What a faulty method yields is refused with a sentence that names the method."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.scoring.contract import Chunk, Job, Report, TaskReport
from tests.support import tiny
from tests.support.lab_tools import TASKS, fresh
from tests.support.own_method import MINE, chunk, values


def one_bad_number(job: Job) -> np.ndarray:
    numbers = values(job)
    numbers[2, 1, 3] = np.nan
    return numbers


FAULTS: dict[str, tuple[Any, str]] = {
    "an array": (
        lambda job: values(job),
        "method 'mine' yielded a ndarray; a method yields Chunk and Report objects",
    ),
    "a pair": (lambda job: ("one", chunk(job)), "method 'mine' yielded a tuple"),
    "unknown task": (
        lambda job: chunk(job, task="three"),
        "method 'mine' yielded scores of a task 'three', but it was asked to score 'one'",
    ),
    "the other task": (lambda job: chunk(job, task="two"), "'two', but .* asked to score 'one'"),
    "run out of range": (
        lambda job: chunk(job, runs=(0, 1, 2, 4)),
        "method 'mine', task 'one' yielded runs with number 4; it has runs 0 to 3",
    ),
    "negative run": (lambda job: chunk(job, runs=(0, 1, 2, -1)), "with number -1"),
    "run twice": (lambda job: chunk(job, runs=(0, 1, 2, 2)), "runs are whole numbers, each once"),
    "no runs": (lambda job: chunk(job, runs=()), "runs are whole numbers, each once"),
    "runs by label": (lambda job: chunk(job, runs=("a", "b")), "runs are whole numbers"),
    "one run": (lambda job: chunk(job, runs=2), "runs are whole numbers"),
    "a layer": (lambda job: chunk(job, layers=0), "layers is a slice of the model's layers"),
    "one row": (
        lambda job: chunk(job, values=values(job, 4, 4)),
        r"'mine', task 'one': values has shape \(4, 4\); expected \(4, 3, 4\)",
    ),
    "wrong layers": (
        lambda job: chunk(job, layers=slice(0, 1)),
        r"values has shape \(4, 3, 4\); expected \(4, 1, 4\)",
    ),
    "aspect": (
        lambda job: chunk(job, aspects={"other": values(job, 4, 3, 1)}),
        r"aspect 'other' has shape \(4, 3, 1\)",
    ),
    "words": (lambda job: chunk(job, values="high"), "values is an array of numbers on the host"),
    "with a gradient": (
        lambda job: chunk(job, values=torch.zeros(4, 3, 4, requires_grad=True)),
        "values is an array of numbers on the host, .* got a Tensor",
    ),
    "not a number": (
        lambda job: chunk(job, values=one_bad_number(job)),
        "task 'one': mine gave a score that is not a number for 'abcd'",
    ),
    "aspect not a number": (
        lambda job: chunk(job, aspects={"other": one_bad_number(job)}),
        "task 'one': mine gave a score that is not a number for 'abcd'",
    ),
    "correct": (
        lambda job: chunk(job, correct=np.ones(4, bool)),
        r"correct has shape \(4\); expected \(2, 4\)",
    ),
    "off": (
        lambda job: chunk(job, discrepancy=np.full(4, 0.25)),
        "gives log-probabilities up to 25.0% away from its own forward, so its mine scores",
    ),
    "off by NaN": (lambda job: chunk(job, discrepancy=np.full(4, np.nan)), "so its mine scores"),
    "a nameless aspect": (
        lambda job: chunk(job, aspects={"": values(job)}),
        "method 'mine', task 'one': an aspect's name is text that is not empty; got ''",
    ),
    "a numbered aspect": (
        lambda job: chunk(job, aspects={3: values(job)}),
        "an aspect's name is text that is not empty; got 3",
    ),
    "no aspects": (lambda job: chunk(job, aspects=None), "'one': aspects is a dict of arrays"),
    "complex": (
        lambda job: chunk(job, values=values(job) + 1j),
        "'mine', task 'one': values is an array of numbers on the host, .* of complex",
    ),
    "numbers as text": (
        lambda job: chunk(job, values=np.full((4, 3, 4), "1.5")),
        "values is an array of numbers on the host, .* of <U3",
    ),
    "masked": (
        lambda job: chunk(job, values=np.ma.masked_equal(values(job), 0)),
        "values .* got an array with masked cells: give every number",
    ),
    "correct by degrees": (
        lambda job: chunk(job, correct=np.full((2, 4), 0.5)),
        "'mine', task 'one': correct holds True or False for each run; got float64 such as .*0.5",
    ),
    "correct as text": (
        lambda job: chunk(job, correct=np.full((2, 4), "no")),
        "correct holds True or False for each run",
    ),
    "discrepancy of another shape": (
        lambda job: chunk(job, discrepancy=np.zeros((4, 2))),
        r"discrepancy has shape \(4, 2\); expected \(4\): a number for each run",
    ),
    "no discrepancy": (lambda job: chunk(job, discrepancy=np.zeros(0)), r"shape \(0\)"),
    "runs that are no whole numbers": (
        lambda job: chunk(job, runs=(0.0, 1.0, 2.0, 3.0)),
        "runs are whole numbers, each once",
    ),
    "runs that are true": (
        lambda job: chunk(job, runs=(False, True), values=values(job, 2, 3, 4)),
        "runs are whole numbers, each once",
    ),
    "one text as labels": (
        lambda job: Report({"one": TaskReport(labels="abcd")}),  # type: ignore[arg-type]
        "method 'mine', task 'one': labels are texts, one or more, in a tuple or list; got 'abcd'",
    ),
    "right by degrees": (
        lambda job: Report({"one": TaskReport(right=np.full((2, 4), 0.5))}),  # type: ignore[arg-type]
        "right holds True or False",
    ),
    "runs and labels": (
        lambda job: Report({"one": TaskReport(runs=(0,), labels=("fit",))}),
        "method 'mine', task 'one' reported both runs and labels",
    ),
    "a record that is not JSON": (
        lambda job: Report(record={"where": np.zeros(3)}),
        "method 'mine' reported 'where', which cannot be kept in the scores' record",
    ),
    "a task's record that is not JSON": (
        lambda job: Report({"one": TaskReport(record={"loss": float("nan")})}),
        "method 'mine', task 'one' reported 'loss', which cannot be kept",
    ),
    "a name that records use": (
        lambda job: Report(record={"merged": 3}),
        "method 'mine' reported 'merged', .*give that fact another name",
    ),
    "a warning that is no sentence": (
        lambda job: Report({"one": TaskReport(record={"warning": 3})}),
        "method 'mine', task 'one': a report's warning is a sentence; got 3",
    ),
    "no record": (
        lambda job: Report(record=None),  # type: ignore[arg-type]
        "method 'mine': a report's record is a dict, {} where",
    ),
    "a report of no tasks": (
        lambda job: Report(None),  # type: ignore[arg-type]
        "method 'mine': a Report's tasks is a dict of TaskReports",
    ),
    "a dict as the report of a task": (
        lambda job: Report({"one": {"runs": (0,)}}),  # type: ignore[dict-item]
        "method 'mine', task 'one': a Report holds a TaskReport for each task; got a dict",
    ),
    "report of unknown task": (lambda job: Report({"three": TaskReport()}), "a task 'three'"),
    "labels": (
        lambda job: Report({"one": TaskReport(labels=())}),
        "method 'mine', task 'one': labels are texts, one or more",
    ),
    "right": (
        lambda job: Report({"one": TaskReport(right=np.ones((2, 3), bool))}),
        r"right is an array of shape \(2, 4\).*got \(2, 3\)",
    ),
    "reported runs": (
        lambda job: Report({"one": TaskReport(runs=(9,))}),
        "'one' reported runs with number 9; it has runs 0 to 3",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_method_is_refused_with_a_sentence(fault: str) -> None:
    make, sentence = FAULTS[fault]

    def run(job: Job) -> Iterator[Any]:
        yield make(job)

    hw.register_method(dataclasses.replace(MINE, run=run))
    errors = (TypeError, ValueError, RuntimeError, FloatingPointError)
    with pytest.raises(errors, match=sentence):
        hw.score(tiny.model("llama"), TASKS, "mine", progress=False)


def nothing(job: Job) -> Iterator[Chunk]:
    yield from ()


def a_layer_less(job: Job) -> Iterator[Chunk]:
    yield chunk(job, layers=slice(0, 2), values=values(job, 4, 2, 4))


def a_run_less(job: Job) -> Iterator[Chunk]:
    yield chunk(job, runs=(0, 2, 3), values=values(job, 3, 3, 4))


def other_aspects(job: Job) -> Iterator[Chunk]:
    yield chunk(job, aspects={"other": values(job)})
    yield chunk(job)


def late_labels(job: Job) -> Iterator[Chunk | Report]:
    yield chunk(job)
    yield Report({job.task.name: TaskReport(labels=("fit 0",))})


def more_than_reported(job: Job) -> Iterator[Chunk | Report]:
    yield Report({job.task.name: TaskReport(runs=(0,))})
    yield chunk(job)


def reported_too_late(job: Job) -> Iterator[Chunk | Report]:
    yield chunk(job)
    yield Report({job.task.name: TaskReport(runs=(1,))})


def answers_of_fits(job: Job) -> Iterator[Chunk | Report]:
    yield Report({job.task.name: TaskReport(labels=("a", "b", "c", "d"))})
    yield chunk(job, correct=np.ones((2, 4), bool))


def no_generator(job: Job) -> Any:
    return None


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (nothing, "method 'mine', task 'one' ended without any run scored at all layers"),
        (a_layer_less, "method 'mine', task 'one' ended without any run scored at all layers"),
        (a_run_less, "method 'mine', task 'one' ended with 3 of 4 runs scored"),
        (other_aspects, r"yielded chunks with the aspects \['other'\] and with \[\]"),
        (late_labels, "1 labels were reported after chunks of 4 runs; report labels first"),
        (more_than_reported, "'one' yielded scores of run 1, which is not among the runs that it"),
        (reported_too_late, "'one' yielded scores of run 0, which is not among the runs that it"),
        (answers_of_fits, "correct is about examples, .* report right instead"),
        (no_generator, r"method 'mine': run\(job\) returned a NoneType; it must be a generator"),
    ],
)
def test_a_method_that_does_not_do_its_work_is_refused(run: Any, sentence: str) -> None:
    hw.register_method(dataclasses.replace(MINE, run=run))
    with pytest.raises((TypeError, ValueError, RuntimeError), match=sentence):
        hw.score(tiny.model("llama"), TASKS, "mine", progress=False)


def test_accuracy_counts_only_the_runs_of_which_it_is_known() -> None:
    def run(job: Job) -> Iterator[Chunk]:
        right = np.ones((2, 2), bool)
        yield chunk(job, runs=(0, 2), values=values(job, 2, 3, 4), correct=right)
        yield chunk(job, runs=(1, 3), values=values(job, 2, 3, 4))

    hw.register_method(dataclasses.replace(MINE, run=run))
    scores = hw.score(tiny.model("llama"), TASKS[0], "mine", progress=False)
    record = scores.meta["tasks"]["one"]
    assert (record["asked"], record["accuracy"]) == (2, 1.0)


def test_what_was_right_may_be_reported_as_a_list() -> None:
    def run(job: Job) -> Iterator[Chunk | Report]:
        right: Any = [[1, 0, 1, 1], [0, 0, 0, 0]]
        yield Report({job.task.name: TaskReport(right=right)})
        yield chunk(job)

    hw.register_method(dataclasses.replace(MINE, run=run))
    scores = hw.score(tiny.model("llama"), TASKS[0], "mine", progress=False)
    assert scores.meta["tasks"]["one"]["accuracy"] == 0.75


def test_a_faulty_method_fails_in_the_lab_with_its_sentence() -> None:
    hw.register_method(dataclasses.replace(MINE, run=a_run_less))
    lab = hw.live(fresh(), TASKS, "mine", prompts=None)
    lab.run().wait(60)
    assert lab.state == "failed"
    assert "method 'mine', task 'one' ended with 3 of 4 runs" in lab._state["message"]
    assert lab.scores is not None and lab.scores.partial  # what is done is kept
