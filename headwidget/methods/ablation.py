"""ablation: log p(answer) minus log p(answer) with the head's output replaced.

Exact: the same number as one forward per head. All layers below the head are shared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring import trust
from headwidget.scoring.batch import (
    Batch,
    batches,
    collate,
    correct,
    forward,
    log_probability,
    plan,
    with_source_read,
)
from headwidget.scoring.contract import Chunk, Job, Method, land
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.memory import out_of_memory
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

    A model that gives something else when it is replayed layer by layer than in one piece
    is run in one piece for every head.
    """
    model, task, options = job.model, job.task, job.options
    last_only = options.where == "last"
    fill = means(model, task, job.batch_size, last_only) if options.replace == "mean" else None
    planned = plan(
        task.examples, model, job.batch_size, order=lambda e: e.ids, together=belong_together
    )
    # a replay unembeds the answer's positions alone
    whole = model.one_by_one or model.encoder_decoder or not model.unembeds
    # images may be added between blocks (Qwen3-VL)
    whole = whole or any(example.media is not None for example in task.examples)
    if whole or not _can_replay(job, planned[0][:2], fill):
        yield from _head_by_head(job, fill)
        return
    for runs in job.left(planned):
        replay = Replay(model, runs, [task.examples[i] for i in runs])
        for row in range(len(model.layers)):
            with hooks.scoring(model):
                layer = replay.step()
                stand_in = None if fill is None else fill[row]
                ablated = replay.without(range(layer.heads), stand_in, answer_only=last_only)
                drops = replay.base - ablated  # (head, batch)
                is_last = row == len(model.layers) - 1
                discrepancy = replay.finish() if is_last else None
                values = drops.T[:, None]  # (batch, 1, head)
                rows = slice(row, row + 1)
                chunk = land(task.name, runs, rows, values, replay.correct, discrepancy)
            yield chunk


def _can_replay(job: Job, runs: Sequence[int], fill: Tensor | None) -> bool:
    """Does a replay run, and give what plain forwards give?

    Blocks may need what a replay does not know of (states handed from block to block, inputs
    of each layer's own); whatever their code then raises, plain forwards do without a replay.
    """
    try:
        return _replays(job, runs, fill)
    except Exception as error:
        if out_of_memory(error):
            raise
        return False


def _replays(job: Job, runs: Sequence[int], fill: Tensor | None) -> bool:
    """Does a replay give what a plain forward gives, with a head off?

    Tried on a few prompts with a head of the lowest layer, from which every block is run
    again; for a model's first task also of another layer. The host waits for the answer, so
    this comes before the loop.
    """
    model, last_only = job.model, job.options.where == "last"
    rng, top = random.Random(job.seed), len(model.layers) - 1
    rows = {0} if model.replayed == model.checked else {0, rng.randint(min(1, top), top)}
    sampled = {row: rng.randrange(model.n_heads) for row in rows}
    differences = []  # (batch,) each
    with hooks.scoring(model):
        examples = [job.task.examples[i] for i in runs]
        replay = Replay(model, runs, examples, copies=1, check_links=True)
        if not replay.linked:  # something is added between blocks
            model.replayed = None
            return False
        for row in range(max(rows) + 1):
            replay.step()
            if (head := sampled.get(row)) is not None:
                stand_in = None if fill is None else fill[row]
                (replayed,) = replay.without([head], stand_in, answer_only=last_only)
                plain = _ablated(model, replay.batch, row, head, fill, last_only)
                differences.append(replay.off(plain, replayed))
        same = bool(torch.stack(differences).max() <= trust.allowed(model))
    model.replayed = model.checked if same else None
    return same


