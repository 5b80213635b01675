"""Batches: encoded examples as padded tensors, a plain forward of them, and its answers."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Layer, Model, hooks, weights
from headwidget.models.caches import nothing_kept
from headwidget.scoring import encode_media
from headwidget.scoring.contract import Portioned
from headwidget.scoring.encode import Encoded
from headwidget.scoring.errors import first_line, is_ours
from headwidget.scoring.memory import out_of_memory

TOKENS = 4096
"""Tokens a batch by default: a batch holds at most this many, and at most ``PROMPTS`` prompts."""
PROMPTS = 32
MOST_LOGITS = 2**26
"""Changed heads are unembedded together up to this many logits, so that the vocabulary's
weights are read once for all of them."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples side by side.

    Shapes: ``ids`` (batch, seq), all answer tensors (batch, k) with k the longest answer.
    """

    runs: tuple[int, ...]
    """Which of the task's examples these are."""
    ids: Tensor
    mask: Tensor | None
    """Attention mask, where one is needed: a causal model never sees padding on its right."""
    at: Tensor
    """The positions that predict the answer's tokens."""
    answer: Tensor
    counts: Tensor
    """1 where an answer token is, 0 where it is padding."""
    foil: Tensor
    """The foil's token where answer and foil part, else the answer's own."""
    parts: Tensor
    """1 at the token where answer and foil part; all 0 without a foil."""
    source: Tensor | None = None
    """What an encoder-decoder model's encoder reads, (batch, source); ``ids`` are its decoder's."""
    source_mask: Tensor | None = None
    """1 where a token of the source is, 0 where padding is."""
    encoded: Any = None
    """What the encoder gave for the source, where it need not run again."""
    media: dict[str, Tensor] | None = None
    """Images or sounds, as keyword arguments of the model's forward."""
    unpadded: bool = False
    """Are all positions read? Those of a classifier are its own."""

    def inputs(self, model: Model) -> dict[str, Any]:
        """Keyword arguments for the model's own forward."""
        if model.classifier:
            return dict(self.media or {})
        if self.source is not None:
            read = {"input_ids": self.source} if self.encoded is None else {}
            return {
                **(read or {"encoder_outputs": self.encoded}),
                "attention_mask": self.source_mask,
                "decoder_input_ids": self.ids,
                **nothing_kept(model),
            }
        inputs: dict[str, Any] = {"input_ids": self.ids, **nothing_kept(model)}
        inputs.update(self.media or {})
        if self.mask is not None:
            inputs["attention_mask"] = self.mask
            parameters = inspect.signature(model.module.forward).parameters
            if not model.encoder and "position_ids" in parameters:
                inputs["position_ids"] = (self.mask.cumsum(-1) - 1).clamp(min=0)
        return inputs

    def valid(self, layer: Layer, z: Tensor) -> Tensor:
        """1 where a token is that the layer reads, 0 where padding is, (batch, seq).

        ``z`` is what its heads give, (batch, seq, …); a classifier's patches are all read.
        """
        if self.unpadded:
            return torch.ones(z.shape[:2], dtype=torch.long, device=z.device)
        if layer.section == "encoder" and self.source_mask is not None:
            return self.source_mask
        if self.mask is not None:
            return self.mask
        # No mask: the padding is on the right, behind the last position that is read.
        return (torch.arange(self.ids.shape[1], device=self.ids.device) <= self.at[:, -1:]).long()


def collate(
    runs: Sequence[int],
    examples: Sequence[Encoded],
    model: Model,
    side: Literal["left", "right"] = "right",
) -> Batch:
    """Pad ``examples`` on ``side`` and put them on the model's device, one copy a tensor."""
    seq = max(len(e.ids) for e in examples)
    k = max(len(e.answer) for e in examples)
    pad = model.tokenizer.pad_token_id if model.encoder else None
    rows = [_padded(example, seq, k, pad, side) for example in examples]
    if model.encoder_decoder:
        longest = max(len(e.source) for e in examples)
        filling = model.tokenizer.pad_token_id or 0  # the mask hides it
        for row, example in zip(rows, examples):
            short = longest - len(example.source)
            row["source"] = [*example.source, *[filling] * short]
            row["source_mask"] = [*[1] * len(example.source), *[0] * short]
    tensors: dict[str, Any] = {}
    for name in rows[0]:
        tensors[name] = torch.tensor([row[name] for row in rows], device=model.device)
    if not model.encoder and (side == "right" or all(len(e.ids) == seq for e in examples)):
        tensors["mask"] = None
    media = [example.media for example in examples if example.media is not None]
    if media:
        model.saw_media = True
        tensors["media"] = encode_media.collated(media, seq, model.device)
    return Batch(tuple(runs), **tensors, unpadded=model.classifier)


def _padded(
    example: Encoded, seq: int, k: int, pad: int | None, side: Literal["left", "right"]
) -> dict[str, list[int]]:
    """One row of each of a batch's tensors.

    Without a ``pad`` token the last one is repeated: a causal model never sees padding on
    its right, and a mask hides padding on its left.
    """
    space, short = seq - len(example.ids), k - len(example.answer)
    fill = [example.ids[-1] if pad is None else pad] * space
    ones, zeros = [1] * len(example.ids), [0] * space
    left = side == "left"
    shift = space if left else 0
    at = [position + shift for position in example.at]
    answer = [*example.answer, *[0] * short]
    foil = list(answer)
    if example.parting is not None and example.foil is not None:
        foil[example.parting] = example.foil
    return {
        "ids": [*fill, *example.ids] if left else [*example.ids, *fill],
        "mask": [*zeros, *ones] if left else [*ones, *zeros],
        "at": [*at, *[at[-1]] * short],
        "answer": answer,
        "counts": [1] * len(example.answer) + [0] * short,
        "foil": foil,
        "parts": [int(i == example.parting) for i in range(k)],
    }


