"""What the lab's front end is sent, as JSON: what can be run, what a prompt says, what a head does."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headwidget.live import reading
from headwidget.models import Model
from headwidget.scores import HeadScores, reduce
from headwidget.scoring import registry
from headwidget.scoring.memory import out_of_memory
from headwidget.tasks import Task


def sentence(error: BaseException) -> str:
    """What went wrong, as people read it."""
    if out_of_memory(error):
        return "Memory ran out, even with one prompt at a time. Use shorter prompts, a smaller model, or dtype=torch.bfloat16 on a GPU."
    text = " ".join(str(error).split()) or type(error).__name__
    return (
        text
        if isinstance(error, (ValueError, TypeError, RuntimeError, FloatingPointError))
        else f"{type(error).__name__}: {text}"
    )


def check(sources: Mapping[str, Task], name: str, value: Any) -> Any:
    """A setting of the next run, checked; a sentence (``ValueError``) for what makes no sense."""
    if name == "method":
        registry.find(value)
        return value
    if name == "options":
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise ValueError(
                f"options is a dict of the method's options, such as {{'replace': 'mean'}}; got {value!r}."
            )
        return dict(value)
    if name == "prompts":
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(
                f"prompts is how many prompts of each task are scored, 1 or more, or None for all; got {value!r}."
            )
        return value
    given = (
        [value]
        if isinstance(value, (str, Task)) or not isinstance(value, Iterable)
        else list(value)
    )
    for one in given:
        if (
            isinstance(one, Task)
            and one.name in sources
            and list(one.examples) != list(sources[one.name].examples)
        ):
            raise ValueError(
                f"the lab's task {one.name!r} has other prompts than this one; make a lab of it: hw.live(model, [task])."
            )
        if not isinstance(one, (str, Task)):
            raise ValueError(
                f"asked names tasks of the lab, {', '.join(map(repr, sources))}; got {one!r:.60}."
            )
    names = [one.name if isinstance(one, Task) else one for one in given]
    if unknown := [one for one in names if one not in sources]:
        raise ValueError(
            f"the lab has no task {unknown[0]!r}; it has {', '.join(map(repr, sources))}."
        )
    if not names or len(set(names)) < len(names):
        raise ValueError("asked names the tasks of the next run, one or more, each once.")
    return names


def nothing_yet(model: Model, tasks: Iterable[Task], method: str) -> HeadScores:
    """Maps where nothing is scored: every row is marked so."""
    layers, heads = model.shape
    names = {task.name: np.zeros((1, layers, heads), np.float32) for task in tasks}
    return HeadScores.from_arrays(
        names,
        method=method,
        layers=[layer.index for layer in model.layers],
        signed=registry.find(method).signed,
        categories={task.name: task.category for task in tasks if task.category is not None},
        runs={name: ["not scored yet"] for name in names},
        meta={
            "model": model.name,
            "partial": True,
            "unscored": {name: list(range(layers)) for name in names},
        },
    )


def offered(model: Model) -> list[dict[str, Any]]:
    """Every method with the options that a form can ask for, and why it cannot be used where it cannot."""
    found = []
    for name in registry.names():
        method = registry.find(name)
        why = None
        try:
            method.check(model)
        except (ValueError, TypeError) as error:
            why = str(error)
        found.append(
            {
                "name": name,
                "why_not": why,
                "options": [
                    one
                    for f in dataclasses.fields(method.options)
                    if (one := _field(method.options, f))
                ],
            }
        )
    return found


def _field(options: type, f: dataclasses.Field[Any]) -> dict[str, Any] | None:
    """An option as a form asks for it; None for what a form cannot."""
    kind = typing.get_type_hints(options)[f.name]
    parts = [one for one in typing.get_args(kind) if one is not type(None)]
    optional = type(None) in typing.get_args(kind)
    inner = parts[0] if optional and len(parts) == 1 else kind
    default = f.default if isinstance(f.default, (bool, int, float, str)) else None
    if typing.get_origin(inner) is typing.Literal:
        return {
            "name": f.name,
            "kind": "choice",
            "choices": list(typing.get_args(inner)),
            "default": default,
        }
    names: dict[Any, str] = {bool: "bool", int: "int", float: "float"}
    return (
        {"name": f.name, "kind": names[inner], "default": default, "optional": optional}
        if inner in names
        else None
    )


def prompt(read: reading.Reading, seconds: float) -> dict[str, Any]:
    """A prompt's tokens and predictions."""
    rows = [
        [[one.id, one.text, one.probability, one.scaled] for one in some]
        for some in (read.predictions, read.risen)
    ]
    return {
        "text": read.text,
        "tokens": list(read.tokens),
        "predictions": rows[0],
        "risen": rows[1],
        "why_not": read.why_not,
        "ms": round(1000 * seconds),
    }


def head(
    model: Model,
    read: reading.Reading | None,
    results: Mapping[str, HeadScores],
    layer: int,
    number: int,
) -> dict[str, Any]:
    """What a head does on the prompt, and its rank in every method scored so far."""
    row = next(i for i, one in enumerate(model.layers) if one.index == layer)
    found: dict[str, Any] = {"head": [layer, number], "ranks": ranks(results, row, number)}
    if read is None:
        return found
    try:
        seen = reading.head(model, read, row, number)
    except Exception as error:
        return {**found, "error": sentence(error)}
    pattern = (
        None
        if seen.pattern is None
        else [[round(float(w), 3) for w in line] for line in seen.pattern]
    )
    says = {
        "promoted": [list(one) for one in seen.promoted],
        "suppressed": [list(one) for one in seen.suppressed],
    }
    return {
        **found,
        **says,
        "pattern": pattern,
        "tokens": list(read.tokens[seen.first :]),
        "first": seen.first,
        "why_not": seen.why_not,
    }


def ranks(results: Mapping[str, HeadScores], row: int, number: int) -> list[dict[str, Any]]:
    """Where a head stands in each task of each method, 1 is first; by size where the sign means which way."""
    found = []
    for name, scores in results.items():
        for task in scores.tasks:
            mean = reduce.mean(scores.values(task))
            strength = np.abs(mean) if scores.by_size else mean
            place = 1 + int((strength > strength[row, number]).sum())
            found.append(
                {
                    "method": name,
                    "task": task,
                    "rank": place,
                    "of": int(mean.size),
                    "value": float(mean[row, number]),
                    "partial": scores.partial,
                }
            )
    return found


def salient(model: Model, layer: int, number: int) -> dict[str, Any]:
    """The tokens that a head amplifies most, and what it maps them to."""
    from headwidget.methods.word_maps import salient as find

    try:
        frame = find(model, layer, number, tokens=6, to=4)
    except Exception as error:
        return {"salient": [], "salient_why_not": sentence(error)}
    return {"salient": frame.to_numpy().tolist()}
