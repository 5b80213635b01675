"""Where the processor refuses what it advertises, the tests run with oneDNN limited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwidget.models.sixteen_bit import LIMIT, VARIABLE
from tests.support import sixteen_bit

ROOT = Path(__file__).parents[2]
LAYER = "import torch; torch.nn.Linear(64, 64, dtype=torch.bfloat16)(torch.ones(32, 64).bfloat16())"


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment before the limit; what a test sets in it is undone."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)


@pytest.mark.parametrize(("works", "limit"), [(False, LIMIT), (True, None)])
def test_the_limit_is_set_where_16_bit_does_not_work(
    works: bool, limit: str | None, no_limit: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sixteen_bit, "works", lambda: works)
    sixteen_bit.limit_where_it_does_not_work()
    assert os.environ.get(VARIABLE) == limit


def test_a_limit_that_is_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "AVX2")
    monkeypatch.setattr(sixteen_bit, "works", lambda: False)
    sixteen_bit.limit_where_it_does_not_work()
    assert os.environ[VARIABLE] == "AVX2"


def test_torch_is_imported_after_the_limit_is_set() -> None:
    code = "import sys, tests.conftest; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"


def test_a_bfloat16_layer_lives_in_this_environment() -> None:
    subprocess.run([sys.executable, "-c", LAYER], check=True)
