"""Which heads a knock-out changes: the top heads of each task, and their random controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwidget.interventions.sampling import Head, controls
from headwidget.models import Model
from headwidget.scores import HeadScores, rank


@dataclass(frozen=True)
class HeadSet:
    """Heads that are changed together, and where they come from."""

    method: str
    """The name of the scores that they come from."""
    heads_of: str
    """The task whose top heads they are, or are controls of."""
    k: int
    draw: int
    """0 for the top heads, controls from 1."""
    heads: tuple[Head, ...]
    in_top: int
    """How many of the heads are top heads."""

    @property
    def kind(self) -> str:
        """``"top"`` or ``"control"``."""
        return "control" if self.draw else "top"


def head_sets(
    named: Mapping[str, HeadScores],
    tasks: Sequence[str],
    ks: Sequence[int],
    draws: int,
    by: rank.RankedBy | None,
    seed: int,
    model: Model,
) -> list[HeadSet]:
    """The top heads of every task in every scores, and their controls. ``ks`` ascend."""
    if not any(set(scores.tasks) & set(tasks) for scores in named.values()):
        raise ValueError(
            f"none of the tasks {_listed(tasks)} is in the scores, which have "
            f"{_listed(_task_names(named))}: there are no top heads."
        )
    sets = []
    for method, scores in named.items():
        for task in tasks:
            if task not in scores.tasks:
                continue
            ranked = rank.top(scores, task, ks[-1], by=by)  # (row, head)
            for k in ks:
                top = tuple(ranked[:k])
                sets.append(HeadSet(method, task, k, 0, top, k))
                for draw, heads in enumerate(controls(top, model.n_heads, draws, seed), 1):
                    in_top = len(set(heads) & set(top))
                    sets.append(HeadSet(method, task, k, draw, heads, in_top))
    return sets


def _task_names(named: Mapping[str, HeadScores]) -> list[str]:
    """The tasks of all scores, each once."""
    names: dict[str, None] = {}
    for scores in named.values():
        names.update(dict.fromkeys(scores.tasks))
    return list(names)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
