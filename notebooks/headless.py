"""Run a notebook without a browser; write it, and a page and a picture of its explorer."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

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
    with tempfile.TemporaryDirectory() as sockets:
        NotebookClient(
            book,
            config=_apart(sockets),
            timeout=1200,
            kernel_name="python3",
            resources={"metadata": {"path": str(notebook.parent)}},
        ).execute()
    book.cells.pop()
    nbformat.write(book, out / f"{name}.ipynb")
    print(f"wrote {out / name}.html, .png and .ipynb")


def _apart(folder: str) -> Config:
    """A kernel's sockets as files in ``folder``: two kernels that start at once cannot want one
    port. Windows has ports only."""
    config = Config()
    if sys.platform != "win32":
        config.KernelManager.transport = "ipc"
        config.KernelManager.ip = f"{folder}/kernel"
    return config


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
