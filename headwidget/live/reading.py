"""One prompt read by the model: its tokens, what comes next, which heads push a token up, and what happens when heads are scaled.

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

from headwidget.methods import attribution
from headwidget.methods.attribution import HeadOutputs as Found
from headwidget.models import Model, attention, hooks, weights
from headwidget.models.caches import everything_kept, nothing_kept
from headwidget.scoring.batch import collate, forward
from headwidget.scoring.encode import Encoded, prompt_ids

TARGETS = 10
"""How many likely next tokens are listed, each with its map."""
LONGEST = 512
"""Tokens of a prompt that is typed; a longer one belongs into a task."""
SHOWN = 48
"""Tokens of a pattern that is drawn: the last ones."""

Gates = npt.NDArray[np.float32]
"""(layer, head): what each head's output is multiplied by."""


@dataclass(frozen=True)
class Prediction:
    """A token that may come next."""

    id: int
    text: str
    probability: float
    scaled: float | None = None
    """Its probability with heads scaled; None where none is."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What one forward of a prompt leaves behind."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    """The likeliest next tokens, heads as they are; then one that was asked for."""
    risen: tuple[Prediction, ...]
    """Tokens that are among the likeliest only with heads scaled."""
    maps: npt.NDArray[np.float32]
    """(target, layer, head): what each head writes straight towards each predicted token, less the mean logit; no targets where that cannot be said."""
    why_not: str | None
    """Why there are no maps, in a sentence."""
    found: Found | None = field(repr=False, default=None)


def encode(model: Model, text: str) -> tuple[int, ...]:
    """A prompt's token ids; a sentence where it cannot be read."""
    if not isinstance(text, str):
        raise TypeError(f"a prompt is text; got a {type(text).__name__}.")
    if model.encoder:
        raise ValueError(
            f"{model.name} fills gaps and does not go on from a prompt, so there is no next token to look at; score it on tasks instead."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            "the prompt has half a letter (a lone surrogate), which no tokenizer can read."
        ) from None
    ids = tuple(prompt_ids(model.tokenizer, text))
    if not ids:
        raise ValueError("the prompt has no tokens yet: type some text.")
    most = min(LONGEST, model.context or LONGEST)
    if len(ids) > most:
        raise ValueError(
            f"the prompt has {len(ids)} tokens; the live view reads up to {most}. Shorten it, or make a hw.Task of it."
        )
    return ids


def read(model: Model, text: str, gates: Gates | None = None, also: int | None = None) -> Reading:
    """One forward: predictions, and the attribution of every head to each of the likeliest tokens, and to the token ``also``, however unlikely. With
    ``gates`` a second row runs beside it."""
    ids = encode(model, text)
    at = (len(ids) - 1,)
    batch = collate([0], [Encoded("", ids, at, (ids[-1],))], model)
    why_not = _why_not(model)
    with hooks.scoring(model):
        if why_not is None:
            model.look()
        found = Found(model, batch)
        before = (
            (found.run() if why_not is None else forward(model, batch))[0, -1].float().softmax(-1)
        )  # (vocabulary,)
        after = None
        if gates is not None and not (gates == 1).all():
            with hooks.gate(model, torch.tensor(gates).to(model.device)):
                after = forward(model, batch)[0, -1].float().softmax(-1)
            if not after.isfinite().all():
                raise FloatingPointError(
                    "with these gates the next token's probabilities are not numbers; scale heads by less."
                )
        likely = before.topk(min(TARGETS, len(before))).indices.tolist()
        likely += [] if also is None or also in likely else [also]
        top = _listed(model, likely, before, after)
        risen = (
            []
            if after is None
            else [
                i for i in after.topk(min(TARGETS, len(after))).indices.tolist() if i not in likely
            ]
        )
        maps = np.zeros((0, *model.shape), np.float32)
        if why_not is None:
            maps = towards(model, found, [one.id for one in top]).cpu().numpy()
        new = _listed(model, risen, before, after)
    tokens = tuple(model.tokenizer.decode([one]) for one in ids)
    return Reading(text, ids, tokens, top, new, maps, why_not, found if why_not is None else None)


