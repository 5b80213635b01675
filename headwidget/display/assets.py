"""The files of the built front end."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parents[1] / "static"


def is_built() -> bool:
    """Whether the widget's files are there."""
    return all((STATIC / name).is_file() for name in ("widget.js", "widget.css"))


def asset(name: str) -> str:
    """A file of the built front end, as text."""
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"headwidget's front end is not built ({name} is missing): "
            "run `make build`, or `npm ci` and `npm run build`, in its folder."
        ) from error
