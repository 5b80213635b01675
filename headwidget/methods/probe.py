"""probe: a small classifier learns to tell the tasks apart by what the heads say at the answer; a head's score is its part in the right task's logit.

Where METHODS leaves room. *Answer tokens*: z is read at the positions that predict them, because that is where the model works the answer out (the last
answer token is never fed, and a one-token answer has no other position); ``at="answer"`` reads at the tokens themselves. *Most informative*: the tokens
that the model finds least likely, those with the highest surprisal (the authors ask another language model for the five that matter most).
*Held out*: each task's own split, else every example once, by folds. *Control*: the same classifier on shuffled labels, trained exactly as long.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.methods.probe_classifier import Classifier, Features, Training, fit
from headwidget.methods.probe_report import Report
from headwidget.models import Model, hooks
from headwidget.scoring.batch import Batch, batches, correct, forward
from headwidget.scoring.checks import at_least, between, one_of
from headwidget.scoring.contract import Chunk, Method, Together, alone, land
from headwidget.scoring.encode import EncodedTask

FOLDS = 5
"""Where the tasks hold nothing out themselves."""


@dataclass(frozen=True)
class Probe:
    """Options of ``method="probe"``."""

    k: int = 5
    """How many of the answer's tokens are averaged: those that the model finds least likely; all of them where there are fewer."""
    at: Literal["predict", "answer"] = "predict"
    """Read z where the answer's tokens are predicted, or at the tokens themselves (the same in a masked model)."""
    seeds: int = 1
    """How many probes are fitted, each from its own start; importance is the mean over them."""
    folds: int | None = None
    """Hold every example out once, in so many folds. By default the tasks' own held-out examples are, and 5 folds where a task has none."""
    validation: float | None = None
    """Which share of the rest tells when to stop; 0.2 by default."""
    epochs: int | None = None
    """How often at most the training examples are seen; 300 by default, which early stopping seldom reaches."""
    lr: float = 1e-4
    units: int = 64
    """How many numbers the shared map makes of each head."""
    hidden: int = 512
    minibatch: int | None = None
    """Examples a step; 64 by default."""
    standardise: bool | None = None
    """Give each number of the features mean 0 and spread 1 over the training examples; by default yes."""
    published: bool = False
    """As the authors' own code does it: features as they are, no early stopping, 100 epochs, one example a step. Where a step for each example is too
    slow, ``published=True, minibatch=64`` differs in that alone. Examples are shuffled in either case."""

    def __post_init__(self) -> None:
        if not isinstance(self.published, bool):
            raise ValueError(f"published must be True or False; got {self.published!r}.")
        if self.published and self.validation is not None:
            raise ValueError(
                "published=True trains for all its epochs, so it has no validation split: leave validation out."
            )
        usual: dict[str, object] = {
            "validation": 0.2,
            "epochs": 300,
            "minibatch": 64,
            "standardise": True,
        }
        if self.published:
            usual = {"validation": 0.0, "epochs": 100, "minibatch": 1, "standardise": False}
        for name in ("k", "seeds", "units", "hidden"):
            at_least(name, getattr(self, name), 1)
        for name in ("epochs", "minibatch"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 1)
        if self.folds is not None:
            at_least("folds", self.folds, 2)
        if self.validation is not None:
            between("validation", self.validation, 0, 1)
        between("lr", self.lr, 0, 1)
        one_of("at", self.at, ("predict", "answer"))
        if self.standardise is not None and not isinstance(self.standardise, bool):
            raise ValueError(f"standardise must be True or False; got {self.standardise!r}.")
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def training(self) -> Training:
        assert self.epochs is not None and self.minibatch is not None
        return Training(self.units, self.hidden, self.lr, self.epochs, self.minibatch)


# ---- which examples do what ----


@dataclass(frozen=True)
class Split:
    """Which examples are held out, by their place among all tasks' examples; the others train the probe or tell when to stop."""

    held_out: list[int]
    rest: list[list[int]]
    """By task."""

    def parts(self, validation: float, seed: int) -> tuple[list[int], list[int]]:
        """The rest as training and validation examples, the same share of each task."""
        rng, train, tell = random.Random(seed), [], []
        for own in self.rest:
            order = rng.sample(own, len(own))
            count = max(1, round(validation * len(own))) if validation else 0
            tell += order[:count]
            train += order[count:]
        return train, tell


