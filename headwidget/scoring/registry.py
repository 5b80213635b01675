"""The methods by name: headwidget's own, and those that users add.

``scoring`` may not import ``methods``. A method of headwidget is therefore found by the name
of its module, ``headwidget.methods.<name>``, and imported when it is first used; the module
holds the method as ``METHOD``.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from headwidget.scores import rank
from headwidget.scores.record import checked_json
from headwidget.scores.spelling import did_you_mean
from headwidget.scoring import facts, option_checks
from headwidget.scoring.contract import Method
from headwidget.scoring.method_checks import is_text

_BUILT_IN = ("ablation", "gradient", "attribution", "probe", "gating", "relations", "patterns")
_TAKEN = {
    **dict.fromkeys(("model", "tasks", "method"), "hw.score"),
    **dict.fromkeys(("batch_size", "only_correct", "seed", "progress", "checkpoint"), "hw.score"),
    **dict.fromkeys(("asked", "prompts"), "lab.run"),
}
"""Keywords that an option could never be set by, and the function that takes them itself."""
_FUNCTIONS = {
    "check": "check(model)",
    "check_tasks": "check_tasks(model, tasks, options)",
    "steps": "steps(tasks, options)",
    "usual_batch": "usual_batch(options)",
}
"""The functions that a method always has, and how they are called."""
_registered: dict[str, Method] = {}
"""The methods that users added, by name."""


def register_method(method: Method) -> None:
    """Add a method of your own: ``hw.score`` and ``hw.live`` then know it by its name.

    :mod:`headwidget.scoring.contract` describes what a method is, and CONTRIBUTING.md has a
    complete example. Registering a name again replaces the method, so that a notebook cell
    can be run twice; the names of headwidget's own methods are taken.

    >>> import dataclasses
    >>> import numpy as np
    >>> import headwidget as hw
    >>> from headwidget.scoring.contract import Chunk, Method
    >>> @dataclasses.dataclass(frozen=True)
    ... class Options:
    ...     scale: float = 1.0
    >>> def run(job):
    ...     runs = range(len(job.task.examples))
    ...     values = np.full((len(runs), *job.model.shape), job.options.scale)
    ...     yield Chunk(job.task.name, runs, slice(None), values)
    >>> hw.register_method(Method("constant", run, Options, signed=False))
    >>> task = hw.Task("capitals", [("The capital of France is", " Paris")])
    >>> scores = hw.score(hw.load(), task, "constant", scale=2, progress=False)
    >>> float(scores.values("capitals").max())
    2.0
    """
    if not isinstance(method, Method):
        raise TypeError(
            "hw.register_method takes a Method of headwidget.scoring.contract: "
            f"Method(name, run, options, signed=…); got a {type(method).__name__}."
        )
    if not is_text(method.name):
        raise ValueError(f"a method's name is text that is not empty; got {method.name!r}.")
    if method.name in _BUILT_IN:
        raise ValueError(
            f"{method.name!r} is a method of headwidget itself; give yours another name."
        )
    if not callable(method.run):
        raise TypeError(
            f"method {method.name!r}: run is a function run(job) that yields chunks; "
            f"got a {type(method.run).__name__}."
        )
    _check_facts(method)
    _check_options(method)
    _registered[method.name] = method


def _check_facts(method: Method) -> None:
    """Check what a method says about itself."""
    if method.about != "" and not is_text(method.about) and not callable(method.about):
        raise TypeError(
            f"method {method.name!r}: about is text, one sentence on what a score means, or a "
            f"function about(options) that gives it; got {method.about!r}."
        )
    _check_texts(method)
    try:
        rank.check(method.ranked_by)
    except ValueError as error:
        raise ValueError(f"method {method.name!r}: {error}") from error
    if not isinstance(method.signed, bool) and not callable(method.signed):
        raise TypeError(
            f"method {method.name!r}: signed is True or False, or a function signed(options); "
            f"got {method.signed!r}."
        )
    for name, call in _FUNCTIONS.items():
        if not callable(getattr(method, name)):
            raise TypeError(
                f"method {method.name!r}: {name} is a function {call}; leave it out where it is "
                f"not needed; got {getattr(method, name)!r}."
            )
    if method.encode is not None and not callable(method.encode):
        raise TypeError(
            f"method {method.name!r}: encode is a function encode(tasks, model, options, seed) "
            f"or None; got {method.encode!r}."
        )


def _check_texts(method: Method) -> None:
    """Check how a method explains itself, which is kept with its scores."""
    aspects, explained, paper = method.aspects, method.explained, method.paper
    by_name = isinstance(aspects, Mapping) and all(map(is_text, (*aspects, *aspects.values())))
    kinds = (
        ("aspects", by_name, "a dict of one sentence by the aspect's name"),
        ("explained", _are_texts(explained), "a tuple of paragraphs"),
        ("paper", paper is None or (_are_texts(paper) and len(paper) == 2), "(authors, address)"),
    )
    for name, fits, kind in kinds:
        if not fits:
            raise TypeError(
                f"method {method.name!r}: {name} is {kind}; got {getattr(method, name)!r:.80}."
            )


def _are_texts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(map(is_text, value))


def _check_options(method: Method) -> None:
    """Options are a frozen dataclass that has a default for every field."""
    options = method.options
    is_frozen = (
        isinstance(options, type)
        and dataclasses.is_dataclass(options)
        and options.__dataclass_params__.frozen  # type: ignore[attr-defined]
    )
    if not is_frozen:
        raise TypeError(
            f"method {method.name!r}: options is a frozen dataclass "
            f"(@dataclasses.dataclass(frozen=True) above a class); got {options!r}."
        )
    for field in dataclasses.fields(options):
        if field.name in _TAKEN:
            raise ValueError(
                f"method {method.name!r}: {_TAKEN[field.name]} takes {field.name!r} itself, so "
                "an option of that name could not be set; give it another name."
            )
        if not field.init:
            raise ValueError(
                f"method {method.name!r}: option {field.name!r} has field(init=False), so it "
                "could not be set; make it a property, or leave init=False out."
            )
    try:
        options()
    except TypeError as error:
        raise TypeError(
            f"method {method.name!r}: every option needs a default; {options.__name__}() "
            f"raises: {error}."
        ) from error


def names() -> tuple[str, ...]:
    """The names of all methods."""
    return (*_BUILT_IN, *_registered)


def is_built_in(name: str) -> bool:
    """Is this one of headwidget's own methods?"""
    return name in _BUILT_IN


