"""probe: a small classifier learns to tell the tasks apart from the heads' outputs.

A head's score is its part in the logit of the right task, on held-out examples. Details:

- *Answer tokens*: z is read at the positions that predict them, because there the model works
  the answer out (the last answer token is never fed, and a one-token answer has no other
  position). ``at="answer"`` reads at the tokens themselves.
- *Most informative* tokens are those that the model finds least likely (the authors ask
  another language model for the five that matter most).
- *Held out*: each task's own split, else every example once, by folds.
- *Control*: the same classifier on shuffled labels, trained exactly as long.
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
from headwidget.methods.probe_report import Evaluation
from headwidget.models import Model, hooks
from headwidget.models.refusals import refuse_classifier, refuse_encoder_decoder
from headwidget.scoring.batch import Batch, batches, correct, forward
from headwidget.scoring.contract import (
    Chunk,
    Job,
    Method,
    Report,
    check_shapes,
    taken_up,
    to_host,
)
from headwidget.scoring.encode import Encoded, EncodedTask
from headwidget.scoring.option_checks import at_least, between, one_of

FOLDS = 5
"""The number of folds where the tasks hold no examples out."""

MOST_KEPT = 2**30
"""The most bytes of heads' outputs that a checkpoint keeps; more are read again."""
_HEADS = "heads' outputs"


@dataclass(frozen=True)
class Probe:
    """Options of ``method="probe"``."""

    k: int = 5
    """How many answer tokens are averaged: those that the model finds least likely."""
    at: Literal["predict", "answer"] = "predict"
    """Read z where the answer's tokens are predicted, or at the tokens themselves.

    In a masked model, that is the same.
    """
    seeds: int = 1
    """How many probes are fitted, each from its own start; importance is their mean."""
    folds: int | None = None
    """Hold every example out once, in so many folds.

    By default the tasks' own held-out examples are used, and 5 folds where a task has none.
    """
    validation: float | None = None
    """The share of the other examples that tells when to stop; 0.2 by default."""
    epochs: int | None = None
    """How often the training examples are seen at most; 300 by default.

    Early stopping seldom lets it come to that.
    """
    lr: float = 1e-4
    """AdamW's learning rate."""
    units: int = 64
    """How many numbers the shared map makes of each head."""
    hidden: int = 512
    """The width of the classifier's hidden layer."""
    minibatch: int | None = None
    """Examples a step; 64 by default."""
    standardise: bool | None = None
    """Scale each feature to mean 0 and spread 1 over the training examples; by default yes."""
    published: bool = False
    """Train as the authors' code does: no scaling, no early stopping, 100 epochs, one a step.

    Where a step for each example is too slow, ``published=True, minibatch=64`` differs in
    that alone. Examples are shuffled in either case.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.published, bool):
            raise ValueError(f"published must be True or False; got {self.published!r}.")
        if self.published and self.validation is not None:
            raise ValueError(
                "published=True trains for all its epochs, so it has no validation split: "
                "leave validation out."
            )
        if self.published:
            usual = {"validation": 0.0, "epochs": 100, "minibatch": 1, "standardise": False}
        else:
            usual = {"validation": 0.2, "epochs": 300, "minibatch": 64, "standardise": True}
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
        """How the classifier is trained."""
        assert self.epochs is not None and self.minibatch is not None
        return Training(self.units, self.hidden, self.lr, self.epochs, self.minibatch)


# ---- which examples do what ----


@dataclass(frozen=True)
class Split:
    """Which examples are held out; the others train the probe or decide when to stop.

    Examples are given by their place among all tasks' examples.
    """

    held_out: list[int]
    rest: list[list[int]]
    """By task."""

    def train_and_validation(self, share: float, seed: int) -> tuple[list[int], list[int]]:
        """The rest as training and validation examples, ``share`` of each task for validation."""
        rng, train, validation = random.Random(seed), [], []
        for examples in self.rest:
            order = rng.sample(examples, len(examples))
            count = max(1, round(share * len(examples))) if share else 0
            validation += order[:count]
            train += order[count:]
        return train, validation


def fold_count(tasks: Sequence[EncodedTask], options: Probe) -> int | None:
    """How many folds; None where the tasks' own held-out examples are used."""
    return options.folds or (None if all(task.held_out for task in tasks) else FOLDS)


