"""Which heads pass a threshold: the rules, and what each is compared with.

A head's *strength* is what a threshold is compared with: the score, or for signed scores
the score (``sign="helps"``), its negative (``"hurts"``) or its size (``"either"``). Every
rule gives each task one *cut*: heads whose strength reaches it pass.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from headwidget.scores import provenance, reduce
from headwidget.scores.missing import known

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array, Mask

ANY_POSITIVE = np.float32(1e-45)
"""The smallest float32 above zero: what a cut of signed scores never falls below."""

CHOICES: dict[str, tuple[str | None, ...]] = {
    "rule": ("value", "top", "percent", "elbow"),
    "sign": ("either", "helps", "hurts"),
    "reduction": ("mean", "median"),
    "normalize": (None, "share"),
}
"""The settings that take one of a few values."""

START = {"value": None, "top": 10.0, "percent": 5.0, "elbow": 1.0}
"""The threshold a rule starts with."""


@dataclass(frozen=True)
class Threshold:
    """What decides which heads pass; :class:`headwidget.Explorer` says what each field means."""

    tasks: tuple[str, ...] | None = None
    threshold: float | None = None
    rule: str = "value"
    sign: str = "either"
    reduction: str = "mean"
    normalize: str | None = None


T = TypeVar("T", bound=Threshold)
NAMES = tuple(field.name for field in fields(Threshold))


def settings(scores: HeadScores, **given: Any) -> Threshold:
    """Checked settings for these scores; what is not given is as the scores are shown at first."""
    if unknown := [name for name in given if name not in NAMES]:
        raise TypeError(
            f"there is no setting {', '.join(map(repr, unknown))}; "
            f"the settings are {', '.join(NAMES)}."
        )
    asked = provenance.display(scores, given)
    checked = {name: check(scores, name, asked[name]) for name in asked if name in NAMES}
    checked.setdefault("threshold", START[checked.get("rule", "value")])
    checked.setdefault("tasks", list(scores.tasks))
    return Threshold(**{**checked, "tasks": tuple(checked["tasks"])})


def check(scores: HeadScores, name: str, value: Any) -> Any:
    """A setting's value as it is kept, or a sentence about what is wrong with it."""
    if name in CHOICES:
        return choice(name, value, CHOICES[name])
    return {"tasks": _tasks, "threshold": _threshold}[name](scores, value)


def choice(name: str, value: Any, allowed: tuple[str | None, ...]) -> str | None:
    """One of a few words, or None where that is one of them."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise ValueError(f"{name} {value!r} is not known; use {' or '.join(map(repr, allowed))}.")
    return value


def many(value: Any, what: str) -> list[Any]:
    """The items of what is given as a list; text and single values are refused."""
    try:
        if not isinstance(value, str):
            return list(value)
    except TypeError:  # it cannot be iterated over
        pass
    raise ValueError(f"{what}; got {value!r}.")


def _tasks(scores: HeadScores, value: Any) -> list[str]:
    names = many(value, "tasks is a list of task names")
    for name in names:
        known_task(scores, name)
        if names.count(name) > 1:
            raise ValueError(f"tasks names {name!r} twice.")
    return names


def known_task(scores: HeadScores, value: Any) -> str:
    """The name of a task that the scores have."""
    if not isinstance(value, str) or value not in scores.tasks:
        raise ValueError(
            f"no task {value!r} in these scores; they have {', '.join(map(repr, scores.tasks))}."
        )
    return value


def is_number(value: Any) -> bool:
    """Is it a finite number?"""
    try:
        return (
            isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
        )
    except OverflowError:  # a whole number beyond any float
        return False


def _threshold(_: HeadScores, value: Any) -> float | None:
    if value is None:
        return None
    if not is_number(value):
        raise ValueError(f"threshold is a finite number, or None for no threshold; got {value!r}.")
    return float(value)


def number(scores: HeadScores, task: str, settings: Threshold) -> Array:
    """The map of a task: mean or median over runs, or its share of the whole."""
    reduced = _reduced(scores, task, settings)
    return reduce.share(reduced) if settings.normalize == "share" else reduced


def _reduced(scores: HeadScores, task: str, settings: Threshold) -> Array:
    how: Literal["mean", "median"] = "median" if settings.reduction == "median" else "mean"
    return reduce.reduce(scores.values(task), how)


def strength(scores: HeadScores, task: str, settings: Threshold) -> Array:
    """What a task's threshold is compared with."""
    numbers_shown = number(scores, task, settings)
    if not scores.signed:
        return numbers_shown
    if settings.sign == "either":
        return np.abs(numbers_shown)
    direction = 1 if settings.sign == "helps" else -1
    signs = np.sign(_reduced(scores, task, settings))  # a share has lost its sign
    strengths: Array = (np.abs(numbers_shown) * (signs * direction)).astype(np.float32)
    return strengths


