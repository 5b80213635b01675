"""Definitions of scores by plain loops, which every method is held against."""

from __future__ import annotations

import numpy as np
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring.batch import Batch, collate, forward, log_probability
from headwidget.scoring.encode import encode


def answered(
    model: hw.Model, batch: Batch, gates: torch.Tensor, fill: torch.Tensor | None = None
) -> torch.Tensor:
    with hooks.gate(model, gates, fill):
        return log_probability(forward(model, batch), batch)


def one_forward_per_head(model: hw.Model, task: hw.Task) -> np.ndarray:
    """The definition of zero ablation: one prompt, one head, one forward."""
    examples = encode(task, model).examples
    scores = np.zeros((len(examples), *model.shape))
    with hooks.scoring(model):
        for i, example in enumerate(examples):
            batch = collate([i], [example], model)
            base = log_probability(forward(model, batch), batch)
            for row, head in np.ndindex(model.shape):
                gates = torch.ones(model.shape)
                gates[row, head] = 0
                scores[i, row, head] = float(base - answered(model, batch, gates))
    return scores
