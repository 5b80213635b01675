"""Public names are what they are called, whichever module was imported first."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import headwidget as hw


@pytest.mark.parametrize("name", hw.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(hw, name)
    assert name == "__version__" or value.__doc__
    assert isinstance(value, ModuleType) == (name in ("charts", "relations", "tasks"))


def test_importing_the_package_live_leaves_hw_live_the_function() -> None:
    code = (
        "import headwidget.live.worker, headwidget as hw; "
        "print(hw.live.__name__, hw.live.__module__)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == ["live", "headwidget.live.lab"]
