"""patterns: where a head looks. Seven known patterns of attention, each a score in [0, 1] a prompt, from the weights of one layer at a time.

A linear pattern is a list of cells (query, key) of a prompt's attention weights: its score is their sum over the number of queries, so 1 means that all
of the weight goes there. Positions count from 0, the tokenizer's own special tokens among them, as the model sees them.

- *Previous token*, *Current token*, *First token* (sink): keys i - 1, i and 0 of every query i >= 2, where these are three tokens, not fewer.
- *Duplicate token*: every other copy of the query's token (earlier ones; an encoder sees later ones too), for queries that have one.
- *Induction*: on random tokens said twice, from each token of the second time to the one that followed it the first time.
- *Retrieval*: from the position that predicts each token of the answer to that token where the prompt holds the answer, for prompts that do.
- *Entropy*, of every query i >= 2, over the log of the positions that it may see (i + 1; in an encoder all of them): 0 is one token, 1 is all evenly. A
  window narrower than the prompt does not lower what it is divided by. Weight that goes to a sink outside the tokens (gpt-oss) is left out first.

The first token never counts as a copy or as what holds an answer: many heads rest on it. A prompt counts for every pattern that it can show, whichever
task it is from; each runs once for all of them. Induction brings its own prompts. A pattern that no prompt shows is left out, and ``meta`` says why.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwidget.models import Model, attention, hooks
from headwidget.scoring.batch import Batch, batches, correct, forward
from headwidget.scoring.checks import at_least
from headwidget.scoring.contract import Chunk, Method, Together, alone, land
from headwidget.scoring.encode import Encoded, EncodedTask
from headwidget.scoring.encode import encode as tokenised
from headwidget.tasks import Task

Cells = list[tuple[int, int]]


@dataclass(frozen=True)
class Patterns:
    """Options of ``method="patterns"``."""

    lengths: Sequence[int] = (16, 32)
    """How many random tokens are said twice, for induction; each length makes prompts of its own."""
    sequences: int = 8
    """How many such prompts of each length; the seed of ``hw.score`` chooses their tokens."""

    def __post_init__(self) -> None:
        given = [self.lengths] if isinstance(self.lengths, int) else self.lengths
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise ValueError(
                f"lengths is a list of whole numbers, 4 or more; got {self.lengths!r}."
            )
        for length in given:
            at_least("each of lengths", length, 4)
        if len(set(given)) < len(given):
            raise ValueError(f"lengths names a length twice: {self.lengths!r}.")
        at_least("sequences", self.sequences, 1)
        object.__setattr__(self, "lengths", tuple(given))


# ---- the patterns, as cells of a prompt's attention weights ----


def _near(key: Callable[[int], int]) -> Callable[[Encoded, bool], Cells]:
    return lambda prompt, encoder: [(i, key(i)) for i in range(2, len(prompt.ids))]


def _duplicate(prompt: Encoded, encoder: bool) -> Cells:
    masked = set(prompt.at) if encoder else set()  # a mask is no copy of another
    places: dict[int, list[int]] = defaultdict(list)
    for i, token in enumerate(prompt.ids):
        if i > 0 and i not in masked:
            places[token].append(i)
    return [
        (i, j)
        for copies in places.values()
        for i in copies
        for j in copies
        if j < i or (encoder and j > i)
    ]


def _induction(prompt: Encoded, encoder: bool) -> Cells:
    cells, last = [], dict[int, int]()
    for i, token in enumerate(prompt.ids):
        if token in last:
            cells.append((i, last[token] + 1))
        last[token] = i
    return cells


def _retrieval(prompt: Encoded, encoder: bool) -> Cells:
    many, end = len(prompt.answer), len(prompt.ids) if encoder else prompt.at[0] + 1
    starts = [s for s in range(1, end - many + 1) if prompt.ids[s : s + many] == prompt.answer]
    return [(at, start + i) for start in starts for i, at in enumerate(prompt.at)]


LINEAR: dict[str, Callable[[Encoded, bool], Cells]] = {
    "Previous token": _near(lambda i: i - 1),
    "Current token": _near(lambda i: i),
    "First token": _near(lambda i: 0),
    "Duplicate token": _duplicate,
    "Induction": _induction,
    "Retrieval": _retrieval,
}
PATTERNS = (*LINEAR, "Entropy")
_LACKING = {
    "Duplicate token": "no prompt says a token twice behind its first token",
    "Retrieval": "no prompt holds its answer behind its first token",
}


def shows(pattern: str, prompt: Encoded, encoder: bool) -> bool:
    """Has this prompt a query that the pattern is about?"""
    return len(prompt.ids) > 2 if pattern == "Entropy" else bool(LINEAR[pattern](prompt, encoder))


# ---- prompts ----


def encode(tasks: Sequence[Task], model: Model, options: Patterns, seed: int) -> list[EncodedTask]:
    """A task for each pattern, with the prompts that show it."""
    read = [tokenised(task, model) for task in tasks]
    texts = [
        dataclasses.replace(prompt, foil=None, parting=None)
        for task in read
        for prompt in task.examples
    ]
    differs = sum(task.joint_differs for task in read)
    found = []
    for pattern in PATTERNS:
        own = (
            repeats(model, options, seed)
            if pattern == "Induction"
            else [prompt for prompt in texts if shows(pattern, prompt, model.encoder)]
        )
        if own:
            found.append(
                EncodedTask(
                    pattern,
                    None,
                    tuple(own),
                    read[0].before,
                    0 if pattern == "Induction" else differs,
                )
            )
    return found


def repeats(model: Model, options: Patterns, seed: int) -> list[Encoded]:
    """Random tokens, each once, said twice. The last one is not fed but asked for, as of any answer (an encoder is fed all)."""
    before, after = _specials(model.tokenizer)
    pool = _ordinary(model)
    found = []
    for length in options.lengths:
        if length > len(pool):
            raise ValueError(
                f"induction needs {length} different tokens, but {model.name} has {len(pool)} that are not special; ask for smaller lengths."
            )
        for number in range(options.sequences):
            said = random.Random(f"{seed} {length} {number}").sample(pool, length)
            ids = [*before, *said, *said, *after] if model.encoder else [*before, *said, *said[:-1]]
            if model.context is not None and len(ids) > model.context:
                raise ValueError(
                    f"{length} random tokens twice are {len(ids)} tokens, but {model.name} reads at most {model.context}; ask for smaller lengths."
                )
            at = len(ids) - 1 - len(after)
            found.append(
                Encoded(
                    f"{length} random tokens twice, number {number + 1}",
                    tuple(ids),
                    (at,),
                    (said[-1],),
                )
            )
    return found


def _specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text."""
    full, plain = (
        list(tokenizer("a", add_special_tokens=special)["input_ids"]) for special in (True, False)
    )
    start = next((i for i in range(len(full)) if full[i : i + len(plain)] == plain), 0)
    return full[:start], full[start + len(plain) :]


