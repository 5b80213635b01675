"""One prompt read by the model: tokens, predictions, and what each head adds to them.

>>> import headwidget as hw
>>> from headwidget.live import reading as prompt
>>> reading = prompt.read(hw.load(), "The capital of France is")
>>> reading.predictions[0].text, reading.maps.shape
(' Paris', (10, 30, 9))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.live.gates import Gates
from headwidget.methods import attribution
from headwidget.methods.attribution import HeadOutputs
from headwidget.models import Model, attention, hooks, not_finite, weights
from headwidget.models.caches import everything_kept, nothing_kept
from headwidget.scoring.batch import Batch, collate, forward
from headwidget.scoring.encode import Encoded, prompt_ids
from headwidget.scoring.encode_media import check_no_place

TARGETS = 10
"""How many likely next tokens are listed, each with its map."""
LONGEST = 512
"""Most tokens of a typed prompt; longer ones belong in a task."""
SHOWN = 48
"""How many tokens, counted from the last, the drawn attention pattern has."""


@dataclass(frozen=True)
class Prediction:
    """A token and the probability that it comes next."""

    id: int
    text: str
    probability: float
    scaled: float | None = None
    """Its probability with heads scaled; None where no head is scaled."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What one forward of a prompt gives."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    """The likeliest next tokens with unscaled heads, then one that was asked for."""
    risen: tuple[Prediction, ...]
    """Tokens that are among the likeliest only with heads scaled."""
    maps: npt.NDArray[np.float32]
    """(target, layer, head): each head's direct contribution to each predicted token's logit, less
    the mean logit. Without targets where ``why_not`` says why."""
    why_not: str | None
    """Why there are no maps, in a sentence."""
    outputs: HeadOutputs | None = field(repr=False, default=None)


def encode(model: Model, text: str) -> tuple[int, ...]:
    """A prompt's token ids; an error with a sentence where it cannot be read."""
    if not isinstance(text, str):
        raise TypeError(f"a prompt is text; got a {type(text).__name__}.")
    if model.encoder:
        raise ValueError(
            f"{model.name} fills gaps and does not go on from a prompt, so there is no next token "
            "to look at; score it on tasks instead."
        )
    if model.classifier:
        raise ValueError(
            f"{model.name} names the class of an image or a sound and reads no prompt; score it on "
            "tasks with images or sounds instead."
        )
    if model.encoder_decoder:
        raise ValueError(
            f"{model.name} answers a prompt with a decoder and does not go on from it, so the next "
            "token of a prompt is not shown; score it on tasks instead."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            "the prompt has half a letter (a lone surrogate), which no tokenizer can read."
        ) from None
    ids = tuple(prompt_ids(model.tokenizer, text))
    check_no_place(model, ids, "the live view reads text")
    if not ids:
        raise ValueError("the prompt has no tokens yet: type some text.")
    most = min(LONGEST, model.context or LONGEST)
    if len(ids) > most:
        raise ValueError(
            f"the prompt has {len(ids)} tokens; the live view reads up to {most}. Shorten it, or "
            "make a hw.Task of it."
        )
    return ids


def read(model: Model, text: str, gates: Gates | None = None, also: int | None = None) -> Reading:
    """Read a prompt in one forward: predictions, and each head's contribution to them.

    The likeliest tokens are listed, and the token ``also``, however unlikely. ``gates`` that
    are not all 1 take a second forward.
    """
    ids = encode(model, text)
    batch = collate([0], [Encoded("", ids, (len(ids) - 1,), (ids[-1],))], model)
    why_not = _why_not(model)
    with hooks.scoring(model):
        outputs = HeadOutputs(model, batch)
        logits = outputs.run() if why_not is None else forward(model, batch)
        before = logits[0, -1].float().softmax(-1)  # (vocabulary,)
        if not before.isfinite().all():
            raise FloatingPointError(
                "the next token's probabilities are not numbers for this prompt. "
                f"{not_finite.advice(model)}"
            )
        after = None if gates is None or (gates == 1).all() else _gated(model, batch, gates)
        likely = _likeliest(before)
        if also is not None and also not in likely:
            likely.append(also)
        risen = [] if after is None else [i for i in _likeliest(after) if i not in likely]
        maps = np.zeros((0, *model.shape), np.float32)
        if why_not is None:
            maps = towards(model, outputs, likely).cpu().numpy()
        predictions = _listed(model, likely, before, after)
        risen_predictions = _listed(model, risen, before, after)
    return Reading(
        text,
        ids,
        tuple(model.tokenizer.decode([token]) for token in ids),
        predictions,
        risen_predictions,
        maps,
        why_not,
        outputs if why_not is None else None,
    )


def _gated(model: Model, batch: Batch, gates: Gates) -> Tensor:
    """The next token's probabilities with heads scaled, (vocabulary,)."""
    with hooks.gate(model, torch.tensor(gates).to(model.device)):
        probabilities = forward(model, batch)[0, -1].float().softmax(-1)
    if not probabilities.isfinite().all():
        raise FloatingPointError(
            "with these gates the next token's probabilities are not numbers; scale heads by less."
        )
    return probabilities


def _likeliest(probabilities: Tensor) -> list[int]:
    tokens: list[int] = probabilities.topk(min(TARGETS, len(probabilities))).indices.tolist()
    return tokens


