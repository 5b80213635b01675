"""Checks of what interventions are called with: scores of this very model, numbers of heads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scores.record import tells_weights
from headwidget.scoring import option_checks


def head_counts(k: Any, model: Model) -> list[int]:
    """The numbers of heads that were asked for, smallest first."""
    several = isinstance(k, Iterable) and not isinstance(k, str)
    counts = [option_checks.plain(count) for count in (k if several else [k])]
    layers, heads = model.shape
    if not counts:
        raise ValueError("k is one or more numbers of heads, such as (1, 4, 16); got none.")
    for count in counts:
        if not option_checks.is_whole(count) or count < 1:
            raise ValueError(f"k is a number of heads, 1 or more, or several; got {count!r}.")
        if count > layers * heads:
            raise ValueError(
                f"k = {count} is more heads than {model.name} has: "
                f"{layers} layers x {heads} heads = {layers * heads}."
            )
    return sorted(set(counts))


def named_scores(scores: Any, model: Model, stacklevel: int) -> dict[str, HeadScores]:
    """Every scores by a name, each checked to be this model's."""
    pairs = _pairs(scores)
    if not pairs:
        raise ValueError("no scores: give what hw.score gives, or several as {'name': scores, …}.")
    named: dict[str, HeadScores] = {}
    for name, one_scores in pairs:
        if not isinstance(one_scores, HeadScores):
            raise TypeError(
                "scores must be what hw.score or hw.open gives, or several as "
                f"{{'name': scores, …}}; got a {type(one_scores).__name__}."
            )
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"each scores' name must be text; got {name!r}.")
        if name in named:
            raise ValueError(
                f"two scores are named {name!r}; give each a name of its own: "
                "{'name': scores, …}."
            )
        same_model(name, one_scores, model, stacklevel + 1)
        named[name] = one_scores
    return named


def _pairs(scores: Any) -> list[tuple[Any, Any]]:
    """(name, scores) of a mapping, of one scores, or of several, named by their methods."""
    if isinstance(scores, Mapping):
        return list(scores.items())
    if isinstance(scores, HeadScores) or not isinstance(scores, Iterable):
        scores = [scores]
    return [(getattr(one_scores, "method", ""), one_scores) for one_scores in scores]


def same_model(name: str, scores: HeadScores, model: Model, stacklevel: int) -> None:
    """Refuse scores of another model, and warn where they do not say of which they are.

    ``stacklevel`` is the one of a warning that the caller would issue itself.
    """
    if scores.shape != model.shape or scores.layers != tuple(layer.index for layer in model.layers):
        (layers, heads), (rows, columns) = scores.shape, model.shape
        raise ValueError(
            f"the scores {name!r} are of {layers} layers x {heads} heads, {model.name} has "
            f"{rows} x {columns}: they are of another model."
        )
    weights, actual = scores.record.weights, model.fingerprint()
    doubt = None
    if weights is None:
        doubt = f"do not say which weights they are of; they are taken to be {model.name}'s"
    elif not tells_weights(weights) or not tells_weights(actual):
        doubt = (
            f"cannot be held against {model.name}'s weights, which could not be read then or "
            "cannot be now (offloaded, or scored by an older headwidget); they are taken to be its"
        )
    elif weights != actual:
        raise ValueError(
            f"the scores {name!r} are of other weights "
            f"({scores.record.model or 'unknown model'}) than {model.name}'s: "
            "its top heads are not theirs. "
            "Score this very model, with hw.score(model, …)."
        )
    elif scores.record.hooks != model.hooked:
        doubt = (
            f"were made with hooks on {_names(scores.record.hooks)}, and {model.name} now has "
            f"hooks on {_names(model.hooked)}"
        )
    if doubt is not None:
        warnings.warn(f"the scores {name!r} {doubt}.", stacklevel=stacklevel + 1)


def _names(modules: tuple[str, ...]) -> str:
    return ", ".join(modules[:3]) or "nothing"
