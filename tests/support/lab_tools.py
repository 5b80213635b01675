"""What the lab's tests share: a model of a test's own, what is left on it, and a way to
act in the middle of a forward."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

import headwidget as hw
from tests.support import tiny

TASKS = [tiny.task("one"), tiny.task("two")]


def hooked(model: hw.Model) -> int:
    """How many hooks the model has."""
    return sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.module.modules())


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "headwidget"]


def fresh() -> hw.Model:
    """A model of this test's own: nobody else's thread runs it."""
    return hw.load(tiny.build("llama"), tiny.tokenizer())


@contextmanager
def at_each_block(model: hw.Model, act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act(batch size)`` whenever the first block runs, in whichever thread.

    The forward is replaced for the class, so that it does not count as a hook of the user's.
    """
    kind, block = type(model.blocks[0]), model.blocks[0]
    real = kind.forward

    def forward(self: nn.Module, *args: torch.Tensor, **kwargs: object) -> object:
        if self is block:
            act(len(args[0]))
        return real(self, *args, **kwargs)

    kind.forward = forward
    try:
        yield
    finally:
        kind.forward = real


def forwards(model: hw.Model, act: Callable[[], object]) -> int:
    """How often the model's first block runs meanwhile."""
    calls: list[int] = []
    with at_each_block(model, calls.append):
        act()
    return len(calls)
