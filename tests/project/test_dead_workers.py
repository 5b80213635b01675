"""A worker that dies ends the run within a minute, and takes the servers it started along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.browser.hosts import wait_until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.support.dead_workers import watch

def pytest_configure(config):
    watch(config)
"""
TESTS = """
import os, signal, subprocess, time
import pytest
from tests.support.end_with_parent import command

def serve(name):
    server = subprocess.Popen(command("-c", "import time; time.sleep(600)"))
    open(name, "w").write(str(server.pid))

@pytest.mark.xdist_group("dies")
def test_dies():
    serve("dies.pid")
    while not os.path.exists("lives.pid"):
        time.sleep(0.05)
    {death}

@pytest.mark.xdist_group("lives")
def test_lives():
    serve("lives.pid")
    time.sleep(600)

@pytest.mark.parametrize("number", range(20))
def test_waits_its_turn(number):
    pass
"""
DEATHS = {
    "illegal instruction": "os.kill(os.getpid(), signal.SIGILL)",
    "exit": "os._exit(3)",
}


def start(folder: Path, death: str) -> subprocess.Popen[str]:
    """A session of two workers in ``folder``, in which one test waits for ten minutes."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_them.py").write_text(TESTS.format(death=death))
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "2",
            "--dist",
            "loadgroup",
            "-p",
            "no:cacheprovider",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def servers(folder: Path) -> list[int]:
    return [int(file.read_text() or 0) for file in sorted(folder.glob("*.pid"))]


def running(pid: int) -> bool:
    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("death", DEATHS)
def test_a_dead_worker_ends_the_run_and_its_servers(tmp_path: Path, death: str) -> None:
    run = start(tmp_path, DEATHS[death])
    began = time.monotonic()
    out, _ = run.communicate(timeout=90)
    assert time.monotonic() - began < 60
    assert run.returncode == 1, out
    assert "died" in out and "test_them.py::test_dies@dies" in out, out
    assert len(servers(tmp_path)) == 2, "both tests had started their servers"
    wait_until(lambda: not any(map(running, servers(tmp_path))), "the servers to end")


def test_a_run_that_is_told_to_end_names_the_tests_that_run(tmp_path: Path) -> None:
    run = start(tmp_path, "time.sleep(600)")
    wait_until(lambda: len(servers(tmp_path)) == 2, "both tests", 60)
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 1, out
    assert "told to end" in out and "test_lives" in out and "test_dies" in out, out
    wait_until(lambda: not any(running(child.pid) for child in children), "what it started to end")
