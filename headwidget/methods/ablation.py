"""ablation: log p(answer) minus log p(answer) with the head's output replaced; exact, everything below the layer shared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring.batch import Batch, batches, forward, log_probability, plan
from headwidget.scoring.checks import one_of
from headwidget.scoring.contract import Chunk, Method, land
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.replay import Replay, belong_together

ROUNDING = {4: 1e-3, 2: 5e-2}
"""How far the replay's log p(answer) may be from the model's own, relative to its size, by bytes a number."""


@dataclass(frozen=True)
class Ablation:
    """Options of ``method="ablation"``."""

    replace: Literal["zero", "mean"] = "zero"
    """What stands in for the head's output: zero, or its mean over the task's prompts (over the positions that are replaced)."""
    where: Literal["all", "last"] = "all"
    """At all positions, or only where the answer is predicted."""

    def __post_init__(self) -> None:
        one_of("replace", self.replace, ("zero", "mean"))
        one_of("where", self.where, ("all", "last"))


def run(
    model: Model, task: EncodedTask, batch_size: int | None, options: Ablation
) -> Iterator[Chunk]:
    """A chunk for every layer of every batch."""
    examples = task.examples
    last = options.where == "last"
    fill = means(model, task, batch_size, last) if options.replace == "mean" else None
    model.look()
    for number, runs in enumerate(
        plan(examples, model, batch_size, order=lambda e: e.ids, together=belong_together)
    ):
        replay = Replay(model, runs, [examples[i] for i in runs])
        for row in range(len(model.layers)):
            with hooks.scoring(model):
                layer = replay.step()
                if number == row == 0:
                    _trust(
                        model,
                        replay.off(_one_head_off(replay), replay.without([0])[0]).cpu().numpy(),
                    )
                drops = replay.base - replay.without(
                    range(layer.heads), None if fill is None else fill[row], answer_only=last
                )  # (head, batch)
                top = row == len(model.layers) - 1
                found = torch.cat([drops, replay.finish()[None]]) if top else drops
                chunk = land(tuple(runs), slice(row, row + 1), found.T[:, None], replay.correct)
            if top:
                _trust(model, chunk.values[..., -1])
                chunk = dataclasses.replace(chunk, values=chunk.values[..., :-1])
            yield chunk


def _one_head_off(replay: Replay) -> Tensor:
    """log p(answer) with head 0 of the lowest layer off, by one plain forward: the definition, against which the replay is held."""
    gates = torch.ones(replay.model.shape, device=replay.model.device)
    gates[0, 0] = 0
    with hooks.gate(replay.model, gates):
        return log_probability(forward(replay.model, replay.batch), replay.batch)


def _trust(model: Model, off: npt.NDArray[np.float32]) -> None:
    """Refuse a replay that is further from the model's own forward than rounding takes it."""
    if not off.max() <= ROUNDING[min(4, model.dtype.itemsize)]:
        raise RuntimeError(
            f"{model.name} run layer by layer gives log-probabilities up to {off.max():.1%} away from its own forward, so its ablation scores would be "
            "wrong. Use method='gradient', and please report the model."
        )


def means(model: Model, task: EncodedTask, batch_size: int | None, answer_only: bool) -> Tensor:
    """Each head's mean output over the task's prompts, (layer, head, dim), on the model's device; over all tokens, or where the answer is predicted."""
    total = torch.zeros(*model.shape, model.head_dim, device=model.device)
    count = torch.zeros((), device=model.device)
    for batch in batches(task.examples, model, batch_size):
        chosen = _answer_positions(batch) if answer_only else batch.valid().float()  # (batch, seq)

        def add(row: int, z: Tensor, chosen: Tensor = chosen) -> None:
            total[row] += torch.einsum("bshd,bs->hd", z.float(), chosen.to(z.device)).to(
                total.device
            )

        with hooks.scoring(model), hooks.read(model, add), hooks.unembed_at(model, batch.at):
            model.module(**batch.inputs(model))
            count += chosen.sum()
    return total / count


def _answer_positions(batch: Batch) -> Tensor:
    here = torch.zeros(batch.ids.shape, device=batch.ids.device)
    return here.scatter_(1, batch.at, 1.0)


METHOD = Method("ablation", run, Ablation, signed=True)
