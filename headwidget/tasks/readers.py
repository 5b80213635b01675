"""Rows of tasks from files and from memory, and text files that are checked as they are read."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headwidget.scores.file_errors import as_path, check_readable, explained


def rows(source: Any) -> Iterator[Mapping[str, Any]]:
    """The source's rows as dicts: of a file, a pandas frame, a dataset or a list of dicts."""
    if isinstance(source, (str, os.PathLike)):
        yield from _file_rows(as_path(source, "Task.read takes a path"))
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):  # a pandas frame
        yield from source.to_dict("records")
    elif isinstance(source, Mapping):
        names = ", ".join(repr(name) for name in list(source)[:5])
        raise ValueError(
            f"Task.read takes rows; got a {type(source).__name__} of {names}. "
            "Pass one of its values, such as one split of a dataset."
        )
    elif isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray)):
        # a datasets.Dataset and a list of dicts both give their rows when iterated
        for i, row in enumerate(source):
            if not isinstance(row, Mapping):
                raise ValueError(
                    f"row {i} must be a dict of columns; got a {type(row).__name__}. "
                    "For pairs, use hw.Task(name, pairs)."
                )
            yield row
    else:
        raise TypeError(
            "Task.read takes the path of a file, a pandas frame, a dataset or a list of dicts; "
            f"got a {type(source).__name__}."
        )


def blank(value: Any) -> bool:
    """No foil: None, an empty CSV cell, or pandas' NaN."""
    return (
        value is None
        or (isinstance(value, str) and not value)
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ == "NAType"
    )


def text_of(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    check_readable(path)
    with explained(path, "read"):
        content = path.read_bytes()
    try:
        return content.decode().removeprefix("\ufeff")  # the byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name} is not UTF-8 text: {error.reason} at byte {error.start}, in line {line}. "
            "Save it as UTF-8 in your editor or spreadsheet."
        ) from error


def json_of(text: str, where: str) -> Any:
    """What a text of JSON holds; ``where`` begins the sentence where it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: not JSON ({error.msg} at {place}).") from error
    except RecursionError as error:
        raise ValueError(
            f"{where}: its lists and objects are nested too deeply to be read."
        ) from error
    except ValueError as error:  # a number with thousands of digits
        raise ValueError(f"{where}: {error}.") from error


def _file_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    kind = path.suffix.lower()
    if kind == ".csv":
        yield from _csv_rows(text_of(path), path.name)
    elif kind == ".jsonl":
        for number, line in enumerate(io.StringIO(text_of(path), newline=None), 1):
            if line.strip():
                yield _json_row(line, f"{path.name}, line {number}")
    elif kind == ".json":
        items = json_of(text_of(path), path.name)
        if not isinstance(items, list):
            raise ValueError(
                f"{path.name} must hold a JSON list of objects; it holds a {type(items).__name__}."
            )
        yield from rows(items)
    else:
        check_readable(path)
        raise ValueError(
            f"{path.name}: tasks are read from .csv, .jsonl or .json files; "
            "for others, pass a list of dicts or a frame."
        )


def _csv_rows(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            if any(not blank(cell) for cell in row.pop(None, [])):
                raise ValueError(
                    f"{name}, line {reader.line_num}: a row has more cells than the "
                    f"{len(reader.fieldnames or ())} columns; put texts that have a comma "
                    "in quotation marks."
                )
            yield row
    except csv.Error as error:
        # The limit is the csv module's, for the whole process: it is left alone.
        raise ValueError(
            f"{name}, line {reader.reader.line_num}: it cannot be read as CSV ({error}). "
            f"Cells have at most {csv.field_size_limit()} characters; for longer ones, use .jsonl."
        ) from error


def _json_row(line: str, where: str) -> Mapping[str, Any]:
    row = json_of(line, where)
    if not isinstance(row, Mapping):
        raise ValueError(f"{where}: a row must be a JSON object; it is a {type(row).__name__}.")
    return row
