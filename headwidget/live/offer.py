"""What the run form of a lab offers, as JSON: methods with their options, and tasks."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwidget.live.field_help import field_help
from headwidget.models import Model
from headwidget.scoring import option_checks, registry
from headwidget.scoring.contract import Method
from headwidget.scoring.encode import encode
from headwidget.tasks import Task

LABELS = {
    "abs": "size without sign",
    "at": "where z is read",
    "bias": "value projection's bias",
    "bootstrap": "resample prompts",
    "chunk": "numbers at a time",
    "clamp": "largest logit",
    "epochs": "epochs at most",
    "fits": "number of fits",
    "folds": "folds held out",
    "hidden": "hidden layer's width",
    "k": "among the first",
    "lr": "learning rate",
    "lr_end": "learning rate at the end",
    "minibatch": "examples a step",
    "mlp": "read behind layer 0's MLP",
    "preset": "how long it trains",
    "published": "as published",
    "replace": "a head is replaced by",
    "seeds": "number of probes",
    "sequences": "prompts of each length",
    "settle": "end below this change",
    "standardise": "standardise features",
    "strength": "pressure on gates",
    "units": "numbers a head",
    "updates": "updates a stage",
    "validation": "share that stops it",
    "where": "positions",
}
"""What the options of the built-in methods are called in a form, beside their names."""
USUAL = re.compile(r"\(published ([\d.]+)\)|\b([\d.]+) by default")
"""How a help names the number that an option without a default number stands for."""
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
    return {"name": name, "about": _about(method), "why_not": why_not, "options": options}


def why_not(
    method: Method, model: Model, tasks: Sequence[Task], seed: int, chosen: Mapping[str, Any]
) -> str | None:
    """Why these tasks cannot be scored with a method and these options of it, if so."""
    try:
        options = registry.options(method, dict(chosen))
        if method.encode is not None:
            encoded = method.encode(tasks, model, options, seed)
        else:
            encoded = [encode(task, model) for task in tasks]
        method.check_tasks(model, encoded, options)
    except (ValueError, TypeError) as error:
        return str(error)
    except Exception:  # a faulty method's; its run says what is wrong
        return None
    return None


def for_tasks(
    offered: Mapping[str, Any],
    model: Model,
    tasks: Sequence[Task],
    seed: int,
    chosen: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The same offer for these tasks: a method that cannot score them says why.

    ``offered`` is what :func:`offer` gave, which speaks of the model alone; ``chosen`` has
    options by method, where they are not the usual ones.
    """
    methods = []
    for method in offered["methods"]:
        name = method["name"]
        reason = method["why_not"] or why_not(
            registry.find(name), model, tasks, seed, chosen.get(name, {})
        )
        methods.append({**method, "why_not": reason})
    return {**offered, "methods": methods}


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


def _about(method: Method) -> str:
    """What a score means with the usual options; empty where the method's own words fail."""
    try:
        return str(method.meaning(method.options()))
    except Exception:  # a faulty method's; its run says what is wrong
        return ""


def _options(method: Method) -> list[dict[str, Any]]:
    """The options that a form can ask for, with their help."""
    helps = field_help(method.options, method.run)
    kinds = option_checks.field_types(method.options)
    options = []
    for field in dataclasses.fields(method.options):
        option = _option(field, kinds[field.name]) if field.name in kinds else None
        if option is not None:
            text = helps.get(field.name, "").replace("``", "")
            label = LABELS.get(field.name, field.name.replace("_", " "))
            options.append({**option, "label": label, "help": text, "hint": _hint(text)})
    json.dumps(options, allow_nan=False)
    return options


def _hint(text: str) -> str:
    """The number that a help says is usual; empty where it names none.

    >>> _hint("Updates a stage (published 500)."), _hint("A share; 0.2 by default.")
    ('500', '0.2')
    """
    match = USUAL.search(text)
    return "" if match is None else match[1] or match[2]


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
