"""Run a notebook without a browser; write it, and a page and a picture of its explorer."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SAVE = """
explorer.to_html({html!r})
scores.figure().savefig({png!r})
"""


def main(notebook: Path, out: Path) -> None:
    """Execute ``notebook``; its variables ``explorer`` and ``scores`` are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    book = nbformat.read(notebook, as_version=4)
    name = notebook.stem.split("_", 1)[-1]
    page, picture = out.resolve() / f"{name}.html", out.resolve() / f"{name}.png"
    book.cells.append(nbformat.v4.new_code_cell(SAVE.format(html=str(page), png=str(picture))))
    NotebookClient(
        book,
        timeout=1200,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.parent)}},
    ).execute()
    book.cells.pop()
    nbformat.write(book, out / f"{name}.ipynb")
    print(f"wrote {out / name}.html, .png and .ipynb")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
