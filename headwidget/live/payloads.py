"""What the lab sends its front end, as JSON: a prompt's reading, a head's card, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headwidget.live import reading
from headwidget.methods import word_maps
from headwidget.models import Model
from headwidget.scores import HeadScores, missing, rank, reduce
from headwidget.scores.record import Record
from headwidget.scoring import facts, registry
from headwidget.scoring.memory import out_of_memory
from headwidget.tasks import Task


def sentence(error: BaseException) -> str:
    """An error as the widget shows it: its message, with its type where that says more."""
    if out_of_memory(error):
        return (
            "Memory ran out, even with one prompt at a time. Use shorter prompts, a smaller model, "
            "or dtype=torch.bfloat16 on a GPU."
        )
    text = " ".join(str(error).split()) or type(error).__name__
    is_sentence = isinstance(error, (ValueError, TypeError, RuntimeError, FloatingPointError))
    return text if is_sentence else f"{type(error).__name__}: {text}"


def nothing_yet(model: Model, tasks: Iterable[Task], method: str) -> HeadScores:
    """Scores of a model before its first run: nothing is measured."""
    declared = registry.find(method)
    names = {task.name: np.full((1, *model.shape), np.nan, np.float32) for task in tasks}
    return HeadScores.from_arrays(
        names,
        method=method,
        layers=[layer.index for layer in model.layers],
        signed=declared.is_signed(declared.options()),
        ranked_by=declared.ranked_by,
        categories={task.name: task.category for task in tasks if task.category is not None},
        runs={name: ["not scored yet"] for name in names},
        meta=Record(
            model=model.name,
            sections=model.sections,
            **facts.of_method(declared, declared.options()),
            partial=True,
        ),
    )


def prompt(read: reading.Reading, seconds: float) -> dict[str, Any]:
    """A prompt's tokens and predictions."""
    return {
        "text": read.text,
        "tokens": list(read.tokens),
        "predictions": _predictions(read.predictions),
        "risen": _predictions(read.risen),
        "why_not": read.why_not,
        "ms": round(1000 * seconds),
    }


def _predictions(predictions: Iterable[reading.Prediction]) -> list[list[Any]]:
    return [[token.id, token.text, token.probability, token.scaled] for token in predictions]


def head(
    model: Model,
    read: reading.Reading | None,
    results: Mapping[str, HeadScores],
    layer: int,
    number: int,
) -> dict[str, Any]:
    """What a head does on the prompt, and its rank in every method scored so far."""
    row = next(row for row, entry in enumerate(model.layers) if entry.index == layer)
    card: dict[str, Any] = {"head": [layer, number], "ranks": ranks(results, row, number)}
    if read is None:
        return card
    try:
        seen = reading.head(model, read, row, number)
    except Exception as error:
        return {**card, "error": sentence(error)}
    return {
        **card,
        "promoted": [list(token) for token in seen.promoted],
        "suppressed": [list(token) for token in seen.suppressed],
        "pattern": None if seen.pattern is None else seen.pattern.astype(float).round(3).tolist(),
        "tokens": list(read.tokens[seen.first :]),
        "first": seen.first,
        "why_not": seen.why_not,
    }


def ranks(results: Mapping[str, HeadScores], row: int, number: int) -> list[dict[str, Any]]:
    """The rank of a head in each task of each method, 1 is first."""
    entries = []
    for name, scores in results.items():
        for task in scores.tasks:
            mean = reduce.mean(scores.values(task))
            if np.isnan(mean[row, number]):
                continue  # not measured
            entries.append(
                {
                    "method": name,
                    "task": task,
                    "rank": int(rank.ranks(scores, task)[row, number]),
                    "of": int(missing.known(mean).size),
                    "value": float(mean[row, number]),
                    "signed": scores.signed,
                    "ranked_by": scores.ranked_by,
                    "partial": scores.partial,
                }
            )
    return entries


def salient(model: Model, layer: int, number: int) -> dict[str, Any]:
    """The tokens that a head amplifies most, and what it maps them to."""
    try:
        frame = word_maps.salient(model, layer, number, tokens=6, to=4)
    except Exception as error:
        return {"salient": [], "salient_why_not": sentence(error)}
    return {"salient": frame.to_numpy().tolist()}