def find(name: str) -> Method:
    """A method by name."""
    if isinstance(name, str) and name in _registered:
        return _registered[name]
    if not isinstance(name, str) or name not in _BUILT_IN:
        known = ", ".join(map(repr, names()))
        raise ValueError(f"there is no method {name!r}; the methods are {known}.")
    method: Method = importlib.import_module(f"headwidget.methods.{name}").METHOD
    return method


def options(method: Method, values: dict[str, Any], keywords: Sequence[str] = ()) -> Any:
    """The method's options with ``values`` filled in; a sentence for one it does not have.

    ``keywords`` are what else the caller takes by name, one of which may have been meant.
    """
    fields = [field.name for field in dataclasses.fields(method.options)]
    if unknown := [name for name in values if name not in fields]:
        has = f"its options are {', '.join(fields)}" if fields else "it has no options"
        meant = did_you_mean(unknown[0], (*fields, *keywords))
        raise ValueError(f"method {method.name!r} has no option {unknown[0]!r}; {has}.{meant}")
    checked = method.options(**values)
    kinds = option_checks.field_types(method.options) if values else {}
    for name, value in values.items():
        if name in kinds:
            option_checks.fits(name, value, kinds[name])
    return checked


def check_recordable(method: Method, options: Any) -> None:
    """Check that the scores' record can hold the options and what the method says of them."""
    if not isinstance(meaning := method.meaning(options), str):
        raise TypeError(
            f"method {method.name!r}: about(options) gives one sentence on what a score means; "
            f"got {meaning!r:.80}."
        )
    for name, value in facts.of_options(options).items():
        try:
            checked_json({"options": {name: value}})
        except ValueError as error:
            raise ValueError(
                f"method {method.name!r}: option {name!r} cannot be kept in the scores' record: "
                f"use text, finite numbers, or lists and dicts of them, or one hw.Task; got a "
                f"{type(value).__name__}, {value!r:.80}."
            ) from error
