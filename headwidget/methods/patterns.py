"""patterns: where a head looks, as seven patterns of attention, a score in [0, 1] a prompt.

A linear pattern is a list of cells (query, key) of a prompt's attention weights. Its score is
their sum over the number of queries, so 1 means that all of the weight goes there. Positions
count from 0, the tokenizer's special tokens among them, as the model sees them.

- *Previous token*, *Current token*, *First token* (sink): keys i - 1, i and 0 of every query
  i >= 2, where these are three different tokens.
- *Duplicate token*: every other copy of the query's token (earlier ones; an encoder sees
  later ones too), for queries that have one.
- *Induction*: on random tokens said twice, from each token of the second time to the one that
  followed it the first time.
- *Retrieval*: from the position that predicts each token of the answer to that token where
  the prompt holds the answer, for prompts that do.
- *Entropy* of every query i >= 2, over the log of the positions that it may see (i + 1; in an
  encoder all of them): 0 is one token, 1 is all evenly. A window narrower than the prompt does
  not lower the divisor. Weight on a sink outside the tokens (gpt-oss) is left out first.

The first token never counts as a copy or as what holds an answer: many heads rest on it. A
prompt counts for every pattern that it can show, whichever task it is from, and runs once for
all of them. Induction has prompts of its own. A pattern that no prompt shows is left out, and
the record says why. Attention weights are computed for one layer at a time and dropped.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, attention, hooks
from headwidget.models.refusals import refuse_encoder_decoder
from headwidget.scoring.batch import Batch, can_share, collate, correct, forward, plan
from headwidget.scoring.contract import Chunk, Job, Method, Report, to_host
from headwidget.scoring.encode import Encoded, EncodedTask, Specials, plain_ids, specials_around
from headwidget.scoring.encode import encode as tokenised
from headwidget.scoring.option_checks import at_least
from headwidget.tasks import Task

Cells = list[tuple[int, int]]


@dataclass(frozen=True)
class Patterns:
    """Options of ``method="patterns"``."""

    lengths: Sequence[int] = (16, 32)
    """How many random tokens are said twice, for induction; each length has its own prompts."""
    sequences: int = 8
    """How many such prompts there are of each length; the seed chooses their tokens."""

    def __post_init__(self) -> None:
        lengths = [self.lengths] if isinstance(self.lengths, int) else self.lengths
        if isinstance(lengths, str) or not isinstance(lengths, Sequence) or not lengths:
            raise ValueError(
                f"lengths is a list of whole numbers, 4 or more; got {self.lengths!r}."
            )
        for length in lengths:
            at_least("each of lengths", length, 4)
        if len(set(lengths)) < len(lengths):
            raise ValueError(f"lengths names a length twice: {self.lengths!r}.")
        at_least("sequences", self.sequences, 1)
        object.__setattr__(self, "lengths", tuple(lengths))


# ---- the patterns, as cells of a prompt's attention weights ----


def _near(key: Callable[[int], int]) -> Callable[[Encoded, bool], Cells]:
    return lambda prompt, encoder: [(i, key(i)) for i in range(2, len(prompt.ids))]


def _duplicate(prompt: Encoded, encoder: bool) -> Cells:
    masked = set(prompt.at) if encoder else set()  # a mask is no copy of another
    image = None if prompt.media is None else prompt.media.placeholder  # nor a piece of an image
    places: dict[int, list[int]] = defaultdict(list)
    for i, token in enumerate(prompt.ids):
        if i > 0 and i not in masked and token != image:
            places[token].append(i)
    cells = []
    for copies in places.values():
        for query in copies:
            cells += [(query, key) for key in copies if key < query or (encoder and key > query)]
    return cells


def _induction(prompt: Encoded, encoder: bool) -> Cells:
    cells, last = [], dict[int, int]()
    for i, token in enumerate(prompt.ids):
        if token in last:
            cells.append((i, last[token] + 1))
        last[token] = i
    return cells


def _retrieval(prompt: Encoded, encoder: bool) -> Cells:
    length = len(prompt.answer)
    end = len(prompt.ids) if encoder else prompt.at[0] + 1
    cells: Cells = []
    for start in range(1, end - length + 1):
        if prompt.ids[start : start + length] == prompt.answer:
            cells += [(at, start + i) for i, at in enumerate(prompt.at)]
    return cells


LINEAR: dict[str, Callable[[Encoded, bool], Cells]] = {
    "Previous token": _near(lambda i: i - 1),
    "Current token": _near(lambda i: i),
    "First token": _near(lambda i: 0),
    "Duplicate token": _duplicate,
    "Induction": _induction,
    "Retrieval": _retrieval,
}
PATTERNS = (*LINEAR, "Entropy")
_PLACES = ("Previous token", "Current token", "First token", "Entropy")
"""The patterns of patches or frames, which are no tokens that could be said twice."""
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
    encoded = [tokenised(task, model) for task in tasks]
    if model.classifier:
        encoded = [_with_positions(task, model) for task in encoded]
    sees_all = model.encoder or model.classifier
    prompts: list[Encoded] = []
    for task in encoded:
        prompts += [dataclasses.replace(e, foil=None, parting=None) for e in task.examples]
    differs = sum(task.joint_differs for task in encoded)
    shown = []
    for pattern in _PLACES if model.classifier else PATTERNS:
        if pattern == "Induction":
            examples, joint_differs = repeats(model, options, seed), 0
        else:
            examples = [prompt for prompt in prompts if shows(pattern, prompt, sees_all)]
            joint_differs = differs
        if examples:
            before = encoded[0].before
            shown.append(EncodedTask(pattern, None, tuple(examples), before, joint_differs))
    return shown


def _with_positions(task: EncodedTask, model: Model) -> EncodedTask:
    """A classifier's task with as many ids as there are patches or frames.

    Sounds of several lengths have several numbers; one forward for each tells.
    """
    counted: list[tuple[Encoded, int]] = []  # an example of each size, and its positions
    examples = []
    for example in task.examples:
        same = (count for other, count in counted if can_share(other, example, model))
        count = next(same, None)
        if count is None:
            count = _positions(example, model)
            counted.append((example, count))
        examples.append(dataclasses.replace(example, ids=(0,) * count))
    return dataclasses.replace(task, examples=tuple(examples))


def _positions(example: Encoded, model: Model) -> int:
    """How many patches or frames a classifier makes of an example."""
    counts: list[int] = []
    batch = collate([0], [example], model)
    with hooks.scoring(model), hooks.read(model, lambda _, z: counts.append(z.shape[1])):
        forward(model, batch)
    return counts[0]


def repeats(model: Model, options: Patterns, seed: int) -> list[Encoded]:
    """Prompts of random tokens, each once, said twice.

    The last token is not fed but asked for, as the end of any answer (an encoder is fed all).
    """
    before, after = _specials(model.tokenizer)
    pool = _ordinary(model)
    prompts = []
    for length in options.lengths:
        if length > len(pool):
            raise ValueError(
                f"induction needs {length} different tokens, but {model.name} has {len(pool)} "
                "that are not special; ask for smaller lengths."
            )
        for number in range(options.sequences):
            drawn = random.Random(f"{seed} {length} {number}").sample(pool, length)
            if model.encoder:
                ids = [*before, *drawn, *drawn, *after]
            else:
                ids = [*before, *drawn, *drawn[:-1]]
            if model.context is not None and len(ids) > model.context:
                raise ValueError(
                    f"{length} random tokens twice are {len(ids)} tokens, but {model.name} reads "
                    f"at most {model.context}; ask for smaller lengths."
                )
            label = f"{length} random tokens twice, number {number + 1}"
            at = len(ids) - 1 - len(after)
            prompts.append(Encoded(label, tuple(ids), (at,), (drawn[-1],)))
    return prompts


def _specials(tokenizer: Any) -> Specials:
    """The special tokens that the tokenizer puts before and after a text."""
    (plain,) = plain_ids(tokenizer, ["a"])
    return specials_around(tokenizer, "a", plain) or Specials([], [])


def _ordinary(model: Model) -> list[int]:
    """Every token that has an embedding and stands for text."""
    special = {
        *model.tokenizer.all_special_ids,
        *getattr(model.tokenizer, "added_tokens_decoder", ()),
    }
    for name, value in model.config.to_dict().items():
        if name.endswith(("token_id", "token_index")) and isinstance(value, int):
            special.add(value)
    every = range(min(len(model.tokenizer), model.vocabulary))
    return [token for token in every if token not in special]


# ---- weights to scores ----


class Reading:
    """A batch's cells on the device, and the scores that one forward gives there."""

    def __init__(self, model: Model, batch: Batch, prompts: Sequence[Encoded]) -> None:
        self.model, self.batch = model, batch
        self.layer_scores: list[list[Tensor]] = [[] for _ in model.layers]
        # (batch, some heads, pattern) each
        seq = batch.ids.shape[1]
        self.sees_all = model.encoder or model.classifier
        linear = [name for name in LINEAR if not model.classifier or name in _PLACES]
        cells = [_shared_cells(prompt, linear, self.sees_all) for prompt in prompts]
        most = max(1, *map(len, cells))
        where = np.zeros((len(prompts), most), np.int64)
        share = np.zeros((len(prompts), most, len(LINEAR)), np.float32)
        even = np.zeros((len(prompts), seq), np.float32)  # 1 / (queries x log of what each sees)
        for b, (prompt, prompt_cells) in enumerate(zip(prompts, cells)):
            if prompt_cells:
                pattern, query, key, part = map(np.array, zip(*prompt_cells))
                where[b, : len(part)] = query * seq + key
                share[b, np.arange(len(part)), pattern] = part
            length = len(prompt.ids)
            for i in range(2, length):
                even[b, i] = 1 / ((length - 2) * math.log(length if self.sees_all else i + 1))
        self.where, self.share, self.even = (
            torch.from_numpy(array).to(model.device) for array in (where, share, even)
        )

    def run(self) -> tuple[Tensor, Tensor]:
        """Scores (batch, pattern, layer, head), and the logits where the answer is predicted."""
        with attention.read(self.model, self.see):
            logits = forward(self.model, self.batch)
        layers = [torch.cat(heads, dim=1) for heads in self.layer_scores]
        values = torch.stack(layers, dim=1)  # (batch, layer, head, pattern)
        return values.permute(0, 3, 1, 2).clamp(0, 1), logits

    def see(self, row: int, heads: slice, weights: Tensor) -> None:
        """Add up the cells of some heads' weights, (batch, head, query, key)."""
        where, share, even = (t.to(weights.device) for t in (self.where, self.share, self.even))
        flat = weights.flatten(2)  # (batch, head, query x key)
        index = where[:, None].expand(-1, flat.shape[1], -1)
        linear = flat.gather(2, index).float() @ share  # (batch, head, linear pattern)
        whole = weights.sum(-1).clamp(min=1e-30)  # (batch, head, query); 1 unless a sink takes some
        entropy = torch.special.entr(weights).sum(-1) / whole + whole.log()
        spread = (entropy.float() * even[:, None]).sum(-1, keepdim=True)
        scores = torch.cat([linear, spread], dim=2)
        self.layer_scores[row].append(scores.to(self.model.device))


