"""The runner without a widget: what it tells its owner, what it keeps, and how it ends."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headwidget as hw
from headwidget.live import worker
from headwidget.live.lock import Lock
from headwidget.live.pacer import Pacer
from headwidget.live.runner import Runner
from headwidget.scoring import score
from headwidget.scoring.contract import Chunk, Job
from tests.support.lab_tools import TASKS, at_each_block, fresh, hooked, threads
from tests.support.own_method import MINE, chunk, values


class Owner:
    """Writes down what its runner tells."""

    def __init__(self, model: hw.Model) -> None:
        self.model, self.lock = model, Lock()
        self.shown: list[tuple[hw.HeadScores, bool]] = []
        self.states: list[dict[str, Any]] = []
        self.kept_count = 0
        self.runner = Runner(
            model, Pacer(), self.lock, show=self.show, tell=self.tell, kept=self.kept
        )

    def show(self, scores: hw.HeadScores, final: bool) -> None:
        self.shown.append((scores, final))

    def tell(self, state: dict[str, Any]) -> None:
        assert self.lock.is_held_here
        self.states.append(state)

    def kept(self) -> None:
        assert self.lock.is_held_here
        self.kept_count += 1

    def start(self, method: str = "gradient", **options: Any) -> None:
        self.runner.start(
            score.prepare(self.model, TASKS, method, batch_size=None, seed=0, **options)
        )

    def wait(self) -> None:
        end = time.monotonic() + 60
        while worker.of(self.model).thread is not None:
            assert time.monotonic() < end, "the run did not end"
            time.sleep(0.01)


def test_a_run_tells_its_owner_how_it_begins_and_ends_and_keeps_its_scores() -> None:
    model = fresh()
    owner = Owner(model)
    assert owner.runner.scores is None and owner.runner.state == {"state": "idle"}
    owner.start()
    owner.wait()
    assert owner.states[0]["what"] == "starting" and owner.states[0]["state"] == "running"
    last = owner.states[-1]
    prompts = sum(len(task) for task in TASKS)
    assert (last["state"], last["kept"], last["message"]) == ("done", prompts, None)
    assert last["done"] == last["total"] and last["method"] == "gradient"
    assert owner.runner.state is last and not owner.runner.is_busy
    expected = hw.score(model, TASKS, "gradient", progress=False)
    assert owner.runner.scores is owner.runner.results["gradient"] is owner.shown[-1][0]
    # a run that is watched has smaller batches: rounding differs
    shown = owner.shown[-1][0].values("two")
    np.testing.assert_allclose(shown, expected.values("two"), atol=2e-6)
    assert [final for _, final in owner.shown][-1] and not owner.shown[0][1]
    assert owner.kept_count == 1 and not threads() and not hooked(model)


def test_only_a_run_that_runs_is_stopped() -> None:
    owner = Owner(fresh())
    owner.runner.stop()
    assert owner.states == []
    with at_each_block(owner.model, lambda _: owner.runner.stop()):
        owner.start()
        owner.wait()
    states = [state["state"] for state in owner.states]
    assert [name for name, _ in itertools.groupby(states)] == ["running", "stopping", "stopped"]
    owner.runner.stop()
    assert owner.runner.state["state"] == "stopped" and owner.runner.scores is None


def test_a_run_that_was_replaced_tells_nothing_more() -> None:
    owner = Owner(fresh())
    inside = threading.Event()

    def replace(_: int) -> None:
        if not inside.is_set():
            inside.set()
            owner.start("attribution")

    with at_each_block(owner.model, replace):
        owner.start("ablation")
        owner.wait()
    assert "stopped" not in [state["state"] for state in owner.states]
    assert owner.runner.state["state"] == "done" and set(owner.runner.results) == {"attribution"}


def test_a_run_that_could_not_be_started_is_told() -> None:
    owner = Owner(fresh())
    owner.runner.refuse("no such option.")
    assert owner.runner.state == {"state": "failed", "message": "no such option.", "kept": 0}


def test_a_run_stops_when_its_owner_is_gone_and_leaves_nothing_behind() -> None:
    model = fresh()
    owner: Owner | None = Owner(model)
    assert owner is not None
    began, go_on = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        began.set()
        go_on.wait(20)

    gc.collect()
    gc.disable()
    try:
        with at_each_block(model, wait):
            owner.start("ablation")
            assert began.wait(20)
            gone, runner = weakref.ref(owner), weakref.ref(owner.runner)
            owner = None
            assert gone() is None, "the run does not keep its owner"
            go_on.set()
            end = time.monotonic() + 20
            while (runner() is not None or threads()) and time.monotonic() < end:
                time.sleep(0.01)
        assert runner() is None and not threads() and not hooked(model)
    finally:
        gc.enable()


def test_a_runner_ends_by_its_last_reference_after_a_run() -> None:
    """No cycle is left that would keep the model until the garbage collector comes."""
    owner = Owner(fresh())
    gc.collect()
    gc.disable()
    try:
        owner.start()
        owner.wait()
        runner = weakref.ref(owner.runner)
        del owner
        assert runner() is None
    finally:
        gc.enable()


def test_a_failure_of_the_owner_is_the_runs() -> None:
    class Broken(Owner):
        def show(self, scores: hw.HeadScores, final: bool) -> None:
            if final:
                raise ValueError("the owner cannot show this.")

    owner = Broken(fresh())
    owner.start()
    owner.wait()
    last = owner.runner.state
    assert (last["state"], last["message"]) == ("failed", "the owner cannot show this.")


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
def test_a_method_that_ends_the_thread_fails_and_what_is_done_is_kept(
    error: type[BaseException],
) -> None:
    def run(job: Job) -> Iterator[Chunk]:
        yield chunk(job, runs=(0, 1), values=values(job, 2, *job.model.shape))
        raise error

    hw.register_method(dataclasses.replace(MINE, run=run))
    owner = Owner(fresh())
    owner.start("mine")
    owner.wait()
    last = owner.runner.state
    assert (last["state"], last["kept"]) == ("failed", 2) and not owner.runner.is_busy
    assert last["message"].startswith(f"method 'mine' raised {error.__name__}; a method ends with")
    assert owner.runner.scores is not None and owner.runner.scores.partial
    assert len(owner.runner.scores.runs("one")) == 2


@pytest.mark.parametrize("final", [False, True])
def test_an_owner_that_ends_the_thread_fails_the_run(final: bool) -> None:
    class Leaving(Owner):
        def show(self, scores: hw.HeadScores, is_final: bool) -> None:
            if is_final == final:
                raise SystemExit

    owner = Leaving(fresh())
    owner.start()
    owner.wait()
    assert owner.runner.state["state"] == "failed" and not owner.runner.is_busy
    assert (owner.runner.scores is not None) == final  # before the first chunk, nothing is done


@pytest.mark.parametrize("method", ["gradient", "gating"])
def test_progress_says_what_a_fit_has_lost(method: str) -> None:
    owner = Owner(fresh())
    owner.start(method, **({"updates": 2, "fits": 1} if method == "gating" else {}))
    owner.wait()
    details = owner.runner.state["detail"]
    assert details.startswith("loss ") if method == "gating" else details == ""