def cut(strengths: Array, settings: Threshold, signed: bool) -> np.float32 | None:
    """The strength a head must reach under the rule; None without a threshold.

    Heads that tie with the last one pass too. Heads that were not measured do not count.
    """
    if settings.threshold is None:
        return None
    if settings.rule == "value":
        return reduce.float32(settings.threshold)
    strengths = known(strengths)
    if settings.rule == "elbow":
        elbow = reduce.elbow(np.maximum(strengths, 0) if signed else strengths)
        least = reduce.float32(settings.threshold * elbow)
    else:
        k = kept(settings.rule, settings.threshold, strengths.size)
        if k == 0:
            return np.float32(np.inf)
        least = np.sort(strengths.ravel())[::-1][k - 1]
    return max(least, ANY_POSITIVE) if signed else least


def kept(rule: str, threshold: float, heads: int) -> int:
    """How many heads "top" or "percent" keep.

    >>> kept("top", 3.0, 9), kept("percent", 5.0, 270), kept("top", 99, 9)
    (3, 14, 9)
    """
    if rule == "top":
        k = math.floor(threshold)
    else:
        k = math.ceil(min(max(threshold, 0), 100) / 100 * heads - 1e-9)  # 1e308% is no infinity
    return min(max(k, 0), heads)


def passing(scores: HeadScores, task: str, settings: Threshold) -> Mask | None:
    """Which heads of a task pass the threshold; None without one."""
    strengths = strength(scores, task, settings)
    edge = cut(strengths, settings, scores.signed)
    return None if edge is None else strengths >= edge


def run_cut(scores: HeadScores, task: str, settings: Threshold) -> np.float32:
    """The cut on the scale of the runs.

    Top, percent and elbow do not depend on the scale; a share is turned back into a score.
    """
    plain = Threshold(
        threshold=settings.threshold,
        rule=settings.rule,
        sign=settings.sign,
        reduction=settings.reduction,
    )
    edge = cut(strength(scores, task, plain), plain, scores.signed)
    assert edge is not None
    if settings.normalize is None or settings.rule != "value":
        return edge
    whole = reduce.whole(number(scores, task, plain))
    if whole == 0 and edge > 0:
        return np.float32(np.inf)  # of nothing, every share is zero
    return reduce.float32(float(edge) * whole)


def either(masks: Sequence[Mask | None]) -> Mask | None:
    """Heads that any of the masks has; None where there is no mask."""
    present = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(present) if present else None


def categories_of(scores: HeadScores) -> dict[str, list[str]]:
    """Each category and its tasks, in the order of the tasks.

    A task without a category is one of its own.
    """
    tasks: dict[str, list[str]] = {}
    for task in scores.tasks:
        tasks.setdefault(scores.categories.get(task, task), []).append(task)
    return tasks


def for_categories(settings: T) -> T:
    """Without a threshold, heads are classified at each task's elbow."""
    if settings.threshold is not None:
        return settings
    return replace(settings, rule="elbow", threshold=START["elbow"])


def members(scores: HeadScores, settings: Threshold) -> dict[str, Mask]:
    """Each category that has a task shown, and the heads that pass in one of its tasks."""
    at = for_categories(settings)
    shown = scores.tasks if settings.tasks is None else settings.tasks
    masks: dict[str, Mask] = {}
    for category, tasks in categories_of(scores).items():
        mask = either([passing(scores, task, at) for task in tasks if task in shown])
        if mask is not None:
            masks[category] = mask  # (layer, head)
    return masks
