"""What scaled heads do: to tasks, beside the same done to random heads of the same layers, and to the text that follows a prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.interventions.sampling import controls, unseen_first
from headwidget.live import reading
from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import Encoded, EncodedTask, encode
from headwidget.scoring.memory import halving
from headwidget.tasks import Task

Gates = npt.NDArray[np.float32]


def pieces(
    model: Model,
    tasks: Sequence[Task],
    gates: Gates,
    last_reading: Callable[[], reading.Reading | None],
    results: Sequence[HeadScores],
    *,
    prompts: int,
    draws: int,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """The effect as far as it is known, again and again: first on the prompt's greedy text, then on one task after the other. Between two of them the
    model is free."""
    scaled = [(int(row), int(head)) for row, head in np.argwhere(gates != 1)]
    found: dict[str, Any] = {"heads": len(scaled), "tasks": [], "text": None, "done": False}
    on = np.ones_like(gates)
    if (read := last_reading()) is not None:
        before, after = reading.greedy(model, read.ids, np.stack([on, gates]))
        found = {**found, "text": {"prompt": read.text, "before": before, "after": after}}
        yield found
    others = [
        other for other in controls(scaled, model.n_heads, draws, seed) if set(other) != set(scaled)
    ]
    found = {
        **found,
        "shared": len(set(others[0]) & set(scaled)) if others else 0,
    }  # the same in every draw: what a layer lacks in other heads
    settings = np.stack(
        [on, gates, *(like(gates, scaled, other) for other in others)]
    )  # (setting, layer, head)
    for task in tasks:
        examples, unseen = _chosen(encode(task, model), results, prompts, seed)
        values = np.zeros((len(settings), len(examples), 3), np.float32)
        for landed in _measured(model, examples, settings):
            values[landed.settings, list(landed.runs)] = landed.values
            yield found
        if not np.isfinite(values).all():
            raise FloatingPointError(
                f"task {task.name!r}: with these gates the answers' log-probability is not a number; scale heads by less."
            )
        mean = values.mean(1)  # (setting, 3)
        rows = [{"log_probability": float(one[0]), "accuracy": float(one[1])} for one in mean]
        row = {
            "name": task.name,
            "prompts": len(examples),
            "unseen": unseen,
            "before": rows[0],
            "after": rows[1],
            "controls": rows[2:],
        }
        found = {**found, "tasks": [*found["tasks"], row]}
        yield found
    yield {**found, "done": True}


def _measured(
    model: Model, examples: Sequence[Encoded], settings: Gates
) -> Iterator[gated_forward.Landed]:
    """Every example under every setting, few at a time, so that a run's Stop need not wait; fewer still where memory runs out."""
    return halving(lambda size: gated_forward.run(model, examples, settings, size), len(examples))


def _chosen(
    task: EncodedTask, results: Sequence[HeadScores], count: int, seed: int
) -> tuple[list[Encoded], int]:
    """Some examples at random, those first that no scores were made from; and how many of those they are."""
    labels = [example.label for example in task.examples]
    sample = unseen_first(labels, task.name, results, count, seed)
    return [task.examples[i] for i in sample.indices], len(sample.indices) - sample.scored_on


def like(
    gates: Gates, scaled: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> Gates:
    """Gates that do to ``others`` what ``gates`` does to the scaled heads: layer by layer, factor by factor."""
    factors = defaultdict(list)
    for row, head in scaled:
        factors[row].append(gates[row, head])
    made = np.ones_like(gates)
    for row, head in others:
        made[row, head] = factors[row].pop(0)
    return made
