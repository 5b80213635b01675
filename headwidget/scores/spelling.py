"""The name that was meant where a misspelt one was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question that names the closest of ``names``, to append to an error; else nothing.

    >>> did_you_mean("veiw", ["view", "tasks"]), did_you_mean("zzz", ["view", "tasks"])
    (" Did you mean 'view'?", '')
    """
    close = difflib.get_close_matches(name, list(names), 1)
    return f" Did you mean {close[0]!r}?" if close else ""
