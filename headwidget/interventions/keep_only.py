"""Are the heads that a method keeps enough? All others off, beside as many random heads."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.interventions.arguments import same_model
from headwidget.interventions.measuring import mean_answers
from headwidget.interventions.sampling import controls
from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scoring import gated_forward, option_checks
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.scoring.progress import Progress
from headwidget.scoring.score import listed
from headwidget.tasks import Task

if TYPE_CHECKING:
    import pandas as pd


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
    """Turn off every head below ``threshold`` and measure each task with what is left.

    This is done run by run of ``scores`` (fit by fit for gating). The frame has a row for
    the whole model (``kind`` "all"), one for the heads that each run keeps ("kept") and
    ``draws`` for as many random heads in each layer as it keeps there ("random"):
    ``heads`` on, accuracy, the share that beats the foil, and mean log-probability of the
    answer.

    >>> import headwidget as hw
    >>> examples = [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")]
    >>> model, task = hw.load(), hw.Task("capitals", examples)
    >>> scores = hw.score(model, task, progress=False)
    >>> frame = hw.keep_only(model, scores, task, threshold=-99, draws=1, progress=False)
    >>> frame[["kind", "heads"]].values.tolist()[:2]
    [['all', 270], ['kept', 270]]
    """
    if not isinstance(model, Model):
        raise TypeError(
            "hw.keep_only takes what hw.load gives, e.g. hw.load(model, tokenizer); "
            f"got a {type(model).__name__}."
        )
    if not isinstance(scores, HeadScores):
        raise TypeError(
            f"scores must be what hw.score or hw.open gives; got a {type(scores).__name__}."
        )
    if isinstance(threshold, (str, bool)) or not math.isfinite(threshold):
        raise ValueError(f"threshold is a finite number; got {threshold!r}.")
    draws, batch_size, seed = map(option_checks.plain, (draws, batch_size, seed))
    option_checks.at_least("draws", draws, 0)
    option_checks.batch_size(batch_size)
    option_checks.seed(seed)
    same_model(scores.method, scores, model, stacklevel=2)
    chosen = [encode(task, model) for task in listed(tasks, seed) if task.name in scores.tasks]
    if not chosen:
        raise ValueError(
            "none of the tasks is in the scores, which have "
            f"{', '.join(map(repr, scores.tasks))}: there are no heads to keep."
        )
    work = [(task, _settings(scores, task.name, threshold, draws, seed)) for task in chosen]
    rows: list[dict[str, Any]] = []
    total = sum(len(task.examples) * len(settings) for task, settings in work)
    with Progress(total, "prompts", "keep only", progress) as bar:
        for task, settings in work:
            gates = np.stack([setting.on for setting in settings]).astype(np.float32)
            values = np.empty((len(settings), len(task.examples), 3), np.float32)
            for landed in gated_forward.run(model, task.examples, gates, batch_size):
                values[landed.settings, list(landed.runs)] = landed.values
                bar.note(task.name, len(landed.values) * len(landed.runs))
            rows += [_row(task, setting, of_runs) for setting, of_runs in zip(settings, values)]
    import pandas as pd

    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _Setting:
    """Which heads are on, and why these."""

    kind: str
    run: str
    draw: int
    on: npt.NDArray[np.bool_]
    """(layer, head)."""


def _settings(
    scores: HeadScores, task: str, threshold: float, draws: int, seed: int
) -> list[_Setting]:
    """The whole model first, then every run's heads, each followed by its controls."""
    settings = [_Setting("all", "", 0, np.ones(scores.shape, bool))]
    for run, values in zip(scores.runs(task), scores.values(task)):
        kept = values >= np.float32(threshold)  # (layer, head)
        settings.append(_Setting("kept", run, 0, kept))
        heads = [(int(row), int(head)) for row, head in np.argwhere(kept)]
        random_sets = controls(heads, scores.shape[1], draws, seed) if heads else []
        for draw, random_heads in enumerate(random_sets, 1):
            on = np.zeros(scores.shape, bool)
            on[tuple(np.array(random_heads).T)] = True
            settings.append(_Setting("random", run, draw, on))
    return settings


def _row(task: EncodedTask, setting: _Setting, values: npt.NDArray[np.float32]) -> dict[str, Any]:
    return {
        "task": task.name,
        "kind": setting.kind,
        "run": setting.run,
        "draw": setting.draw,
        "heads": int(setting.on.sum()),
        **mean_answers(values, task),
    }
