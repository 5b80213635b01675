"""What the run form of a lab offers, as JSON: methods with their options, and tasks."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from headwidget.live.field_help import field_help
from headwidget.models import Model
from headwidget.scoring import registry
from headwidget.tasks import Task

KINDS: dict[Any, str] = {bool: "bool", int: "int", float: "float"}
"""The types of options that a form can ask for, beside a choice, by their name there."""


def offer(model: Model, tasks: Iterable[Task]) -> dict[str, Any]:
    """The form's methods, each with its options, and its tasks as [name, prompts]."""
    methods = [_method(model, name) for name in registry.names()]
    return {
        "methods": methods,
        "tasks": [[task.name, len(task)] for task in tasks],
    }


def _method(model: Model, name: str) -> dict[str, Any]:
    """A method with the options that a form can ask for, and why it cannot be used, if so."""
    method, why_not = registry.find(name), None
    try:
        method.check(model)
    except (ValueError, TypeError) as error:
        why_not = str(error)
    helps = field_help(method.options, method.run)
    options = []
    for field in dataclasses.fields(method.options):
        if (option := _option(method.options, field)) is not None:
            options.append({**option, "help": helps.get(field.name, "")})
    return {"name": name, "about": method.about, "why_not": why_not, "options": options}


def _option(options: type, field: dataclasses.Field[Any]) -> dict[str, Any] | None:
    """An option as a form asks for it; None for one of another type."""
    hint = typing.get_type_hints(options)[field.name]
    types = [part for part in typing.get_args(hint) if part is not type(None)]
    is_optional = type(None) in typing.get_args(hint)
    inner = types[0] if is_optional and len(types) == 1 else hint
    default = field.default if isinstance(field.default, (bool, int, float, str)) else None
    if typing.get_origin(inner) is typing.Literal:
        choices = list(typing.get_args(inner))
        return {"name": field.name, "kind": "choice", "choices": choices, "default": default}
    if inner in KINDS:
        return {"name": field.name, "kind": KINDS[inner], "default": default}
    return None