def _why_not(model: Model) -> str | None:
    try:
        attribution.check(model)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _listed(
    model: Model, ids: Sequence[int], before: Tensor, after: Tensor | None
) -> tuple[Prediction, ...]:
    """Tokens with their probability among all, before and after."""
    text = model.tokenizer.decode
    later = [None] * len(ids) if after is None else after[list(ids)].tolist()
    return tuple(
        Prediction(i, text([i]), p, q) for i, p, q in zip(ids, before[list(ids)].tolist(), later)
    )


def towards(model: Model, found: Found, targets: Sequence[int]) -> Tensor:
    """(target, layer, head): what each head writes towards each token's logit, less the mean logit. No forward."""
    norm, posts = attribution.norms(model)
    u: Any = model.unembedding.weight
    direction = u.detach()[torch.tensor(targets, device=u.device)].float() - attribution.average(
        model
    )
    back = norm.back(direction[:, None], found.final)  # (target, 1, width)
    return torch.stack(
        [found.along(row, back, posts[row]).to(model.device) for row in range(len(model.layers))],
        dim=1,
    )


# ---- one head ----


@dataclass(frozen=True, eq=False)
class HeadReading:
    """What one head does on a prompt."""

    pattern: npt.NDArray[np.float32] | None
    """(query, key) over the last tokens; None where it cannot be read."""
    first: int
    """Which token the pattern begins with."""
    promoted: tuple[tuple[str, float], ...]
    """The tokens whose logit it raises most at the last position, and by how much, norms held."""
    suppressed: tuple[tuple[str, float], ...]
    why_not: str | None


def head(model: Model, reading: Reading, row: int, number: int, count: int = 6) -> HeadReading:
    """The attention pattern of one head, and the tokens it promotes and suppresses at the end of the prompt. One forward, for the pattern."""
    pattern, first, why_not = None, max(0, len(reading.ids) - SHOWN), reading.why_not
    try:
        seen = attention.weights(model, reading.ids, row)[0, number]  # (query, key)
        pattern = seen[first:, first:].cpu().numpy()
    except (ValueError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        why_not = str(error)
    promoted, suppressed = (
        ((), ()) if reading.found is None else _says(model, reading.found, row, number, count)
    )
    return HeadReading(pattern, first, promoted, suppressed, why_not)


def _says(
    model: Model, found: Found, row: int, number: int, count: int
) -> tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]:
    """The logits that one head alone adds most to, and takes most from, less their mean."""
    layer = model.layers[row]
    norm, posts = attribution.norms(model)
    with hooks.scoring(model):
        u = weights.unembedding(model)
        z = found.z[row][0, -1, number].float()  # (head_dim,)
        written = z @ layer.w_o().detach()[number].float().to(z.device)  # (width,)
        post = posts[row]
        through = written if post is None else post.ahead(written, found.written[row][0, -1])
        ready = norm.ahead(through.to(found.final.device), found.final[0, -1]).to(u.device)
        logits = (u.to(ready.dtype) @ ready).float()
        logits = logits - logits.mean()
        most, least = logits.topk(count), logits.topk(count, largest=False)
    text = model.tokenizer.decode
    both = tuple(
        tuple((text([i]), v) for i, v in zip(side.indices.tolist(), side.values.tolist()))
        for side in (most, least)
    )
    return both[0], both[1]


# ---- greedy text ----


def greedy(model: Model, ids: Sequence[int], gates: Gates, tokens: int = 12) -> list[str]:
    """What the model goes on with under each setting of ``gates`` (setting, layer, head), the likeliest token each time."""
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
            with hooks.unembed_at(model, last):
                logits = model.module(input_ids=step, **cache).logits[:, -1]
            new.append(logits.argmax(-1).to(model.device))
            so_far = torch.cat([so_far, new[-1][:, None]], dim=1)
            step = new[-1][:, None] if grows else so_far
    texts = []
    for row in torch.stack(new, dim=1).tolist():
        texts.append(model.tokenizer.decode(row[: row.index(end)] if end in row else row))
    return texts
