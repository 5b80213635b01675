"""Notebooks run from top to bottom without a browser, as `make demo HEADLESS=1` runs them.

What one keeps of its outputs is what it gives.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from tests.support import end_with_parent
from tests.support.notebooks import EXACT, assert_fresh

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = [path.stem for path in FOLDER.glob("*.ipynb")]
LONGEST = {"03_cognitive_heads", "04_gating"}
"""Notebooks that start first."""


Ran = Callable[[str], Path]


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The folder that ``make demo HEADLESS=1`` leaves for a notebook, which runs once."""

    @functools.cache
    def run(stem: str) -> Path:
        folder = tmp_path_factory.mktemp(stem)
        arguments = [str(FOLDER / "headless.py"), str(FOLDER / f"{stem}.ipynb"), str(folder)]
        subprocess.run(end_with_parent.command(*arguments), check=True)
        return folder

    return run


@pytest.mark.parametrize(
    "stem",
    [
        pytest.param(stem, marks=pytest.mark.alone(stem))
        for stem in sorted(NOTEBOOKS, key=lambda stem: (stem not in LONGEST, stem))
    ],
)
def test_a_notebook_runs_headless_and_leaves_a_page_and_a_picture(stem: str, ran: Ran) -> None:
    name = stem.split("_", 1)[-1]
    assert "<script" in (ran(stem) / f"{name}.html").read_text()
    assert (ran(stem) / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    stored, new = (
        nbformat.read(path, as_version=4)
        for path in (FOLDER / f"{stem}.ipynb", ran(stem) / f"{name}.ipynb")
    )
    assert_fresh(stored, new, exact=stem in EXACT)


@pytest.mark.alone("04_gating")
def test_the_heads_that_gating_keeps_are_enough_for_a_real_model(ran: Ran) -> None:
    """Of the embedded model's 270 heads, those that stay on do both tasks as well as all do;
    as many random ones of the same layers do neither."""
    book = nbformat.read(ran("04_gating") / "gating.ipynb", as_version=4)
    (cell,) = (c for c in book.cells if c.cell_type == "code" and "hw.keep_only(" in c.source)
    (text,) = (o.data["text/plain"] for o in cell.outputs if "text/plain" in o.get("data", {}))
    table = frame(text)
    assert set(table) == {"Math", "Syntax"}
    for task, rows in table.items():
        assert rows["all"]["heads"] == 270, task
        assert rows["kept"]["heads"] == rows["random"]["heads"] < 0.6 * 270, text
        assert rows["kept"]["accuracy"] >= rows["all"]["accuracy"] - 0.05, text
        assert rows["random"]["accuracy"] < rows["all"]["accuracy"] - 0.5, text


def frame(text: str) -> dict[str, dict[str, dict[str, float]]]:
    """What is printed of a frame with an index of task and kind: task, kind, column to number."""
    lines = text.splitlines()
    columns = lines[0].split()
    table: dict[str, dict[str, dict[str, float]]] = {}
    for line in lines[2:]:  # the second line names the index
        *index, kind = line.split()[: -len(columns)]
        if index:
            table[index[0]] = rows = {}
        rows[kind] = dict(zip(columns, map(float, line.split()[-len(columns) :])))
    return table


def test_the_scores_that_notebooks_read_are_small() -> None:
    assert 0 < sum(file.stat().st_size for file in (FOLDER / "data").iterdir()) < 200_000
