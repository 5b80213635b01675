"""A GPU without a GPU: a fake cuda device, and a count of what makes the host wait."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

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
    """A CPU build of torch knows no cuda device; a guard that does nothing is enough for
    fake tensors to live on one."""
    if not torch.cuda.is_available():
        load_inline("headwidget_cuda_guard", GUARD, functions=["ready"], verbose=False)


def on_cuda(family: str) -> hw.Model:
    model = hw.load(tiny.build(family), tiny.tokenizer())
    assert model.device.type == "cuda"
    return model


class Syncs(TorchDispatchMode):
    """Counts what makes the host wait for the device.

    On a CPU, a copy to the host is `Tensor.cpu`, counted by the test itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

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
            self.found[name] += 1
        return func(*args, **(kwargs or {}))