def _head_by_head(job: Job, fill: Tensor | None) -> Iterator[Chunk]:
    """A chunk for every layer of every batch, one plain forward of the whole model a head."""
    model, task, last_only = job.model, job.task, job.options.where == "last"
    reads_once = model.encoder_decoder and not model.hooked and _can_read_once(job)
    for batch in batches(task.examples, model, job.batch_size, job.left):
        with hooks.scoring(model):
            logits = forward(model, batch)
            base, right = log_probability(logits, batch), correct(logits, batch)
            source_read = with_source_read(model, batch) if reads_once else batch
        for row, layer in enumerate(model.layers):
            fed = batch if layer.section == "encoder" else source_read
            with hooks.scoring(model):
                ablated = [
                    _ablated(model, fed, row, head, fill, last_only) for head in range(layer.heads)
                ]
                drops = base - torch.stack(ablated)  # (head, batch)
                rows = slice(row, row + 1)
                chunk = land(task.name, batch.runs, rows, drops.T[:, None], right)
            yield chunk


def _can_read_once(job: Job) -> bool:
    """Does a decoder answer the same from what its encoder gave before?

    Then the encoder does not run for every head behind it. Tried on the first prompt.
    """
    batch = collate([0], job.task.examples[:1], job.model)
    with hooks.scoring(job.model):
        plain = log_probability(forward(job.model, batch), batch)
        try:
            read = with_source_read(job.model, batch)
            again = log_probability(forward(job.model, read), batch)
        except Exception as error:  # whatever a model's own code raises at a call of its encoder
            if out_of_memory(error):
                raise
            return False
        return bool(((plain - again).abs() <= trust.allowed(job.model) * (1 + plain.abs())).all())


def _ablated(
    model: Model, batch: Batch, row: int, head: int, fill: Tensor | None, last_only: bool
) -> Tensor:
    """log p(answer) by one plain forward with a head replaced, (batch,)."""
    gates = torch.ones(model.shape, dtype=torch.float32, device=model.device)
    gates[row, head] = 0
    with hooks.gate(model, gates, fill, batch.at if last_only else None):
        return log_probability(forward(model, batch), batch)


def means(model: Model, task: EncodedTask, batch_size: int | None, answer_only: bool) -> Tensor:
    """Each head's mean output over the task's prompts, (layer, head, dim), on the device.

    Over all tokens, or over the positions where the answer is predicted.
    """
    total = torch.zeros(*model.shape, model.head_dim, dtype=torch.float32, device=model.device)
    count = torch.zeros(len(model.layers), 1, 1, dtype=torch.float32, device=model.device)
    for batch in batches(task.examples, model, batch_size):

        def add(row: int, z: Tensor, batch: Batch = batch) -> None:
            valid = batch.valid(model.layers[row], z).float()  # (batch, seq)
            chosen = _answer_positions(batch) if answer_only else valid
            count[row] += chosen.sum().to(count.device)
            layer_sum = torch.einsum("bshd,bs->hd", z.float(), chosen.to(z.device))
            total[row, :, : z.shape[-1]] += layer_sum.to(total.device)

        with hooks.scoring(model), hooks.read(model, add):
            forward(model, batch)
    return total / count


def _answer_positions(batch: Batch) -> Tensor:
    """1 where an answer token is predicted, (batch, seq)."""
    positions = torch.zeros(batch.ids.shape, dtype=torch.float32, device=batch.ids.device)
    return positions.scatter_(1, batch.at, 1.0)


def _check_tasks(model: Model, tasks: Sequence[EncodedTask], options: Ablation) -> None:
    if options.where == "last" and (model.encoder_decoder or model.classifier):
        what = "" if model.classifier else "the encoder of "
        raise ValueError(
            f"where='last' replaces heads where the answer is predicted, and {what}{model.name} "
            "has no such position; use where='all'."
        )


METHOD = Method(
    "ablation",
    run,
    Ablation,
    signed=True,
    skips_done=True,
    check_tasks=_check_tasks,
    about="How much log p(answer) falls when the head's output is replaced; positive helps.",
    explained=(
        "The head's output is replaced, by zero or by its mean over the task's prompts, and the "
        "prompt is run again: the score is how much log-probability the right answer loses. It is "
        "exact, the same number as one forward pass with that head off.",
        "A score of 1 means that the answer became 2.7 times less likely. Below 0 the answer gains "
        "without the head.",
        "A head that others cover for scores low although it takes part; zero may take the model "
        "where it never is, the mean is gentler. It costs many forward passes.",
    ),
    paper=("Michel et al. 2019", "https://arxiv.org/abs/1905.10650"),
)
