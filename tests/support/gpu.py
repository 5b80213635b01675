"""A GPU without a GPU: a fake cuda device, and a count of what makes the host wait."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.cpp_extension import load_inline

import headwidget as hw
from tests.support import tiny

GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>
namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>)
}
int ready() { return 1; }
"""


@functools.cache
def cuda_guard() -> None:
    """Make fake tensors on a cuda device possible where torch is built for the CPU.

    Such a build knows no cuda device; a guard that does nothing is enough.
    """
    if not torch.cuda.is_available():
        load_inline("headwidget_cuda_guard", GUARD, functions=["ready"], verbose=False)


def on_cuda(family: str) -> hw.Model:
    model = hw.load(tiny.build(family), tiny.tokenizer())
    assert model.device.type == "cuda"
    return model


def copies_to_host(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """A list to which every `Tensor.cpu` adds its tensor's shape."""
    shapes: list[tuple[int, ...]] = []
    to_host = torch.Tensor.cpu

    def cpu(self: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(self.shape))
        return to_host(self)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    return shapes


def faked_copies_to_host(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which every `Tensor.cpu` adds its tensor's device.

    Fake tensors hold no numbers, so the copies are zeros, as tensors and as arrays.
    """
    devices: list[str] = []

    def cpu(self: torch.Tensor) -> torch.Tensor:
        devices.append(self.device.type)
        return torch.zeros(self.shape, device="meta")

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    monkeypatch.setattr(torch.Tensor, "numpy", lambda self: np.zeros(self.shape, np.float32))
    return devices


class Syncs(TorchDispatchMode):
    """Counts what makes the host wait for the device.

    On a CPU, a copy to the host is `Tensor.cpu`, which :func:`copies_to_host` counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in (
            "_local_scalar_dense",
            "item",
            "nonzero",
            "masked_select",
            "is_nonzero",
            "equal",
            "allclose",
        ) or (name == "index" and any(t is not None and t.dtype == torch.bool for t in args[1])):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))
