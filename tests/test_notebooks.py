"""Notebooks run from top to bottom without a browser, as `make demo HEADLESS=1` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs_headless_and_leaves_a_page_and_a_picture(notebook: Path, tmp_path: Path) -> None:
    assert not any(c.get("outputs") for c in nbformat.read(notebook, as_version=4).cells)
    subprocess.run([sys.executable, str(ROOT / "notebooks" / "headless.py"), str(notebook), str(tmp_path)], check=True)
    name = notebook.stem.split("_", 1)[-1]
    assert "<script" in (tmp_path / f"{name}.html").read_text()
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