def plan(
    examples: Sequence[Encoded],
    model: Model,
    batch_size: int | None,
    order: Callable[[Encoded], Any] = lambda e: e.length,
    together: Callable[[Sequence[Encoded], Encoded], bool] = lambda batch, e: True,
) -> list[list[int]]:
    """Which examples run together, as indices.

    Neighbours in ``order`` (by default, of like length) share a batch up to ``batch_size``,
    where ``together`` allows it. A model that must run prompts one by one gets them so.
    """
    if model.one_by_one:
        batch_size = 1
    planned: list[list[int]] = []
    for i in sorted(range(len(examples)), key=lambda i: order(examples[i])):
        example = examples[i]
        batch = [examples[j] for j in planned[-1]] if planned else []
        if batch and _fits(example, batch, model, batch_size) and together(batch, example):
            planned[-1].append(i)
        else:
            planned.append([i])
    return planned


def _fits(example: Encoded, batch: Sequence[Encoded], model: Model, batch_size: int | None) -> bool:
    """Has the batch room for the example, and is its rotation the same?"""
    if not can_share(batch[0], example, model):
        return False
    longest = max(e.length for e in (*batch, example))
    room = batch_size or max(1, min(PROMPTS, TOKENS // longest))
    same_rope = model.switches_rope(len(batch[0].ids)) == model.switches_rope(len(example.ids))
    return len(batch) < room and same_rope


def can_share(example: Encoded, other: Encoded, model: Model) -> bool:
    """Can two examples run in one batch?

    A prompt with images runs alone: how several are put together differs from model to model.
    Images or sounds of one size are stacked for a classifier.
    """
    if example.media is None or other.media is None:
        return example.media is other.media
    return model.classifier and example.media.fit(other.media)


def batches(
    examples: Sequence[Encoded], model: Model, batch_size: int | None, portions: Portioned = iter
) -> Iterator[Batch]:
    """The examples in batches of like length, or in ``portions`` of them."""
    for runs in portions(plan(examples, model, batch_size)):
        yield collate(runs, [examples[i] for i in runs], model)


def rows_of(batch: Batch, rows: Tensor, length: int | None = None) -> Batch:
    """The given rows of a batch, one after the other, at most ``length`` tokens long."""
    columns: dict[str, Any] = {"runs": tuple(range(len(rows)))}
    for field in dataclasses.fields(batch)[1:]:
        value = getattr(batch, field.name)
        columns[field.name] = value[rows] if isinstance(value, Tensor) else value
    if batch.media is not None:
        columns["media"] = encode_media.rows_of(batch.media, len(batch.runs), rows)
    for name in ("ids", "mask"):
        if columns[name] is not None:
            columns[name] = columns[name][:, :length]
    return Batch(**columns)


def with_source_read(model: Model, batch: Batch) -> Batch:
    """A batch of an encoder-decoder model whose encoder has run: forwards of it do without."""
    encoder = model.module.get_encoder()
    encoded = encoder(input_ids=batch.source, attention_mask=batch.source_mask, return_dict=True)
    return dataclasses.replace(batch, encoded=encoded)


def forward(model: Model, batch: Batch) -> Tensor:
    """Logits where the answer is predicted, (batch, k, vocabulary)."""
    if batch.media is None:
        return hooks.logits_at(model, batch.inputs(model), batch.at)
    try:
        return hooks.logits_at(model, batch.inputs(model), batch.at)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        if out_of_memory(error) or is_ours(error):
            raise
        numbers = ", ".join(map(str, batch.runs))
        raise ValueError(
            f"{model.name} cannot read what its processor made of example {numbers} "
            f"({type(error).__name__}: {first_line(error)}). Is it this model's processor, with "
            "the sizes that the model was made for, and a place for every image?"
        ) from error


def log_probability(logits: Tensor, batch: Batch) -> Tensor:
    """log p(answer | prompt), summed over its tokens, (batch,), in float32 or better."""
    return token_log_probability(logits, batch).sum(-1)


def token_log_probability(logits: Tensor, batch: Batch) -> Tensor:
    """log p of every answer token, (batch, k), 0 where padding is."""
    logits = logits.to(weights.working(logits.dtype))
    answer = batch.answer.to(logits.device)
    tokens = logits.gather(-1, answer[..., None]).squeeze(-1) - logits.logsumexp(-1)  # (batch, k)
    return tokens * batch.counts.to(logits.device)


def correct(logits: Tensor, batch: Batch) -> Tensor:
    """Two answers to "is it right?", (2, batch) bool.

    The first: is every answer token the likeliest? The second: does the answer beat its
    foil where they part (True without a foil)?
    """
    answer, foil = batch.answer.to(logits.device), batch.foil.to(logits.device)
    counts, parts = batch.counts.to(logits.device), batch.parts.to(logits.device)
    likeliest = ((logits.argmax(-1) == answer) | (counts == 0)).all(-1)
    answer_logits = logits.gather(-1, answer[..., None]).squeeze(-1)  # (batch, k)
    foil_logits = logits.gather(-1, foil[..., None]).squeeze(-1)
    beats = ((answer_logits > foil_logits) | (parts == 0)).all(-1)
    return torch.stack([likeliest, beats])


def answered(
    model: Model, examples: Sequence[Encoded], batch_size: int | None
) -> npt.NDArray[np.bool_]:
    """(2, example): is the answer the model's first choice; does it beat its foil?"""
    right = np.zeros((2, len(examples)), bool)
    for batch in batches(examples, model, batch_size):
        with hooks.scoring(model):
            right[:, list(batch.runs)] = correct(forward(model, batch), batch).cpu().numpy()
    return right
