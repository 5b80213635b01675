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
        (no_generator, r"method 'mine': run\(job\) returned a NoneType; it must be a generator"),
    ],
)
def test_a_method_that_does_not_do_its_work_is_refused(run: Any, sentence: str) -> None:
    hw.register_method(dataclasses.replace(MINE, run=run))
    with pytest.raises((TypeError, ValueError, RuntimeError), match=sentence):
        hw.score(tiny.model("llama"), TASKS, "mine", progress=False)


def test_a_faulty_method_fails_in_the_lab_with_its_sentence() -> None:
    hw.register_method(dataclasses.replace(MINE, run=a_run_less))
    lab = hw.live(fresh(), TASKS, "mine", prompts=None)
    lab.run().wait(60)
    assert lab.state == "failed"
    assert "method 'mine', task 'one' ended with 3 of 4 runs" in lab._state["message"]
    assert lab.scores is not None and lab.scores.partial  # what is done is kept