def _why_not(model: Model) -> str | None:
    """Why the model's heads have no maps; None where they have."""
    try:
        attribution.check(model)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _listed(
    model: Model, ids: Sequence[int], before: Tensor, after: Tensor | None
) -> tuple[Prediction, ...]:
    """Tokens with their probabilities before and after heads were scaled."""
    clean = before[list(ids)].tolist()
    scaled = [None] * len(ids) if after is None else after[list(ids)].tolist()
    texts = [model.tokenizer.decode([token]) for token in ids]
    return tuple(Prediction(*columns) for columns in zip(ids, texts, clean, scaled))


def towards(model: Model, outputs: HeadOutputs, targets: Sequence[int]) -> Tensor:
    """(target, layer, head): each head's contribution to each token's logit, less the mean logit.

    Needs no forward.
    """
    norm, posts = attribution.norms(model)
    u = weights.unembedding(model)
    chosen = u[torch.tensor(targets, device=u.device)].float()  # (target, width)
    direction = chosen - attribution.average(model)
    back = norm.back(direction[:, None], outputs.final)  # (target, 1, width)
    return torch.stack(
        [outputs.along(row, back, posts[row]).to(model.device) for row in range(len(model.layers))],
        dim=1,
    )


# ---- one head ----


@dataclass(frozen=True, eq=False)
class HeadReading:
    """What one head does on a prompt."""

    pattern: npt.NDArray[np.float32] | None
    """(query, key) over the last tokens; None where it cannot be read."""
    first: int
    """The index of the token that the pattern begins with."""
    promoted: tuple[tuple[str, float], ...]
    """The tokens whose logit it raises most at the last position, and by how much, with the norms'
    scales held fixed."""
    suppressed: tuple[tuple[str, float], ...]
    why_not: str | None


def head(model: Model, reading: Reading, row: int, number: int, count: int = 6) -> HeadReading:
    """A head's attention pattern, and the tokens that it promotes and suppresses at the end.

    Needs one forward, for the pattern.
    """
    pattern, first, why_not = None, max(0, len(reading.ids) - SHOWN), reading.why_not
    try:
        seen = attention.weights(model, reading.ids, row)[0, number]  # (query, key)
        pattern = seen[first:, first:].cpu().numpy()
    except (ValueError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        why_not = str(error)
    if reading.outputs is None:
        return HeadReading(pattern, first, (), (), why_not)
    promoted, suppressed = _logit_changes(model, reading.outputs, row, number, count)
    return HeadReading(pattern, first, promoted, suppressed, why_not)


def _logit_changes(
    model: Model, outputs: HeadOutputs, row: int, number: int, count: int
) -> tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]:
    """The tokens whose logits a head alone raises most and lowers most, less the mean logit."""
    layer = model.layers[row]
    norm, posts = attribution.norms(model)
    with hooks.scoring(model):
        u = weights.unembedding(model)
        z = outputs.z[row][0, -1, number].float()  # (head_dim,)
        written = z @ layer.w_o().detach()[number].float().to(z.device)  # (width,)
        post = posts[row]
        through = written if post is None else post.ahead(written, outputs.written[row][0, -1])
        through = layer.factor * through.to(outputs.final.device)
        normalised = norm.ahead(through, outputs.final[0, -1]).to(u.device)
        logits = (u.to(normalised.dtype) @ normalised).float()
        logits = logits - logits.mean()
        raised, lowered = logits.topk(count), logits.topk(count, largest=False)
    return _with_text(model, raised), _with_text(model, lowered)


def _with_text(model: Model, top: Any) -> tuple[tuple[str, float], ...]:
    """What ``topk`` gives, as (token, logit)."""
    pairs = zip(top.indices.tolist(), top.values.tolist())
    return tuple((model.tokenizer.decode([token]), logit) for token, logit in pairs)


# ---- greedy text ----


def greedy(model: Model, ids: Sequence[int], gates: Gates, tokens: int = 12) -> list[str]:
    """The model's greedy continuation under each setting of ``gates``, (setting, layer, head)."""
    if model.one_by_one and len(gates) > 1:
        return [greedy(model, ids, setting[None], tokens)[0] for setting in gates]
    count = len(gates)
    end = model.tokenizer.eos_token_id
    on = torch.tensor(gates).to(model.device)
    so_far = torch.tensor([list(ids)] * count, device=model.device)  # (setting, token)
    new: list[Tensor] = []
    grows = model.can_share_prefix
    cache = everything_kept() if grows else nothing_kept(model)
    with hooks.scoring(model), hooks.gate(model, on):
        step = so_far
        for _ in range(tokens):
            last = torch.full((count, 1), step.shape[1] - 1, device=model.device)
            logits = hooks.logits_at(model, {"input_ids": step, **cache}, last)[:, -1]
            new.append(logits.argmax(-1).to(model.device))
            so_far = torch.cat([so_far, new[-1][:, None]], dim=1)
            step = new[-1][:, None] if grows else so_far
    texts = []
    for row in torch.stack(new, dim=1).tolist():
        texts.append(model.tokenizer.decode(row[: row.index(end)] if end in row else row))
    return texts
