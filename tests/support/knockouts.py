"""What tests of knock-outs share: tasks, random scores of a model, one prompt measured by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring.batch import collate, correct, forward, log_probability
from headwidget.scoring.encode import Encoded
from tests.support import tiny

FEW_SHOT = hw.Task(
    "few-shot",
    [
        ("ab: ba, cd: dc, xy:", " yx", " xx"),
        ("ab: ba, cd: dc, pqr:", " r", " q"),
        ("ab: ba, cd: dc, m:", " mm"),
        ("one", " two", " six"),
    ],
)
TASKS = [tiny.task("letters"), FEW_SHOT]


def random_scores(
    model: hw.Model, *names: str, seed: int = 0, method: str = "mine", weights: str | None = ""
) -> hw.HeadScores:
    """Random scores that say they are the model's."""
    rng = np.random.default_rng(seed)
    meta = {} if weights is None else {"weights": weights or model.fingerprint()}
    arrays = {name: rng.normal(size=(3, *model.shape)) for name in names or ("letters", "few-shot")}
    return hw.HeadScores.from_arrays(
        arrays, method=method, layers=[layer.index for layer in model.layers], meta=meta
    )


def by_hand(model: hw.Model, example: Encoded, heads: Any, factor: float = 0.0) -> list[float]:
    """log p(answer), accuracy and beats-foil of one prompt in one plain forward of its own."""
    gates = torch.ones(model.shape)
    rows = {layer.index: row for row, layer in enumerate(model.layers)}
    for layer, head in heads:
        gates[rows[layer], head] = factor
    batch = collate([0], [example], model)
    with hooks.scoring(model), hooks.gate(model, gates):
        logits = forward(model, batch)
        return [
            float(log_probability(logits, batch)[0]),
            *(float(x[0]) for x in correct(logits, batch)),
        ]
