"""The suite "relations": twenty relations in four categories (docs/relations.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

from headwidget.tasks.task import Task
from headwidget.tasks.word_pairs import Relation

FILE = "relations.jsonl"
"""A pair a line: name, category, source, target."""


def tasks(seed: int) -> list[Task]:
    """The twenty relations; nothing about them is drawn, so the seed changes nothing."""
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    file = resources.files("headwidget.tasks.suites").joinpath(FILE)
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        pairs.setdefault((row["name"], row["category"]), []).append((row["source"], row["target"]))
    return [Relation(name, listed, category) for (name, category), listed in pairs.items()]


def generated(
    words: Iterable[str], names: Iterable[str], years: Iterable[int]
) -> dict[str, list[tuple[str, str]]]:
    """The relations that are a rule rather than facts, by name.

    Their pairs in the file are these, for the words, names and years that stand there.

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
