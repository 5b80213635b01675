"""Relations: pairs of words, source and target."""

from __future__ import annotations

from collections.abc import Iterable

from headwidget.tasks.task import Task


class Relation(Task):
    """Words and what they are related to, for ``method="relations"``.

    A pair is scored where both words are one token behind a space. For methods that run the
    model, a relation is a task like any other: the source is the prompt, the target the answer.

    >>> pairs = [("France", "Paris"), ("Japan", "Tokyo")]
    >>> capitals = Relation("country to capital", pairs, "Knowledge")
    >>> len(capitals), capitals.pairs[0], capitals.examples[0].answer
    (2, ('France', 'Paris'), ' Paris')
    """

    def __init__(
        self, name: str, pairs: Iterable[tuple[str, str]], category: str | None = None
    ) -> None:
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise ValueError(
                f"relation {name!r}: pairs is a list of (source, target); got {pairs!r}."
            )
        super().__init__(name, [_words(name, i, pair) for i, pair in enumerate(pairs)], category)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Source and target, without the space."""
        return tuple((example.prompt, example.answer.strip()) for example in self.examples)

    def __repr__(self) -> str:
        count = f"{len(self)} pair{'s' * (len(self) != 1)}"
        category = f", category {self.category!r}" if self.category else ""
        return f"Relation({self.name!r}, {count}{category})"

    def only(self, chosen: Iterable[int]) -> Relation:
        """The same relation with only the chosen pairs, in the relation's order."""
        return Relation(self.name, [self.pairs[i] for i in sorted(chosen)], self.category)


def _words(name: str, i: int, pair: object) -> tuple[str, str]:
    """A pair as prompt and answer, or a sentence about what is wrong with it."""
    if (
        not isinstance(pair, (tuple, list))
        or len(pair) != 2
        or not all(isinstance(word, str) and word.strip() for word in pair)
    ):
        raise ValueError(
            f"relation {name!r}, pair {i}: a pair is (source, target), two words; got {pair!r}."
        )
    source, target = (word.strip() for word in pair)
    return source, f" {target}"
