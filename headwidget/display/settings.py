"""What a view can be asked for: every setting with its values, checked in one place for the widget and for figures.

A setting that is wrong gets a sentence (``ValueError``) before anything is drawn. :data:`DEFAULTS` are the widget's own.
"""

from __future__ import annotations

import numbers
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwidget.display.views import VIEWS
from headwidget.scores import provenance, threshold
from headwidget.scores.threshold import START, Threshold

if TYPE_CHECKING:
    from headwidget.scores import HeadScores

CHOICES: dict[str, tuple[str | None, ...]] = {
    "view": tuple(VIEWS),
    **threshold.CHOICES,
    "colormap": (None, "viridis", "cividis", "magma", "turbo", "blue-orange"),
    "orientation": (None, "y", "x"),
}
"""The settings that take one of a few values."""


@dataclass(frozen=True)
class Settings(Threshold):
    """What is shown and how; every field is a trait of :class:`headwidget.Explorer`, which says what each means."""

    view: str = "tasks"
    task: str | None = None
    agreement: float = 1.0
    colormap: str | None = None
    cap: float | str | None = None
    orientation: str | None = None
    columns: int | None = None
    isolated: str | None = None


NAMES = (
    *("view", "tasks", "task", "threshold", "rule", "agreement", "sign"),
    *("reduction", "normalize", "colormap", "cap", "orientation", "columns", "isolated"),
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
            f"there is no setting {', '.join(map(repr, unknown))}; the settings are {', '.join(NAMES)}."
        )
    asked = start(scores, given)
    checks = {name: check(scores, name, value) for name, value in asked.items()}
    checks.setdefault("threshold", START[checks.get("rule", "value")])
    checks.setdefault("tasks", list(scores.tasks))
    return Settings(**{**checks, "tasks": tuple(checks["tasks"])})


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
    layers, heads = set(scores.layers), scores.shape[1]
    out: list[list[int]] = []
    seen: set[tuple[int, int]] = set()
    for item in threshold.many(value, "selected is a list of [layer, head]"):
        try:
            layer, head = (operator.index(n) for n in item)
        except (TypeError, ValueError):
            raise ValueError(
                f"selected is a list of [layer, head], two whole numbers each; got {item!r}."
            ) from None
        if layer not in layers or not 0 <= head < heads:
            rows = scores.layers
            have = f"{len(rows)} layers ({rows[0]} to {rows[-1]}) of {heads} heads"
            raise ValueError(
                f"there is no head [{layer}, {head}] in these scores: they have {have}."
            )
        if (layer, head) not in seen:
            seen.add((layer, head))
            out.append([layer, head])
    return out


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
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip())
        if found and 0 < float(found[1]) <= 100:
            return f"{found[1]}%"
    elif threshold.is_number(value) and value > 0:
        return float(value)
    raise ValueError(
        f"cap is a number above 0, a percentile such as '99%', or None to choose one; got {value!r}."
    )


def _columns(_: HeadScores, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
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
