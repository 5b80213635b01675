"""Knock-out: a task's top heads turned off, or up, beside random heads of the same layers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from headwidget.display.effect import Effect
from headwidget.interventions.arguments import head_counts, named_scores
from headwidget.interventions.head_sets import head_sets
from headwidget.interventions.measuring import Work, measured_task
from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward, option_checks
from headwidget.scoring.progress import Progress
from headwidget.scoring.score import listed
from headwidget.tasks import Task


def knockout(
    model: Model,
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
    tasks: Task | str | Iterable[Task],
    k: int | Iterable[int] = (1, 4, 16),
    draws: int = 5,
    prompts: int = 20,
    *,
    factor: float = 0.0,
    by: Literal["mean", "size"] | None = None,
    others: Literal["all", "top", "none"] = "all",
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Effect:
    """Turn off the top-k heads of each scored task, and measure every task before and after.

    As control, the same is done ``draws`` times to k random heads of the same layers.

    ``scores`` may be several, ``{"name": scores, …}`` or a list (named by method), whose
    top heads are then tried side by side. ``tasks`` are all measured; top heads are taken
    from those that the scores have. Top heads have the largest mean (``by="mean"``: for
    signed scores those that help most) or the largest ``|mean|`` (``by="size"``, a probe's
    default). ``factor`` multiplies the heads' outputs: 0 turns them off.

    A control has as many heads in each layer as the top heads have, none of them a top
    head, as long as the layer has enough others; where it has not, all its others and, at
    random, as many of its top heads as are missing (``in_top`` in the frame says how
    many). Draws differ from each other; where there are fewer different sets than
    ``draws``, there are fewer draws.

    ``prompts`` of each task are measured, drawn with ``seed``: first those that no scores
    were made from, and among them those held out. ``others`` says what is measured on the
    tasks whose heads they are not: ``"all"`` sets, ``"top"`` heads only (much less work),
    or ``"none"``. Ctrl-C gives what is done so far, marked partial.

    >>> import headwidget as hw
    >>> examples = [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")]
    >>> model, task = hw.load(), hw.Task("capitals", examples)
    >>> scores = hw.score(model, task, progress=False)
    >>> effect = hw.knockout(model, scores, task, k=(1, 2), draws=2, progress=False)
    >>> effect.frame[["k", "kind", "draw"]].values.tolist()[:3]
    [[1, 'top', 0], [1, 'control', 1], [1, 'control', 2]]
    """
    if not isinstance(model, Model):
        raise TypeError(
            "hw.knockout takes what hw.load gives, e.g. hw.load(model, tokenizer); "
            f"got a {type(model).__name__}."
        )
    ks = head_counts(k, model)
    draws, prompts, batch_size, seed = map(option_checks.plain, (draws, prompts, batch_size, seed))
    option_checks.at_least("draws", draws, 1)
    option_checks.at_least("prompts", prompts, 1)
    option_checks.batch_size(batch_size)
    option_checks.seed(seed)
    _check_factor(factor)
    if by is not None:
        option_checks.one_of("by", by, ("mean", "size"))
    option_checks.one_of("others", others, ("all", "top", "none"))
    named = named_scores(scores, model, stacklevel=2)
    chosen = list(listed(tasks, seed))
    sets = head_sets(named, [task.name for task in chosen], ks, draws, by, seed, model)
    measured = [measured_task(task, named, prompts, seed, model) for task in chosen]
    work = Work(model, float(factor), sets, measured, others)
    meta = {
        "model": model.name,
        "weights": model.fingerprint(),
        "k": ks,
        "draws": draws,
        "prompts": prompts,
        "by": by,
        "others": others,
        "seed": seed,
    }
    return work.effect({**meta, "partial": _run(work, batch_size, progress)})


def _check_factor(factor: Any) -> None:
    is_number = isinstance(factor, (int, float, np.number)) and not isinstance(factor, bool)
    if not is_number or not math.isfinite(factor):
        raise ValueError(
            "factor is what the heads' outputs are multiplied by, a finite number "
            f"(0 turns them off); got {factor!r}."
        )


def _run(work: Work, batch_size: int | None, progress: bool) -> bool:
    """Measure everything; True where Ctrl-C stopped it after the first rows."""
    title = "knockout" if work.factor == 0 else f"heads × {work.factor:g}"
    with Progress(work.total, "prompts", title, progress) as bar:
        try:
            for task in work.tasks:
                gates, examples = work.gates(task), task.encoded.examples
                for landed in gated_forward.run(work.model, examples, gates, batch_size):
                    task.add(landed, work.model)
                    bar.note(task.name, len(landed.values) * len(landed.runs))
        except KeyboardInterrupt:
            if not work.rows():
                raise
            return True
    return False


def amplify(
    model: Model,
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
    tasks: Task | str | Iterable[Task],
    k: int | Iterable[int] = (1, 4, 16),
    draws: int = 5,
    prompts: int = 20,
    *,
    factor: float = 2.0,
    **options: Any,
) -> Effect:
    """As :func:`knockout`, with the heads' outputs multiplied by ``factor``; same options.

    >>> import headwidget as hw
    >>> examples = [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")]
    >>> model, task = hw.load(), hw.Task("capitals", examples)
    >>> scores = hw.score(model, task, progress=False)
    >>> hw.amplify(model, scores, task, k=1, draws=1, progress=False).factor
    2.0
    """
    return knockout(model, scores, tasks, k, draws, prompts, factor=factor, **options)