def _shared_cells(
    prompt: Encoded, patterns: Sequence[str], sees_all: bool
) -> list[tuple[int, int, int, float]]:
    """Linear patterns' cells of a prompt: pattern, query, key, and 1 / queries."""
    shared = []
    for number, (name, pattern) in enumerate(LINEAR.items()):
        cells = pattern(prompt, sees_all) if name in patterns else []
        queries = len({query for query, _ in cells})
        shared += [(number, query, key, 1 / queries) for query, key in cells]
    return shared


def run(job: Job) -> Iterator[Chunk | Report]:
    """A chunk a pattern for every batch; a prompt runs once, whatever patterns it shows."""
    model = job.model
    shown = [task.name for task in job.tasks]
    why = "patches of an image and frames of a sound are no tokens" if model.classifier else None
    missing = {
        name: why or _LACKING.get(name, "no prompt has more than two tokens")
        for name in PATTERNS
        if name not in shown
    }
    if missing:
        yield Report(record={"left_out": missing})
    prompts = _once(job.tasks)
    runs_of = [_runs_of(task) for task in job.tasks]
    # where the answer is part of the pattern
    asked = {"Retrieval"} if model.encoder else {"Retrieval", "Induction"}
    asked = asked if not model.classifier else set()
    planned = plan(prompts, model, job.batch_size)
    left = [batch for batch in planned if not _landed(job, [prompts[i] for i in batch], runs_of)]
    job.note("reading attention", sum(map(len, planned)) - sum(map(len, left)))
    for portion in job.watched(left):
        batch = collate(portion, [prompts[i] for i in portion], model)
        with hooks.scoring(model):
            values, logits = Reading(model, batch, [prompts[i] for i in batch.runs]).run()
            scores, right, _ = to_host(values, correct(logits, batch))
        job.note("reading attention", len(batch.runs))
        for task, runs in zip(job.tasks, runs_of):
            here: list[int] = []  # the task's runs in this batch
            at: list[int] = []  # and each run's place in it
            for place, prompt in enumerate(batch.runs):
                here += runs[prompts[prompt]]
                at += [place] * len(runs[prompts[prompt]])
            if here:
                numbers = scores[at, PATTERNS.index(task.name)]
                answered = right[:, at] if task.name in asked else None
                yield Chunk(task.name, tuple(here), slice(None), numbers, answered)


