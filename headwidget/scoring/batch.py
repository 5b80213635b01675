"""Batches: encoded examples as padded tensors on the model's device, one plain forward of them, and what it says of the answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.models.caches import nothing_kept
from headwidget.scoring.encode import Encoded

TOKENS = 4096
"""Tokens a batch by default: a batch holds at most this many, and at most ``PROMPTS`` prompts."""
PROMPTS = 32


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples side by side. Shapes: ``ids`` (batch, seq), all answer tensors (batch, k) with k the longest answer."""

    runs: tuple[int, ...]
    """Which of the task's examples these are."""
    ids: Tensor
    mask: Tensor | None
    """Attention mask, where one is needed: a causal model never looks at padding on its right."""
    at: Tensor
    answer: Tensor
    counts: Tensor
    """1 where an answer token is, 0 where it is padding."""
    foil: Tensor
    """The foil's token where answer and foil part, else the answer's own, (batch, k)."""
    parts: Tensor
    """1 at the token where answer and foil part, (batch, k); all 0 without a foil."""

    def inputs(self, model: Model) -> dict[str, Any]:
        """Keyword arguments for the model's own forward."""
        given: dict[str, Any] = {"input_ids": self.ids, **nothing_kept(model)}
        if self.mask is not None:
            given["attention_mask"] = self.mask
            if (
                not model.encoder
                and "position_ids" in inspect.signature(model.module.forward).parameters
            ):
                given["position_ids"] = (self.mask.cumsum(-1) - 1).clamp(min=0)
        return given

    def valid(self) -> Tensor:
        """1 where a token is, 0 where padding is, (batch, seq); padding on the right of a causal model is told by its positions."""
        if self.mask is not None:
            return self.mask
        return (torch.arange(self.ids.shape[1], device=self.ids.device) <= self.at[:, -1:]).long()


def collate(
    runs: Sequence[int],
    examples: Sequence[Encoded],
    model: Model,
    side: Literal["left", "right"] = "right",
) -> Batch:
    """Pad ``examples`` to one length on ``side`` and put them on the model's device, one copy a tensor."""
    seq = max(len(e.ids) for e in examples)
    most = max(len(e.answer) for e in examples)
    pad = model.tokenizer.pad_token_id if model.encoder else None
    rows: dict[str, list[list[int]]] = {
        k: [] for k in ("ids", "mask", "at", "answer", "counts", "foil", "parts")
    }
    for e in examples:
        space, short = seq - len(e.ids), most - len(e.answer)
        shift = space if side == "left" else 0
        fill = [
            e.ids[-1] if pad is None else pad
        ] * space  # a causal model never sees its right padding: any token will do
        ones = [1] * len(e.ids)
        rows["ids"].append([*fill, *e.ids] if shift else [*e.ids, *fill])
        rows["mask"].append([*[0] * space, *ones] if shift else [*ones, *[0] * space])
        rows["at"].append([*(p + shift for p in e.at), *[e.at[-1] + shift] * short])
        rows["answer"].append([*e.answer, *[0] * short])
        rows["counts"].append([1] * len(e.answer) + [0] * short)
        rows["foil"].append(
            [
                e.foil if i == e.parting and e.foil is not None else t
                for i, t in enumerate([*e.answer, *[0] * short])
            ]
        )
        rows["parts"].append([int(i == e.parting) for i in range(most)])
    ready = {k: torch.tensor(v).to(model.device) for k, v in rows.items()}
    if not model.encoder and (side == "right" or all(len(e.ids) == seq for e in examples)):
        ready["mask"] = None  # type: ignore[assignment]
    return Batch(tuple(runs), **ready)


def plan(
    examples: Sequence[Encoded],
    model: Model,
    batch_size: int | None,
    order: Callable[[Encoded], Any] = lambda e: len(e.ids),
    together: Callable[[Sequence[Encoded], Encoded], bool] = lambda batch, e: True,
) -> list[list[int]]:
    """Which examples run together: like with like (by default of like length), within ``batch_size``."""
    batches: list[list[int]] = []
    for i in sorted(range(len(examples)), key=lambda i: order(examples[i])):
        last = [examples[j] for j in batches[-1]] if batches else []
        longest = max([len(e.ids) for e in last] + [len(examples[i].ids)])
        room = batch_size or max(1, min(PROMPTS, TOKENS // longest))
        mixes = (
            bool(last)
            and model.rope_switch is not None
            and (len(last[0].ids) > model.rope_switch) != (len(examples[i].ids) > model.rope_switch)
        )
        if last and len(last) < room and not mixes and together(last, examples[i]):
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def batches(examples: Sequence[Encoded], model: Model, batch_size: int | None) -> Iterator[Batch]:
    """The examples in batches of like length."""
    for runs in plan(examples, model, batch_size):
        yield collate(runs, [examples[i] for i in runs], model)


def forward(model: Model, batch: Batch) -> Tensor:
    """Logits where the answer is predicted, (batch, k, vocabulary)."""
    with hooks.unembed_at(model, batch.at):
        logits: Tensor = model.module(**batch.inputs(model)).logits
    return logits


def log_probability(logits: Tensor, batch: Batch) -> Tensor:
    """log p(answer | prompt), summed over its tokens, (batch,), at least float32 whatever the model's dtype."""
    return token_log_probability(logits, batch).sum(-1)


def token_log_probability(logits: Tensor, batch: Batch) -> Tensor:
    """log p of every answer token, (batch, k), 0 where padding is."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    answer = batch.answer.to(logits.device)
    tokens = logits.gather(-1, answer[..., None]).squeeze(-1) - logits.logsumexp(-1)  # (batch, k)
    return tokens * batch.counts.to(logits.device)


def correct(logits: Tensor, batch: Batch) -> Tensor:
    """(2, batch) bool: is every answer token the likeliest; does the answer beat its foil where they part (True without a foil)?"""
    answer, counts = batch.answer.to(logits.device), batch.counts.to(logits.device)
    first = ((logits.argmax(-1) == answer) | (counts == 0)).all(-1)
    right, wrong = (
        logits.gather(-1, answer[..., None]),
        logits.gather(-1, batch.foil.to(logits.device)[..., None]),
    )
    beats = ((right > wrong).squeeze(-1) | (batch.parts.to(logits.device) == 0)).all(-1)
    return torch.stack([first, beats])
