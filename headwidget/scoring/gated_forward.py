"""Gated runs: the same prompts under many settings of the heads' gates.

Gates are per sample, so settings and prompts share a batch. A prefix that prompts share runs once for each setting, with its
gates; its keys and values then serve all prompts of the setting.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring.batch import TOKENS, Batch, collate, correct, forward, log_probability, plan
from headwidget.scoring.encode import Encoded
from headwidget.scoring.replay import MOST_LOGITS, SHORTEST_PREFIX, belong_together, shared_prefix

MOST_KEYS = 8 * TOKENS
"""Keys that a batch attends to, at most: a prefix's stand before every prompt that goes on from it."""


@dataclass(frozen=True)
class Landed:
    """What some prompts answer under some settings, on the host."""

    settings: slice
    runs: tuple[int, ...]
    values: npt.NDArray[np.float32]
    """(setting, run, 3): log p(answer); is every answer token the likeliest; does the answer beat its foil (1 without one)."""


@dataclass(frozen=True, eq=False)
class Group:
    """Prompts that run together, and how many leading tokens run once for all of them."""

    batch: Batch
    prefix: int

    def room(self, model: Model, batch_size: int | None) -> int:
        """For how many settings the prompts run at once."""
        prompts, length = self.batch.ids.shape
        if batch_size is not None:
            return max(1, batch_size // prompts)
        logits = prompts * self.batch.at.shape[1] * int(model.config.get_text_config().vocab_size)
        tokens = max(self.prefix, prompts * (length - self.prefix))
        return max(1, min(TOKENS // tokens, MOST_KEYS // (prompts * length), MOST_LOGITS // logits))


def run(
    model: Model,
    examples: Sequence[Encoded],
    gates: npt.NDArray[np.float32],
    batch_size: int | None = None,
) -> Iterator[Landed]:
    """Every example under every setting of ``gates`` (setting, layer, head), the first settings first."""
    together = groups(model, examples, batch_size)
    step = min(group.room(model, batch_size) for group in together)
    for start in range(0, len(gates), step):
        part = torch.tensor(gates[start : start + step]).to(model.device)
        for group in together:
            yield Landed(
                slice(start, start + len(part)),
                group.batch.runs,
                answers(model, group, part).cpu().numpy(),
            )


def can_share(model: Model) -> bool:
    """Can prompts go on from one prefix? An encoder looks at all tokens at once, and a hybrid model has a cache of its own."""
    return not model.encoder and len(model.blocks) == len(model.layers)


def groups(model: Model, examples: Sequence[Encoded], batch_size: int | None = None) -> list[Group]:
    """The examples in groups that share a prefix; those that share none by their length."""
    found, alone = [], list(range(len(examples)))
    if can_share(model):
        alone = []
        for runs in plan(
            examples, model, batch_size, order=lambda e: e.ids, together=belong_together
        ):
            some = [examples[i] for i in runs]
            switches = (
                model.rope_switch is not None and max(len(e.ids) for e in some) > model.rope_switch
            )
            prefix = shared_prefix(some)
            if len(some) == 1 or switches or prefix < SHORTEST_PREFIX:
                alone += runs
            else:
                found.append(Group(collate(runs, some, model), prefix))
    for planned in plan([examples[i] for i in alone], model, batch_size):
        runs = [alone[i] for i in planned]
        found.append(Group(collate(runs, [examples[i] for i in runs], model), 0))
    return found


def answers(model: Model, group: Group, gates: Tensor) -> Tensor:
    """The group's answers under each setting of ``gates`` (setting, layer, head), (setting, run, 3)."""
    prompts = len(group.batch.runs)
    batch = tiled(group.batch, len(gates))  # setting by setting, (setting * run, …)
    with hooks.scoring(model):
        logits = predictions(model, batch, group.prefix, gates)
        found = torch.stack([log_probability(logits, batch), *correct(logits, batch)], -1)
    return found.reshape(len(gates), prompts, 3)


def predictions(model: Model, batch: Batch, prefix: int, gates: Tensor) -> Tensor:
    """Logits where the answers are predicted, (setting * run, k, vocabulary); the batch holds its runs setting by setting, as ``gates`` does.

    Of every prompt the first ``prefix`` tokens are the same: they run once a setting. All of it can be walked back for gradients.
    """
    prompts = len(batch.ids) // len(gates)
    past = _prefix(model, batch.ids[::prompts, :prefix], gates, prompts) if prefix else None
    with hooks.gate(model, gates.repeat_interleave(prompts, 0)):
        return forward(model, batch) if past is None else _go_on(model, batch, past, prefix)


def _prefix(model: Model, ids: Tensor, gates: Tensor, prompts: int) -> Any:
    """The keys and values of the prefix under each setting, to go on from with so many prompts each."""
    past = _branching()()
    first = torch.zeros(
        len(gates), 1, dtype=torch.long, device=ids.device
    )  # the prefix predicts nothing: unembed one position
    with hooks.gate(model, gates), hooks.unembed_at(model, first):
        model.module(input_ids=ids, past_key_values=past, use_cache=True)
    past.prompts = prompts
    return past


def _go_on(model: Model, batch: Batch, past: Any, prefix: int) -> Tensor:
    """Logits where the answers are predicted, from what follows the prefix."""
    with hooks.unembed_at(model, batch.at - prefix):
        logits: Tensor = model.module(
            input_ids=batch.ids[:, prefix:], past_key_values=past, use_cache=True
        ).logits
    return logits


@functools.cache
def _branching() -> Any:
    from transformers import DynamicCache

    class Branching(DynamicCache):  # type: ignore[misc]
        """Keeps a prefix's keys and values; once told how many ``prompts`` go on from each, answers with both and keeps no more."""

        prompts = 0

        def update(
            self, key: Tensor, value: Tensor, layer: int, *args: Any, **kwargs: Any
        ) -> tuple[Tensor, Tensor]:
            if not self.prompts:
                kept: tuple[Tensor, Tensor] = super().update(key, value, layer, *args, **kwargs)
                return kept
            held = self.layers[layer]
            k, v = (
                one.repeat_interleave(self.prompts, 0) for one in (held.keys, held.values)
            )  # (setting * run, kv head, prefix, dim)
            return torch.cat([k, key], dim=-2), torch.cat([v, value], dim=-2)

    return Branching


def tiled(batch: Batch, times: int) -> Batch:
    """The batch so many times over, one after the other."""
    parts = {f.name: getattr(batch, f.name) for f in dataclasses.fields(batch)}
    tiled: dict[str, Any] = {
        name: part.repeat(times, 1) if isinstance(part, Tensor) else part
        for name, part in parts.items()
    }
    return Batch(**tiled)
