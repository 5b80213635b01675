"""Ctrl-C at every bytecode where a model is altered or given back: it is left as it was."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch

import headwidget as hw
from headwidget.models import altering, attention, hooks, locks
from tests.support import tiny

FILES = {altering.__file__, locks.__file__, hooks.__file__}


def state(model: hw.Model) -> list[Any]:
    """All that an alteration could leave behind."""
    modules = list(model.module.modules())
    found: list[Any] = [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    found += [m.training for m in modules]
    found += [m.__dict__.get("forward") for m in modules]
    found += [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules]
    found += [p.requires_grad for p in model.module.parameters()]
    found.append(signal.getsignal(signal.SIGINT))
    return found


def is_free(model: hw.Model) -> bool:
    """Can another thread have the model?"""
    free = []

    def try_all() -> None:
        taken = [lock.lock for lock in model.shared_lock._locks if lock.lock.acquire(False)]
        free.append(len(taken) == len(model.shared_lock._locks))
        for lock in taken:
            lock.release()

    thread = threading.Thread(target=try_all)
    thread.start()
    thread.join()
    return free == [True]


class InterruptAt:
    """Sends SIGINT before the ``number``-th bytecode that runs in :data:`FILES`."""

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.count += 1
            if self.count == self.number:
                signal.raise_signal(signal.SIGINT)
        return self


def interrupted(work: Callable[[], None], number: int) -> tuple[bool, bool]:
    """Was the bytecode reached, and did the interrupt come out?"""
    tracer = InterruptAt(number)
    sys.settrace(tracer)
    try:
        work()
    except KeyboardInterrupt:
        return True, True
    finally:
        sys.settrace(None)
    return tracer.count >= number, False


@pytest.fixture
def small() -> Iterator[hw.Model]:
    module = tiny.build("llama", num_hidden_layers=3)
    module.train()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield hw.load(module, tiny.tokenizer())
    signal.signal(signal.SIGINT, before)


def works(model: hw.Model) -> dict[str, Callable[[], None]]:
    def scoring() -> None:
        with hooks.scoring(model), hooks.gate(model, torch.ones(model.shape)):
            pass

    def differentiating() -> None:
        with hooks.differentiating(model), hooks.read(model, lambda row, z: None):
            pass

    def standing_in() -> None:
        nothing_read = attention.read(model, lambda *_: None, [])
        stand_in = hooks.stand_in(model.blocks[0], lambda *_: None)
        with hooks.scoring(model), nothing_read, stand_in:
            pass

    return {"scoring": scoring, "differentiating": differentiating, "standing in": standing_in}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scoring", "differentiating", "standing in"])
def test_an_interrupt_at_any_bytecode_leaves_the_model_as_it_was(
    name: str, small: hw.Model
) -> None:
    work, before = works(small)[name], state(small)
    number, reached, raised = 0, True, 0
    while reached:
        number += 1
        reached, came_out = interrupted(work, number)
        raised += came_out
        assert state(small) == before, f"bytecode {number}"
        assert number % 50 or is_free(small)
    assert is_free(small)
    assert number > 3400, "three works, 10,000 bytecodes"
    assert raised == number - 1, "every interrupt is delivered in the end"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ablation", "gradient", "gating"])
def test_an_interrupt_amid_scoring_leaves_the_model_as_it_was(method: str, small: hw.Model) -> None:
    options: dict[str, Any] = {"gating": {"updates": 1, "fits": 1}}.get(method, {})
    task = hw.Task("letters", [("abc", "d"), ("bcd", "e")])

    def work() -> None:
        if hw.score(small, task, method, progress=False, **options).partial:
            raise KeyboardInterrupt  # hw.score gives what was done, marked so

    before, number, tries, reached = state(small), 1, 0, True
    while reached:
        reached, _ = interrupted(work, number)
        assert state(small) == before, f"bytecode {number}"
        number += 997
        tries += 1
    assert is_free(small) and tries > 10


def test_an_interrupt_is_not_lost_while_a_model_is_altered(small: hw.Model) -> None:
    with pytest.raises(KeyboardInterrupt), hooks.scoring(small):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_the_wait_for_a_model_that_another_thread_holds(small: hw.Model) -> None:
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with small.lock:
            held.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    alarm = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    alarm.start()
    before = state(small)
    with pytest.raises(KeyboardInterrupt), hooks.scoring(small):
        pass
    assert state(small) == before
    free.set()
    thread.join()
    assert is_free(small)


def test_a_handler_that_does_not_raise_is_called_once_and_work_goes_on(small: hw.Model) -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: calls.append(number))
    try:
        real = small.module.modules

        def modules() -> Any:
            if not calls:
                signal.raise_signal(signal.SIGUSR1)  # while the modes are being changed
            return real()

        small.module.modules = modules
        with hooks.scoring(small):
            assert calls == [signal.SIGUSR1]
        del small.module.modules
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [signal.SIGUSR1]
