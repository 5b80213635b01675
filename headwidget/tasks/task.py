"""Tasks: prompts with their answers, from Python, CSV, JSONL, a data frame or a dataset."""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headwidget.scores import validation
from headwidget.tasks import media, readers
from headwidget.tasks.media import Media


class Example(NamedTuple):
    """One prompt, the answer that should follow, and a wrong answer where there is one.

    The answer is as written, with its leading space.
    """

    prompt: str
    answer: str
    foil: str | None = None
    media: tuple[Media, ...] = ()
    """Images and sounds beside the prompt."""


@dataclass(frozen=True, init=False)
class Task:
    """A named list of examples that ask the same of a model.

    ``held_out`` are the indices of those that nothing is fitted on. ``images`` and ``audio``
    have an entry for each example: an image (or a list of them), or a sound as ``(samples a
    second, samples)``; docs/models.md shows both. Where the model classifies them, the answer
    is a class and the prompt is only a name for the example.

    >>> france, italy = ("France is in", " Europe"), ("Italy's capital is", " Rome", " Paris")
    >>> task = Task("capitals", [france, italy], held_out=[1])
    >>> len(task), task.examples[1].foil, task.held_out
    (2, ' Paris', (1,))
    """

    name: str
    examples: tuple[Example, ...]
    category: str | None
    held_out: tuple[int, ...]

    def __init__(
        self,
        name: str,
        examples: Iterable[Example | tuple[str, str] | tuple[str, str, str | None]],
        category: str | None = None,
        held_out: Iterable[int] = (),
        *,
        images: Iterable[Any] | None = None,
        audio: Iterable[Any] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a task needs a name; got {name!r}.")
        validation.encodable(name, "a task's name")
        if category is not None and not isinstance(category, str):
            raise ValueError(f"task {name!r}: the category must be text; got {category!r}.")
        validation.encodable(category or "", f"task {name!r}: the category")
        if isinstance(examples, str) or not isinstance(examples, Iterable):
            got = "the text " if isinstance(examples, str) else ""
            raise ValueError(
                f"task {name!r}: examples is a list of (prompt, answer) or "
                f"(prompt, answer, foil); got {got}{examples!r}."
            )
        checked = tuple(_example(name, i, e) for i, e in enumerate(examples))
        if not checked:
            raise ValueError(
                f"task {name!r} has no examples; "
                "give it a list of (prompt, answer) or (prompt, answer, foil)."
            )
        if images is not None or audio is not None:
            beside = media.beside(name, len(checked), images, audio)
            checked = tuple(e._replace(media=each) for e, each in zip(checked, beside))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "examples", checked)
        object.__setattr__(self, "category", category)
        object.__setattr__(self, "held_out", _held_out(name, held_out, len(checked)))

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __repr__(self) -> str:
        count = f"{len(self)} example{'s' * (len(self) != 1)}"
        held_out = f", {len(self.held_out)} held out" if self.held_out else ""
        category = f", category {self.category!r}" if self.category else ""
        return f"Task({self.name!r}, {count}{held_out}{category})"

    def sample(self, count: int, *, seed: int = 0) -> Task:
        """The same task with ``count`` of its examples, or all where there are fewer.

        They are drawn with a seed. The share held out stays as it is.

        >>> len(Task("sums", [(f"{n} + 1 =", f" {n + 1}") for n in range(9)]).sample(4))
        4
        """
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"task {self.name!r}: a sample has 1 example or more; got {count!r}.")
        rng, count = random.Random(seed), min(count, len(self))
        if not self.held_out:
            return self.only(rng.sample(range(len(self)), count))
        test, held_out = list(self.held_out), set(self.held_out)
        train = [i for i in range(len(self)) if i not in held_out]
        share = round(count * len(test) / len(self))
        if count > 1 and train:  # some of both
            share = min(max(share, 1, count - len(train)), count - 1, len(test))
        return self.only(rng.sample(test, share) + rng.sample(train, count - share))

    def split(self) -> tuple[Task, Task]:
        """The examples to fit on, and those held out, as two tasks of the same name.

        >>> sums = [(f"{n} + 1 =", f" {n + 1}") for n in range(8)]
        >>> train, test = Task("sums", sums, held_out=[3, 7]).split()
        >>> len(train), test.examples[0].prompt
        (6, '3 + 1 =')
        """
        if not self.held_out:
            raise ValueError(
                f"task {self.name!r} has no held-out examples, so there is nothing to split; "
                "name them: Task(…, held_out=[indices])."
            )
        if len(self.held_out) == len(self):
            raise ValueError(
                f"task {self.name!r}: all {len(self)} examples are held out, "
                "so none are left to fit on."
            )
        held_out = set(self.held_out)
        train: list[Example] = []
        test: list[Example] = []
        for i, example in enumerate(self.examples):
            (test if i in held_out else train).append(example)
        return Task(self.name, train, self.category), Task(self.name, test, self.category)

    def only(self, chosen: Iterable[int]) -> Task:
        """The same task with only the chosen examples, in the task's order.

        >>> Task("sums", [("1 + 1 =", " 2"), ("1 + 2 =", " 3")]).only([1]).examples[0].answer
        ' 3'
        """
        order = sorted(chosen)
        held_out = set(self.held_out)
        return Task(
            self.name,
            [self.examples[i] for i in order],
            self.category,
            [new for new, old in enumerate(order) if old in held_out],
        )

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
        split: str = "split",
        image: str = "image",
        audio: str = "audio",
    ) -> Task:
        """A task from a .csv, .jsonl or .json file, a pandas frame, a dataset or a list of dicts.

        A dataset is a ``datasets.Dataset``. ``prompt``, ``answer``, ``foil``, ``split``,
        ``image`` and ``audio`` name the columns; all but the first two may be missing. The
        split's cells say ``train``, or ``held_out`` or ``test``. Images in a file are paths,
        seen from its folder. A file's task is named after it unless ``name`` says otherwise.

        >>> Task.read([{"q": "2 + 2 =", "a": " 4"}], "sums", prompt="q", answer="a").examples
        (Example(prompt='2 + 2 =', answer=' 4', foil=None, media=()),)
        """
        columns = {"prompt": prompt, "answer": answer, "foil": foil, "split": split}
        columns |= {"image": image, "audio": audio}
        for what, column in columns.items():
            if not isinstance(column, str):
                raise TypeError(f"{what}=… is the name of a column, as text; got {column!r}.")
        if name is None:
            if not isinstance(source, (str, os.PathLike)):
                raise ValueError(
                    "a task read from data in memory needs a name: Task.read(data, 'name')."
                )
            name = Path(source).stem
        examples, held_out = [], []
        images: list[Any] = []
        sounds: list[Any] = []
        for i, row in enumerate(readers.rows(source)):
            if missing := [column for column in (prompt, answer) if column not in row]:
                have = ", ".join(map(repr, row))
                raise ValueError(
                    f"task {name!r}, row {i}: no column {missing[0]!r}; it has {have}. "
                    "Name yours with prompt=…, answer=…, foil=…."
                )
            wrong = row.get(foil)
            examples.append((row[prompt], row[answer], None if readers.blank(wrong) else wrong))
            images.append(None if readers.blank(row.get(image)) else _seen_from(source, row[image]))
            sounds.append(None if readers.blank(row.get(audio)) else row[audio])
            cell: Any = row.get(split)
            if not readers.blank(cell) and (not isinstance(cell, str) or cell not in _SPLITS):
                raise ValueError(
                    f"task {name!r}, row {i}: the column {split!r} says {cell!r}; it takes "
                    "'train', 'held_out' or 'test'. If it means something else, name another "
                    "column with split=…."
                )
            if _SPLITS.get(str(cell)):
                held_out.append(i)
        shown = images if any(each is not None for each in images) else None
        heard = sounds if any(each is not None for each in sounds) else None
        return cls(name, examples, category, held_out, images=shown, audio=heard)


