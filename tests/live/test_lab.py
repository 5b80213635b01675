"""Runs of the lab without a browser: they give what hw.score gives, stop, and leave nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from traitlets import TraitError

import headwidget as hw
from headwidget.display import wire
from headwidget.models import hooks
from headwidget.scoring import registry, score
from tests.support.lab_tools import TASKS, at_each_block, fresh, hooked, threads


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gradient", {"abs": True}),
        ("attribution", {}),
        ("ablation", {}),
        ("gating", {"updates": 2, "fits": 2}),
    ],
)
def test_a_run_gives_what_score_gives(method: str, options: dict[str, Any]) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, method, prompts=None)
    assert lab.scores is None and lab.state == "idle"
    assert lab.run(**options).wait(60) and lab.state == "done"
    expected = hw.score(model, TASKS, method, progress=False, **options)
    assert lab.scores is not None and lab.scores.tasks == expected.tasks and not lab.scores.partial
    for task in expected.tasks:  # a run that is watched has smaller batches: rounding differs
        np.testing.assert_allclose(lab.scores.values(task), expected.values(task), atol=2e-6)
    assert lab.results[method] is lab.scores
    assert not threads() and not hooked(model)


def test_what_the_maps_show_is_public_and_follows_the_run() -> None:
    lab = hw.live(fresh(), TASKS, "gradient")
    assert lab.shown.partial and not any(lab.shown.measured(task).any() for task in lab.shown.tasks)
    assert lab.run(tasks=["two"]).wait(60)
    assert lab.shown is lab.scores and lab.shown.tasks == ("two",) == tuple(lab.tasks)


def test_the_state_of_a_run_can_be_observed() -> None:
    lab = hw.live(fresh(), TASKS)
    states: list[str] = []
    lab.observe(lambda change: states.append(change["new"]), "state")
    assert lab.run().wait(60)
    assert states == ["running", "done"] and lab.state == "done"
    with pytest.raises(TraitError, match="read-only"):
        lab.state = "idle"
    assert "state" not in lab.keys  # the browser has _state


def test_what_is_not_scored_yet_is_marked_and_no_number() -> None:
    model = fresh()
    ready = score.prepare(model, TASKS, "ablation", batch_size=2, seed=0)
    seen = []
    for _ in ready.land(lambda what, steps: None):
        header, buffer = wire.encode(ready.snapshot())
        maps = wire.decode(header, buffer)
        gaps = [np.isnan(task["mean"]) for task in maps]  # (layer, head) each
        assert all((gap.all(axis=1) == gap.any(axis=1)).all() for gap in gaps)
        seen.append([np.flatnonzero(gap.all(axis=1)).tolist() for gap in gaps])
    assert seen[:3] == [[[1, 2], [0, 1, 2]], [[2], [0, 1, 2]], [[], [0, 1, 2]]]
    assert seen[-1] == [[], []] and not any(task.get("missing") for task in header["tasks"])
    assert header["meaning"] == registry.find("ablation").about
    lab = hw.live(model, TASKS)
    assert all(task["missing"] for task in lab._header["tasks"])
    gradient = registry.find("gradient")
    assert lab._header["meaning"] == gradient.meaning(gradient.options())


def test_stop_keeps_what_is_done() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    batches: list[int] = []

    def stop_in_the_second_task(size: int) -> None:
        batches.append(size)
        scores = lab.scores
        if scores is not None and scores.measured("one").min() == len(TASKS[0]):
            lab.stop()

    with at_each_block(model, stop_in_the_second_task):
        lab.run().wait(60)
    assert lab.state == "stopped"
    assert lab.scores is not None and lab.scores.tasks == ("one",) and lab.scores.partial
    assert lab._state["kept"] == len(TASKS[0])
    assert not threads() and not hooked(model)


def test_stop_ends_a_forward_at_its_next_layer() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "gradient", prompts=None)
    with at_each_block(model, lambda _: lab.stop()):
        lab.run().wait(60)
    assert lab.state == "stopped" and lab.scores is None and lab._state["kept"] == 0


def test_stop_ends_an_ablation_at_its_next_block() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    calls: list[int] = []

    def seen(*_: Any) -> None:
        calls.append(1)
        if len(calls) == 5:  # in the middle of a layer's heads
            lab.stop()

    handle = model.blocks[-1].register_forward_pre_hook(seen)
    lab.run().wait(60)
    handle.remove()
    assert lab.state == "stopped" and len(calls) == 5


def test_a_second_run_replaces_the_first() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    again = threading.Event()

    def once(_: int) -> None:
        if not again.is_set():
            again.set()
            lab.run(method="gradient")

    with at_each_block(model, once):
        lab.run().wait(60)
        lab.wait(60)
    assert lab.state == "done" and lab.scores is not None and lab.scores.method == "gradient"
    expected = hw.score(model, TASKS, "gradient", progress=False)
    np.testing.assert_allclose(lab.scores.values("two"), expected.values("two"), atol=2e-6)


def test_twenty_fast_starts_and_stops_leave_nothing() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    for i in range(20):
        lab.run(method=("ablation", "gradient")[i % 2])
        time.sleep(0.002 * (i % 5))
        lab.stop()
    assert lab.wait(60) and lab.state in ("stopped", "done")
    assert not threads() and not hooked(model)
    assert lab.run(method="gradient").wait(60) and lab.state == "done"
    lab.close()
    assert not threads()
    with pytest.raises(RuntimeError, match="this lab is closed"):
        lab.run()


def test_a_failure_is_a_sentence_and_keeps_what_is_done() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "gradient", prompts=None)

    def fail_in_the_second_task(_: int) -> None:
        if lab.scores is not None and lab.scores.measured("one").min() == len(TASKS[0]):
            raise RuntimeError("the layer broke down.")

    with at_each_block(model, fail_in_the_second_task):
        lab.run().wait(60)
    assert lab.state == "failed" and lab._state["message"] == "the layer broke down."
    assert (
        lab.scores is not None
        and lab.scores.tasks == ("one",)
        and lab._state["kept"] == len(TASKS[0])
    )


@pytest.mark.parametrize("method", ["gradient", "ablation"])
def test_out_of_memory_halves_the_batch_and_goes_on(method: str) -> None:
    model = fresh()
    expected = hw.score(model, TASKS, method, progress=False, batch_size=1)
    sizes: list[int] = []

    def only_two(size: int) -> None:
        sizes.append(size)
        # behind the six calls of the checks
        if (size > 2 and method == "gradient") or len(sizes) == 8:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    lab = hw.live(model, TASKS, method, prompts=None)
    with at_each_block(model, only_two):
        lab.run().wait(60)
    assert (
        lab.state == "done"
        and lab.scores is not None
        and "halved" in lab.scores.meta["out_of_memory"]
    )
    for task in expected.tasks:
        np.testing.assert_allclose(lab.scores.values(task), expected.values(task), atol=2e-5)
    assert lab._state["halved"] == lab.scores.meta["batch_size"]
    with at_each_block(
        model, lambda _: (_ for _ in ()).throw(torch.OutOfMemoryError("CUDA out of memory."))
    ):  # type: ignore[arg-type]
        lab.run().wait(60)
    assert (
        lab.state == "failed"
        and "Memory ran out, even with one prompt at a time" in lab._state["message"]
    )


def test_a_cell_may_score_the_same_model_while_the_lab_does() -> None:
    model = fresh()
    expected = {
        method: hw.score(model, TASKS, method, progress=False)
        for method in ("ablation", "gradient")
    }
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    for _ in range(3):
        lab.run()
        mine = hw.score(model, TASKS, "gradient", progress=False)
        lab.wait(60)
        assert lab.scores is not None, lab._state
        for task in mine.tasks:
            np.testing.assert_array_equal(mine.values(task), expected["gradient"].values(task))
            np.testing.assert_array_equal(
                lab.scores.values(task), expected["ablation"].values(task)
            )


def test_awaiting_a_run_leaves_the_loop_free() -> None:
    async def both() -> tuple[Any, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        other = asyncio.create_task(tick())
        found = await lab.run().done
        assert await asyncio.create_task(lab.done) is found
        done = lab.done
        assert await done is await done is await asyncio.wait_for(done, 20)
        lab.gates = lab.gates * 0.5
        assert await lab.measure(prompts=1, draws=1).done is found and lab.effect["done"]
        other.cancel()
        return found, ticks

    lab = hw.live(fresh(), TASKS, "gradient", prompts=None)
    with ThreadPoolExecutor(1) as loop:  # the browser tests' own loop may run in this thread
        found, ticks = loop.submit(lambda: asyncio.run(both())).result(60)
    assert found is lab.scores and ticks > 1


def test_a_script_that_ends_in_the_middle_of_a_run_ends_well() -> None:
    code = (
        "import headwidget as hw; from tests.support import tiny; "
        "model = tiny.model('llama'); "
        "lab = hw.live(model, [tiny.task('one')], 'gating', prompt='abc'); "
        "lab.run()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0
    assert not any(word in ended.stderr for word in ("Traceback", "Exception", "Fatal"))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("method", "magic", "there is no method 'magic'"),
        ("asked", ["three"], "the lab has no task 'three'; it has 'one', 'two'"),
        ("asked", [], "one or more, each once"),
        ("prompts", 0, "prompts is how many prompts of each task are scored"),
        ("options", [1], "options is a dict of the method's options"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: Any, sentence: str) -> None:
    lab = hw.live(fresh(), TASKS)
    with pytest.raises(TraitError, match=sentence):
        setattr(lab, name, value)
    lab._on_message(None, {"ask": "run"}, [])
    assert lab.wait(60) and lab.state == "done"
    lab.options = {"speed": 3}
    lab._on_message(None, {"ask": "run"}, [])
    assert lab.state == "failed" and "has no option 'speed'" in lab._state["message"]


def test_the_model_is_checked_ahead_where_the_lab_is_shown() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompts=None)
    assert model.checked is None, "nothing runs before it is asked for"
    lab._on_message(None, {"ask": "shown"}, [])
    assert lab.wait(60) and model.checked is not None


def test_work_ahead_gives_way_to_a_run_and_is_done_afterwards() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompts=None)
    order: list[str] = []
    began, go_on = threading.Event(), threading.Event()

    def ahead(lab: hw.Lab) -> None:
        order.append("ahead")
        began.set()
        go_on.wait(20)
        hooks.check_stop()
        order.append("ahead done")

    lab._later("warm", ahead, idle=True)
    assert began.wait(20)
    lab.observe(lambda change: order.append(change["new"]), "state")
    lab.run()
    go_on.set()
    assert lab.wait(60)
    assert order == ["ahead", "running", "done", "ahead", "ahead done"]
