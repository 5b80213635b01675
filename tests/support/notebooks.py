"""What a stored notebook shows, and whether that is what a run of it shows."""

from __future__ import annotations

import itertools
import re

import nbformat

EXACT = {"02_always_any"}
"""Notebooks that run no model: every number that they print is the same on every machine."""
STALE = "stored outputs are stale: run notebooks/keep_outputs.py on this notebook"


def code_cells(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def outputs(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """All outputs of a notebook, in order."""
    return list(itertools.chain.from_iterable(cell.outputs for cell in code_cells(book)))


def printed(cell: nbformat.NotebookNode) -> str:
    """What a code cell prints."""
    streams = [output for output in cell.outputs if output.output_type == "stream"]
    return "".join(stream.text for stream in streams if stream.name == "stdout")


def words(text: str) -> list[str]:
    """A text without its numbers: they differ in their last digits between processors."""
    return re.findall(r"[^\W\d_]+", re.sub(r"\d+(st|nd|rd|th)\b", "", text))


def pictures(cell: nbformat.NotebookNode) -> int:
    """How many PNG pictures a code cell shows."""
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def assert_fresh(stored: nbformat.NotebookNode, ran: nbformat.NotebookNode, *, exact: bool) -> None:
    """The stored outputs are those of a run: the same text, and as many pictures in each cell."""
    for old, new in zip(code_cells(stored), code_cells(ran), strict=True):
        assert pictures(old) == pictures(new), STALE
        before, after = printed(old), printed(new)
        assert before == after if exact else words(before) == words(after), STALE
