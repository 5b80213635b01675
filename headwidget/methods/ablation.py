"""ablation: log p(answer) minus log p(answer) with the head's output replaced.

Exact: the same number as one forward per head. All layers below the head are shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring.batch import Batch, batches, forward, log_probability, plan
from headwidget.scoring.contract import Chunk, Job, Method, land
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.option_checks import one_of
from headwidget.scoring.prefix import belong_together
from headwidget.scoring.replay import Replay


@dataclass(frozen=True)
class Ablation:
    """Options of ``method="ablation"``."""

    replace: Literal["zero", "mean"] = "zero"
    """Replace the head's output by zero, or by its mean over the task's prompts.

    The mean is over the positions that are replaced.
    """
    where: Literal["all", "last"] = "all"
    """At all positions, or only where the answer is predicted."""

    def __post_init__(self) -> None:
        one_of("replace", self.replace, ("zero", "mean"))
        one_of("where", self.where, ("all", "last"))


def run(job: Job) -> Iterator[Chunk]:
    """A chunk for every layer of every batch.

    The first chunk carries the difference between the replay and a plain forward with one
    head off; the last layer's chunk that between the replay and the untouched forward.
    """
    model, task, options = job.model, job.task, job.options
    last_only = options.where == "last"
    fill = means(model, task, job.batch_size, last_only) if options.replace == "mean" else None
    model.look()
    planned = plan(
        task.examples, model, job.batch_size, order=lambda e: e.ids, together=belong_together
    )
    for number, runs in enumerate(planned):
        replay = Replay(model, runs, [task.examples[i] for i in runs])
        for row in range(len(model.layers)):
            with hooks.scoring(model):
                layer = replay.step()
                differences = []  # (batch,) each
                if number == row == 0:
                    differences.append(_first_head_difference(replay))
                stand_in = None if fill is None else fill[row]
                ablated = replay.without(range(layer.heads), stand_in, answer_only=last_only)
                drops = replay.base - ablated  # (head, batch)
                if row == len(model.layers) - 1:
                    differences.append(replay.finish())
                discrepancy = torch.stack(differences).amax(0) if differences else None
                values = drops.T[:, None]  # (batch, 1, head)
                rows = slice(row, row + 1)
                chunk = land(task.name, runs, rows, values, replay.correct, discrepancy)
            yield chunk


def _first_head_difference(replay: Replay) -> Tensor:
    """How far the replay without head 0 of the lowest layer is from one plain forward."""
    gates = torch.ones(replay.model.shape, device=replay.model.device)
    gates[0, 0] = 0
    with hooks.gate(replay.model, gates):
        plain = log_probability(forward(replay.model, replay.batch), replay.batch)
    return replay.off(plain, replay.without([0])[0])


def means(model: Model, task: EncodedTask, batch_size: int | None, answer_only: bool) -> Tensor:
    """Each head's mean output over the task's prompts, (layer, head, dim), on the device.

    Over all tokens, or over the positions where the answer is predicted.
    """
    total = torch.zeros(*model.shape, model.head_dim, device=model.device)
    count = torch.zeros((), device=model.device)
    for batch in batches(task.examples, model, batch_size):
        chosen = _answer_positions(batch) if answer_only else batch.valid().float()  # (batch, seq)

        def add(row: int, z: Tensor, chosen: Tensor = chosen) -> None:
            layer_sum = torch.einsum("bshd,bs->hd", z.float(), chosen.to(z.device))
            total[row] += layer_sum.to(total.device)

        with hooks.scoring(model), hooks.read(model, add), hooks.unembed_at(model, batch.at):
            model.module(**batch.inputs(model))
            count += chosen.sum()
    return total / count


def _answer_positions(batch: Batch) -> Tensor:
    """1 where an answer token is predicted, (batch, seq)."""
    positions = torch.zeros(batch.ids.shape, device=batch.ids.device)
    return positions.scatter_(1, batch.at, 1.0)


METHOD = Method(
    "ablation",
    run,
    Ablation,
    signed=True,
    about="How much log p(answer) falls when the head's output is replaced; positive helps.",
)
