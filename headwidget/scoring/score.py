"""``hw.score``: checks all that was asked, then scores it. Ctrl-C keeps what is done."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from headwidget.models import Model, load
from headwidget.scores import HeadScores
from headwidget.scoring import option_checks, registry, results
from headwidget.scoring.checkpoint import Checkpoint
from headwidget.scoring.encode import encode
from headwidget.scoring.progress import Progress
from headwidget.scoring.run import Scoring
from headwidget.tasks import Task, suite

__all__ = ["Scoring", "listed", "prepare", "score"]

KEYWORDS = (
    *("model", "tasks", "method", "batch_size", "only_correct", "seed", "progress"),
    "checkpoint",
)
"""What :func:`score` takes by name; its other keywords are options of the method."""


def score(
    model: Model | Any,
    tasks: Task | str | Iterable[Task],
    method: str = "gradient",
    *,
    batch_size: int | None = None,
    only_correct: bool = False,
    seed: int = 0,
    progress: bool = True,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> HeadScores:
    """Score every head of ``model`` on ``tasks``: a Task, several, or a built-in suite's name.

    ``method`` is ``"gradient"``, ``"ablation"``, ``"attribution"``, ``"probe"``,
    ``"gating"``, ``"relations"``, ``"patterns"``, or one that was added with
    :func:`headwidget.register_method`. Further keywords are the method's own options
    (``replace="mean"``, …). ``only_correct`` leaves out prompts whose answer is not the
    model's own first choice. Ctrl-C gives what is done so far, marked partial. A task of which
    the model answers (nearly) nothing right gives a warning with the likely cause.

    ``checkpoint`` is the path of a file in which scores are kept as they land. However a run was
    ended, the same call goes on where it stood; that of another model, method, task or seed is
    refused.

    >>> import headwidget as hw
    >>> examples = [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")]
    >>> task = hw.Task("capitals", examples)
    >>> hw.score(hw.load(), task, progress=False).values("capitals").shape
    (2, 30, 9)
    """
    scoring = prepare(model, tasks, method, KEYWORDS, batch_size=batch_size, seed=seed, **options)
    if only_correct and scoring.method.encode is not None:
        raise ValueError(
            f"method {method!r} asks the model no questions, so it cannot keep the prompts that "
            "it answers right; leave only_correct out."
        )
    if checkpoint is not None:
        scoring.checkpoint = Checkpoint(checkpoint)
    told: list[str] = []
    try:
        return _scored(scoring, only_correct, progress, told)
    finally:
        if scoring.checkpoint is not None:
            scoring.checkpoint.close()
            _tell(scoring, told, 3)


def _tell(scoring: Scoring, told: list[str], stacklevel: int) -> None:
    """Warn, once, where the checkpoint is not written any more."""
    if scoring.checkpoint is not None and (sentence := scoring.checkpoint.broken) and not told:
        told.append(sentence)
        warnings.warn(sentence, stacklevel=stacklevel)


def _scored(scoring: Scoring, only_correct: bool, progress: bool, told: list[str]) -> HeadScores:
    """Score it all; what is done, where that is stopped. ``told`` is what was warned of."""
    if only_correct:
        scoring.keep_correct()
    partial = False
    hooked = ", prompts one by one for your hooks" if scoring.model.hooked else ""
    with Progress(*scoring.steps(), scoring.method.name + hooked, progress) as bar:
        try:
            for _ in scoring.land(bar.note):
                _tell(scoring, told, 4)
        except KeyboardInterrupt:
            partial = True
            if not any(scoring.begun(task) for task in scoring.tasks):
                raise
    scores = scoring.scores(partial=partial)
    for name in scores.tasks:
        if sentence := results.few_right(scoring, name, scores.record.task(name)):
            warnings.warn(f"task {name!r}: {sentence}", stacklevel=3)
    return scores


def prepare(
    model: Model | Any,
    tasks: Task | str | Iterable[Task],
    method: str,
    keywords: Sequence[str] = (),
    /,
    *,
    batch_size: int | None,
    seed: int,
    **options: Any,
) -> Scoring:
    """Check all that was asked and tokenise it, before any forward.

    ``keywords`` are what the caller takes by name beside the method's options.
    """
    if not isinstance(model, Model):
        if isinstance(model, torch.nn.Module):
            raise TypeError(
                "hw.score takes what hw.load gives; for a model you already have: "
                "hw.score(hw.load(model, tokenizer), …)."
            )
        model = load(model)
    chosen = registry.find(method)
    checked_options = registry.options(chosen, options, keywords)
    chosen.check(model)
    option_checks.batch_size(batch_size)
    option_checks.seed(seed)
    sources = listed(tasks, seed)
    if chosen.encode is None:
        encoded = [encode(task, model) for task in sources]
    else:
        encoded = chosen.encode(sources, model, checked_options, seed)
    chosen.check_tasks(model, encoded, checked_options)
    registry.check_recordable(chosen, checked_options)
    return Scoring(model, chosen, checked_options, encoded, batch_size, seed, sources)


def listed(tasks: Task | str | Iterable[Task], seed: int) -> Sequence[Task]:
    """The tasks that were asked for, as a list, or a sentence about what is wrong with them."""
    wanted = "tasks must be hw.Task objects or a suite's name"
    if isinstance(tasks, str):
        return suite(tasks, seed=seed)
    if not isinstance(tasks, Iterable) and not isinstance(tasks, Task):
        raise TypeError(f"{wanted}; got a {type(tasks).__name__}.")
    if isinstance(tasks, Mapping):
        raise TypeError(
            f"{wanted}; got a dict. Make one with hw.Task(name, examples) or hw.Task.read."
        )
    task_list = [tasks] if isinstance(tasks, Task) else list(tasks)
    if not task_list:
        raise ValueError(
            "no tasks to score: give a Task, a list of them, or the name of a suite such as "
            "'math-syntax'."
        )
    for task in task_list:
        if not isinstance(task, Task):
            raise TypeError(
                f"{wanted}; got a {type(task).__name__}. "
                "Make one with hw.Task(name, [(prompt, answer), …])."
            )
    counts = Counter(task.name for task in task_list)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"two tasks are named {repeated[0]!r}; give each a name of its own.")
    return task_list
