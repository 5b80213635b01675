"""Run a notebook and store it with its outputs, so that GitHub and nbviewer show its figures.

    python notebooks/keep_outputs.py notebooks/02_always_any.ipynb

Stored are printed text, plain-text values and PNG pictures (a widget's own PNG among them).
Not stored are widgets, HTML, progress bars, times and versions. The notebook's metadata
holds the digest of the code that made the outputs; a test compares it with the code.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

WIDGET = "application/vnd.jupyter.widget-view+json"
STORED = ("image/png", "text/plain")
"""The kinds of output that are stored."""


def digest(book: nbformat.NotebookNode) -> str:
    """The SHA-256 of the code of ``book``, cell by cell."""
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def plain(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """``book`` with its outputs as text and pictures, and with the digest of its code."""
    book.metadata.pop("widgets", None)
    book.metadata.language_info = {"name": "python"}
    book.metadata.outputs_of = digest(book)
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            outputs = [_plain_output(output) for output in cell.outputs]
            cell.outputs = [output for output in outputs if output]
    return book


def _plain_output(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """``output`` without what is not stored; None where nothing is left."""
    if output.output_type == "stream":
        return None if output.name == "stderr" else output  # progress bars go to stderr
    if "data" not in output:
        return output
    data = {kind: value for kind, value in output.data.items() if kind in STORED}
    if WIDGET in output.data or "image/png" in data:
        data.pop("text/plain", None)  # "Explorer(…)", "<Figure size 900x340 …>"
    if "image/png" in data:
        data["image/png"] = _smaller(data["image/png"])
    output.data = nbformat.from_dict(data)
    output.metadata = nbformat.from_dict({})
    return output if data else None


def _smaller(png: str) -> str:
    """A base64 PNG with a palette of 256 colours, where that makes it smaller."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            buffer, "PNG", optimize=True
        )
    small = base64.b64encode(buffer.getvalue()).decode()
    return small if len(small) < len(png) else png


def main(notebook: Path) -> None:
    """Execute ``notebook`` in its own folder and write it back; one that fails stays as it was."""
    book = nbformat.read(notebook, as_version=4)
    NotebookClient(
        book,
        timeout=1200,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(notebook.parent)}},
    ).execute()
    nbformat.write(plain(book), notebook)
    print(f"wrote {notebook} ({notebook.stat().st_size / 1024:.0f} KB)")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(Path(name))