def _landed(
    job: Job, prompts: Sequence[Encoded], runs_of: Sequence[Mapping[Encoded, list[int]]]
) -> bool:
    """Are all patterns of these prompts scored already?"""
    for task, runs in zip(job.tasks, runs_of):
        landed = job.landed.get(task.name)
        if landed is None:
            return False
        done: npt.NDArray[np.bool_] = np.asarray(landed.all(1))
        if not all(done[runs.get(prompt, [])].all() for prompt in prompts):
            return False
    return True


def _runs_of(task: EncodedTask) -> dict[Encoded, list[int]]:
    """The runs of a task in which each prompt occurs."""
    runs: dict[Encoded, list[int]] = defaultdict(list)
    for run, prompt in enumerate(task.examples):
        runs[prompt].append(run)
    return runs


def _once(tasks: Sequence[EncodedTask]) -> list[Encoded]:
    """All prompts of all tasks, each once."""
    prompts: dict[Encoded, None] = {}
    for task in tasks:
        prompts.update(dict.fromkeys(task.examples))
    return list(prompts)


def check(model: Model) -> None:
    """Patterns are of one stream of tokens, and need a kernel that shows its weights."""
    refuse_encoder_decoder(model, "patterns", "looks at attention inside one stream of tokens")
    attention.check(model)


METHOD = Method(
    "patterns",
    run,
    Patterns,
    signed=False,
    together=True,
    skips_done=True,
    check=check,
    encode=encode,
    steps=lambda tasks, options: (len(_once(tasks)), "prompts"),
    about="The share of the head's attention that goes where the pattern says, from 0 to 1.",
    explained=(
        "The head's attention weights on the tokens of a known pattern, such as the previous token "
        "or the token that followed the same word before, averaged over a prompt.",
        "1 means that all of its attention goes there, 0 none.",
        "Where a head looks does not say that the model uses what it finds there: ablation does. "
        "It costs about one forward pass.",
    ),
    paper=("Olsson et al. 2022", "https://arxiv.org/abs/2209.11895"),
)