def _ordinary(model: Model) -> list[int]:
    """Every token that has an embedding and stands for text."""
    special = {
        *model.tokenizer.all_special_ids,
        *getattr(model.tokenizer, "added_tokens_decoder", ()),
    }
    special |= {
        value
        for name, value in model.config.to_dict().items()
        if name.endswith(("token_id", "token_index")) and isinstance(value, int)
    }
    return [
        token
        for token in range(min(len(model.tokenizer), model.vocabulary))
        if token not in special
    ]


# ---- weights to scores ----


class Reading:
    """A batch's cells on the device, and what one forward finds there."""

    def __init__(self, model: Model, batch: Batch, prompts: Sequence[Encoded]) -> None:
        self.model, self.batch = model, batch
        self.found: list[list[Tensor]] = [
            [] for _ in model.layers
        ]  # (batch, some heads, pattern) each
        seq = batch.ids.shape[1]
        cells = [
            [
                (p, *cell, share)
                for p, own in enumerate(LINEAR.values())
                for cell, share in _shared(own(prompt, model.encoder))
            ]
            for prompt in prompts
        ]
        most = max(1, *map(len, cells))
        where, share = (
            torch.zeros(len(prompts), most, dtype=torch.long, device="cpu"),
            torch.zeros(len(prompts), most, len(LINEAR), device="cpu"),
        )
        even = torch.zeros(
            len(prompts), seq, device="cpu"
        )  # 1 / (queries x log of what each may see)
        for b, (prompt, own) in enumerate(zip(prompts, cells)):
            if own:
                p, query, key, part = zip(*own)
                where[b, : len(own)] = torch.tensor(query, device="cpu") * seq + torch.tensor(
                    key, device="cpu"
                )
                share[b, torch.arange(len(own), device="cpu"), torch.tensor(p, device="cpu")] = (
                    torch.tensor(part, device="cpu")
                )
            long = len(prompt.ids)
            for i in range(2, long):
                even[b, i] = 1 / ((long - 2) * math.log(long if model.encoder else i + 1))
        self.where, self.share, self.even = (t.to(model.device) for t in (where, share, even))

    def run(self) -> tuple[Tensor, Tensor]:
        """Scores (batch, pattern, layer, head), and the logits where the answer is predicted."""
        with attention.read(self.model, self.see):
            logits = forward(self.model, self.batch)
        values = torch.stack(
            [torch.cat(parts, dim=1) for parts in self.found], dim=1
        )  # (batch, layer, head, pattern)
        return values.permute(0, 3, 1, 2).clamp(0, 1), logits

    def see(self, row: int, heads: slice, weights: Tensor) -> None:
        """Add up the cells of some heads' weights, (batch, head, query, key); nothing else of them is kept."""
        where, share, even = (t.to(weights.device) for t in (self.where, self.share, self.even))
        flat = weights.flatten(2)  # (batch, head, query x key)
        linear = (
            flat.gather(2, where[:, None].expand(-1, flat.shape[1], -1)).float() @ share
        )  # (batch, head, linear pattern)
        whole = weights.sum(-1).clamp(min=1e-30)  # (batch, head, query); 1 unless a sink takes some
        entropy = torch.special.entr(weights).sum(-1) / whole + whole.log()
        spread = (entropy.float() * even[:, None]).sum(-1, keepdim=True)
        self.found[row].append(torch.cat([linear, spread], dim=2).to(self.model.device))


