"""relations: what a head makes of a word, read from its weights alone: is the target among the largest entries of ``e W_V W_O U``?

Where METHODS leaves room. *Copying* is any relation that maps each word to itself. *Norms*: no gain or scale is folded in, neither of the norm before
attention nor of a norm behind W_O nor of the final norm; METHODS has ``e W_V W_O U`` and nothing else (the first MLP's own norm is applied, as it says).
*Biases*: b_V passes through W_O with every word a head reads, so it is part of what the head writes and is added, ``(e W_V + b_V) W_O U``
(``bias=False`` leaves it out); the bias of W_O belongs to no head, and the unembedding's to no layer: neither is added. *Ties*: see :mod:`.ranks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwidget.methods.extremes import SAMPLE, extremes
from headwidget.models import Layer, Model, hooks, weights
from headwidget.scoring.checks import at_least
from headwidget.scoring.contract import Chunk, Method, Together, alone
from headwidget.scoring.encode import Encoded, EncodedTask
from headwidget.tasks import Task

FEWEST = 30
"""A relation with fewer pairs is marked unreliable."""
VERY_LARGE = 30e9
"""Models with more weights do without the first MLP."""
THRESHOLD = 0.15
"""A head belongs to a category where a relation of it reaches this, to start with."""


@dataclass(frozen=True)
class Relations:
    """Options of ``method="relations"``."""

    k: int | None = None
    """Among how many of the largest entries the target must be. By default 10 and for copying 1; 25 and 3 for vocabularies above 100 000."""
    mlp: bool | None = None
    """Above layer 0, read what layer 0's MLP makes of the embedding; by default yes, but for models of more than 30 billion weights."""
    bias: bool = True
    """Add the value projection's bias, where there is one, to what a head reads."""
    chunk: int = 2**24
    """How many numbers are held at a time, about: 64 MB in float32."""

    def __post_init__(self) -> None:
        if self.k is not None:
            at_least("k", self.k, 1)
        at_least("chunk", self.chunk, 1)
        if self.mlp is not None and not isinstance(self.mlp, bool):
            raise ValueError(f"mlp must be True, False or None to choose; got {self.mlp!r}.")
        if not isinstance(self.bias, bool):
            raise ValueError(f"bias must be True or False; got {self.bias!r}.")


def check(model: Model) -> None:
    """Relations need the weights of a decoder."""
    if model.encoder:
        raise ValueError(
            f"relations reads what a head writes towards the next token, but {model.name} ({model.family.name}) predicts masked ones."
        )
    weights.unembedding(model)
    for layer in model.layers:
        layer.w_o()
        weights.values(model, layer)


# ---- from words to tokens ----


def encode(tasks: Sequence[Task], model: Model, options: Relations, seed: int) -> list[EncodedTask]:
    """Each relation's pairs as two tokens; pairs of words that are not one token behind a space are left out, and relations that none are left of."""
    found = []
    for task in tasks:
        sources, targets = (
            tokens(model, [word.strip() for word in words])
            for words in zip(*((e.prompt, e.answer) for e in task.examples))
        )
        kept = [
            Encoded(f"{e.prompt.strip()} → {e.answer.strip()}", (source,), (0,), (target,))
            for e, source, target in zip(task.examples, sources, targets)
            if source is not None and target is not None
        ]
        if kept:
            found.append(EncodedTask(task.name, task.category, tuple(kept), (), 0))
    if not found:
        first = tasks[0].examples[0]
        raise ValueError(
            f"of the {sum(len(task) for task in tasks)} pairs there is none whose two words are single tokens of {model.name} behind a space "
            f"(the first is {first.prompt.strip()!r} → {first.answer.strip()!r}); relations are read off single tokens."
        )
    return found


def tokens(model: Model, words: list[str]) -> list[int | None]:
    """Each word's token behind a space; None where it is not just one, or one that stands for any unknown word."""
    before = list(model.tokenizer("a", add_special_tokens=False)["input_ids"])
    alone = model.tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    behind = model.tokenizer([f"a {word}" for word in words], add_special_tokens=False)["input_ids"]
    found: list[int | None] = []
    for own, both in zip(
        alone, behind
    ):  # some tokenizers put a space of their own before a text that stands alone
        ids = list(both[len(before) :]) if list(both[: len(before)]) == before else list(own)
        known = (
            len(ids) == 1 and ids[0] != model.tokenizer.unk_token_id and ids[0] < model.vocabulary
        )
        found.append(ids[0] if known else None)
    return found


def rule(options: Relations, vocabulary: int, pairs: Sequence[tuple[int, int]]) -> int:
    """k: as given, or by the published rule."""
    if options.k is not None:
        return options.k
    copying = all(source == target for source, target in pairs)
    return (3 if copying else 25) if vocabulary > 100_000 else (1 if copying else 10)


