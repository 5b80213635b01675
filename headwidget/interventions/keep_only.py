"""Are the heads that a method keeps enough? All others off, beside as many random heads of the same layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.interventions.knockout import controls, same_model
from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward
from headwidget.scoring.checks import at_least
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.scoring.progress import Progress
from headwidget.scoring.score import listed
from headwidget.tasks import Task

if TYPE_CHECKING:
    import pandas as pd

Mask = npt.NDArray[np.bool_]


def keep_only(
    model: Model,
    scores: HeadScores,
    tasks: Task | str | Iterable[Task],
    threshold: float = 0.5,
    draws: int = 3,
    *,
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Turn off every head below ``threshold``, run by run of ``scores`` (fit by fit for gating), and measure each task with what is left.

    The frame has a row for the whole model (``kind`` "all"), one for the heads that each run keeps ("kept") and ``draws`` for as many random heads in
    each layer as it keeps there ("random"): ``heads`` on, accuracy, the share that beats the foil, and mean log-probability of the answer.

    >>> import headwidget as hw
    >>> model, task = hw.load(), hw.Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")])
    >>> frame = hw.keep_only(model, hw.score(model, task, progress=False), task, threshold=-99, draws=1, progress=False)
    >>> frame[["kind", "heads"]].values.tolist()[:2]
    [['all', 270], ['kept', 270]]
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"hw.keep_only takes what hw.load gives, e.g. hw.load(model, tokenizer); got a {type(model).__name__}."
        )
    if not isinstance(scores, HeadScores):
        raise TypeError(
            f"scores must be what hw.score or hw.open gives; got a {type(scores).__name__}."
        )
    if isinstance(threshold, (str, bool)) or not math.isfinite(threshold):
        raise ValueError(f"threshold is a finite number; got {threshold!r}.")
    at_least("draws", draws, 0)
    same_model(scores.method, scores, model)
    chosen = [encode(task, model) for task in listed(tasks, seed) if task.name in scores.tasks]
    if not chosen:
        raise ValueError(
            f"none of the tasks is in the scores, which have {', '.join(map(repr, scores.tasks))}: there are no heads to keep."
        )
    work = [(task, _settings(scores, task.name, threshold, draws, seed)) for task in chosen]
    rows: list[dict[str, Any]] = []
    with Progress(
        sum(len(task.examples) * len(settings) for task, settings in work),
        "prompts",
        "keep only",
        progress,
    ) as bar:
        for task, settings in work:
            values = np.empty((len(settings), len(task.examples), 3), np.float32)
            for landed in gated_forward.run(
                model,
                task.examples,
                np.stack([on for *_, on in settings]).astype(np.float32),
                batch_size,
            ):
                values[landed.settings, list(landed.runs)] = landed.values
                bar.note(task.name, len(landed.values) * len(landed.runs))
            rows += [_row(task, *setting, found) for setting, found in zip(settings, values)]
    import pandas as pd

    return pd.DataFrame(rows)


def _settings(
    scores: HeadScores, task: str, threshold: float, draws: int, seed: int
) -> list[tuple[str, str, int, Mask]]:
    """Kind, run, draw and which heads are on: the whole model first, then every run's heads and their controls."""
    found = [("all", "", 0, np.ones(scores.shape, bool))]
    for label, values in zip(scores.runs(task), scores.values(task)):
        on = values >= np.float32(threshold)  # (layer, head)
        found.append(("kept", label, 0, on))
        heads = [(int(row), int(head)) for row, head in np.argwhere(on)]
        for draw, others in enumerate(
            controls(heads, scores.shape[1], draws, seed) if heads else [], 1
        ):
            off = np.zeros(scores.shape, bool)
            off[tuple(np.array(others).T)] = True
            found.append(("random", label, draw, off))
    return found


def _row(
    task: EncodedTask, kind: str, run: str, draw: int, on: Mask, values: npt.NDArray[np.float32]
) -> dict[str, Any]:
    log_p, right, beats = values.astype(np.float64).T
    foiled = np.array([e.foil is not None for e in task.examples])
    return {
        "task": task.name,
        "kind": kind,
        "run": run,
        "draw": draw,
        "heads": int(on.sum()),
        "accuracy": float(right.mean()),
        "beats_foil": float(beats[foiled].mean()) if foiled.any() else math.nan,
        "log_probability": float(log_p.mean()),
    }
