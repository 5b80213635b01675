"""Checks of what users ask for: each raises a sentence that says what was wrong."""

from __future__ import annotations


def at_least(name: str, value: object, least: int) -> None:
    """Check an option that is a whole number."""
    if type(value) is not int or value < least:
        raise ValueError(f"{name} is a whole number, {least} or more; got {value!r}.")


def between(name: str, value: object, low: float, high: float) -> None:
    """Check an option that is a number between two others."""
    if type(value) not in (int, float) or not low < value < high:  # type: ignore[operator]
        raise ValueError(f"{name} is a number between {low:g} and {high:g}; got {value!r}.")


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check an option that is one of a few words."""
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r}.")
