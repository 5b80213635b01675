"""Relations: pairs of words, source and target, and the suite "relations" of twenty of them in four categories (docs/relations.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

from headwidget.tasks import Task

FILE = "relations.jsonl"
"""A pair a line: name, category, source, target."""


class Relation(Task):
    """Words and what they are related to, for ``method="relations"``. A pair is scored where both words are one token behind a space.

    For methods that run the model, a relation is a task like any other: the source is the prompt and the target the answer.

    >>> capitals = Relation("country to capital", [("France", "Paris"), ("Japan", "Tokyo")], "Knowledge")
    >>> len(capitals), capitals.pairs[0], capitals.examples[0].answer
    (2, ('France', 'Paris'), ' Paris')
    """

    def __init__(self, name: str, pairs: Iterable[tuple[str, str]], category: str | None = None) -> None:
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise ValueError(f"relation {name!r}: pairs is a list of (source, target); got {pairs!r}.")
        super().__init__(name, [_words(name, i, pair) for i, pair in enumerate(pairs)], category)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Source and target, without the space."""
        return tuple((e.prompt, e.answer.strip()) for e in self.examples)

    def __repr__(self) -> str:
        return f"Relation({self.name!r}, {len(self)} pair{'s' * (len(self) != 1)}{f', category {self.category!r}' if self.category else ''})"

    def _of(self, chosen: Iterable[int]) -> Relation:
        return Relation(self.name, [self.pairs[i] for i in sorted(chosen)], self.category)


def _words(name: str, i: int, pair: object) -> tuple[str, str]:
    """A pair as prompt and answer, or a sentence about what is wrong with it."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(word, str) and word.strip() for word in pair):
        raise ValueError(f"relation {name!r}, pair {i}: a pair is (source, target), two words; got {pair!r}.")
    source, target = (word.strip() for word in pair)
    return source, f" {target}"


def tasks(seed: int) -> list[Task]:
    """The twenty relations; nothing about them is drawn, so the seed changes nothing."""
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in resources.files("headwidget.tasks").joinpath(FILE).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        pairs.setdefault((row["name"], row["category"]), []).append((row["source"], row["target"]))
    return [Relation(name, listed, category) for (name, category), listed in pairs.items()]


def generated(words: Iterable[str], names: Iterable[str], years: Iterable[int]) -> dict[str, list[tuple[str, str]]]:
    """The relations that are a rule rather than facts, by name: their pairs in the file are these, for its own words, names and years.

    >>> generated(["time"], ["Mary"], [1999])["word to last letter"]
    [('time', 'e')]
    """
    listed = list(words)
    return {
        "copying": [(word, word) for word in listed],
        "name copying": [(name, name) for name in names],
        "word to first letter": [(word, word[0]) for word in listed],
        "word to last letter": [(word, word[-1]) for word in listed],
        "year to following": [(str(year), str(year + 1)) for year in years],
    }
