"""Checks of what scores are made from: arrays, names, run labels, layers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores.record import Record

if TYPE_CHECKING:
    from headwidget.scores.reduce import Array

MOST_NESTED = 50
"""The most lists and dicts inside one another in a record; those of headwidget have about six."""


def name(text: object, what: str) -> str:
    """A name that people and files can hold; ``what`` says whose it is in the error."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{what} must be text and not empty; got {text!r}.")
    return encodable(text, what)


def encodable(text: str, what: str) -> str:
    """The text, if a file can hold it; ``what`` begins the sentence where it cannot."""
    if not is_encodable(text):
        raise ValueError(
            f"{what} has half a letter (a lone surrogate), which no file can hold: {text!r:.200}."
        )
    return text


def is_encodable(text: str) -> bool:
    """Has the text no lone surrogate?

    >>> is_encodable("naïve"), is_encodable("na\\ud800ve")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def values_by_task(arrays: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """The scores of every task, (run, layer, head), with the same layers x heads in all."""
    if not isinstance(arrays, Mapping):
        raise TypeError(
            "from_arrays takes a dict, {'task': array of (run, layer, head)}; "
            f"got a {type(arrays).__name__}."
        )
    values = {name(task, "a task's name"): scores(task, array) for task, array in arrays.items()}
    if not values:
        raise ValueError(
            "no scores: from_arrays needs at least one task, as "
            "{'task': array of (run, layer, head)}."
        )
    if len({v.shape[1:] for v in values.values()}) > 1:
        shapes = ", ".join(f"{task!r} {v.shape[1]} x {v.shape[2]}" for task, v in values.items())
        raise ValueError(f"all tasks must have the same layers x heads; got {shapes}.")
    return values


def scores(task: str, array: npt.ArrayLike) -> Array:
    """A read-only float32 copy of one task's scores, (run, layer, head).

    NaN is a score that was not measured, and so are None and what a masked array hides.
    """
    hidden = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    raw = np.asarray(array)
    if raw.dtype == object and all(isinstance(x, (Real, type(None))) for x in raw.flat):
        raw = raw.astype(np.float64)  # None is NaN
    if raw.dtype.kind not in "fiub":
        raise ValueError(
            f"task {task!r}: scores must be real numbers; got an array of {raw.dtype}."
        )
    if raw.ndim == 2:
        raw = raw[None]
    if raw.ndim != 3 or 0 in raw.shape:
        raise ValueError(
            f"task {task!r}: scores must be (run, layer, head) or (layer, head), "
            f"none of them 0; got {np.asarray(array).shape}."
        )
    with np.errstate(over="ignore"):
        values = raw.astype(np.float32, order="C", copy=True)
    if hidden is not None:
        values[hidden.reshape(values.shape)] = np.nan
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        run, layer, head = (int(i) for i in infinite[0])
        raise ValueError(
            f"task {task!r}: {len(infinite)} scores are not finite; the first, at run {run}, "
            f"layer {layer}, head {head}, is infinite in float32. NaN stands for a score that was "
            "not measured."
        )
    values.setflags(write=False)
    return values


def layer_numbers(layers: Sequence[int] | None, depth: int) -> tuple[int, ...]:
    """The model's own number of each of ``depth`` rows; 0, 1, 2, … by default."""
    if layers is None:
        return tuple(range(depth))
    try:
        numbers = tuple(operator.index(n) for n in layers)
    except TypeError:
        raise TypeError(
            f"layers is a list of {depth} whole numbers, a row each; got {layers!r:.80}."
        ) from None
    if len(numbers) != depth or len(set(numbers)) != depth or min(numbers) < 0:
        raise ValueError(
            f"layers must give each of the {depth} rows a number of its own, 0 or more; "
            f"got {list(numbers)}."
        )
    return numbers


def run_labels(
    runs: Mapping[str, Sequence[str]], values: Mapping[str, Array]
) -> dict[str, tuple[str, ...]]:
    """The label of every run of every task; "run 0", "run 1", … where a task has none."""
    of_scored_tasks("runs", runs, values)
    labels = {}
    for task, v in values.items():
        asked = runs.get(task)
        if isinstance(asked, (str, bytes)) or not isinstance(asked, (Iterable, type(None))):
            raise TypeError(
                f"task {task!r}: run labels are a list of texts, one for each of its "
                f"{len(v)} runs; got {asked!r:.80}."
            )
        texts = tuple(f"run {i}" for i in range(len(v))) if asked is None else tuple(asked)
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"task {task!r}: run labels must be text; got {text!r}.")
            encodable(text, f"task {task!r}: the label of run {i}")
        if len(texts) != len(v):
            raise ValueError(f"task {task!r} has {len(v)} runs but {len(texts)} run labels.")
        labels[task] = texts
    return labels


def categories_by_task(
    categories: Mapping[str, str], values: Mapping[str, Array]
) -> dict[str, str]:
    """The category of each task that has one."""
    of_scored_tasks("categories", categories, values)
    return {
        task: name(category, f"the category of task {task!r}")
        for task, category in categories.items()
    }


def of_scored_tasks(what: str, by_task: Mapping[str, object], values: Mapping[str, Array]) -> None:
    """Refuse what is not by task, and names of tasks that have no scores."""
    by_name(what, by_task)
    if unknown := [task for task in by_task if task not in values]:
        raise ValueError(
            f"{what} names tasks that have no scores: {', '.join(map(repr, unknown))}."
        )


def by_name(what: str, mapping: object) -> None:
    """Refuse what is not a dict: a list, or text where a dict of lists belongs."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"{what} is a dict; got {mapping!r:.80}.")


def record(meta: Mapping[str, Any] | Record) -> Mapping[str, Any] | Record:
    """A record, or the dict of one."""
    if not isinstance(meta, Record):
        by_name("meta", meta)
    return meta


def nesting(meta: Mapping[str, Any]) -> None:
    """Refuse lists and dicts inside one another beyond ``MOST_NESTED``."""
    level: list[Any] = [meta]
    for _ in range(MOST_NESTED):
        items: list[Any] = []
        for value in level:
            if isinstance(value, (dict, list)):
                items += value.values() if isinstance(value, dict) else value
        level = items
    if any(isinstance(value, (dict, list)) for value in level):
        raise ValueError(f"meta is nested more than {MOST_NESTED} lists and dicts deep.")


def aspects_by_name(
    aspects: Mapping[str, Mapping[str, npt.ArrayLike]], values: Mapping[str, Array]
) -> dict[str, Mapping[str, Array]]:
    """The aspects' values, task by task, in the shapes of the scores themselves."""
    by_name("aspects", aspects)
    return {
        name(aspect, "an aspect's name"): _aspect(aspect, arrays, values)
        for aspect, arrays in aspects.items()
    }


def _aspect(
    aspect: str, arrays: Mapping[str, npt.ArrayLike], values: Mapping[str, Array]
) -> Mapping[str, Array]:
    by_name(f"aspect {aspect!r}", arrays)
    of_aspect = {task: scores(f"{task} ({aspect})", array) for task, array in arrays.items()}
    if _shapes(of_aspect) != _shapes(values):
        raise ValueError(
            f"aspect {aspect!r} must have the tasks, runs, layers and heads of the scores "
            "themselves."
        )
    return MappingProxyType({task: of_aspect[task] for task in values})


def _shapes(values: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {task: v.shape for task, v in values.items()}
