"""Tasks: prompts with their answers, from Python, CSV, JSONL, a data frame or a dataset; and the built-in suites."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headwidget.tasks.suites import suite as suite

__all__ = ["Example", "Task", "suite"]


class Example(NamedTuple):
    """One prompt, the answer that should follow (as written, leading space and all), and a wrong answer where there is one."""

    prompt: str
    answer: str
    foil: str | None = None


@dataclass(frozen=True, init=False)
class Task:
    """A named list of examples that ask the same of a model.

    >>> task = Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome", " Paris")])
    >>> len(task), task.examples[1].foil
    (2, ' Paris')
    """

    name: str
    examples: tuple[Example, ...]
    category: str | None

    def __init__(self, name: str, examples: Iterable[tuple[str, str] | tuple[str, str, str | None]], category: str | None = None) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a task needs a name; got {name!r}.")
        if category is not None and not isinstance(category, str):
            raise ValueError(f"task {name!r}: the category must be text; got {category!r}.")
        if isinstance(examples, str):
            raise ValueError(f"task {name!r}: examples is a list of (prompt, answer) or (prompt, answer, foil); got the text {examples!r}.")
        checked = tuple(_example(name, i, e) for i, e in enumerate(examples))
        if not checked:
            raise ValueError(f"task {name!r} has no examples; give it a list of (prompt, answer) or (prompt, answer, foil).")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "examples", checked)
        object.__setattr__(self, "category", category)

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {len(self)} example{'s' * (len(self) != 1)}{f', category {self.category!r}' if self.category else ''})"

    def sample(self, count: int, *, seed: int = 0) -> Task:
        """The same task with ``count`` of its examples, drawn with a seed; all of them when there are fewer.

        >>> len(Task("sums", [(f"{n} + 1 =", f" {n + 1}") for n in range(9)]).sample(4))
        4
        """
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"task {self.name!r}: a sample has 1 example or more; got {count!r}.")
        drawn = random.Random(seed).sample(range(len(self)), min(count, len(self)))
        return Task(self.name, [self.examples[i] for i in sorted(drawn)], self.category)

    @classmethod
    def read(
        cls,
        source: Any,
        name: str | None = None,
        *,
        category: str | None = None,
        prompt: str = "prompt",
        answer: str = "answer",
        foil: str = "foil",
    ) -> Task:
        """A task from a .csv, .jsonl or .json file, a pandas frame, a ``datasets.Dataset`` or a list of dicts.

        ``prompt``, ``answer`` and ``foil`` name the columns; the foil's may be missing. A file's task is named after it unless ``name`` says otherwise.

        >>> Task.read([{"q": "2 + 2 =", "a": " 4"}], "sums", prompt="q", answer="a").examples
        (Example(prompt='2 + 2 =', answer=' 4', foil=None),)
        """
        if name is None:
            if not isinstance(source, (str, Path)):
                raise ValueError("a task read from data in memory needs a name: Task.read(data, 'name').")
            name = Path(source).stem
        examples = []
        for i, row in enumerate(_rows(source)):
            if missing := [column for column in (prompt, answer) if column not in row]:
                have = ", ".join(map(repr, row))
                raise ValueError(f"task {name!r}, row {i}: no column {missing[0]!r}; it has {have}. Name yours with prompt=…, answer=…, foil=….")
            wrong = row.get(foil)
            examples.append((row[prompt], row[answer], None if _blank(wrong) else wrong))
        return cls(name, examples, category)


def _example(task: str, i: int, given: Any) -> Example:
    """One checked example, or a sentence about what is wrong with it."""
    where = f"task {task!r}, example {i}"
    if isinstance(given, Mapping):
        raise ValueError(f"{where}: an example is (prompt, answer) or (prompt, answer, foil); for dicts, use hw.Task.read(rows, {task!r}).")
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") or len(given) not in (2, 3):
        raise ValueError(f"{where}: an example is (prompt, answer) or (prompt, answer, foil); got {given!r}.")
    example = Example(*given)
    for part, text in zip(("prompt", "answer", "foil"), example):
        if part == "foil" and text is None:
            continue
        if not isinstance(text, str):
            raise ValueError(f"{where}: the {part} must be text; got {text!r}.")
        if not text or (part == "prompt" and not text.strip()):
            raise ValueError(f"{where}: the {part} is empty; leave the example out or fill it in.")
    if example.foil == example.answer:
        raise ValueError(f"{where}: the foil {example.foil!r} is the answer itself; a foil is a wrong answer.")
    return example


def _rows(source: Any) -> Iterator[Mapping[str, Any]]:
    """The source's rows as dicts."""
    if isinstance(source, (str, Path)):
        yield from _file_rows(Path(source))
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):  # a pandas frame
        yield from source.to_dict("records")
    else:  # a datasets.Dataset and a list of dicts both give their rows when iterated
        for i, row in enumerate(source):
            if not isinstance(row, Mapping):
                raise ValueError(f"row {i} must be a dict of columns; got a {type(row).__name__}. For pairs, use hw.Task(name, pairs).")
            yield row


def _file_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    kind = path.suffix.lower()
    if kind == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            try:
                yield from csv.DictReader(file)
            except UnicodeDecodeError as error:
                raise ValueError(f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8.") from error
    elif kind == ".jsonl":
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _json_row(line, f"{path.name}, line {number}")
    elif kind == ".json":
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path.name}: not JSON ({error.msg} at line {error.lineno}).") from error
        if not isinstance(rows, list):
            raise ValueError(f"{path.name} must hold a JSON list of objects; it holds a {type(rows).__name__}.")
        yield from _rows(rows)
    else:
        raise ValueError(f"{path.name}: tasks are read from .csv, .jsonl or .json files; for others, pass a list of dicts or a frame.")


def _json_row(line: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON ({error.msg} at character {error.pos}).") from error
    if not isinstance(row, Mapping):
        raise ValueError(f"{where}: a row must be a JSON object; it is a {type(row).__name__}.")
    return row


def _blank(value: Any) -> bool:
    """No foil: None, an empty CSV cell, or pandas' NaN."""
    return value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"
