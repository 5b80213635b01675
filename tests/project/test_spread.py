"""Tests of one file share what they set up: they run in one process and in their order.

Those that take minutes start first, each in a group of its own or of the name they give.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.conftest import pytest_collection_modifyitems\n"
FILE = """
import os, time
import pytest

def note(request, seconds=0.02):
    time.sleep(seconds)
    with open("log", "a") as log:
        log.write(f"{os.getpid()} {request.node.name.partition('@')[0]}\\n")

@pytest.mark.parametrize("number", range(6))
def test_here(request, number):
    note(request)
"""
ALONE = """
@pytest.mark.alone
@pytest.mark.parametrize("number", range(2))
def test_alone(request, number):
    note(request, 1)

@pytest.mark.alone("shared")
@pytest.mark.parametrize("number", range(2))
def test_shares(request, number):
    note(request)
"""


def test_a_files_tests_run_in_one_process_and_those_that_are_alone_first(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  alone\n  slow\n  timeout\n")
    for name in "abc":
        file = FILE.replace("test_here", f"test_{name}")
        (tmp_path / f"test_{name}.py").write_text(file + (ALONE if name == "c" else ""))
    options = "-n 2 --dist loadgroup --no-loadscope-reorder -p no:cacheprovider".split()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    ran = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert len(ran) == 3 * 6 + 2 + 2

    def of(name: str) -> list[tuple[str, str]]:
        return [(process, test) for process, test in ran if test.startswith(f"test_{name}[")]

    for name, count in {"a": 6, "b": 6, "c": 6, "shares": 2}.items():
        assert len({process for process, _ in of(name)}) == 1, ran
        assert [test for _, test in of(name)] == [f"test_{name}[{i}]" for i in range(count)]
    assert len({process for process, _ in of("alone")}) == 2, "minutes are spread over the cores"
    order = [test.partition("[")[0] for _, test in ran]
    assert set(order[:2]) == {"test_alone"}, order
