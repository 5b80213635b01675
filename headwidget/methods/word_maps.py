"""What a head's weights do to words, in prompts and over the vocabulary (``hw.relations``).

``dynamic`` checks that heads do in prompts what their weights say; ``salient`` lists the tokens
that a head changes most.

>>> import headwidget as hw
>>> pairs = [("France", "Paris"), ("Japan", "Tokyo"), ("Italy", "Rome")]
>>> found = hw.relations.dynamic(hw.load(), hw.Relation("capitals", pairs))
>>> found.scores.values("capitals").shape  # three pairs in four templates
(12, 30, 9)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.methods import extremes
from headwidget.methods.relations import Relations, check, check_kind, encode, rule, with_mlp
from headwidget.models import Layer, Model, hooks, mlp_search, value_search, weights
from headwidget.scores import HeadScores
from headwidget.scores.record import tells_weights
from headwidget.scoring import trust
from headwidget.scoring.batch import Batch, batches, forward
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.encode import encode as encode_prompts
from headwidget.scoring.score import score
from headwidget.tasks import Task

if TYPE_CHECKING:
    import pandas

TEMPLATES = (
    "This is a document about {}",
    "I have been thinking about {}",
    "The title of this page is {}",
    "Today we will talk about {}",
)
"""Prompts that end in the source; the first is that of Elhelo and Geva (2025)."""
PROMPTS = 256
"""How many of these short prompts run together by default."""


# ---- the dynamic check ----


@dataclass(frozen=True)
class Dynamic:
    """A relation as heads do it in prompts, beside what their weights say."""

    scores: HeadScores
    """``method="relations (dynamic)"``: a run a prompt."""
    static: HeadScores
    """``method="relations"`` of the same pairs."""
    correlation: float | None
    """Pearson's r of the two mean scores over all heads; None where one does not vary."""

    def __repr__(self) -> str:
        (name,) = self.scores.tasks
        pairs, prompts = len(self.static.runs(name)), len(self.scores.runs(name))
        if self.correlation is None:
            correlation = "not defined: one of them is the same for every head"
        else:
            heads = self.scores.shape[0] * self.scores.shape[1]
            correlation = f"{self.correlation:.2f} over {heads} heads"
        return (
            f"Dynamic({name!r}: {pairs} pairs, {prompts} prompts; "
            f"correlation with the static score {correlation})"
        )


def dynamic(
    model: Model,
    relation: Task,
    templates: str | Iterable[str] | None = None,
    *,
    k: int | None = None,
    mlp: bool | None = None,
    batch_size: int | None = None,
) -> Dynamic:
    """Test in prompts what ``method="relations"`` reads from weights.

    The hits are counted on ``z W_O U`` at the last position of prompts that end in the source.
    ``templates`` are texts with ``{}`` for the source at their end; by default four, the first
    of them "This is a document about {}". ``k`` and ``mlp`` are the method's options. b_V is
    part of z, as it is of the static score.
    """
    texts = _templates(templates)
    if not isinstance(model, Model) or not isinstance(relation, Task):
        raise TypeError(
            "dynamic takes a model from hw.load and one hw.Relation; "
            f"got a {type(model).__name__} and a {type(relation).__name__}."
        )
    check(model)
    options = Relations(k=k, mlp=mlp)
    (task,) = encode([relation], model, options, 0)
    words = [example.label.split(" → ") for example in task.examples]  # source, target
    prompts, labels = [], []
    for template in texts:
        for source, target in words:
            prompts.append(template.format(source))
            labels.append(f"{prompts[-1]} → {target}")
    hits = _prompt_hits(model, task, prompts, options, batch_size)
    static = score(model, relation, "relations", progress=False, k=k, mlp=mlp)
    scores = HeadScores.from_arrays(
        {relation.name: hits[0]},
        method="relations (dynamic)",
        runs={relation.name: labels},
        layers=static.layers,
        categories=dict(static.categories),
        meta=replace(static.record, templates=tuple(texts)),
        aspects={"suppression": {relation.name: hits[1]}},
    )
    return Dynamic(scores, static, _correlation(scores.reduce()[0], static.reduce()[0]))


