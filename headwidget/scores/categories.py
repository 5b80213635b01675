"""Categories: which one each task belongs to, and by a threshold which ones each head does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headwidget.scores import threshold as rules

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores


class Categories(Mapping[str, str]):
    """The category of each task that has one, read-only; called, the categories of each head.

    >>> from headwidget import HeadScores
    >>> scores = HeadScores.from_arrays({"copy": [[0.1, 0.9]], "name": [[0.0, 0.2]]}, method="mine", categories={"copy": "Algorithmic", "name": "Algorithmic"})
    >>> scores.categories["copy"], scores.categories(0.15)
    ('Algorithmic', {(0, 0): frozenset(), (0, 1): frozenset({'Algorithmic'})})
    """

    __slots__ = ("_of", "_scores")

    def __init__(self, of: Mapping[str, str], scores: HeadScores) -> None:
        self._of, self._scores = dict(of), scores

    def __call__(
        self, threshold: float | None = None, **settings: Any
    ) -> dict[tuple[int, int], frozenset[str]]:
        """For each head, as (layer, head), the set of its categories: those with a task in which it reaches ``threshold``; no category, an empty set.

        It is what the categories view shows, and takes its settings: ``rule``, ``sign``, ``reduction``, ``normalize``, and ``tasks`` (which ones count).
        A task without a category is one of its own. Without a threshold, heads are sorted as the view starts: at 0.15 for relations, else at each
        task's elbow.
        """
        if "view" in settings:
            raise TypeError(
                "categories(threshold) is the categories view; it takes its other settings, not the view's name."
            )
        asked = {**settings, **({} if threshold is None else {"threshold": threshold})}
        found = rules.members(self._scores, rules.settings(self._scores, **asked))
        heads = (
            (row, head)
            for row in range(self._scores.shape[0])
            for head in range(self._scores.shape[1])
        )
        return {
            (self._scores.layers[row], head): frozenset(
                c for c, mask in found.items() if mask[row, head]
            )
            for row, head in heads
        }

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
