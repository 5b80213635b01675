"""Scores on disk: safetensors with one JSON string beside the tensors.

There is no pickle, and everything is checked before it is used.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.scores.file_errors import as_path, check_readable
from headwidget.scores.rank import RANKED_BY
from headwidget.scores.whole_file import write_whole

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores

__all__ = ["read", "save", "write_whole"]

VERSION = 2
"""The newest version. Files without aspects are version 1, which older headwidgets read too."""
KEY = "headwidget"
"""Where the JSON string stands in the file's metadata."""
_MOST_HEADER = 64 * 1024 * 1024
"""The most characters of a header; run labels and records stay far below."""


def save(scores: HeadScores, path: str | Path) -> Path:
    """Write ``scores`` to ``path``: complete, or not at all. Gives the path back."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    header = {
        "version": VERSION if scores.aspects else 1,
        **({"aspects": list(scores.aspects)} if scores.aspects else {}),
        "method": scores.method,
        "signed": scores.signed,
        "ranked_by": scores.ranked_by,
        "layers": list(scores.layers),
        "heads": scores.shape[1],
        "tasks": [
            {
                "name": task,
                "category": scores.categories.get(task),
                "runs": list(scores.runs(task)),
            }
            for task in scores.tasks
        ],
        "meta": dict(scores.meta),
    }
    text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    _header(text)  # what could not be read back is not written
    arrays = {}
    for prefix, part in zip(_prefixes(len(scores.aspects)), [scores, *scores.aspects.values()]):
        for i, task in enumerate(part.tasks):
            arrays[f"{prefix}task{i}"] = np.ascontiguousarray(part.values(task))

    def write(temporary: Path) -> None:
        try:
            save_file(arrays, temporary, {KEY: text})
        except SafetensorError as error:
            raise _system_error(error) from error

    return write_whole(path, write)


def _system_error(error: Exception) -> OSError:
    """What safetensors says of an error of the system, as that error."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is None:
        return OSError(f"the scores cannot be written: {error}.")
    return OSError(int(number[1]), os.strerror(int(number[1])))


def _prefixes(aspects: int) -> list[str]:
    """What the names of tensors begin with: of the scores themselves, then of each aspect."""
    return ["", *(f"aspect{number}." for number in range(aspects))]


def read(path: str | Path) -> dict[str, Any]:
    """What :func:`save` wrote, as keyword arguments of ``HeadScores.from_arrays``."""
    from safetensors import SafetensorError, safe_open

    target = as_path(path, "hw.open takes the path of a file that scores.save wrote")
    check_readable(target)
    try:
        with safe_open(target, framework="numpy") as file:
            return _contents(file)
    except RecursionError as error:
        raise ValueError(
            f"{str(target)!r} cannot be read as head scores: its header is nested too deeply."
        ) from error
    except SafetensorError as error:
        raise ValueError(
            f"{str(target)!r} cannot be read as head scores: it is not a file that scores.save "
            f"wrote, or not a whole one ({error})."
        ) from error
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{str(target)!r} cannot be read as head scores: {str(error).rstrip('.')}."
        ) from error


def _contents(file: Any) -> dict[str, Any]:
    """What an open file holds."""
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        raise ValueError("it is a safetensors file, but not one of headwidget's")
    header = _header(text)
    aspects, tasks = header.get("aspects", []), header["tasks"]
    keys = []
    for prefix in _prefixes(len(aspects)):
        keys.append([f"{prefix}task{i}" for i in range(len(tasks))])
    promised = list(itertools.chain.from_iterable(keys))
    if sorted(file.keys()) != sorted(promised):
        raise ValueError(
            f"its tensors are {sorted(file.keys())[:5]}, where its header promises {promised[:5]}"
        )
    arrays, *of_aspects = [_tensors(file, of_part, header) for of_part in keys]
    return {
        "arrays": arrays,
        "method": header["method"],
        "runs": {task["name"]: task["runs"] for task in tasks},
        "layers": header["layers"],
        "signed": header["signed"],
        "ranked_by": header.get("ranked_by"),  # files from before it was a field have none
        "categories": {
            task["name"]: task["category"] for task in tasks if task.get("category") is not None
        },
        "meta": header["meta"],
        "aspects": dict(zip(aspects, of_aspects)),
    }


def _tensors(file: Any, keys: list[str], header: dict[str, Any]) -> dict[str, Any]:
    """The tensor of each task, in the order of the header's tasks."""
    return {
        task["name"]: _tensor(file, key, task, header) for key, task in zip(keys, header["tasks"])
    }


def _tensor(file: Any, key: str, task: dict[str, Any], header: dict[str, Any]) -> Any:
    """A tensor of the file; its shape and dtype are checked before any data is read."""
    view = file.get_slice(key)
    expected = [len(task["runs"]), len(header["layers"]), header["heads"]]
    if view.get_dtype() != "F32" or list(view.get_shape()) != expected:
        raise ValueError(
            f"task {task['name']!r} holds {view.get_dtype()} {view.get_shape()}, "
            f"where its header promises F32 {expected}"
        )
    return file.get_tensor(key)


def _header(text: str) -> dict[str, Any]:
    """The JSON header, every field's type checked."""
    if len(text) > _MOST_HEADER:
        raise ValueError(
            f"its header, which holds every run's label, is {len(text)} characters long; "
            f"{_MOST_HEADER} is the most"
        )
    header = json.loads(text, parse_constant=_no_constant)
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    if type(header.get("version")) is not int:
        raise ValueError("its header has no version")
    version = header["version"]
    if version > VERSION:
        raise ValueError(
            f"it is version {version}, written by a newer headwidget; upgrade to open it"
        )
    if version < 1:
        raise ValueError(f"it is version {version}; this headwidget reads versions 1 to {VERSION}")
    aspects = header.get("aspects", [])
    _need(_texts(aspects) and len(set(aspects)) == len(aspects), "aspects")
    _need(isinstance(header.get("method"), str), "method")
    _need(isinstance(header.get("signed"), bool), "signed")
    _need(header.get("ranked_by") in (None, *RANKED_BY), "ranked_by")
    _need(_counts(header.get("layers")), "layers")
    _need(type(header.get("heads")) is int and 0 < header["heads"] < 2**31, "heads")
    _need(isinstance(header.get("meta"), dict) and _finite(header["meta"]), "meta")
    _need(isinstance(header.get("tasks"), list) and len(header["tasks"]) > 0, "tasks")
    tasks: list[Any] = header["tasks"]
    for task in tasks:
        _need(isinstance(task, dict) and isinstance(task.get("name"), str), "tasks (a name)")
        name, category = task["name"], task.get("category")
        _need(category is None or isinstance(category, str), f"tasks (the category of {name!r})")
        _need(_texts(task.get("runs")), f"tasks (the runs of {name!r})")
    _need(len({task["name"] for task in tasks}) == len(tasks), "tasks (names that differ)")
    return header


def _texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _counts(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**31 for n in numbers)


def _finite(value: Any) -> bool:
    """Whether no number in it is infinite: Python reads 1e999 as inf and raises nothing."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return False
        stack += item.values() if isinstance(item, dict) else item if isinstance(item, list) else []
    return True


def _need(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"its header's {what} is missing or of the wrong kind")


def _no_constant(name: str) -> Any:
    raise ValueError(f"its header holds {name}, which is not JSON")