def _shared(cells: Cells) -> list[tuple[tuple[int, int], float]]:
    """Each cell with its share of the score: 1 / queries."""
    queries = len({query for query, _ in cells})
    return [(cell, 1 / queries) for cell in cells]


def together(
    model: Model,
    tasks: Sequence[EncodedTask],
    batch_size: int | None,
    options: Patterns,
    its: Together,
) -> Iterator[tuple[EncodedTask, Chunk]]:
    """A chunk a pattern for every batch; a prompt runs once, however many patterns it shows."""
    have = [task.name for task in tasks]
    if missing := {
        name: _LACKING.get(name, "no prompt has more than two tokens")
        for name in PATTERNS
        if name not in have
    }:
        its.meta["left_out"] = missing
    prompts = _once(tasks)
    runs: list[list[list[int]]] = []  # task, prompt: which of the task's runs it is
    for task in tasks:
        number: dict[Encoded, list[int]] = defaultdict(list)
        for run, prompt in enumerate(task.examples):
            number[prompt].append(run)
        runs.append([number[prompt] for prompt in prompts])
    asked = (
        {"Retrieval"} if model.encoder else {"Retrieval", "Induction"}
    )  # where the answer is part of the pattern
    for batch in batches(prompts, model, batch_size):
        with hooks.scoring(model):
            values, logits = Reading(model, batch, [prompts[i] for i in batch.runs]).run()
            landed = land(batch.runs, slice(None), values.flatten(1, 2), correct(logits, batch))
        scores, right = landed.values.reshape(values.shape), landed.correct
        its.note("reading attention", len(batch.runs))
        for task, own in zip(tasks, runs):
            here = [(run, b) for b, prompt in enumerate(batch.runs) for run in own[prompt]]
            if here:
                at = [b for _, b in here]
                answered = right[:, at] if right is not None and task.name in asked else None
                yield (
                    task,
                    Chunk(
                        tuple(run for run, _ in here),
                        slice(None),
                        scores[at, PATTERNS.index(task.name)],
                        answered,
                    ),
                )


def _once(tasks: Sequence[EncodedTask]) -> list[Encoded]:
    return list(dict.fromkeys(prompt for task in tasks for prompt in task.examples))


METHOD = Method(
    "patterns",
    alone,
    Patterns,
    signed=False,
    check=attention.check,
    together=together,
    encode=encode,
    steps=lambda tasks, options: (len(_once(tasks)), "prompts"),
)
