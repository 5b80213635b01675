"""gradient: d log p(answer) / d gate; every prompt has gates, all heads take one backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from headwidget.models import hooks
from headwidget.scoring.batch import collate, correct, forward, log_probability, plan
from headwidget.scoring.contract import Chunk, Job, Method, land


@dataclass(frozen=True)
class Gradient:
    """Options of ``method="gradient"``."""

    abs: bool = False
    """Take the absolute value, as Michel et al. (2019) do; without it, positive helps."""

    def __post_init__(self) -> None:
        if not isinstance(self.abs, bool):
            raise ValueError(f"abs must be True or False; got {self.abs!r}.")


def run(job: Job) -> Iterator[Chunk]:
    """A chunk for every batch."""
    model, task = job.model, job.task
    for runs in plan(task.examples, model, job.batch_size):
        with hooks.frozen(model), torch.inference_mode(False), torch.enable_grad():
            # gradients are needed, also where the caller is in inference mode
            batch = collate(runs, [task.examples[i] for i in runs], model)
            gates = torch.ones(
                len(batch.runs), *model.shape, device=model.device, requires_grad=True
            )  # (batch, layer, head)
            with hooks.gate(model, gates):
                logits = forward(model, batch)
            (slope,) = torch.autograd.grad(log_probability(logits, batch).sum(), gates)
            values = slope.abs() if job.options.abs else slope
            right = correct(logits.detach(), batch)
            chunk = land(task.name, batch.runs, slice(None), values, right)
        yield chunk


METHOD = Method(
    "gradient",
    run,
    Gradient,
    signed=lambda options: not options.abs,
    about="How fast log p(answer) changes with the head's gate; positive helps, to first order.",
)
