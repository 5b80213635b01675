"""relations: what a head makes of a word, read from its weights alone.

A pair (source, target) is a hit where the target is among the largest entries of
``e W_V W_O U``, with ``e`` the source's embedding. Details:

- *Copying* is any relation that maps each word to itself.
- *Norms*: no gain or scale is folded in, neither of the norm before attention nor of a norm
  behind W_O nor of the final norm. Only the first MLP's own norm is applied.
- *Biases*: b_V passes through W_O with every word that a head reads, so it is part of what
  the head writes and is added, ``(e W_V + b_V) W_O U`` (``bias=False`` leaves it out). The
  bias of W_O belongs to no head, and the unembedding's to no layer: neither is added.
- *Ties*: see :mod:`headwidget.methods.extremes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwidget.methods.extremes import SAMPLE, extremes
from headwidget.models import Layer, Model, hooks, mlp_search, value_search, weights
from headwidget.models.refusals import refuse_classifier, refuse_encoder_decoder
from headwidget.scores.record import Display, Dropped, TaskRecord
from headwidget.scoring.contract import Chunk, Job, Method, Report, TaskReport
from headwidget.scoring.encode import Encoded, EncodedTask
from headwidget.scoring.option_checks import at_least
from headwidget.tasks import Task

FEWEST = 30
"""A relation with fewer pairs is marked unreliable."""
VERY_LARGE = 30e9
"""Models with more weights do without the first MLP."""
THRESHOLD = 0.15
"""A head belongs to a category where one of its relations reaches this, by default."""


@dataclass(frozen=True)
class Relations:
    """Options of ``method="relations"``."""

    k: int | None = None
    """The target must be among so many of the largest entries.

    By default 10 and for copying 1; 25 and 3 for vocabularies above 100 000.
    """
    mlp: bool | None = None
    """Above layer 0, read what layer 0's MLP makes of the embedding.

    By default yes, but for models of more than 30 billion weights.
    """
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


def check_kind(model: Model, method: str = "relations") -> None:
    """Refuse a model that is no decoder."""
    why = "reads what a head makes of a word in one stream of tokens"
    refuse_encoder_decoder(model, method, why)
    refuse_classifier(model, method, why)
    if model.encoder:
        raise ValueError(
            f"{method} reads what a head writes towards the next token, but {model.name} "
            f"({model.family.name}) predicts masked ones."
        )


def check(model: Model) -> None:
    """Relations need the weights of a decoder."""
    check_kind(model)
    weights.unembedding(model)
    for layer in model.layers:
        layer.w_o()
    value_search.find(model)
    for layer in model.layers:
        weights.values(model, layer)


# ---- from words to tokens ----


def encode(tasks: Sequence[Task], model: Model, options: Relations, seed: int) -> list[EncodedTask]:
    """Each relation's pairs as two tokens.

    Pairs of words that are not single tokens behind a space are left out, and so are
    relations of which no pair is left.
    """
    encoded = []
    for task in tasks:
        sources = tokens(model, [example.prompt.strip() for example in task.examples])
        targets = tokens(model, [example.answer.strip() for example in task.examples])
        pairs = [
            Encoded(f"{e.prompt.strip()} → {e.answer.strip()}", (source,), (0,), (target,))
            for e, source, target in zip(task.examples, sources, targets)
            if source is not None and target is not None
        ]
        if pairs:
            encoded.append(EncodedTask(task.name, task.category, tuple(pairs), (), 0))
    if not encoded:
        first = tasks[0].examples[0]
        raise ValueError(
            f"of the {sum(len(task) for task in tasks)} pairs there is none whose two words are "
            f"single tokens of {model.name} behind a space (the first is "
            f"{first.prompt.strip()!r} → {first.answer.strip()!r}); relations are read off "
            "single tokens."
        )
    return encoded


def tokens(model: Model, words: list[str]) -> list[int | None]:
    """Each word's token behind a space; None for several tokens or the unknown token."""

    def plain(text: Any) -> Any:
        return model.tokenizer(text, add_special_tokens=False)["input_ids"]

    before = list(plain("a"))
    alone = plain([f" {word}" for word in words])
    behind = plain([f"a {word}" for word in words])
    single: list[int | None] = []
    for word_ids, joint_ids in zip(alone, behind):
        # some tokenizers put a space of their own before a text that stands alone
        follows = list(joint_ids[: len(before)]) == before
        ids = list(joint_ids[len(before) :]) if follows else list(word_ids)
        is_single = (
            len(ids) == 1 and ids[0] != model.tokenizer.unk_token_id and ids[0] < model.vocabulary
        )
        single.append(ids[0] if is_single else None)
    return single


