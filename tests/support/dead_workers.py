"""Ends a parallel test run as soon as one of its worker processes dies.

xdist would replace the worker. Under ``--dist loadgroup`` the replacement can wait for
ever for tests that never come (a worker that dies of an illegal instruction shows it),
so the run stops instead and names the tests that were running.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

import pytest


class DeadWorkers:
    """A plugin for the controlling process of xdist."""

    def __init__(self) -> None:
        self.running: dict[str, None] = {}  # test ids, in the order they started

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGTERM, self._terminated)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(nodeid, None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        if error is not None:
            self._stop(f"worker {node.gateway.id} died ({error})")

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        self._stop("the run was told to end (SIGTERM)")

    def _stop(self, reason: str) -> None:
        tests = "".join(f"\n  {nodeid}" for nodeid in self.running) or " none"
        pytest.exit(f"{reason}; tests that were running:{tests}", returncode=1)


def watch(config: pytest.Config) -> None:
    """Register the plugin in the process that controls the workers; elsewhere do nothing."""
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DeadWorkers(), "headwidget-dead-workers")