def _prompt_hits(
    model: Model,
    task: EncodedTask,
    prompts: Sequence[str],
    options: Relations,
    batch_size: int | None,
) -> npt.NDArray[np.float32]:
    """Relation and suppression, (2, prompt, layer, head).

    ``prompts`` holds every pair of the task once for each template, pairs in order.
    """
    encoded = encode_prompts(Task(task.name, [(text, " x") for text in prompts]), model)
    trust.check(model, encoded.examples)
    pairs = [(e.ids[0], e.answer[0]) for e in task.examples]
    u = weights.unembedding(model)
    targets = torch.tensor([target for _, target in pairs] * (len(prompts) // len(pairs)))
    targets = targets.to(u.device)
    k = torch.full((len(targets),), rule(options, len(u), pairs)).to(u.device)
    hits = np.zeros((2, len(prompts), *model.shape), np.float32)
    for batch in batches(encoded.examples, model, batch_size or PROMPTS):
        runs = torch.tensor(batch.runs).to(u.device)
        last: list[Tensor] = []  # a layer each, (prompt, head, head_dim)

        def take(_: int, z: Tensor, batch: Batch = batch, last: list[Tensor] = last) -> None:
            last.append(hooks.take_positions(z, batch.at)[:, 0])

        with hooks.scoring(model):
            with hooks.read(model, take):
                forward(model, batch)
            for row, (layer, z) in enumerate(zip(model.layers, last)):
                x = z.transpose(0, 1).to(u.device, weights.working(z.dtype))
                w_o = layer.w_o().detach().to(u.device)
                both = extremes.extremes(x, w_o, u, targets[runs], k[runs], options.chunk)
                hits[:, list(batch.runs), row] = torch.stack(both).transpose(1, 2).cpu().numpy()
    return hits


def _templates(templates: str | Iterable[str] | None) -> tuple[str, ...]:
    """The templates that were asked for, checked; by default headwidget's own."""
    if templates is None:
        return TEMPLATES
    texts = (templates,) if isinstance(templates, str) else tuple(templates)
    for text in texts:
        braces = (text.count("{"), text.count("}")) if isinstance(text, str) else None
        if braces != (1, 1) or not text.endswith("{}"):
            raise ValueError(
                f"a template is text that ends in the source, such as {TEMPLATES[0]!r}; "
                f"got {text!r}."
            )
    if not texts:
        raise ValueError(
            f"no templates: give texts that end in the source, such as {TEMPLATES[0]!r}, "
            "or None for our own."
        )
    return texts


def _correlation(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float | None:
    """Pearson's r; None where one of them does not vary."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


# ---- salient operations ----

TOKENS = 2048
"""How many tokens of the vocabulary are read at a time."""
MOST_KEPT = 2**27
"""How many numbers are kept for the next call: 512 MB in float32.

The embedded model's vocabulary takes a fifth of it.
"""


def salient(
    model: Model, layer: int, head: int, tokens: int = 10, to: int = 5, *, mlp: bool | None = None
) -> pandas.DataFrame:
    """The tokens that a head amplifies most, and the tokens that it maps each to.

    It amplifies by ``|e W_V W_O| / |e|``, and maps to the largest entries of ``e W_V W_O U``.
    ``layer`` is the model's own number. ``e`` is what ``method="relations"`` reads: above
    layer 0 what layer 0's MLP makes of the embedding, unless ``mlp=False``. The first call for
    a model sends its whole vocabulary through that MLP, which takes seconds; :func:`warm` does
    it ahead, and the result is kept. Biases are left out: they are the same for every token.

    >>> import headwidget as hw
    >>> list(hw.salient(hw.load(), 0, 3, tokens=3).columns)
    ['token', 'amplified', 'maps to']
    """
    import pandas as pd

    where = _layer(model, layer, head)
    check_kind(model, "hw.salient")
    for name, count in (("tokens", tokens), ("to", to)):
        if type(count) is not int or not 0 < count <= model.vocabulary:
            raise ValueError(f"{name} is a number of tokens, 1 or more; got {count!r}.")
    through = bool(where.index) and with_mlp(model, Relations(mlp=mlp))
    value_search.find(model)
    if through:
        mlp_search.find(model)
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
    rows = []
    for token, gain, others in zip(ids.tolist(), amplified.tolist(), mapped):
        maps_to = " ".join(_shown(model, other) for other in others)
        rows.append((_shown(model, token), round(gain, 3), maps_to))
    return pd.DataFrame(rows, columns=["token", "amplified", "maps to"])


def _gain(e: Tensor, w_v: Tensor, gram: Tensor) -> Tensor:
    """How much longer a head makes each embedding, (token,)."""
    x, size = e @ w_v, e.norm(dim=1)
    return torch.where(size > 0, ((x @ gram) * x).sum(1).clamp(min=0).sqrt() / size, 0.0)


class _Vocabulary:
    """What the first MLP makes of a model's whole vocabulary, in pieces.

    Each piece is computed once, by whichever thread first asks for it.
    """

    def __init__(self, model: Model, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        """Of the weights that the pieces are computed with."""
        self.ids = torch.split(torch.arange(model.vocabulary), TOKENS)
        self._pieces: list[Tensor | None] = [None] * len(self.ids)
        self._lock = threading.Lock()

    def piece(self, model: Model, number: int) -> Tensor:
        """(token, width)."""
        piece = self._pieces[number]
        if piece is not None:
            return piece
        with self._lock:
            piece = self._pieces[number]  # another thread may have computed it meanwhile
            if piece is None:
                piece = weights.first_mlp(model, weights.embedded(model, self.ids[number]))
                self._pieces[number] = piece
        return piece


_kept: weakref.WeakKeyDictionary[Model, _Vocabulary] = weakref.WeakKeyDictionary()
"""Each model's vocabulary behind its first MLP, as far as it is computed."""
_kept_lock = threading.Lock()


def _kept_for(model: Model) -> _Vocabulary | None:
    """What is kept for the model's weights as they are now; None where it is too large."""
    if model.vocabulary * weights.unembedding(model).shape[1] > MOST_KEPT:
        return None
    fingerprint = model.fingerprint()
    if not tells_weights(fingerprint):
        return None
    with _kept_lock:
        if model not in _kept or _kept[model].fingerprint != fingerprint:
            _kept[model] = _Vocabulary(model, fingerprint)
        return _kept[model]


def _vocabulary(model: Model, *, mlp: bool) -> Iterator[Tensor]:
    """What heads read of every token, (token, width), a piece at a time."""
    kept = _kept_for(model) if mlp else None
    if kept is not None:
        yield from (kept.piece(model, number) for number in range(len(kept.ids)))
        return
    for ids in torch.split(torch.arange(model.vocabulary), TOKENS):
        e = weights.embedded(model, ids)
        yield weights.first_mlp(model, e) if mlp else e


def warm(model: Model, stop: threading.Event | None = None) -> bool:
    """Compute ahead, piece by piece, what the first :func:`salient` call for a model needs.

    For a thread in the background: it ends between two pieces when ``stop`` is set, and the
    pieces are kept; a ``salient`` that runs at the same time shares them. The model's own
    state is not touched: a model in training mode is left to ``salient``, and so is a
    vocabulary that is too large to keep. True when there is nothing left to do.

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
    if any(m.training for m in model.blocks[0].modules()):
        return True
    try:
        mlp_search.find(model)
    except ValueError:
        return True  # salient says why
    for number in range(len(kept.ids)):
        if any(m.training for m in model.blocks[0].modules()):
            return True
        if stop is not None and stop.is_set():
            return False
        # not inference mode: weights that accelerate puts back there could not be trained
        with torch.no_grad():
            kept.piece(model, number)
    return True


def _largest(written: Tensor, u: Tensor, count: int) -> list[list[int]]:
    """The tokens with the largest logits of each row, the vocabulary in chunks."""
    device = written.device
    values = written.new_empty(len(written), 0)
    ids = torch.empty(len(written), 0, dtype=torch.long, device=device)
    for start in range(0, len(u), TOKENS):
        logits = written @ u[start : start + TOKENS].to(written.dtype).T
        tokens = torch.arange(start, start + logits.shape[1], device=device)
        candidates = torch.cat([values, logits], dim=1)
        candidate_ids = torch.cat([ids, tokens.expand(len(ids), -1)], dim=1)
        best = candidates.topk(min(count, candidates.shape[1]), dim=1)
        values, ids = best.values, candidate_ids.gather(1, best.indices)
    rows: list[list[int]] = ids.tolist()
    return rows


def _layer(model: Model, layer: int, head: int) -> Layer:
    """The layer with this number, or a sentence."""
    if not isinstance(model, Model):
        raise TypeError(f"salient takes what hw.load gives; got a {type(model).__name__}.")
    is_head = type(head) is int and 0 <= head < model.n_heads
    for candidate in model.layers:
        if candidate.index == layer and is_head:
            return candidate
    first, last = model.layers[0].index, model.layers[-1].index
    raise ValueError(
        f"there is no head {head!r} in layer {layer!r} of {model.name}: it has layers {first} "
        f"to {last}, heads 0 to {model.n_heads - 1}."
    )


def _shown(model: Model, token: int) -> str:
    """A token as people read it, without a leading space and shortened.

    Other white space is written as Python writes it.
    """
    text: str = model.tokenizer.decode([token])
    shown = text[1:] if text[:1] == " " and len(text) > 1 else text
    if not text.strip(" "):
        shown = "␣" * len(text)
    elif not shown.isprintable() or not shown.strip():
        shown = repr(text)[1:-1]
    return shown if len(shown) <= 16 else shown[:15] + "…"
