"""A head's rank in a task: the one definition that every module and the browser use.

Twin of ``js/scores/rank.ts``; ``tests/golden/rank.json`` holds the two together. Heads are
ranked by their mean over runs or, where the scores say ``ranked_by = "size"``, by its
absolute value. A head's rank is 1 plus the number of heads with a strictly larger ranking
value, so that heads that tie share a rank. How scores are shown (sign, reduction,
threshold) changes no rank. A head that was not measured has none: 0 stands there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from headwidget.scores import reduce
from headwidget.scores.missing import known

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array

RankedBy = Literal["mean", "size"]
RANKED_BY: tuple[RankedBy, ...] = ("mean", "size")
Float = TypeVar("Float", bound=np.floating[Any])
Ranks = npt.NDArray[np.int64]


def check(ranked_by: object) -> RankedBy:
    """The value itself where it is one of the two, or a sentence.

    >>> check("size")
    'size'
    """
    for allowed in RANKED_BY:
        if isinstance(ranked_by, str) and ranked_by == allowed:
            return allowed
    raise ValueError(f"ranked_by is 'mean' or 'size' (of the mean); got {ranked_by!r}.")


def ranking_values(means: npt.NDArray[Float], ranked_by: RankedBy) -> npt.NDArray[Float]:
    """What heads are ranked by: the means, or their absolute values; same shape."""
    return np.abs(means) if ranked_by == "size" else means


def order(values: Array) -> Ranks:
    """For each of ``values``: 1 plus how many of them are strictly larger; same shape.

    >>> order(np.array([[0.5, 2.0], [0.5, -1.0], [np.nan, 0.0]], np.float32)).tolist()
    [[2, 1], [2, 5], [0, 4]]
    """
    places = 1 + np.searchsorted(np.sort(-known(values)), -values.ravel(), side="left")
    places[np.isnan(values.ravel())] = 0
    return places.reshape(values.shape)


def ranks(scores: HeadScores, task: str, *, by: RankedBy | None = None) -> Ranks:
    """The rank of every head in a task, (layer, head); 1 is first, 0 for no rank.

    >>> from headwidget import HeadScores
    >>> ranks(HeadScores.from_arrays({"copy": [[0.1, 0.9, -2.0]]}, method="mine"), "copy").tolist()
    [[2, 1, 3]]
    """
    return order(_of_task(scores, task, by))


def ranks_from_bottom(scores: HeadScores, task: str) -> Ranks:
    """The same counted from the other end, (layer, head); 1 is last."""
    return order(-_of_task(scores, task, None))


def top(
    scores: HeadScores, task: str, k: int, *, by: RankedBy | None = None
) -> list[tuple[int, int]]:
    """The first ``k`` heads as (row, head); of heads that tie, the lower row, then head, first."""
    return reduce.top(_of_task(scores, task, by), k)


def _of_task(scores: HeadScores, task: str, by: RankedBy | None) -> Array:
    return ranking_values(reduce.mean(scores.values(task)), by or scores.ranked_by)