def own_folds(tasks: Sequence[EncodedTask], options: Probe) -> int | None:
    """How many folds; None where the tasks' own held-out examples are used."""
    return options.folds or (None if all(task.held_out for task in tasks) else FOLDS)


def splits(tasks: Sequence[EncodedTask], options: Probe, seed: int) -> list[Split]:
    """One where the tasks hold out examples themselves, else one a fold."""
    starts = np.cumsum([0] + [len(task.examples) for task in tasks])
    everything = [
        list(range(start, end)) for start, end in zip(starts[:-1].tolist(), starts[1:].tolist())
    ]
    folds = own_folds(tasks, options)
    if folds is None:
        held = [[{own[i] for i in task.held_out} for own, task in zip(everything, tasks)]]
    else:
        rng = random.Random(seed)
        shuffled = [rng.sample(own, len(own)) for own in everything]
        held = [[set(own[fold::folds]) for own in shuffled] for fold in range(folds)]
    return [
        Split(
            sorted(set().union(*out)),
            [[i for i in own if i not in gone] for own, gone in zip(everything, out)],
        )
        for out in held
    ]


def check_tasks(model: Model, tasks: Sequence[EncodedTask], options: Probe) -> None:
    """Are there tasks to tell apart, and enough examples of each?"""
    if len(tasks) < 2:
        raise ValueError(
            f"the probe learns to tell tasks apart, so it needs at least two; got {len(tasks)} ({tasks[0].name!r})."
        )
    folds, fewest = own_folds(tasks, options), 2 if options.validation else 1
    for task in tasks:
        count = len(task.examples)
        held = len(task.held_out) if folds is None else -(-count // folds)
        if folds is not None and count < folds:
            raise ValueError(
                f"task {task.name!r} has {count} examples, too few to hold each out once in {folds} folds; give it more, or ask for fewer folds."
            )
        if count - held < fewest:
            raise ValueError(
                f"task {task.name!r} has {count - held} examples that are not held out; the probe needs {fewest} or more to learn from."
            )
        if options.at == "answer" and not model.encoder and model.context is not None:
            longest = max(len(e.ids) for e in task.examples) + 1
            if longest > model.context:
                raise ValueError(
                    f"task {task.name!r}: at='answer' reads {longest} tokens, but {model.name} reads at most {model.context}; shorten the prompt."
                )


# ---- features ----


def read(
    model: Model,
    tasks: Sequence[EncodedTask],
    batch_size: int | None,
    options: Probe,
    its: Together,
) -> tuple[Tensor, Tensor]:
    """Each head's mean z over the answer's tokens, (example, layer, head, dim) in float32 on the model's device; and right, (2, example)."""
    examples = [e for task in tasks for e in task.examples]
    fed = options.at == "answer" and not model.encoder  # the last answer token is fed too
    if fed:
        examples = [dataclasses.replace(e, ids=(*e.ids, e.answer[-1])) for e in examples]
    with torch.inference_mode(False):  # kept for a backward later
        found = torch.empty(len(examples), *model.shape, model.head_dim, device=model.device)
        right = torch.empty(2, len(examples), device=model.device, dtype=torch.bool)
    for batch in batches(examples, model, batch_size):
        with hooks.scoring(model):
            z, logits = _answer_means(model, batch, options.k, batch.at + 1 if fed else batch.at)
            at = torch.tensor(batch.runs).to(model.device)
            found.index_copy_(0, at, z)
            right.index_copy_(1, at, correct(logits, batch).to(model.device))
        its.note("reading heads", len(batch.runs))
    return found, right


def _answer_means(model: Model, batch: Batch, k: int, where: Tensor) -> tuple[Tensor, Tensor]:
    """z averaged over the chosen answer tokens, (batch, layer, head, dim), and the logits. Nothing of z is kept but at the answer's positions."""
    few = batch.answer.shape[1] <= k
    weights = _share(batch.counts)  # all tokens; replaced below where there are more than k
    kept: list[Tensor] = []

    def take(_: int, z: Tensor) -> None:
        here = hooks.take_positions(z, where)  # (batch, answer token, head, dim)
        kept.append(_average(here, weights).to(model.device) if few else here)

    with hooks.read(model, take):
        logits = forward(model, batch)
    if not few:
        weights = _share(informative(logits, batch, k))
        kept = [_average(here, weights).to(model.device) for here in kept]
    return torch.stack(kept, dim=1), logits


def informative(logits: Tensor, batch: Batch, k: int) -> Tensor:
    """1 at the ``k`` answer tokens with the highest surprisal, (batch, answer token); at all of a shorter answer's."""
    answer, counts = batch.answer.to(logits.device), batch.counts.to(logits.device)
    logits = logits.float()
    surprisal = logits.logsumexp(-1) - logits.gather(-1, answer[..., None]).squeeze(-1)
    most = (
        surprisal.masked_fill(counts == 0, -torch.inf).topk(min(k, answer.shape[1]), dim=1).indices
    )
    return torch.zeros_like(surprisal).scatter_(1, most, 1.0) * counts


def _share(counts: Tensor) -> Tensor:
    return counts.float() / counts.sum(1, keepdim=True)


def _average(here: Tensor, weights: Tensor) -> Tensor:
    return torch.einsum("bkhd,bk->bhd", here.float(), weights.to(here.device))


# ---- fitting, fold by fold ----


def together(
    model: Model,
    tasks: Sequence[EncodedTask],
    batch_size: int | None,
    options: Probe,
    its: Together,
) -> Iterator[tuple[EncodedTask, Chunk]]:
    """A chunk a task for every fold. Ctrl-C keeps the folds that are done; before the first there is nothing to keep."""
    report = Report(tasks, own_folds(tasks, options), options.seeds, its)
    planned = splits(tasks, options, its.seed)
    report.expect([i for split in planned for i in split.held_out])
    try:
        z, right = read(model, tasks, batch_size, options, its)
        report.answered(right.cpu().numpy())
        for split in planned:
            importance = _fold(z, split, options, report)
            chunk = land(tuple(split.held_out), slice(None), importance, right[:, split.held_out])
            report.write()
            yield from report.by_task(chunk)
    except KeyboardInterrupt:
        if its.meta:
            raise
        raise KeyboardInterrupt(
            "the probe was stopped before it was trained: there are no scores to keep yet."
        ) from None


def _fold(z: Tensor, split: Split, options: Probe, report: Report) -> Tensor:
    """Fit a fold's probes, and beside each its control; the probes' mean importance on the held-out examples, (example, layer, head)."""
    seed, how, tasks = report.its.seed, options.training(), len(report.tasks)
    labels = report.labels
    shuffled = labels.copy()
    rng = random.Random(f"{seed} {split.held_out}")
    for part in (
        split.held_out,
        [i for own in split.rest for i in own],
    ):  # apart, so that the control has as many examples of each task
        shuffled[part] = labels[rng.sample(part, len(part))]

    def device(indices: Sequence[int] | npt.NDArray[np.int64]) -> Tensor:
        return torch.as_tensor(indices, dtype=torch.long).to(z.device)

    held = device(split.held_out)
    importance = torch.zeros(len(held), *z.shape[1:3], device=z.device)
    for probe in range(seed, seed + options.seeds):
        train, tell = split.parts(options.validation or 0.0, probe)
        x = Features.of(z)
        if options.standardise:
            x = x.standardised(device(train))
        there = x.at(held)
        made, epochs = fit(
            x,
            device(labels),
            device(train),
            device(tell),
            tasks,
            how,
            probe,
            report.training("labels"),
        )
        importance += made.importance(there, device(labels[split.held_out])) / options.seeds
        report.fitted(epochs, len(train), len(tell), labels[split.held_out], _choices(made, there))
        as_long = dataclasses.replace(how, epochs=epochs)
        made, _ = fit(
            x,
            device(shuffled),
            device(train),
            held[:0],
            tasks,
            as_long,
            probe,
            report.training("shuffled labels"),
        )
        wrong = shuffled[split.held_out]
        report.controlled(
            wrong, _choices(made, there), made.importance(there, device(wrong)).cpu().numpy()
        )
    return importance


def _choices(made: Classifier, x: Features) -> npt.NDArray[np.int64]:
    """The task that each example is taken for."""
    return made.logits(x).argmax(1).cpu().numpy()


METHOD = Method(
    "probe",
    alone,
    Probe,
    signed=True,
    ranked_by="size",
    together=together,
    check_tasks=check_tasks,
    at_chance="heads that tell this task from others do not solve it",  # a probe may well tell apart what the model cannot do
)