def rule(options: Relations, vocabulary: int, pairs: Sequence[tuple[int, int]]) -> int:
    """k: as given, or by the rule of Elhelo and Geva (2025)."""
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
        value_search.find(model)
        if with_mlp(model, options):
            mlp_search.find(model)
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
        embedded = self.above if layer.index else self.at_first
        w_o = layer.w_o().detach().to(self.u.device)
        read = weights.values(self.model, layer)
        largest = max(SAMPLE, self.u.shape[1], layer.heads * layer.head_dim)
        at_once = max(1, self.options.chunk // largest)
        hits = []
        for pairs in torch.split(torch.arange(len(self.source)), at_once):
            e = embedded[self.source[pairs].to(embedded.device)].to(read.weight.device)
            x = read.of(e, bias=self.options.bias).to(self.u.device)  # (head, pair, head_dim)
            there = pairs.to(self.u.device)
            targets, k = self.target[there], self.k[there]
            hits.append(torch.stack(extremes(x, w_o, self.u, targets, k, self.options.chunk)))
        return torch.cat(hits, dim=2).transpose(1, 2)


def with_mlp(model: Model, options: Relations) -> bool:
    """Is the first MLP applied?"""
    if options.mlp is not None:
        return options.mlp
    count: int = sum(p.numel() for p in model.module.parameters())
    return count <= VERY_LARGE


def run(job: Job) -> Iterator[Chunk | Report]:
    """A chunk a relation for every layer: all relations share the cost of a layer's weights.

    Ctrl-C before the last layer leaves no pair scored at all layers.
    """
    model, options = job.model, job.options
    pairs: list[tuple[int, int]] = []  # of all relations, one after the other
    k_of: dict[str, int] = {}
    k_of_pair: list[int] = []
    with hooks.scoring(model):
        vocabulary = len(weights.unembedding(model))
        for task in job.tasks:
            task_pairs = [(e.ids[0], e.answer[0]) for e in task.examples]
            k_of[task.name] = rule(options, vocabulary, task_pairs)
            pairs += task_pairs
            k_of_pair += [k_of[task.name]] * len(task_pairs)
        everything = Pairs.of(model, pairs, k_of_pair, options)
    yield _report(job, k_of)
    landed = [job.landed.get(task.name) for task in job.tasks]
    for row, layer in enumerate(model.layers):
        if all(rows is not None and rows[:, row].all() for rows in landed):
            job.note(f"layer {layer.index}", len(pairs) / len(model.layers))
            continue
        with hooks.scoring(model):
            hits = everything.hits(layer).float().cpu().numpy()  # (2, pair, head)
        start = 0
        for task in job.tasks:
            end = start + len(task.examples)
            hit, suppressed = hits[:, start:end, None]  # (pair, 1, head)
            runs, rows = tuple(range(end - start)), slice(row, row + 1)
            yield Chunk(task.name, runs, rows, hit, aspects={"suppression": suppressed})
            start = end
        job.note(f"layer {layer.index}", start / len(model.layers))


def _report(job: Job, k_of: dict[str, int]) -> Report:
    """What was left out and what is unreliable, relation by relation."""
    counts = {task.name: len(task.examples) for task in job.tasks}
    several = len({task.category or task.name for task in job.tasks}) > 1
    display = Display(threshold=THRESHOLD, view="categories" if several else None)
    left_out, tasks = {}, {}
    for source in job.sources:
        count, total = counts.get(source.name, 0), len(source)
        if count:
            tasks[source.name] = TaskReport(record=_record(k_of[source.name], count, total))
        else:
            left_out[source.name] = f"none of its {total} pairs are single tokens"
    record: dict[str, Any] = {
        "mlp": with_mlp(job.model, job.options),
        "display": display.to_json(),
    }
    if left_out:
        record["left_out"] = left_out
    return Report(tasks, record)


def _record(k: int, count: int, total: int) -> dict[str, Any]:
    """The record of a relation of which ``count`` of ``total`` pairs are scored."""
    dropped, warning = [], None
    if count < total:
        why = "source or target is not a single token behind a space"
        dropped.append(Dropped(why=why, count=total - count))
    if count < FEWEST:
        warning = (
            f"Only {count} of its {total} pairs are single tokens of this model: with fewer than "
            f"{FEWEST} pairs a relation's scores are unreliable."
        )
    record = TaskRecord(k=k, counted="pair", pairs=total, dropped=tuple(dropped), warning=warning)
    return record.to_json()


METHOD = Method(
    "relations",
    run,
    Relations,
    signed=False,
    together=True,
    skips_done=True,
    check=check,
    encode=encode,
    runs_model=False,
    steps=lambda tasks, _: (sum(len(task.examples) for task in tasks), "pairs"),
    about="The share of a relation's pairs whose target the head's weights promote.",
    aspects={
        "suppression": "The share of a relation's pairs whose target the head's weights suppress."
    },
    explained=(
        "A word's embedding goes through the head's value and output matrices onto the vocabulary. "
        "A pair of words counts where its second word is among the tokens that come out strongest; "
        "the score is the share of pairs that count.",
        "It is read from the weights alone: what the head would do with the word if it attended to "
        "it, not whether it ever does.",
        "A relation with fewer than 30 pairs is unreliable, and is marked so.",
    ),
    paper=("Elhelo and Geva 2025", "https://arxiv.org/abs/2412.11965"),
)
