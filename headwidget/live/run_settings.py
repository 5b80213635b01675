"""The settings of a lab's next run, checked; and the view's settings that its scores reset."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.display.plain_values import LARGEST_WHOLE
from headwidget.scores import HeadScores, provenance
from headwidget.scores.spelling import did_you_mean
from headwidget.scoring import option_checks, registry
from headwidget.scoring.run import Scoring
from headwidget.tasks import Task

PROMPTS = 20
"""Prompts of each task that a run scores unless the user says otherwise."""
KEYWORDS = ("method", "asked", "prompts")
"""The settings that ``lab.run`` takes by name; its other keywords are options of the method."""


def check(sources: Mapping[str, Task], name: str, value: Any) -> Any:
    """The value of a setting, normalised; ``ValueError`` with a sentence where it is wrong."""
    if name == "method":
        registry.find(value)
        return value
    if name == "options":
        return _options(value)
    if name == "prompts":
        return _prompts(value)
    if name == "heed_gates":
        return _flag(value)
    return _task_names(sources, value)


def _options(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(
            "options is a dict of the method's options, such as {'replace': 'mean'}; "
            f"got {value!r}."
        )
    options = {name: option_checks.plain(option) for name, option in value.items()}
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError(
            "the options of a lab are text, finite numbers, True, False, None and lists of them, "
            f"which the page can show; got {value!r}."
        ) from None
    return options


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"heed_gates is True or False; got {value!r}.")
    return value


def _prompts(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 1 <= value <= LARGEST_WHOLE):
        raise ValueError(
            "prompts is how many prompts of each task are scored, 1 or more, or None for all; "
            f"got {value!r}."
        )
    return value


def _task_names(sources: Mapping[str, Task], value: Any) -> list[str]:
    """The names of the tasks to score, which may be asked for by name or by Task."""
    is_single = isinstance(value, (str, Task)) or not isinstance(value, Iterable)
    names = [_task_name(sources, task) for task in ([value] if is_single else value)]
    if unknown := [name for name in names if name not in sources]:
        raise ValueError(f"the lab has no task {unknown[0]!r}; it has {_listed(sources)}.")
    if not names or len(set(names)) < len(names):
        raise ValueError("asked names the tasks of the next run, one or more, each once.")
    return names


def _task_name(sources: Mapping[str, Task], task: Any) -> str:
    if isinstance(task, str):
        return task
    if not isinstance(task, Task):
        raise ValueError(f"asked names tasks of the lab, {_listed(sources)}; got {task!r:.60}.")
    if task.name in sources and list(task.examples) != list(sources[task.name].examples):
        raise ValueError(
            f"the lab's task {task.name!r} has other prompts than this one; make a lab of it: "
            "hw.live(model, [task])."
        )
    return task.name


def _listed(sources: Mapping[str, Task]) -> str:
    return ", ".join(map(repr, sources))


def split(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``lab.run`` was called with, as settings of the lab and options of the method.

    >>> split({"tasks": ["copy"], "replace": "mean"})
    ({'asked': ['copy']}, {'replace': 'mean'})
    """
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for keyword, value in keywords.items():
        name = "asked" if keyword == "tasks" else keyword
        (settings if name in KEYWORDS else options)[name] = value
    return settings, options


def check_keywords(keywords: Iterable[str], traits: Sequence[str]) -> None:
    """``TypeError`` for a keyword that ``hw.live`` does not take, with the one that was meant."""
    names = ("tasks", "method", "prompts", "seed", *traits)
    for keyword in keywords:
        if keyword not in traits:
            meant = did_you_mean(keyword, names)
            raise TypeError(
                f"hw.live has no {keyword!r}.{meant} It takes model, {', '.join(names)}."
            )


def check_misspelt(method: str, options: Iterable[str]) -> None:
    """``TypeError`` for an option that the method lacks and that looks like a setting."""
    fields = {field.name for field in dataclasses.fields(registry.find(method).options)}
    for name in options:
        if name not in fields and (meant := did_you_mean(name, (*KEYWORDS, "tasks"))):
            raise TypeError(
                f"lab.run has no {name!r}.{meant} It takes method, tasks, prompts, and the "
                "options of the method."
            )


HEEDING = ("gradient", "ablation", "attribution", "gating", "patterns")
"""The methods whose scores with heads scaled are those of a model whose output projections are:
proven for each in tests/live/test_heed_gates.py."""


def heed(scoring: Scoring, gates: npt.NDArray[np.float32], heeds: bool) -> None:
    """Let a run heed the gates, or note that it does not; ``ValueError`` where it cannot."""
    changed = int((gates != 1).sum())
    if not heeds or not changed:
        scoring.not_heeded = changed
        return
    method = scoring.method.name
    if method not in HEEDING:
        raise ValueError(
            f"method {method!r} cannot score the model with its heads changed; restore the heads, "
            "untick 'with heads changed' (lab.heed_gates = False), or use one of "
            f"{', '.join(HEEDING)}."
        )
    if any(layer.turns > 1 for layer in scoring.model.layers):
        raise ValueError(
            f"{scoring.model.name} runs some layers several times, so it cannot be scored with "
            "heads changed; set lab.heed_gates = False."
        )
    scoring.gates = gates


def reset(
    before: HeadScores, after: HeadScores, rule: str, shown: Sequence[str], first: bool
) -> dict[str, Any]:
    """The view's settings that change when other scores are shown, with their new values.

    ``shown`` are the tasks that are on view; those that were put away stay so. ``first``: these
    are the first whole scores of a method after those of another.
    """
    is_other = (before.method, before.signed) != (after.method, after.signed)
    reset: dict[str, Any] = {}
    if before.tasks != after.tasks:
        hidden = set(before.tasks) - set(shown)
        kept = [name for name in after.tasks if name not in hidden]
        reset |= {"task": None, "isolated": None, "tasks": kept or list(after.tasks)}
    if is_other and rule == "value":
        reset["threshold"] = None
    if is_other or first:
        reset["normalize"] = provenance.display(after).get("normalize")
    return reset