def splits(tasks: Sequence[EncodedTask], options: Probe, seed: int) -> list[Split]:
    """One split where the tasks hold out examples themselves, else one a fold."""
    places, start = [], 0  # of each task's examples among all
    for task in tasks:
        places.append(list(range(start, start + len(task.examples))))
        start += len(task.examples)
    folds = fold_count(tasks, options)
    if folds is None:
        held_out = []
        for examples, task in zip(places, tasks):
            held_out.append({examples[i] for i in task.held_out})
        return [_split(places, held_out)]
    rng = random.Random(seed)
    shuffled = [rng.sample(examples, len(examples)) for examples in places]
    return [
        _split(places, [set(examples[fold::folds]) for examples in shuffled])
        for fold in range(folds)
    ]


def _split(places: list[list[int]], held_out: list[set[int]]) -> Split:
    """A split from each task's examples and which of them are held out."""
    rest = []
    for examples, out in zip(places, held_out):
        rest.append([i for i in examples if i not in out])
    return Split(sorted(set().union(*held_out)), rest)


def check_tasks(model: Model, tasks: Sequence[EncodedTask], options: Probe) -> None:
    """Are there tasks to tell apart, and enough examples of each?"""
    if len(tasks) < 2:
        raise ValueError(
            "the probe learns to tell tasks apart, so it needs at least two; "
            f"got {len(tasks)} ({tasks[0].name!r})."
        )
    folds, fewest = fold_count(tasks, options), 2 if options.validation else 1
    for task in tasks:
        count = len(task.examples)
        held_out = len(task.held_out) if folds is None else -(-count // folds)
        if folds is not None and count < folds:
            raise ValueError(
                f"task {task.name!r} has {count} examples, too few to hold each out once in "
                f"{folds} folds; give it more, or ask for fewer folds."
            )
        if count - held_out < fewest:
            raise ValueError(
                f"task {task.name!r} has {count - held_out} examples that are not held out; "
                f"the probe needs {fewest} or more to learn from."
            )
        if options.at == "answer" and not model.encoder and model.context is not None:
            longest = max(len(e.ids) for e in task.examples) + 1
            if longest > model.context:
                raise ValueError(
                    f"task {task.name!r}: at='answer' reads {longest} tokens, but {model.name} "
                    f"reads at most {model.context}; shorten the prompt."
                )


# ---- features ----


def read(job: Job) -> tuple[Tensor, Tensor]:
    """Each head's mean z over the answer's tokens, and which answers are right.

    z is (example, layer, head, dim) in float32 on the model's device; right (2, example).
    """
    model, options = job.model, job.options
    examples: list[Encoded] = []
    for task in job.tasks:
        examples += task.examples
    last_is_fed = options.at == "answer" and not model.encoder
    if last_is_fed:
        examples = [dataclasses.replace(e, ids=(*e.ids, e.answer[-1])) for e in examples]
    with torch.inference_mode(False):  # kept for a backward later
        z = torch.empty(
            len(examples), *model.shape, model.head_dim, dtype=torch.float32, device=model.device
        )
        right = torch.empty(2, len(examples), device=model.device, dtype=torch.bool)
    for batch in batches(examples, model, job.batch_size):
        with hooks.scoring(model):
            where = batch.at + 1 if last_is_fed else batch.at
            means, logits = _answer_means(model, batch, options.k, where)
            at = torch.tensor(batch.runs).to(model.device)
            z.index_copy_(0, at, means)
            right.index_copy_(1, at, correct(logits, batch).to(model.device))
        job.note("reading heads", len(batch.runs))
    return z, right


def _keep_heads(job: Job, z: Tensor, right: Tensor) -> None:
    """Keep what :func:`read` gave, where that took long enough."""
    if job.kept.due() and z.nbytes <= MOST_KEPT:
        job.kept.put(_name(job), {}, {"z": z.cpu().numpy(), "right": right.cpu().numpy()})


def _name(job: Job) -> str:
    """What the heads' outputs are kept under: other batches round otherwise."""
    return f"{_HEADS}, batches of {job.batch_size}"


def _kept_heads(job: Job) -> tuple[Tensor, Tensor] | None:
    """What :func:`read` gave a run that was ended, where it was kept."""
    if (kept := job.kept.get(_name(job))) is None:
        return None
    count = sum(len(task.examples) for task in job.tasks)
    with taken_up(_HEADS):
        shapes = {"z": (count, *job.model.shape, job.model.head_dim), "right": (2, count)}
        check_shapes(kept.arrays, shapes)
    job.note("reading heads", kept.arrays["right"].shape[1])
    with torch.inference_mode(False):
        z, right = (torch.from_numpy(kept.arrays[name]) for name in ("z", "right"))
        return z.to(job.model.device), right.to(job.model.device)


def _answer_means(model: Model, batch: Batch, k: int, where: Tensor) -> tuple[Tensor, Tensor]:
    """z averaged over the chosen answer tokens, (batch, layer, head, dim), and the logits.

    z is kept at the answer's positions only.
    """
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
    return torch.stack([_as_wide(model, mean) for mean in kept], dim=1), logits


def _as_wide(model: Model, mean: Tensor) -> Tensor:
    """A layer's heads (batch, head, dim) with zeros behind them up to the widest layer's dim."""
    missing = model.head_dim - mean.shape[-1]
    return torch.nn.functional.pad(mean, (0, missing)) if missing else mean


def informative(logits: Tensor, batch: Batch, k: int) -> Tensor:
    """1 at the ``k`` answer tokens with the highest surprisal, (batch, answer token).

    1 at all tokens of a shorter answer.
    """
    answer, counts = batch.answer.to(logits.device), batch.counts.to(logits.device)
    logits = logits.float()
    surprisal = logits.logsumexp(-1) - logits.gather(-1, answer[..., None]).squeeze(-1)
    among = surprisal.masked_fill(counts == 0, -torch.inf)
    highest = among.topk(min(k, answer.shape[1]), dim=1).indices
    return torch.zeros_like(surprisal).scatter_(1, highest, 1.0) * counts


def _share(counts: Tensor) -> Tensor:
    """Weights that sum to 1 over the answer's tokens."""
    return counts.float() / counts.sum(1, keepdim=True)


def _average(here: Tensor, weights: Tensor) -> Tensor:
    # a sum, and not einsum: a product of matrices would follow the caller's autocast
    return (here.float() * weights.to(here.device)[:, :, None, None]).sum(1)


# ---- fitting, fold by fold ----


def run(job: Job) -> Iterator[Chunk | Report]:
    """A chunk a task for every fold.

    Ctrl-C keeps the folds that are done; before the first there is nothing to keep.
    """
    options: Probe = job.options
    evaluation = Evaluation(job, fold_count(job.tasks, options), options.seeds)
    planned = splits(job.tasks, options, job.seed)
    held_out: list[int] = []
    for split in planned:
        held_out += split.held_out
    yield evaluation.expect(held_out)
    trained = False
    try:
        kept = _kept_heads(job)
        z, right = kept or read(job)
        if kept is None:
            _keep_heads(job, z, right)
        yield evaluation.answered(right.cpu().numpy())
        trained = bool(done := evaluation.go_on())
        for split in planned[done:]:
            importance = _fold(z, split, evaluation)
            values, answered, _ = to_host(importance, right[:, split.held_out])
            trained = True
            yield evaluation.report()
            yield from evaluation.chunks(split.held_out, values, answered)
            evaluation.keep()
    except KeyboardInterrupt:
        if trained:
            raise
        raise KeyboardInterrupt(
            "the probe was stopped before it was trained: there are no scores to keep yet."
        ) from None


def _fold(z: Tensor, split: Split, evaluation: Evaluation) -> Tensor:
    """Fit a fold's probes, and beside each its control.

    The probes' mean importance on the held-out examples, (example, layer, head).
    """
    job = evaluation.job
    options: Probe = job.options
    training = options.training()
    labels, shuffled = evaluation.labels, _shuffled(evaluation.labels, split, job.seed)
    true_tasks, control_tasks = labels[split.held_out], shuffled[split.held_out]

    def device(indices: Sequence[int] | npt.NDArray[np.int64]) -> Tensor:
        return torch.as_tensor(indices, dtype=torch.long).to(z.device)

    held_out = device(split.held_out)
    importance = torch.zeros(len(held_out), *z.shape[1:3], dtype=torch.float32, device=z.device)
    for seed in range(job.seed, job.seed + options.seeds):
        train, validation = split.train_and_validation(options.validation or 0.0, seed)
        x = Features.of(z)
        if options.standardise:
            x = x.standardised(device(train))
        unseen = x.at(held_out)
        probe, epochs = fit(
            x,
            device(labels),
            device(train),
            device(validation),
            len(job.tasks),
            training,
            seed,
            evaluation.note_epoch("labels"),
        )
        importance += probe.importance(unseen, device(true_tasks)) / options.seeds
        evaluation.fitted(epochs, len(train), len(validation), true_tasks, _choices(probe, unseen))
        control, _ = fit(
            x,
            device(shuffled),
            device(train),
            held_out[:0],
            len(job.tasks),
            dataclasses.replace(training, epochs=epochs),
            seed,
            evaluation.note_epoch("shuffled labels"),
        )
        control_importance = control.importance(unseen, device(control_tasks)).cpu().numpy()
        evaluation.controlled(control_tasks, _choices(control, unseen), control_importance)
    return importance


def _shuffled(labels: npt.NDArray[np.int64], split: Split, seed: int) -> npt.NDArray[np.int64]:
    """The control's labels: shuffled among the held-out examples, and among the others.

    Apart, so that the control has as many examples of each task.
    """
    shuffled = labels.copy()
    rng = random.Random(f"{seed} {split.held_out}")
    rest: list[int] = []
    for examples in split.rest:
        rest += examples
    for places in (split.held_out, rest):
        shuffled[places] = labels[rng.sample(places, len(places))]
    return shuffled


def _choices(classifier: Classifier, x: Features) -> npt.NDArray[np.int64]:
    """The task that each example is taken for."""
    return classifier.logits(x).argmax(1).cpu().numpy()


def check(model: Model) -> None:
    """A probe reads all heads at the same tokens."""
    why = "reads all heads' outputs at the same tokens"
    refuse_encoder_decoder(model, "probe", why)
    refuse_classifier(model, "probe", why)


METHOD = Method(
    "probe",
    run,
    Probe,
    signed=True,
    ranked_by="size",
    together=True,
    check=check,
    check_tasks=check_tasks,
    # a probe may well tell apart what the model cannot do
    chance_consequence="heads that tell this task from others do not solve it",
    about="The head's part in how a small classifier tells this task from the others.",
    explained=(
        "A small classifier learns to tell the tasks apart from the outputs of all heads. A head's "
        "score is its part in the task's logit on prompts that were held out: gradient times "
        "activation, shown by size.",
        "Look at the held-out accuracy in About first: near chance the map is noise. The dashed "
        "line on the colour bar is what shuffled labels give.",
        "It says where tasks can be told apart, not which heads do them: turn the top heads off "
        "to see that.",
    ),
    paper=("Ma et al. 2025", "https://arxiv.org/abs/2512.10978"),
)
