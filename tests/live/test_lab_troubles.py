"""The lab when things go wrong: handlers that raise, other threads, runs that are replaced."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from traitlets import TraitError

import headwidget as hw
from headwidget.live import worker
from headwidget.models import hooks
from headwidget.scoring import score
from tests.support.lab_tools import TASKS, at_each_block, fresh, threads


def raising(change: Any) -> None:
    raise ValueError("the handler broke down.")


# ---- other threads ----


def test_a_forward_of_another_thread_is_left_alone_and_not_seen() -> None:
    model = fresh()
    ids, seen = torch.tensor([[5, 6, 7]]), []
    with torch.no_grad():
        expected = model.module(ids).logits
    attention = model.layers[0].attention

    def forward() -> torch.Tensor:
        with torch.no_grad():
            return model.module(ids).logits

    with (
        ThreadPoolExecutor(1) as other,
        hooks.gate(model, torch.zeros(model.shape)),
        hooks.read(model, lambda row, z: seen.append(row)),
        hooks.watch(attention, lambda *_: seen.append("watched")),
        hooks.stand_in(attention, lambda *_, **__: seen.append("stood in")),
    ):
        assert torch.equal(other.submit(forward).result(60), expected) and seen == []
    with hooks.gate(model, torch.zeros(model.shape)):
        assert not torch.equal(forward(), expected), "on its own thread a gate is heeded"


def test_two_labs_of_one_model_each_know_how_their_run_ended() -> None:
    model = fresh()
    first, second = hw.live(model, TASKS), hw.live(model, TASKS)
    free = threading.Event()
    worker.of(model).soon("busy", lambda: free.wait(30) and None)
    first.run()
    second.run()
    free.set()
    assert second.wait(60)
    assert (first.state, second.state) == ("stopped", "done")


def test_jobs_that_ask_for_more_never_hold_up_a_run() -> None:
    done: list[str] = []
    one = worker.Worker()

    def steps(run: worker.Run) -> Any:
        for _ in range(5):
            done.append("step")
            yield

    def job() -> None:
        done.append("job")
        if done.count("job") < 50:
            one.soon("job", job)

    free = threading.Event()
    one.soon("busy", lambda: free.wait(30) and None)
    one.soon("job", job)
    one.soon("ahead", lambda: done.append("ahead"), idle=True)
    run = worker.Run(steps)
    one.start(run)
    free.set()
    assert run.ended.wait(60)
    while one.thread is not None:
        time.sleep(0.01)
    assert "".join(what[0] for what in done).startswith("sjsjsjsjsj") and done[-1] == "ahead", done


def test_a_run_that_is_stopped_ends_before_any_job() -> None:
    done: list[str] = []
    one = worker.Worker()

    def steps(run: worker.Run) -> Any:
        try:
            while True:
                yield
        except KeyboardInterrupt:
            done.append("stopped")

    run = worker.Run(steps)

    def busy() -> None:
        for what in "abc":
            one.soon(what, lambda: done.append("job"))
        run.stop.set()

    one.start(run)
    one.soon("busy", busy)
    assert run.ended.wait(60)
    while one.thread is not None:
        time.sleep(0.01)
    assert done == ["stopped", "job", "job", "job"]


# ---- handlers ----


@pytest.mark.parametrize("name", ["_state", "_reading", "tasks", "threshold", "_header", "_effect"])
def test_a_handler_that_raises_is_said_in_the_widget_and_stops_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    lab = hw.live(fresh(), TASKS, threshold=0.1)
    lab.observe(raising, name)
    lab.prompt = "abc"
    with caplog.at_level(logging.CRITICAL, logger=worker.log.name):
        assert lab.run(tasks=["one"], method="patterns").wait(60) and lab.state == "done"
        gates = np.ones((3, 4))
        gates[0, 0] = 0
        lab.gates = gates
        assert lab.measure().wait(60) and lab.effect["done"]
    assert lab._trouble == "A handler that observes the lab failed: the handler broke down."
    lab.unobserve(raising, name)
    assert lab.run(tasks=["one", "two"]).wait(60) and lab.state == "done" and lab._trouble == ""
    assert not threads()


def test_a_job_that_breaks_down_leaves_the_thread_to_the_next() -> None:
    model = fresh()
    one = worker.of(model)
    logging.getLogger(worker.log.name).setLevel(logging.CRITICAL)
    try:
        one.soon("bad", lambda: raising(None))
        assert hw.live(model, TASKS).run().wait(60)
    finally:
        logging.getLogger(worker.log.name).setLevel(logging.NOTSET)
    assert not threads()


def test_waiting_in_a_handler_says_that_it_would_never_end() -> None:
    lab = hw.live(fresh(), TASKS)
    found: list[str] = []

    def wait(change: Any) -> None:
        try:
            lab.wait()
        except RuntimeError as error:
            found.append(str(error))

    lab.observe(wait, ["view", "_header", "_state"])
    free = threading.Event()
    worker.of(lab._model).soon("busy", lambda: free.wait(30) and None)
    lab.set_state({"view": "agreement"})
    free.set()
    lab.run()
    while lab.state != "done":
        time.sleep(0.01)
    assert (
        len(found) >= 2
        and set(found) == {found[0]}
        and found[0].startswith("lab.wait() inside a handler would wait for itself")
        and "lab.observe(handler, 'state')" in found[0]
    )


def test_a_handler_that_ends_the_thread_ends_nothing() -> None:
    lab = hw.live(fresh(), TASKS)

    def leave(change: Any) -> None:
        raise SystemExit

    lab.observe(leave, "_head")
    logging.getLogger(worker.log.name).setLevel(logging.CRITICAL)
    try:
        lab.selected = [[1, 2]]
        assert lab.wait(30)
        lab.unobserve(leave, "_head")
        assert lab.run().wait(60) and lab.state == "done"
    finally:
        logging.getLogger(worker.log.name).setLevel(logging.NOTSET)


def test_a_run_that_was_replaced_while_it_was_kept_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = hw.live(fresh(), TASKS)
    real = score.Scoring.scores

    def replaced(self: score.Scoring, *, partial: bool) -> hw.HeadScores:
        if self.method.name == "gradient":
            lab.run(method="ablation")
            lab.stop()
        return real(self, partial=partial)

    monkeypatch.setattr(score.Scoring, "scores", replaced)
    assert lab.run(method="gradient").wait(60)
    assert lab.state == "stopped" and lab.scores is None and lab.results == {}


def test_salient_tokens_come_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fresh()
    real = type(model).fingerprint

    def slow(self: hw.Model) -> str:
        time.sleep(0.3)
        return real(self)

    monkeypatch.setattr(type(model), "fingerprint", slow)
    lab = hw.live(model, TASKS)
    lab.selected = [[1, 2]]
    assert lab.wait(30) and lab._head["salient"]


def test_stop_after_the_last_word_changes_nothing() -> None:
    lab = hw.live(fresh(), TASKS)
    lab.run().wait(60)
    assert lab._runner._run is not None
    lab._runner._run.ended.clear()  # as it is for a moment after the run has said that it is done
    lab.stop()
    assert lab.state == "done"


# ---- what a run leaves behind ----


def broken(lab: hw.Lab) -> Callable[[int], None]:
    def act(_: int) -> None:
        raise RuntimeError("the layer broke down.")

    return act


def test_a_run_that_fails_gives_no_other_runs_scores() -> None:
    model = fresh()
    lab = hw.live(model, TASKS)
    lab.run(method="gradient").wait(60)
    with at_each_block(model, broken(lab)):
        lab.run(method="ablation").wait(60)
    assert lab.state == "failed" and lab.scores is None and set(lab.results) == {"gradient"}


def test_a_run_that_is_stopped_takes_no_complete_results_place() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    whole = lab.run().wait(60) and lab.results["ablation"]

    def stop_in_the_second_task(_: int) -> None:
        if lab.scores is not None:
            lab.stop()

    with at_each_block(model, stop_in_the_second_task):
        lab.run().wait(60)
    assert lab.scores is not None and lab.scores.partial and lab.results["ablation"] is whole


def test_the_heads_card_follows_a_run() -> None:
    lab = hw.live(fresh(), TASKS)
    lab.selected = [[1, 2]]
    assert lab.run().wait(60)
    assert [(one["method"], one["task"]) for one in lab._head["ranks"]] == [
        ("gradient", "one"),
        ("gradient", "two"),
    ]


def test_another_task_of_the_same_name_is_refused() -> None:
    lab = hw.live(fresh(), TASKS)
    with pytest.raises(TraitError, match="the lab's task 'one' has other prompts than this one"):
        lab.run(tasks=[hw.Task("one", [("ab", "c")])])
    lab.run(tasks=[TASKS[0]]).wait(60)
    assert lab.scores is not None and lab.scores.tasks == ("one",)


def test_memory_that_runs_out_in_a_fit_takes_its_steps_back() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "gating", prompts=None)
    told: list[tuple[float, float]] = []
    lab.observe(
        lambda change: told.append((change["new"].get("done", 0), change["new"].get("total", 0))),
        "_state",
    )
    calls: list[int] = []

    def once(_: int) -> None:
        calls.append(1)
        if len(calls) == 30:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    with at_each_block(model, once):
        assert lab.run(updates=6, fits=2).wait(60)
    assert lab.state == "done" and len(calls) > 30 and told[-1] == (36.0, 36.0)
