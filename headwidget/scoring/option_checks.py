"""Checks of users' arguments: each raises a sentence that says what was wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing
from typing import Any

import numpy as np

_SIMPLE: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("True or False", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    str: ("text", (str,)),
}
"""Annotations that are checked: what such an option is, and the types that it may have."""


def plain(value: Any) -> Any:
    """A numpy integer as a Python int; anything else as it is.

    >>> plain(np.int64(3)), plain(True), plain("x")
    (3, True, 'x')
    """
    return int(value) if isinstance(value, np.integer) else value


def is_whole(value: object) -> bool:
    """Is it a Python int, and not a bool?"""
    return isinstance(value, int) and not isinstance(value, bool)


def at_least(name: str, value: Any, least: int) -> None:
    """Check an option that is a whole number."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} is a whole number, {least} or more; got {value!r}.")


def between(name: str, value: Any, low: float, high: float) -> None:
    """Check an option that is a number between two others."""
    if type(value) not in (int, float) or not low < value < high:
        raise ValueError(f"{name} is a number between {low:g} and {high:g}; got {value!r}.")


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check an option that is one of a few words."""
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r}.")


def batch_size(value: Any) -> None:
    """Check a number of prompts a batch, or None."""
    if value is not None and (not is_whole(value) or value < 1):
        raise ValueError(
            f"batch_size is a number of prompts, 1 or more, or None to choose it; got {value!r}."
        )


def seed(value: object) -> None:
    """Check a seed."""
    if not is_whole(value):
        raise ValueError(f"seed is a whole number; got {value!r}.")


def field_types(options: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass; without those that cannot be told.

    A name that is imported only under ``TYPE_CHECKING`` does not exist when this is called.

    >>> Made = dataclasses.make_dataclass("Made", [("k", "int", 3), ("of", "Unheard", None)])
    >>> field_types(Made)
    {'k': <class 'int'>}
    """
    with contextlib.suppress(Exception):
        return typing.get_type_hints(options)
    kinds: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        own = {"__module__": options.__module__, "__annotations__": {field.name: field.type}}
        with contextlib.suppress(Exception):
            kinds |= typing.get_type_hints(type("OneField", (), own))
    return kinds


def fits(name: str, value: object, kind: Any) -> None:
    """Check an option against its annotation: a simple type, a ``Literal``, or one of several.

    What a simple check cannot tell (lists, classes of the user) is left to the options
    themselves.

    >>> fits("log", True, bool), fits("k", None, int | None)
    (None, None)
    >>> fits("log", "no", bool)
    Traceback (most recent call last):
    ValueError: log is True or False; got 'no'.
    """
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    kinds = typing.get_args(kind) if union else (kind,)
    expected = []
    for one_kind in kinds:
        if typing.get_origin(one_kind) is typing.Literal:
            expected += [repr(word) for word in typing.get_args(one_kind)]
            if value in typing.get_args(one_kind):
                return
        elif one_kind is type(None):
            expected.append("None")
            if value is None:
                return
        elif one_kind in _SIMPLE:
            what, allowed = _SIMPLE[one_kind]
            expected.append(what)
            if isinstance(value, allowed) and (one_kind is bool or not isinstance(value, bool)):
                return
        else:
            return
    raise ValueError(f"{name} is {' or '.join(expected)}; got {value!r}.")
