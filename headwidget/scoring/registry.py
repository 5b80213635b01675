"""The methods by name: those of headwidget, imported when they are first used."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from headwidget.scoring.contract import Method

_WHERE = {
    name: f"headwidget.methods.{name}"
    for name in ("ablation", "gradient", "attribution", "probe", "gating", "relations", "patterns")
}


def names() -> tuple[str, ...]:
    """All methods."""
    return tuple(_WHERE)


def find(name: str) -> Method:
    """A method by name."""
    if not isinstance(name, str) or name not in _WHERE:
        raise ValueError(
            f"there is no method {name!r}; the methods are {', '.join(map(repr, _WHERE))}."
        )
    method: Method = importlib.import_module(_WHERE[name]).METHOD
    return method


def options(method: Method, given: dict[str, Any]) -> Any:
    """The method's options with ``given`` filled in; a sentence for one that it does not have."""
    known = [f.name for f in dataclasses.fields(method.options)]
    if unknown := [name for name in given if name not in known]:
        has = f"its options are {', '.join(known)}" if known else "it has no options"
        raise ValueError(f"method {method.name!r} has no option {unknown[0]!r}; {has}.")
    return method.options(**given)
