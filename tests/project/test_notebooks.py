"""Notebooks run from top to bottom without a browser, as `make demo HEADLESS=1` does; what one keeps of its outputs is what it gives."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
KEPT = {"02_always_any"}
"""Notebooks that keep their outputs, so that GitHub shows their figures (notebooks/keep_outputs.py)."""
LONGEST = {"03_cognitive_heads", "04_gating"}
"""Notebooks that start first."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def printed(book: nbformat.NotebookNode) -> list[str]:
    """What each code cell prints."""
    return [
        "".join(o.text for o in c.outputs if o.output_type == "stream" and o.name == "stdout")
        for c in book.cells
        if c.cell_type == "code"
    ]


def kinds(book: nbformat.NotebookNode) -> list[str]:
    """The kind of everything that is displayed."""
    return [
        kind
        for c in book.cells
        if c.cell_type == "code"
        for o in c.outputs
        for kind in o.get("data", {})
    ]


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
    if notebook.stem in KEPT:
        assert printed(stored) == printed(ran)  # else: python notebooks/keep_outputs.py notebooks/…
        assert kinds(stored).count("image/png") == kinds(ran).count("image/png") > 0
    else:
        assert not any(c.get("outputs") for c in stored.cells)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_kept_outputs_are_text_and_pictures_without_widgets_times_or_paths(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    book = nbformat.read(path, as_version=4)
    assert set(kinds(book)) <= {"image/png", "text/plain"}
    assert "widgets" not in book.metadata and not any("execution" in c.metadata for c in book.cells)
    assert not any(
        o.output_type == "error" or o.get("name") == "stderr"
        for c in book.cells
        if c.cell_type == "code"
        for o in c.outputs
    )
    assert str(ROOT) not in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 500_000


def test_a_widget_is_left_out_but_not_the_picture_it_brought() -> None:
    plain = runpy.run_path(str(FOLDER / "keep_outputs.py"))["plain"]
    view = {WIDGET: {"model_id": "x"}, "text/plain": "Explorer()"}
    outputs = [
        nbformat.v4.new_output("display_data", data)
        for data in (view, {**view, "image/png": "aGk="}, {"text/plain": "7"})
    ]
    cell = nbformat.v4.new_code_cell(
        "7", outputs=outputs, metadata={"execution": {"iopub.status.busy": "2020"}}
    )
    book = plain(
        nbformat.v4.new_notebook(
            cells=[cell],
            metadata={
                "widgets": {"state": {}},
                "language_info": {"name": "python", "version": "3.1"},
            },
        )
    )
    assert [dict(o.data) for o in book.cells[0].outputs] == [
        {"image/png": "aGk="},
        {"text/plain": "7"},
    ]
    assert book.cells[0].metadata == {} and book.metadata == {"language_info": {"name": "python"}}


def test_the_scores_that_notebooks_read_are_small() -> None:
    assert 0 < sum(file.stat().st_size for file in (FOLDER / "data").iterdir()) < 200_000
