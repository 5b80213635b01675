"""How well the words alone tell tasks apart: the baseline beside any probe's accuracy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from headwidget.tasks.task import Example, Task


def words(example: Example) -> list[str]:
    """A prompt's words and marks, in lower case.

    >>> words(Example("2 + 3 = 5, it's\\n", " 4"))
    ['2', '+', '3', '=', '5', ',', 'it', "'", 's', '\\n']
    """
    return re.findall(r"\w+|[^\w ]", example.prompt.lower())


def surface_accuracy(
    tasks: Iterable[Task], seed: int = 0, *, features: Callable[[Example], Sequence[str]] = words
) -> dict[str, Any]:
    """How often a bag-of-words classifier tells which task a held-out prompt is from.

    It is multinomial naive Bayes on ``features`` (by default the prompt's words), trained on
    the tasks' other examples. ``seed`` draws a quarter of a task that has no held-out split,
    and breaks ties. ``accuracy`` is the mean over the tasks of the share that is recognised,
    so that a large task counts no more than a small one, ``chance`` is one in the number of
    tasks, and ``confusion[i, j]`` counts prompts of task ``i`` taken for task ``j``.

    >>> sums = Task("sums", [(f"add {letter}", " yes") for letter in "abcdefgh"])
    >>> verbs = Task("verbs", [(f"conjugate {letter}", " yes") for letter in "abcdefgh"])
    >>> surface_accuracy([sums, verbs])["accuracy"]
    1.0
    """
    listed = list(tasks)
    if len(listed) < 2:
        raise ValueError(f"telling tasks apart takes two or more; got {len(listed)}.")
    splits = [_split(task, seed) for task in listed]
    seen: set[str] = set()
    for train, _ in splits:
        for example in train:
            seen.update(features(example))
    vocabulary = {feature: i for i, feature in enumerate(sorted(seen))}
    totals = [_counts(train, vocabulary, features).sum(0) for train, _ in splits]
    counts = np.stack(totals) + 1.0  # (task, word), with Laplace smoothing
    log_p = np.log(counts / counts.sum(1, keepdims=True))
    confusion, rng = np.zeros((len(listed), len(listed)), int), np.random.default_rng(seed)
    for i, (_, held_out) in enumerate(splits):
        # (example, task); tasks are equally likely beforehand
        fits = _counts(held_out, vocabulary, features) @ log_p.T
        guesses = (fits + 1e-6 * rng.random(fits.shape)).argmax(1)
        confusion[i] = np.bincount(guesses, minlength=len(listed))
    return {
        "accuracy": float((np.diag(confusion) / confusion.sum(1)).mean()),
        "chance": 1 / len(listed),
        "confusion": confusion,
    }


def _split(task: Task, seed: int) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    if not task.held_out:
        if len(task) < 2:
            raise ValueError(
                f"task {task.name!r} has one example, so none can be held out; give it more."
            )
        drawn = np.random.default_rng(seed).permutation(len(task))[: max(1, len(task) // 4)]
        task = Task(task.name, task.examples, task.category, drawn.tolist())
    train, held_out = task.split()
    return train.examples, held_out.examples


def _counts(
    examples: Sequence[Example],
    vocabulary: dict[str, int],
    features: Callable[[Example], Sequence[str]],
) -> np.ndarray:
    """How often each example has each known word, (example, word)."""
    counts = np.zeros((len(examples), len(vocabulary)))
    for row, example in enumerate(examples):
        for feature in features(example):
            if (column := vocabulary.get(feature)) is not None:
                counts[row, column] += 1
    return counts
