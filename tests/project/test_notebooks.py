"""Notebooks run from top to bottom without a browser, as `make demo HEADLESS=1` does; what one keeps of its outputs is what it gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.support.notebooks import EXACT, assert_fresh

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
LONGEST = {"03_cognitive_heads", "04_gating"}
"""Notebooks that start first."""


@pytest.mark.alone
@pytest.mark.parametrize(
    "notebook",
    sorted(FOLDER.glob("*.ipynb"), key=lambda path: (path.stem not in LONGEST, path.stem)),
    ids=lambda p: p.stem,
)
def test_a_notebook_runs_headless_and_leaves_a_page_and_a_picture(
    notebook: Path, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, str(FOLDER / "headless.py"), str(notebook), str(tmp_path)], check=True
    )
    name = notebook.stem.split("_", 1)[-1]
    assert "<script" in (tmp_path / f"{name}.html").read_text()
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    stored, ran = (
        nbformat.read(path, as_version=4) for path in (notebook, tmp_path / f"{name}.ipynb")
    )
    assert_fresh(stored, ran, exact=notebook.stem in EXACT)


def test_the_scores_that_notebooks_read_are_small() -> None:
    assert 0 < sum(file.stat().st_size for file in (FOLDER / "data").iterdir()) < 200_000
