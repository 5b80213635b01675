"""How tests are spread over the cores, and what holds for every run.

A file's tests run together, so that they share what they set up; those that take
minutes run alone and first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support import dead_workers, sixteen_bit

BROWSER = Path(__file__).parent / "browser"
ALONE_SECONDS = 1500
"""Seconds that a test marked ``alone`` may take: a notebook on a busy core takes many times
what it takes a user."""


# No test is timed: a busy core takes many times what an idle one does.
hypothesis.settings.register_profile("untimed", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("untimed")
    dead_workers.watch(config)
    if not hasattr(config, "workerinput"):  # workers and kernels inherit the environment
        sixteen_bit.limit_where_it_does_not_work()


def group(item: pytest.Item) -> str:
    """Tests of one group run in one process: a file's, or those that name a group."""
    alone = item.get_closest_marker("alone")
    if alone is None:
        return item.path.as_posix()
    return str(alone.args[0]) if alone.args else item.nodeid


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, and -m the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.timeout(ALONE_SECONDS))
            item.add_marker(pytest.mark.slow)
        elif BROWSER in item.path.parents:
            item.add_marker(pytest.mark.slow)
    # Those that take minutes first; the order stays among equals.
    items.sort(key=lambda item: item.get_closest_marker("alone") is None)


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
