"""How tests are spread over the cores, and what holds for every run.

A file's tests run together, so that they share what they set up; those that take
minutes run alone and first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import dead_workers, sixteen_bit

MINUTES = 1500
"""Seconds that a test marked ``alone`` may take: a notebook on a busy core takes many times
what it takes a user."""


def pytest_configure(config: pytest.Config) -> None:
    dead_workers.watch(config)
    if not hasattr(config, "workerinput"):  # workers and kernels inherit the environment
        sixteen_bit.limit_where_it_does_not_work()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    alone = [item for item in items if item.get_closest_marker("alone")]
    for item in items:
        group = item.nodeid if item in alone else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
    for item in alone:
        item.add_marker(pytest.mark.timeout(MINUTES))
    items.sort(key=lambda item: item not in alone)  # the order stays among equals


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every tensor is fake and on a cuda device: no values, no mixing of devices."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from headwidget.models import hooks
    from tests.support.gpu import cuda_guard

    cuda_guard()
    # torch.tensor makes no fake tensors in inference mode
    monkeypatch.setattr(hooks, "without_backward", torch.no_grad)
    with FakeTensorMode(), torch.device("cuda"):
        yield
