"""The category of each task, and the categories that each head reaches at a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.scores import threshold as rules

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores


class Categories(Mapping[str, str]):
    """The category of each task that has one, read-only; called, the categories of each head.

    >>> from headwidget import HeadScores
    >>> arrays = {"copy": [[0.1, 0.9]], "name": [[0.0, 0.2]]}
    >>> categories = {"copy": "Algorithmic", "name": "Algorithmic"}
    >>> scores = HeadScores.from_arrays(arrays, method="mine", categories=categories)
    >>> scores.categories["copy"], scores.categories(0.15)
    ('Algorithmic', {(0, 0): frozenset(), (0, 1): frozenset({'Algorithmic'})})
    """

    __slots__ = ("_of", "_scores")

    def __init__(self, of: Mapping[str, str], scores: HeadScores) -> None:
        self._of, self._scores = dict(of), scores

    def __call__(
        self, threshold: float | None = None, **settings: Any
    ) -> dict[tuple[int, int], frozenset[str]]:
        """For each head, as (layer, head), the set of its categories.

        They are those with a task in which the head reaches ``threshold``; the set of a
        head without any is empty, and a head that was not measured is left out. It is what
        the categories view shows, and takes its settings: ``rule``, ``sign``, ``reduction``,
        ``normalize``, and ``tasks`` (which ones count). A task without a category is one of
        its own. Without a threshold, heads are sorted as the view starts: at 0.15 for
        relations, else at each task's elbow.
        """
        if "view" in settings:
            raise TypeError(
                "categories(threshold) is the categories view; it takes its other settings, "
                "not the view's name."
            )
        if threshold is not None:
            settings = {**settings, "threshold": threshold}
        scores = self._scores
        asked = rules.settings(scores, **settings)
        masks = rules.members(scores, asked)
        counted = scores.tasks if not asked.tasks else asked.tasks
        measured = np.logical_or.reduce([scores.measured(task) > 0 for task in counted])
        categories_of_head = {}
        for row, head in np.argwhere(measured).tolist():
            names = frozenset(name for name, mask in masks.items() if mask[row, head])
            categories_of_head[scores.layers[row], head] = names
        return categories_of_head

    def __getitem__(self, task: str) -> str:
        return self._of[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return f"Categories({self._of!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Categories, (self._of, self._scores)