def _seen_from(source: Any, image: Any) -> Any:
    """An image's path, seen from the folder of the file that names it."""
    from_file = isinstance(source, (str, os.PathLike)) and isinstance(image, str)
    is_url = from_file and "://" in image
    return Path(source).parent / image if from_file and not is_url else image


_SPLITS = {"train": False, "held_out": True, "test": True}
"""What a split column may say, and whether it means held out."""


def _held_out(task: str, indices: Iterable[int], count: int) -> tuple[int, ...]:
    """The checked indices, sorted."""
    seen: set[int] = set()
    if isinstance(indices, (str, bytes)) or not isinstance(indices, Iterable):
        raise ValueError(f"task {task!r}: held_out is a list of example indices; got {indices!r}.")
    for value in indices:
        try:
            index = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            index = None
        if index is None or not 0 <= index < count:
            raise ValueError(
                f"task {task!r}: held_out takes indices of its examples, 0 to {count - 1}; "
                f"got {value!r}."
            )
        if index in seen:
            raise ValueError(f"task {task!r}: held_out names example {index} twice.")
        seen.add(index)
    return tuple(sorted(seen))


def _example(task: str, i: int, texts: Any) -> Example:
    """One checked example, or a sentence about what is wrong with it."""
    where = f"task {task!r}, example {i}"
    beside: tuple[Media, ...] = ()
    if isinstance(texts, Example):
        texts, beside = texts[:3], texts.media
        if not isinstance(beside, tuple) or not all(isinstance(m, Media) for m in beside):
            raise ValueError(
                f"{where}: give images and sounds to the task, hw.Task(…, images=[…]), not to an "
                "example."
            )
    if isinstance(texts, Mapping):
        raise ValueError(
            f"{where}: an example is (prompt, answer) or (prompt, answer, foil); "
            f"for dicts, use hw.Task.read(rows, {task!r})."
        )
    unordered = isinstance(texts, (str, bytes, Set)) or not hasattr(texts, "__len__")
    if unordered or len(texts) not in (2, 3):
        raise ValueError(
            f"{where}: an example is (prompt, answer) or (prompt, answer, foil); got {texts!r}."
        )
    example = Example(*texts)._replace(media=beside)
    for field, text in zip(("prompt", "answer", "foil"), example[:3]):
        if field == "foil" and text is None:
            continue
        if not isinstance(text, str):
            raise ValueError(f"{where}: the {field} must be text; got {text!r}.")
        if not text or (field == "prompt" and not text.strip()):
            raise ValueError(f"{where}: the {field} is empty; leave the example out or fill it in.")
        validation.encodable(text, f"{where}: the {field}")
    if example.foil == example.answer:
        raise ValueError(
            f"{where}: the foil {example.foil!r} is the answer itself; a foil is a wrong answer."
        )
    return example
