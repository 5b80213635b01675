"""What a head does, beyond its score: does it do in prompts what its weights say it would, and which tokens does it change most?

>>> import headwidget as hw
>>> capitals = hw.Relation("capitals", [("France", "Paris"), ("Japan", "Tokyo"), ("Italy", "Rome")])
>>> hw.relations.dynamic(hw.load(), capitals).scores.values("capitals").shape  # three pairs in four templates
(12, 30, 9)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headwidget.methods import extremes
from headwidget.methods.relations import Relations, check, encode, rule, with_mlp
from headwidget.models import Layer, Model, hooks, weights
from headwidget.scores import HeadScores
from headwidget.scoring import encode as prompts
from headwidget.scoring.batch import Batch, batches, forward
from headwidget.tasks import Task

if TYPE_CHECKING:
    import pandas

TEMPLATES = (
    "This is a document about {}",
    "I have been thinking about {}",
    "The title of this page is {}",
    "Today we will talk about {}",
)
"""Prompts that end in the source; the first is METHODS' own."""
PROMPTS = 256
"""How many of these short prompts run together by default: what a layer's weights cost is paid once a batch."""


# ---- the dynamic check ----


@dataclass(frozen=True)
class Dynamic:
    """A relation as heads do it in prompts, beside what their weights say."""

    scores: HeadScores
    """``method="relations (dynamic)"``: a run a prompt."""
    static: HeadScores
    """``method="relations"`` of the same pairs."""
    correlation: float | None
    """Of the two mean scores over all heads (Pearson's r); None where one of them is the same for every head."""

    def __repr__(self) -> str:
        (name,) = self.scores.tasks
        heads, said = (
            self.scores.shape[0] * self.scores.shape[1],
            "not defined: one of them is the same for every head",
        )
        if self.correlation is not None:
            said = f"{self.correlation:.2f} over {heads} heads"
        return f"Dynamic({name!r}: {len(self.static.runs(name))} pairs, {len(self.scores.runs(name))} prompts; correlation with the static score {said})"


def dynamic(
    model: Model,
    relation: Task,
    templates: str | Iterable[str] | None = None,
    *,
    k: int | None = None,
    mlp: bool | None = None,
    batch_size: int | None = None,
) -> Dynamic:
    """The same test as ``method="relations"`` on what heads really say: ``z W_O U`` at the last position of prompts that end in the source.

    ``templates`` are texts with ``{}`` for the source at their end; by default four, the first of them "This is a document about {}".
    ``k`` and ``mlp`` are the method's options. b_V is part of z, as it is of the static score.
    """
    listed = _templates(templates)
    if not isinstance(model, Model) or not isinstance(relation, Task):
        raise TypeError(
            f"dynamic takes a model from hw.load and one hw.Relation; got a {type(model).__name__} and a {type(relation).__name__}."
        )
    check(model)
    options = Relations(k=k, mlp=mlp)
    (task,) = encode([relation], model, options, 0)
    pairs = [(e.ids[0], e.answer[0]) for e in task.examples]
    words = [e.label.split(" → ")[0] for e in task.examples]
    asked = [template.format(word) for template in listed for word in words]
    encoded = prompts.encode(Task(relation.name, [(text, " x") for text in asked]), model)
    u = weights.unembedding(model)
    targets = torch.tensor([target for _, target in pairs] * len(listed)).to(u.device)
    least = torch.full((len(targets),), rule(options, len(u), pairs)).to(u.device)
    found = np.zeros((2, len(asked), *model.shape), np.float32)
    for batch in batches(encoded.examples, model, batch_size or PROMPTS):
        own = torch.tensor(batch.runs).to(u.device)
        last: list[Tensor] = []
        with hooks.scoring(model):

            def take(_: int, z: Tensor, batch: Batch = batch, last: list[Tensor] = last) -> None:
                last.append(hooks.take_positions(z, batch.at)[:, 0])

            with hooks.read(model, take):
                forward(model, batch)
            for row, (layer, z) in enumerate(
                zip(model.layers, last)
            ):  # z: (prompt, head, head_dim)
                x = z.transpose(0, 1).to(u.device, weights.working(z.dtype))
                both = extremes.extremes(
                    x, layer.w_o().detach().to(u.device), u, targets[own], least[own], options.chunk
                )
                found[:, list(batch.runs), row] = torch.stack(both).transpose(1, 2).cpu().numpy()
    from headwidget.scoring.score import score

    static = score(model, relation, "relations", progress=False, k=k, mlp=mlp)
    scores = HeadScores.from_arrays(
        {relation.name: found[0]},
        method="relations (dynamic)",
        runs={
            relation.name: [
                f"{text} → {label.split(' → ')[1]}"
                for text, label in zip(asked, [e.label for e in task.examples] * len(listed))
            ]
        },
        layers=static.layers,
        categories=dict(static.categories),
        meta={**static.meta, "templates": list(listed)},
        aspects={"suppression": {relation.name: found[1]}},
    )
    return Dynamic(scores, static, _correlation(scores.reduce()[0], static.reduce()[0]))


