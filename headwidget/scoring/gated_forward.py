"""Gated runs: the same prompts under many settings of the heads' gates.

Gates are per sample, so settings and prompts share a batch. A prefix that prompts share
runs once for each setting, with its gates; its keys and values then serve all prompts of
the setting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.models.caches import PrefixCache, kept_in
from headwidget.scoring import trust
from headwidget.scoring.batch import (
    MOST_LOGITS,
    TOKENS,
    Batch,
    collate,
    correct,
    forward,
    log_probability,
    plan,
)
from headwidget.scoring.encode import Encoded
from headwidget.scoring.prefix import belong_together, usable_prefix

MOST_KEYS = 8 * TOKENS
"""Keys that a batch attends to, at most: those of a prefix count once for each of its prompts."""


@dataclass(frozen=True)
class Landed:
    """Answers of some prompts under some settings, on the host."""

    settings: slice
    runs: tuple[int, ...]
    values: npt.NDArray[np.float32]
    """(setting, run, 3): log p(answer); is every answer token the likeliest; does the answer
    beat its foil (1 without one)."""


@dataclass(frozen=True, eq=False)
class Group:
    """Prompts that run together, and how many leading tokens run once for all of them."""

    batch: Batch
    prefix: int

    def room(self, model: Model, batch_size: int | None) -> int:
        """For how many settings the prompts run at once."""
        prompts, length = self.batch.ids.shape
        if model.one_by_one:
            return 1
        if batch_size is not None:
            return max(1, batch_size // prompts)
        logits = prompts * self.batch.at.shape[1] * model.vocabulary
        tokens = max(self.prefix, prompts * (length - self.prefix))
        return max(1, min(TOKENS // tokens, MOST_KEYS // (prompts * length), MOST_LOGITS // logits))


def run(
    model: Model,
    examples: Sequence[Encoded],
    gates: npt.NDArray[np.float32],
    batch_size: int | None = None,
) -> Iterator[Landed]:
    """Every example under every setting of ``gates`` (setting, layer, head).

    The first settings land first.
    """
    trust.check(model, examples)
    grouped = groups(model, examples, batch_size)
    step = min(group.room(model, batch_size) for group in grouped)
    for start in range(0, len(gates), step):
        settings = torch.tensor(gates[start : start + step]).to(model.device)
        for group in grouped:
            values = answers(model, group, settings).cpu().numpy()
            yield Landed(slice(start, start + len(settings)), group.batch.runs, values)


def groups(model: Model, examples: Sequence[Encoded], batch_size: int | None = None) -> list[Group]:
    """The examples in groups that share a prefix; those that share none by their length."""
    grouped, alone = [], list(range(len(examples)))
    if model.can_share_prefix:
        alone = []
        planned = plan(examples, model, batch_size, order=lambda e: e.ids, together=belong_together)
        for runs in planned:
            members = [examples[i] for i in runs]
            if prefix := usable_prefix(model, members):
                grouped.append(Group(collate(runs, members, model), prefix))
            else:
                alone += runs
    for indices in plan([examples[i] for i in alone], model, batch_size):
        runs = [alone[i] for i in indices]
        grouped.append(Group(collate(runs, [examples[i] for i in runs], model), 0))
    return grouped


def answers(model: Model, group: Group, gates: Tensor) -> Tensor:
    """The group's answers under each setting of ``gates`` (setting, layer, head).

    (setting, run, 3), as in :class:`Landed`.
    """
    prompts = len(group.batch.runs)
    batch = tiled(group.batch, len(gates))  # setting by setting, (setting * run, …)
    with hooks.scoring(model):
        logits = predictions(model, batch, group.prefix, gates)
        values = torch.stack([log_probability(logits, batch), *correct(logits, batch)], -1)
    return values.reshape(len(gates), prompts, 3)


def predictions(model: Model, batch: Batch, prefix: int, gates: Tensor) -> Tensor:
    """Logits where the answers are predicted, (setting * run, k, vocabulary).

    The batch holds its runs setting by setting, as ``gates`` does. The first ``prefix``
    tokens of every prompt are the same and run once a setting. Gradients reach the gates.
    """
    prompts = len(batch.ids) // len(gates)
    past = _run_prefix(model, batch.ids[::prompts, :prefix], gates) if prefix else None
    with hooks.gate(model, gates.repeat_interleave(prompts, 0)):
        return forward(model, batch) if past is None else _go_on(model, batch, past, prefix)


def _run_prefix(model: Model, ids: Tensor, gates: Tensor) -> PrefixCache:
    """The prefix's keys and values, a row for each setting."""
    past = PrefixCache()
    # The prefix predicts nothing: one position is unembedded.
    first = torch.zeros(len(gates), 1, dtype=torch.long, device=ids.device)
    with hooks.gate(model, gates):
        hooks.logits_at(model, {"input_ids": ids, **kept_in(past)}, first)
    return past


def _go_on(model: Model, batch: Batch, past: PrefixCache, prefix: int) -> Tensor:
    """Logits where the answers are predicted, from the tokens that follow the prefix."""
    inputs = {"input_ids": batch.ids[:, prefix:], **kept_in(past)}
    return hooks.logits_at(model, inputs, batch.at - prefix)


def tiled(batch: Batch, times: int) -> Batch:
    """The batch ``times`` times, one after the other."""
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        fields[field.name] = value.repeat(times, 1) if isinstance(value, Tensor) else value
    if batch.media is not None:
        fields["media"] = {name: torch.cat([v] * times) for name, v in batch.media.items()}
    return Batch(**fields)
