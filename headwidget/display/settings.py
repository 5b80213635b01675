"""The settings of the views, checked in one place for the widget and for figures.

A wrong value raises ``ValueError`` with a sentence before anything is drawn.
"""

from __future__ import annotations

import numbers
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.display.plain_values import LARGEST_WHOLE
from headwidget.display.views import VIEWS
from headwidget.scores import provenance, threshold
from headwidget.scores.threshold import START, Threshold

if TYPE_CHECKING:
    from headwidget.scores import HeadScores

CHOICES: dict[str, tuple[str | None, ...]] = {
    "view": tuple(VIEWS),
    **threshold.CHOICES,
    "colormap": (None, "viridis", "cividis", "magma", "turbo", "blue-orange"),
    "scale": ("shared", "own"),
    "orientation": (None, "y", "x"),
}
"""The settings that take one of a few values."""
LEAST_SCORE = float(np.finfo(np.float32).smallest_subnormal)
LARGEST_SCORE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Settings(Threshold):
    """What is shown and how: the traits of :class:`headwidget.Explorer`, which explains each."""

    view: str = "tasks"
    task: str | None = None
    agreement: float = 1.0
    colormap: str | None = None
    scale: str = "shared"
    cap: float | str | None = None
    orientation: str | None = None
    columns: int | None = None
    isolated: str | None = None


NAMES = (
    *("view", "tasks", "task", "threshold", "rule", "agreement", "sign"),
    *("reduction", "normalize", "colormap", "scale", "cap", "orientation", "columns"),
    "isolated",
)
"""Every setting, in the order that messages list them."""


def settings(scores: HeadScores, **given: Any) -> Settings:
    """Checked settings for these scores; what is not given is as in a new explorer.

    >>> from headwidget import HeadScores
    >>> scores = HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine")
    >>> settings(scores, rule="top").threshold
    10.0
    """
    if unknown := [name for name in given if name not in NAMES]:
        raise TypeError(
            f"there is no setting {', '.join(map(repr, unknown))}; "
            f"the settings are {', '.join(NAMES)}."
        )
    asked = start(scores, given)
    checked = {name: check(scores, name, value) for name, value in asked.items()}
    checked.setdefault("threshold", START[checked.get("rule", "value")])
    checked.setdefault("tasks", list(scores.tasks))
    return Settings(**{**checked, "tasks": tuple(checked["tasks"])})


def start(scores: HeadScores, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that scores are shown with at first: what is given, else what they ask for.

    A view that this version does not have is shown as any other scores are.
    """
    asked = provenance.display(scores, given)
    if "view" not in given and asked.get("view") not in VIEWS:
        asked.pop("view", None)
    return asked


def check(scores: HeadScores, name: str, value: Any) -> Any:
    """A setting's value as it is kept, or a sentence about what is wrong with it."""
    if name in CHOICES:
        return threshold.choice(name, value, CHOICES[name])
    if name in _CHECKS:
        return _CHECKS[name](scores, value)
    return threshold.check(scores, name, value)


def selected(scores: HeadScores, value: Any) -> list[list[int]]:
    """Heads as [layer, head], each once, by the model's own layer numbers."""
    unique: list[list[int]] = []
    seen: set[tuple[int, int]] = set()
    for item in threshold.many(value, "selected is a list of [layer, head]"):
        layer, head = _head(item, "selected is a list of [layer, head]")
        _check_head(scores, layer, head)
        if (layer, head) not in seen:
            seen.add((layer, head))
            unique.append([layer, head])
    return unique


def hover(scores: HeadScores, value: Any) -> list[int] | None:
    """The head that is pointed at as [layer, head], or None."""
    if value is None:
        return None
    layer, head = _head(value, "hover is [layer, head] or None")
    _check_head(scores, layer, head)
    return [layer, head]


def _head(value: Any, what: str) -> tuple[int, int]:
    try:
        layer, head = value
        if isinstance(layer, bool) or isinstance(head, bool):
            raise TypeError  # True is 1 in Python, and no number on the page
        return operator.index(layer), operator.index(head)
    except (TypeError, ValueError):
        raise ValueError(f"{what}, two whole numbers each; got {value!r}.") from None


def _check_head(scores: HeadScores, layer: int, head: int) -> None:
    rows, heads = scores.layers, scores.shape[1]
    if layer not in rows or not 0 <= head < heads:
        have = f"{len(rows)} layers ({rows[0]} to {rows[-1]}) of {heads} heads"
        raise ValueError(f"there is no head [{layer}, {head}] in these scores: they have {have}.")


def _task(scores: HeadScores, value: Any) -> str | None:
    return None if value is None else threshold.known_task(scores, value)


def _agreement(_: HeadScores, value: Any) -> float:
    if not threshold.is_number(value) or not 0 <= value <= 1:
        raise ValueError(
            f"agreement is a fraction of the runs, from 0 (any) to 1 (always); got {value!r}."
        )
    return float(value)


def _cap(_: HeadScores, value: Any) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, str):
        percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", value.strip())
        if percent and 0 < float(percent[1]) <= 100:
            return f"{percent[1]}%"
    elif threshold.is_number(value) and value > 0:
        if not LEAST_SCORE <= value <= LARGEST_SCORE:
            raise ValueError(
                f"cap is a score, which float32 holds from {LEAST_SCORE:.2g} to "
                f"{LARGEST_SCORE:.2g}; got {value!r}."
            )
        return float(value)
    raise ValueError(
        "cap is a number above 0, a percentile such as '99%', or None to choose one; "
        f"got {value!r}."
    )


def _columns(_: HeadScores, value: Any) -> int | None:
    if value is None:
        return None
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not 1 <= value <= LARGEST_WHOLE:
        raise ValueError(
            f"columns is a whole number, 1 or more, or None to choose by width; got {value!r}."
        )
    return int(value)


def _isolated(_: HeadScores, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"isolated is the name of an entry of the legend, or None; got {value!r}.")
    return value


_CHECKS = {
    "task": _task,
    "agreement": _agreement,
    "cap": _cap,
    "columns": _columns,
    "isolated": _isolated,
}