def _templates(given: str | Iterable[str] | None) -> tuple[str, ...]:
    listed = TEMPLATES if given is None else (given,) if isinstance(given, str) else tuple(given)
    for template in listed:
        if (
            not isinstance(template, str)
            or not template.endswith("{}")
            or template.count("{") != 1
            or template.count("}") != 1
        ):
            raise ValueError(
                f"a template is text that ends in the source, such as {TEMPLATES[0]!r}; got {template!r}."
            )
    if not listed:
        raise ValueError(
            f"no templates: give texts that end in the source, such as {TEMPLATES[0]!r}, or None for our own."
        )
    return listed


def _correlation(a: Any, b: Any) -> float | None:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


# ---- salient operations ----

TOKENS = 2048
"""How many tokens of the vocabulary are looked at a time."""
MOST_KEPT = 2**27
"""How many numbers are kept for the next call: 512 MB in float32; the embedded model's vocabulary takes a fifth of it."""


def salient(
    model: Model, layer: int, head: int, tokens: int = 10, to: int = 5, *, mlp: bool | None = None
) -> pandas.DataFrame:
    """The tokens that a head's ``W_V W_O`` amplifies most, ``|e W_V W_O| / |e|``, and what it maps each to: the largest entries of ``e W_V W_O U``.

    ``layer`` is the model's own number. ``e`` is what ``method="relations"`` reads: above layer 0 what layer 0's MLP makes of the embedding, unless
    ``mlp=False``. The first call for a model sends its whole vocabulary through that MLP, which takes seconds (:func:`warm` does it ahead); the next ones
    find it done. Biases are left out: they are the same for every token.

    >>> import headwidget as hw
    >>> list(hw.salient(hw.load(), 0, 3, tokens=3).columns)
    ['token', 'amplified', 'maps to']
    """
    import pandas as pd

    where = _layer(model, layer, head)
    for name, count in (("tokens", tokens), ("to", to)):
        if type(count) is not int or not 0 < count <= model.vocabulary:
            raise ValueError(f"{name} is a number of tokens, 1 or more; got {count!r}.")
    through = bool(where.index) and with_mlp(model, Relations(mlp=mlp))
    with hooks.scoring(model):
        u, read = weights.unembedding(model), weights.values(model, where)
        w_v = read.weight[head // read.repeat].to(weights.working(model.dtype))  # (width, head_dim)
        w_o = where.w_o()[head].detach().to(w_v)  # (head_dim, width)
        gram = w_o @ w_o.T  # |x W_O| by W_O's Gram matrix, never in full width
        gains = torch.cat([_gain(e.to(w_v), w_v, gram) for e in _vocabulary(model, mlp=through)])
        amplified, ids = gains.topk(tokens)
        e = weights.embedded(model, ids)
        e = (weights.first_mlp(model, e) if through else e).to(w_v)
        mapped = _largest((e @ w_v @ w_o).to(u.device), u, to)
    rows = [
        (_shown(model, token), round(gain, 3), " ".join(_shown(model, one) for one in there))
        for token, gain, there in zip(ids.tolist(), amplified.tolist(), mapped)
    ]
    return pd.DataFrame(rows, columns=["token", "amplified", "maps to"])


def _gain(e: Tensor, w_v: Tensor, gram: Tensor) -> Tensor:
    """How much longer a head makes each embedding, (token,)."""
    x, size = e @ w_v, e.norm(dim=1)
    return torch.where(size > 0, ((x @ gram) * x).sum(1).clamp(min=0).sqrt() / size, 0.0)


class _Vocabulary:
    """What the first MLP makes of a model's whole vocabulary: pieces, each made once, by whichever thread first asks for it."""

    def __init__(self, model: Model, weights_now: str) -> None:
        self.weights = weights_now
        """The fingerprint of the weights it is made with."""
        self.ids = torch.split(torch.arange(model.vocabulary), TOKENS)
        self.made: list[Tensor | None] = [None] * len(self.ids)
        self.making = threading.Lock()

    def piece(self, model: Model, number: int) -> Tensor:
        """(token, width)."""
        if (ready := self.made[number]) is not None:
            return ready
        with self.making:  # another thread may have made it meanwhile
            found = self.made[number]
            if found is None:
                found = self.made[number] = weights.first_mlp(
                    model, weights.embedded(model, self.ids[number])
                )
        return found


_kept: weakref.WeakKeyDictionary[Model, _Vocabulary] = weakref.WeakKeyDictionary()
"""Each model's vocabulary behind its first MLP, as far as it is made."""
_keeping = threading.Lock()


def _kept_for(model: Model) -> _Vocabulary | None:
    """What is kept for the model's weights as they are now, to be filled; None where it is too large to keep."""
    if model.vocabulary * weights.unembedding(model).shape[1] > MOST_KEPT:
        return None
    now = model.fingerprint()
    with _keeping:
        if model not in _kept or _kept[model].weights != now:
            _kept[model] = _Vocabulary(model, now)
        return _kept[model]


def _vocabulary(model: Model, *, mlp: bool) -> Iterator[Tensor]:
    """What heads read of every token, (token, width), some at a time; kept behind the MLP where it is not too large."""
    kept = _kept_for(model) if mlp else None
    if kept is not None:
        yield from (kept.piece(model, number) for number in range(len(kept.ids)))
        return
    for ids in torch.split(torch.arange(model.vocabulary), TOKENS):
        e = weights.embedded(model, ids)
        yield weights.first_mlp(model, e) if mlp else e


def warm(model: Model, stop: threading.Event | None = None) -> bool:
    """Do ahead, piece by piece, what the first :func:`salient` call for a model has to do: send its vocabulary through the first MLP.

    For a thread in the background: it gives up between two pieces when ``stop`` is set, and what is made stays; a ``salient`` that runs at the same time
    uses what is made and makes the rest with it. The model's own state is not touched, so one that is in training mode is left to ``salient``,
    as is a vocabulary that is too large to keep. True when there is nothing left to do.

    >>> import headwidget as hw, threading
    >>> model, stop = hw.load(), threading.Event()
    >>> thread = threading.Thread(target=hw.relations.warm, args=(model, stop))
    >>> thread.start()
    >>> stop.set()
    >>> thread.join()
    """
    if not isinstance(model, Model):
        raise TypeError(f"warm takes what hw.load gives; got a {type(model).__name__}.")
    if not with_mlp(model, Relations()) or (kept := _kept_for(model)) is None:
        return True
    for number in range(len(kept.ids)):
        if any(m.training for m in model.blocks[0].modules()):
            return True
        if stop is not None and stop.is_set():
            return False
        with torch.no_grad():  # not inference mode: weights that accelerate puts back inside it could not be trained afterwards
            kept.piece(model, number)
    return True


def _largest(written: Tensor, u: Tensor, count: int) -> list[list[int]]:
    """The tokens with the largest logits of each row, the vocabulary in chunks."""
    values, ids = (
        written.new_empty(len(written), 0),
        torch.empty(len(written), 0, dtype=torch.long, device=written.device),
    )
    for start in range(0, len(u), TOKENS):
        logits = written @ u[start : start + TOKENS].to(written.dtype).T
        best = torch.cat([values, logits], dim=1).topk(
            min(count, values.shape[1] + logits.shape[1]), dim=1
        )
        every = torch.cat(
            [
                ids,
                torch.arange(start, start + logits.shape[1], device=ids.device).expand(
                    len(ids), -1
                ),
            ],
            dim=1,
        )
        values, ids = best.values, every.gather(1, best.indices)
    found: list[list[int]] = ids.tolist()
    return found


def _layer(model: Model, layer: int, head: int) -> Layer:
    """The layer that is meant, or a sentence."""
    if not isinstance(model, Model):
        raise TypeError(f"salient takes what hw.load gives; got a {type(model).__name__}.")
    found = next((one for one in model.layers if one.index == layer), None)
    if found is None or type(head) is not int or not 0 <= head < model.n_heads:
        have = f"layers {model.layers[0].index} to {model.layers[-1].index}, heads 0 to {model.n_heads - 1}"
        raise ValueError(
            f"there is no head {head!r} in layer {layer!r} of {model.name}: it has {have}."
        )
    return found


def _shown(model: Model, token: int) -> str:
    """A token as people read it: a leading space is left out, other white space is written as Python does."""
    text: str = model.tokenizer.decode([token])
    plain = text[1:] if text[:1] == " " and len(text) > 1 else text
    shown = (
        plain
        if plain.isprintable() and plain.strip()
        else repr(text)[1:-1]
        if text.strip(" ")
        else "␣" * len(text)
    )
    return shown if len(shown) <= 16 else shown[:15] + "…"