# ---- from tokens to hits ----


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sources as they are read by the heads, and their targets."""

    model: Model
    u: Tensor  # (vocabulary, width)
    at_first: Tensor  # (source, width): the embedding, which layer 0 reads
    above: Tensor  # (source, width): what the layers above it read
    source: Tensor  # (pair,)
    target: Tensor  # (pair,)
    k: Tensor  # (pair,)
    options: Relations

    @classmethod
    def of(
        cls, model: Model, pairs: Sequence[tuple[int, int]], k: Sequence[int], options: Relations
    ) -> Pairs:
        """Embed every source once."""
        u, dtype = weights.unembedding(model), weights.working(model.dtype)
        sources, place = torch.unique(
            torch.tensor([source for source, _ in pairs]), return_inverse=True
        )
        e = weights.embedded(model, sources)
        above = weights.first_mlp(model, e) if with_mlp(model, options) else e
        targets, counts = torch.tensor([target for _, target in pairs]), torch.tensor(k)
        return cls(
            model,
            u,
            e.to(dtype),
            above.to(dtype),
            place,
            targets.to(u.device),
            counts.to(u.device),
            options,
        )

    def hits(self, layer: Layer) -> Tensor:
        """Relation and suppression for every head of a layer, (2, pair, head)."""
        e, w_o, width = (
            (self.above if layer.index else self.at_first),
            layer.w_o().detach().to(self.u.device),
            self.u.shape[1],
        )
        read = weights.values(self.model, layer)
        most = max(SAMPLE, width, layer.heads * layer.head_dim)
        found = []
        for own in torch.split(torch.arange(len(self.source)), max(1, self.options.chunk // most)):
            x = read.of(
                e[self.source[own].to(e.device)].to(read.weight.device), bias=self.options.bias
            ).to(self.u.device)  # (head, pair, head_dim)
            there = own.to(self.u.device)
            found.append(
                torch.stack(
                    extremes(x, w_o, self.u, self.target[there], self.k[there], self.options.chunk)
                )
            )
        return torch.cat(found, dim=2).transpose(1, 2)


def with_mlp(model: Model, options: Relations) -> bool:
    """Is the first MLP applied?"""
    return (
        sum(p.numel() for p in model.module.parameters()) <= VERY_LARGE
        if options.mlp is None
        else options.mlp
    )


def together(
    model: Model,
    tasks: Sequence[EncodedTask],
    batch_size: int | None,
    options: Relations,
    its: Together,
) -> Iterator[tuple[EncodedTask, Chunk]]:
    """A chunk a relation for every layer: all relations share what a layer's weights cost. Ctrl-C before the last layer leaves nothing whole to keep."""
    pairs = {task.name: [(e.ids[0], e.answer[0]) for e in task.examples] for task in tasks}
    with hooks.scoring(model):
        k = {
            name: rule(options, len(weights.unembedding(model)), own) for name, own in pairs.items()
        }
        everything = Pairs.of(
            model,
            [pair for own in pairs.values() for pair in own],
            [k[name] for name, own in pairs.items() for _ in own],
            options,
        )
    _report(model, tasks, k, options, its)
    for row, layer in enumerate(model.layers):
        with hooks.scoring(model):
            found = everything.hits(layer).float().cpu().numpy()  # (2, pair, head)
        start = 0
        for task in tasks:
            end = start + len(task.examples)
            hit, suppressed = found[:, start:end, None]  # (pair, 1, head)
            yield (
                task,
                Chunk(
                    tuple(range(end - start)),
                    slice(row, row + 1),
                    hit,
                    aspects={"suppression": suppressed},
                ),
            )
            start = end
        its.note(f"layer {layer.index}", start / len(model.layers))


def _report(
    model: Model, tasks: Sequence[EncodedTask], k: dict[str, int], options: Relations, its: Together
) -> None:
    """What was left out and what is unreliable, relation by relation."""
    left = {task.name: len(task.examples) for task in tasks}
    its.meta |= {"mlp": with_mlp(model, options), "display": {"threshold": THRESHOLD}}
    if len({task.category or task.name for task in tasks}) > 1:
        its.meta["display"]["view"] = "categories"
    for source in its.sources:
        count, total = left.get(source.name, 0), len(source)
        if not count:
            its.meta.setdefault("left_out", {})[source.name] = (
                f"none of its {total} pairs are single tokens"
            )
            continue
        known = its.tasks.setdefault(source.name, {})
        known |= {"k": k[source.name], "counted": "pair", "pairs": total}
        if count < total:
            known["dropped"] = [
                {
                    "why": "source or target is not a single token behind a space",
                    "count": total - count,
                }
            ]
        if count < FEWEST:
            known["warning"] = (
                f"Only {count} of its {total} pairs are single tokens of this model: with fewer than {FEWEST} pairs a relation's scores are unreliable."
            )


METHOD = Method(
    "relations",
    alone,
    Relations,
    signed=False,
    check=check,
    together=together,
    encode=encode,
    steps=lambda tasks, _: (sum(len(t.examples) for t in tasks), "pairs"),
)
