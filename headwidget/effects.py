"""What scaled heads do: to tasks, beside the same done to random heads of the same layers, and to the text that follows a prompt."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget import gated, prompt
from headwidget.intervene import controls
from headwidget.models import Model
from headwidget.tasks import Task
from headwidget.tasks.encode import Encoded, encode

Gates = npt.NDArray[np.float32]


def pieces(
    model: Model,
    tasks: Sequence[Task],
    gates: Gates,
    reading: Callable[[], prompt.Reading | None],
    scored: Collection[str],
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
    if (read := reading()) is not None:
        before, after = prompt.greedy(model, read.ids, np.stack([on, gates]))
        found = {**found, "text": {"before": before, "after": after}}
        yield found
    others = [like(gates, scaled, other) for other in controls(scaled, model.n_heads, draws, seed)]
    settings = np.stack([on, gates, *others])  # (setting, layer, head)
    for task in tasks:
        examples, unseen = _chosen(encode(task, model).examples, scored, prompts, seed)
        values = np.zeros((len(settings), len(examples), 3), np.float32)
        for landed in gated.run(model, examples, settings):
            values[landed.settings, list(landed.runs)] = landed.values
            yield found
        mean = values.mean(1)  # (setting, 3)
        rows = [{"log_probability": float(one[0]), "accuracy": float(one[1])} for one in mean]
        row = {"name": task.name, "prompts": len(examples), "unseen": unseen, "before": rows[0], "after": rows[1], "controls": rows[2:]}
        found = {**found, "tasks": [*found["tasks"], row]}
        yield found
    yield {**found, "done": True}


def _chosen(examples: Sequence[Encoded], scored: Collection[str], count: int, seed: int) -> tuple[list[Encoded], int]:
    """Some examples at random, those first that no scores were made from; and how many of those they are."""
    order = random.Random(seed).sample(range(len(examples)), len(examples))
    order.sort(key=lambda i: examples[i].label in scored)  # the order drawn stays among equals
    chosen = [examples[i] for i in order[:count]]
    return chosen, sum(one.label not in scored for one in chosen)


def like(gates: Gates, scaled: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> Gates:
    """Gates that do to ``others`` what ``gates`` does to the scaled heads: layer by layer, factor by factor."""
    factors = defaultdict(list)
    for row, head in scaled:
        factors[row].append(gates[row, head])
    made = np.ones_like(gates)
    for row, head in others:
        made[row, head] = factors[row].pop(0)
    return made
