"""What scaled heads do to tasks, compared with random heads of the same layers, and to text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.interventions.sampling import controls, unseen_first
from headwidget.live import payloads, reading
from headwidget.live.gates import Gates
from headwidget.models import Model, not_finite
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import Encoded, EncodedTask, encode
from headwidget.scoring.memory import halving
from headwidget.tasks import Task


class Measurement:
    """One measurement under way: the effect so far, and the pieces that are still to come."""

    def __init__(self, n_heads: int, pieces: Iterator[dict[str, Any]]) -> None:
        self._pieces = pieces
        self.effect: dict[str, Any] = {"done": False, "heads": n_heads, "tasks": []}
        """What is known so far, as JSON."""

    def step(self) -> bool:
        """Measure the next piece into ``effect``; False when there was none left."""
        try:
            effect = next(self._pieces, None)
        except Exception as error:
            effect = {**self.effect, "error": payloads.sentence(error), "done": True}
        if effect is not None:
            self.effect = effect
        return effect is not None


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
    """The effect so far, after each piece: the prompt's greedy text, then one task after another.

    The model is free whenever this yields. ``prompts`` of each task are measured, those first
    that are not in ``results``; ``draws`` is the number of random controls.
    """
    scaled = [(int(row), int(head)) for row, head in np.argwhere(gates != 1)]
    effect: dict[str, Any] = {
        "heads": len(scaled),
        "tasks": [],
        "of": len(tasks),
        "text": None,
        "done": False,
    }
    ones = np.ones_like(gates)
    if (read := last_reading()) is not None:
        before, after = reading.greedy(model, read.ids, np.stack([ones, gates]))
        effect = {**effect, "text": {"prompt": read.text, "before": before, "after": after}}
        yield effect
    drawn = controls(scaled, model.n_heads, draws, seed)
    others = [heads for heads in drawn if set(heads) != set(scaled)]
    # Where a layer has too few other heads, controls share some with the scaled ones: the same
    # number in every draw.
    effect = {**effect, "shared": len(set(others[0]) & set(scaled)) if others else 0}
    control_gates = [like(gates, scaled, heads) for heads in others]
    settings = np.stack([ones, gates, *control_gates])  # (setting, layer, head)
    for task in tasks:
        examples, unseen = _chosen(encode(task, model), results, prompts, seed)
        values = np.zeros((len(settings), len(examples), 3), np.float32)
        for landed in _measured(model, examples, settings):
            values[landed.settings, list(landed.runs)] = landed.values
            yield effect
        row = _task_effect(model, task.name, values, unseen)
        effect = {**effect, "tasks": [*effect["tasks"], row]}
        yield effect
    yield {**effect, "done": True}


def _task_effect(
    model: Model, name: str, values: npt.NDArray[np.float32], unseen: int
) -> dict[str, Any]:
    """A task's row of the effect, from (setting, example, 3) values."""
    if not np.isfinite(values[0]).all():  # no head is scaled
        raise FloatingPointError(
            f"task {name!r}: the answers' log-probability is not a number. "
            f"{not_finite.advice(model)}"
        )
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"task {name!r}: with these gates the answers' log-probability is not a number; "
            "scale heads by less."
        )
    rows = []
    for log_probability, accuracy, _ in values.mean(1):
        rows.append({"log_probability": float(log_probability), "accuracy": float(accuracy)})
    return {
        "name": name,
        "prompts": values.shape[1],
        "unseen": unseen,
        "before": rows[0],
        "after": rows[1],
        "controls": rows[2:],
    }


def _measured(
    model: Model, examples: Sequence[Encoded], settings: Gates
) -> Iterator[gated_forward.Landed]:
    """Every example under every setting, piece by piece; smaller pieces where memory runs out."""
    return halving(lambda size: gated_forward.run(model, examples, settings, size), len(examples))


def _chosen(
    task: EncodedTask, results: Sequence[HeadScores], count: int, seed: int
) -> tuple[list[Encoded], int]:
    """Examples at random, first those that no scores were made from, and how many those are."""
    labels = [example.label for example in task.examples]
    sample = unseen_first(labels, task.name, results, count, seed)
    return [task.examples[i] for i in sample.indices], len(sample.indices) - sample.scored_on


def like(
    gates: Gates, scaled: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> Gates:
    """Gates that give ``others`` the factors of the scaled heads, layer by layer."""
    factors = defaultdict(list)
    for row, head in scaled:
        factors[row].append(gates[row, head])
    control = np.ones_like(gates)
    for row, head in others:
        control[row, head] = factors[row].pop(0)
    return control
