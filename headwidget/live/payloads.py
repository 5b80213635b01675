"""What the lab's front end is sent, as JSON: what can be run, what a prompt says, what a head does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headwidget.live import reading
from headwidget.models import Model
from headwidget.scores import HeadScores, rank, reduce
from headwidget.scoring import registry
from headwidget.scoring.score import out_of_memory
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


def nothing_yet(model: Model, tasks: Iterable[Task], method: str) -> HeadScores:
    """Maps where nothing is scored: every row is marked so."""
    layers, heads = model.shape
    names = {task.name: np.zeros((1, layers, heads), np.float32) for task in tasks}
    return HeadScores.from_arrays(
        names,
        method=method,
        layers=[layer.index for layer in model.layers],
        signed=registry.find(method).signed,
        ranked_by=registry.find(method).ranked_by,
        categories={task.name: task.category for task in tasks if task.category is not None},
        runs={name: ["not scored yet"] for name in names},
        meta={
            "model": model.name,
            "partial": True,
            "unscored": {name: list(range(layers)) for name in names},
        },
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
    """The rank of a head in each task of each method, 1 is first."""
    found = []
    for name, scores in results.items():
        for task in scores.tasks:
            mean = reduce.mean(scores.values(task))
            found.append(
                {
                    "method": name,
                    "task": task,
                    "rank": int(rank.ranks(scores, task)[row, number]),
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
