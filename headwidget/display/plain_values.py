"""Limits of the values that a widget's traits take, whoever sets them.

A value crosses between Python and the page as JSON. What JSON or its readers cannot carry
(half a letter, lists nested thousands deep) is refused before it is stored, compared, shown
in an error or sent back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from traitlets import TraitError

DEEPEST = 16
"""Lists within lists, at most."""
MOST_ENTRIES = 1_000_000
"""Entries of lists and dicts, in all."""
LONGEST_TEXT = 100_000
"""Characters of a text."""
LARGEST_WHOLE = 2**53 - 1
"""The largest whole number that Python and JavaScript both hold exactly."""
LONGEST_WHOLE = 4096
"""Bits of a whole number that may be compared and shown: ``10**400`` has 1329."""
LONGEST_SENTENCE = 500
"""Characters of an error; it may quote what was got."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

T = TypeVar("T")


def check(name: str, value: Any) -> None:
    """``ValueError`` with a sentence for a value that is too deep, too large, or half a letter.

    Only Python's own lists, tuples, dicts, texts and whole numbers are looked into.

    >>> check("prompt", "The capital of France is")
    >>> check("prompt", "\\ud83d")
    Traceback (most recent call last):
    ValueError: prompt has half a letter (a lone surrogate), which no page can be sent.
    """
    level, entries = [value], 0
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            _check_single(name, item)
            if isinstance(item, (list, tuple, dict)):
                entries += len(item)
                if entries > MOST_ENTRIES:
                    raise ValueError(f"{name} has more than {MOST_ENTRIES:,} entries.")
                below += [*item, *item.values()] if isinstance(item, dict) else item
        if not below:
            return
        level = below
    raise ValueError(f"{name} is nested too deep: more than {DEEPEST} lists within lists.")


def _check_single(name: str, value: Any) -> None:
    if isinstance(value, int) and value.bit_length() > LONGEST_WHOLE:
        raise ValueError(
            f"{name} has a whole number of {value.bit_length():,} bits; the most is "
            f"{LONGEST_WHOLE:,}."
        )
    if not isinstance(value, str):
        return
    if len(value) > LONGEST_TEXT:
        raise ValueError(
            f"{name} has a text of {len(value):,} characters; the most is {LONGEST_TEXT:,}."
        )
    if _LONE_SURROGATE.search(value):
        raise ValueError(f"{name} has half a letter (a lone surrogate), which no page can be sent.")


def or_trait_error(name: str, checked: Callable[..., T], *values: Any) -> T:
    """What a check of ``values`` gives; whatever it raises, as a ``TraitError``.

    traitlets takes a wrong value back only after a ``TraitError``. ``values`` end with the
    value of the trait ``name``.
    """
    try:
        check(name, values[-1])
        return checked(*values)
    except Exception as error:
        sentence = str(error) or type(error).__name__
        if len(sentence) > LONGEST_SENTENCE:
            sentence = f"{sentence[:LONGEST_SENTENCE]}…"
        raise TraitError(sentence) from None
