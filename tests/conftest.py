"""How tests are spread over the cores: a file's tests together, so that they share what they set up; those that take minutes alone and first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from headwidget.models import hooks
from tests.support.gpu import cuda_guard

MINUTES = 1500
"""Seconds that a test marked ``alone`` may take: on a busy core a notebook takes many times what it takes a user."""


@pytest.hookimpl(
    tryfirst=True
)  # before xdist reads the groups: after it they would say nothing, and a file's tests would be torn apart
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    alone = [item for item in items if item.get_closest_marker("alone")]
    for item in items:
        item.add_marker(
            pytest.mark.xdist_group(item.nodeid if item in alone else item.path.as_posix())
        )
    for item in alone:
        item.add_marker(pytest.mark.timeout(MINUTES))
    items.sort(key=lambda item: item not in alone)  # the order stays among equals


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every tensor is fake and on a cuda device: no values, no mixing of devices."""
    cuda_guard()
    monkeypatch.setattr(
        hooks, "without_backward", torch.no_grad
    )  # torch.tensor makes no fake tensors in inference mode
    with FakeTensorMode(), torch.device("cuda"):
        yield
