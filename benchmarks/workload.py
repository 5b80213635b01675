"""The workloads: 32 prompts of 32 tokens that share nothing, and few-shot prompts with a
40-token common prefix."""

from __future__ import annotations

import random

import torch
from torch import Tensor

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring.batch import Batch, collate
from headwidget.scoring.encode import Encoded, EncodedTask

PROMPTS, TOKENS, PREFIX, REST = 32, 32, 40, 8


def task(name: str, prefix: int, rest: int, vocabulary: int) -> EncodedTask:
    """Random tokens: cost does not depend on what they mean. One answer token each."""
    rng = random.Random(0)
    shared = [rng.randrange(100, vocabulary) for _ in range(prefix)]
    examples = []
    for i in range(PROMPTS):
        ids = (*shared, *(rng.randrange(100, vocabulary) for _ in range(rest)))
        examples.append(
            Encoded(f"prompt {i}", ids, (len(ids) - 1,), (rng.randrange(100, vocabulary),))
        )
    return EncodedTask(name, None, tuple(examples), (), 0)


def workloads(model: hw.Model) -> tuple[EncodedTask, EncodedTask]:
    size = model.config.vocab_size
    return task("plain", 0, TOKENS, size), task("few-shot", PREFIX, REST, size)


def batch_of(model: hw.Model, work: EncodedTask) -> Batch:
    return collate(range(len(work.examples)), work.examples, model)


def plain_forward(model: hw.Model, ids: Tensor) -> None:
    """What everything is compared with: inference mode, the model's own attention, full logits."""
    with torch.inference_mode():
        model.module(input_ids=ids, use_cache=False)


def forward_without(model: hw.Model, ids: Tensor, row: int, head: int) -> None:
    """One step of the plain loop: the whole model with one head off."""
    gates = torch.ones(model.shape)
    gates[row, head] = 0
    with hooks.gate(model, gates):
        plain_forward(model, ids)
