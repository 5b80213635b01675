"""What notebooks store of their outputs: fresh, small, text and pictures only."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import nbformat
import pytest

from tests.support.notebooks import STALE, assert_fresh, outputs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 400_000
"""The largest size of a stored notebook."""
WIDGET = "application/vnd.jupyter.widget-view+json"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_the_stored_code(path: Path) -> None:
    digest = runpy.run_path(str(FOLDER / "keep_outputs.py"))["digest"]
    book = nbformat.read(path, as_version=4)
    assert book.metadata.get("outputs_of") == digest(book), STALE


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_text_and_pictures_and_small(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    kinds: set[str] = set()
    for output in outputs(book):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"  # progress bars
        kinds.update(output.get("data", {}))
    assert "image/png" in kinds
    assert kinds <= {"image/png", "text/plain"}
    assert "widgets" not in book.metadata
    assert not any("execution" in cell.metadata for cell in book.cells)  # times
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"at 0x[0-9a-f]{6,}", text)  # an address differs with every run
    assert path.stat().st_size < MOST_BYTES


def test_a_changed_number_of_pictures_or_word_is_stale() -> None:
    def book(text: str, *, figures: int = 1) -> nbformat.NotebookNode:
        figure = nbformat.v4.new_output("display_data", {"image/png": "aGk="})
        stream = nbformat.v4.new_output("stream", name="stdout", text=text)
        cell = nbformat.v4.new_code_cell("1", outputs=[stream, *[figure] * figures])
        return nbformat.v4.new_notebook(cells=[cell])

    assert_fresh(book("Math 0.31"), book("Math 0.32"), exact=False)
    with pytest.raises(AssertionError, match="stale"):
        assert_fresh(book("Math 0.31"), book("Math 0.32"), exact=True)
    with pytest.raises(AssertionError, match="stale"):
        assert_fresh(book("Math 0.31"), book("Syntax 0.31"), exact=False)
    with pytest.raises(AssertionError, match="stale"):
        assert_fresh(book("Math"), book("Math", figures=2), exact=False)


def test_progress_bars_html_and_widgets_are_not_stored_but_a_widgets_picture_is() -> None:
    keep_outputs = runpy.run_path(str(FOLDER / "keep_outputs.py"))
    view = {WIDGET: {"model_id": "x"}, "text/plain": "Explorer()"}
    shown = (view, {**view, "image/png": PIXEL}, {"text/plain": "7", "text/html": "<b>7</b>"})
    given = [nbformat.v4.new_output("display_data", data) for data in shown]
    given.append(nbformat.v4.new_output("stream", name="stderr", text="100%|####| 8/8 [00:01]"))
    cell = nbformat.v4.new_code_cell(
        "7", outputs=given, metadata={"execution": {"iopub.status.busy": "2020"}}
    )
    metadata = {"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.1"}}
    book = keep_outputs["plain"](nbformat.v4.new_notebook(cells=[cell], metadata=metadata))
    assert [set(output.data) for output in outputs(book)] == [{"image/png"}, {"text/plain"}]
    assert book.cells[0].metadata == {}
    assert book.metadata == {
        "language_info": {"name": "python"},
        "outputs_of": keep_outputs["digest"](book),
    }
