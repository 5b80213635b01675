"""A lab ends with the last reference to it, and its run with it.

A page that shows it, or a widget that has it, counts as a reference.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets
import pytest

import headwidget as hw
from headwidget.live import lifetime, worker
from tests.browser.hosts import wait_until
from tests.support.lab_tools import TASKS, at_each_block, fresh, hooked, threads


@pytest.fixture(autouse=True)
def _counted() -> Iterator[None]:
    """References are counted: nothing here may wait for the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def elsewhere(call: Callable[[], Any]) -> None:
    """In a thread without a loop: the browser tests' own may run in this one."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def tell(held: Callable[[], hw.Lab | None], ask: str) -> None:
    """What a view says as it comes and goes."""
    held()._handle_msg(
        {"content": {"data": {"method": "custom", "content": {"ask": ask}}}, "buffers": []}
    )  # type: ignore[union-attr]


def slow(model: hw.Model) -> hw.Lab:
    """A lab in the middle of a run that takes long."""
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    lab.prompt, lab.selected = "a b c", [[1, 1]]
    lab.wait(30)
    lab.run()
    lab._later("warm", hw.Lab._warm, idle=True)  # waits for the run's end
    lab.gates = lab.gates * 0.5
    return lab.measure()


def test_a_run_ends_with_the_last_reference_to_its_lab() -> None:
    model = fresh()
    with at_each_block(model, lambda _: time.sleep(0.05)):
        lab = slow(model)
        wait_until(lambda: hooked(model) > 1, "the run")
        gone = weakref.ref(lab)
        del lab
        wait_until(lambda: gone() is None and not threads(), "its end and the thread's", 5)
    assert not hooked(model)


def test_a_lab_that_is_shown_needs_no_variable_until_its_last_view_is_gone() -> None:
    model = fresh()
    with at_each_block(model, lambda _: time.sleep(0.05)):
        lab = slow(model)
        held = weakref.ref(lab)
        lab._repr_mimebundle_()
        del lab

        for ask in ("shown", "shown", "hidden"):
            elsewhere(lambda ask=ask: tell(held, ask))
            assert held().state == "running", "shown"  # type: ignore[union-attr]
        elsewhere(lambda: tell(held, "hidden"))
        wait_until(lambda: held() is None and not threads(), "its end and the thread's", 5)
    assert not hooked(model)


def test_a_cell_that_is_moved_keeps_its_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "MOVING", 0.2)
    lab = hw.live(fresh(), TASKS)
    lab._repr_mimebundle_()
    held = weakref.ref(lab)
    del lab

    async def views(*asks: str) -> None:
        for ask in asks:
            tell(held, ask)
        await asyncio.sleep(0.4)

    elsewhere(lambda: asyncio.run(views("shown", "hidden", "shown")))
    assert held() is not None
    kept = held()
    elsewhere(lambda: asyncio.run(views("hidden")))
    elsewhere(lambda: asyncio.run(views("shown")))  # the cell's deletion is undone
    del kept
    assert held() is not None
    elsewhere(lambda: asyncio.run(views("hidden")))
    wait_until(lambda: held() is None, "its end", 5)


def test_a_lab_in_a_box_or_in_a_job_is_held_by_it() -> None:
    lab = hw.live(fresh(), TASKS)
    held, box = weakref.ref(lab), ipywidgets.VBox([lab])
    assert ipywidgets.widgets.widget._instances[lab.model_id].get_state("method") == {
        "method": "gradient"
    }
    del lab
    assert held() is not None
    box.close()
    del box
    gc.collect()  # ipywidgets' own cycles
    assert held() is None


def test_a_lab_that_ends_on_the_models_thread_ends_as_any_other() -> None:
    model, inside, go = fresh(), threading.Event(), threading.Event()

    def wait(_: int) -> None:
        inside.set()
        go.wait(20)

    with at_each_block(model, wait):
        lab = hw.live(model, TASKS)
        lab.prompt = "a b c"
        assert inside.wait(20)
        held = weakref.ref(lab)
        del lab
        assert held() is not None, "its prompt is being read"
        go.set()
        wait_until(lambda: held() is None and not threads(), "its end")
    other = hw.live(model, TASKS)
    assert other.run().wait(30) and other.state == "done", "the thread's locks are free"


def test_the_collector_may_end_a_lab_as_the_models_thread_starts() -> None:
    """The collector may run in the new thread while the starting one holds the worker's lock."""
    model, before = fresh(), gc.get_threshold()
    gc.freeze()
    try:
        for count in range(12, 36):
            lab = hw.live(model, TASKS)
            lab.observe(lambda change, lab=lab: None, "prompt")
            held = weakref.ref(lab)
            del lab
            done = threading.Event()
            starter = threading.Thread(
                target=lambda done=done: worker.of(model).soon("job", done.set), daemon=True
            )
            gc.set_threshold(gc.get_count()[0] + count, 1, 1)
            gc.enable()
            starter.start()
            assert done.wait(10), "the thread lives"
            gc.disable()
            gc.collect()
            wait_until(
                lambda held=held: held() is None and not threads(), "its end and the thread's"
            )
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def test_close_all_closes_labs_too() -> None:
    lab = hw.live(fresh(), TASKS)
    ipywidgets.Widget.close_all()
    with pytest.raises(RuntimeError, match="closed"):
        lab.run()
