"""What the run form of a lab offers, as JSON: methods with their options, and tasks."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterable
from typing import Any

from headwidget.live.field_help import field_help
from headwidget.models import Model
from headwidget.scoring import option_checks, registry
from headwidget.scoring.contract import Method
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
    """A method with the options that a form can ask for, and why it cannot be used, if so.

    A faulty method of the user does not hide the others: ``why_not`` says what is wrong.
    """
    method = registry.find(name)
    why_not = _why_not(method, model)
    try:
        options = _options(method)
    except Exception as error:
        options = []
        why_not = why_not or f"method {name!r}: its options cannot be read: {_of(error)}"
    return {"name": name, "about": method.about, "why_not": why_not, "options": options}


def _why_not(method: Method, model: Model) -> str | None:
    """Why the model cannot be scored with a method, as its check says."""
    try:
        method.check(model)
    except (ValueError, TypeError) as error:
        return str(error)
    except Exception as error:
        return f"method {method.name!r}: its check of the model raised {_of(error)}"
    return None


def _of(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).rstrip('.')}. Mend it and register it again."


def _options(method: Method) -> list[dict[str, Any]]:
    """The options that a form can ask for, with their help."""
    helps = field_help(method.options, method.run)
    kinds = option_checks.field_types(method.options)
    options = []
    for field in dataclasses.fields(method.options):
        option = _option(field, kinds[field.name]) if field.name in kinds else None
        if option is not None:
            options.append({**option, "help": helps.get(field.name, "")})
    json.dumps(options, allow_nan=False)
    return options


def _option(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any] | None:
    """An option as a form asks for it; None for one of another type."""
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
