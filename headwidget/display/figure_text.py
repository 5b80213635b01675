"""Text in figures: how wide it is, and how it fits where there is little room."""

from __future__ import annotations

import bisect
import unicodedata

MOST_LETTERS = 500
"""Longer texts could never be shown in full."""


def width(text: str, size: float) -> float:
    """How wide a line of this font size (points) is, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text:
        return 0.0
    font = FontProperties(size=size)
    points: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return points / 72


def fitted(text: str, size: float, room: float, most: int) -> str:
    """The text in at most ``most`` lines of ``room`` inches, broken at spaces.

    What is left over becomes "…".
    """
    text = drawable(text)
    lines: list[str] = []
    while width(text, size) > room:
        fits = max(1, _letters_that_fit(text, size, room))
        if len(lines) == most - 1:
            text = text[:fits].rstrip() + "…"
            break
        space = text.rfind(" ", 1, fits + 2)
        fits = space if space > 0 else fits
        lines.append(text[:fits].rstrip())
        text = text[fits:].lstrip()
    return "\n".join([*lines, text])


def drawable(text: str) -> str:
    """The text in one line, without letters that no file could hold."""
    letters = "".join(_drawable_letter(letter) for letter in text[:MOST_LETTERS])
    return " ".join(letters.split())


def _letters_that_fit(text: str, size: float, room: float) -> int:
    lengths = range(1, len(text))
    return bisect.bisect_right(lengths, room, key=lambda n: width(text[:n] + "…", size))


def _drawable_letter(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind == "Cc":  # a control character
        return " "
    return "\ufffd" if kind == "Cn" else letter  # Cn: not assigned to any letter
