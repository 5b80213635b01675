"""Run a notebook and store it with what it shows, so that GitHub shows it too: text and pictures, but no widgets and no times.

    python notebooks/keep_outputs.py notebooks/02_always_any.ipynb

Run it again after a change: what did not change in the outputs does not change in the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

WIDGET = "application/vnd.jupyter.widget-view+json"


def plain(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """``book`` without widgets (where one brought a picture of itself, the picture stays), times and versions."""
    book.metadata.pop("widgets", None)
    book.metadata.language_info = {"name": "python"}
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [kept for output in cell.outputs if (kept := _without_widget(output))]
    return book


def _without_widget(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    data = output.get("data", {})
    if WIDGET not in data:
        return output
    output.data = nbformat.from_dict(
        {kind: value for kind, value in data.items() if kind.startswith("image/")}
    )
    return output if output.data else None


def main(notebook: Path) -> None:
    """Execute ``notebook`` in its own folder and write it back; one that fails stays as it was."""
    book = nbformat.read(notebook, as_version=4)
    NotebookClient(
        book,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(notebook.parent)}},
    ).execute()
    nbformat.write(plain(book), notebook)
    print(f"wrote {notebook} ({notebook.stat().st_size / 1024:.0f} KB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
