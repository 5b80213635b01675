"""Intervene: turn a task's top heads off, or up, and see whether it matters more than the same done to random heads of the same layers."""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headwidget.display.effect import MEASURES, Effect
from headwidget.models import Model
from headwidget.scores import HeadScores, rank
from headwidget.scores.provenance import known_prompts
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.scoring.progress import Progress
from headwidget.scoring.score import listed
from headwidget.tasks import Task

Head = tuple[int, int]
"""(row, head); a row counts the layers with attention."""


def knockout(
    model: Model,
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
    tasks: Task | str | Iterable[Task],
    k: int | Iterable[int] = (1, 4, 16),
    draws: int = 5,
    prompts: int = 20,
    *,
    factor: float = 0.0,
    by: Literal["mean", "size"] | None = None,
    others: Literal["all", "top", "none"] = "all",
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Effect:
    """Turn off the top-k heads of each scored task and, as control, ``draws`` times k random heads of the same layers; measure every task before and after.

    ``scores`` may be several, ``{"name": scores, …}`` or a list (named by method), whose top heads are then tried side by side. ``tasks`` are all
    measured; those that the scores have lend their heads. Top heads have the largest mean (``by="mean"``: for signed scores those that help
    most) or the largest ``|mean|`` (``by="size"``, a probe's default). ``factor`` multiplies the heads' outputs: 0 turns them off.

    A control has as many heads in each layer as the top heads have, none of them a top head, as long as the layer has enough others; where it
    has not, all its others and, at random, as many of its top heads as are missing (``in_top`` in the frame says how many). Draws differ from
    each other; where there are fewer different sets than ``draws``, there are fewer draws.

    ``prompts`` of each task are measured, drawn with ``seed``: first those that no scores were made from, and among them those held out.
    ``others`` says what is measured on the tasks whose heads they are not: ``"all"`` sets, ``"top"`` heads only (much less work), or ``"none"``.
    Ctrl-C gives what is done so far, marked partial.

    >>> import headwidget as hw
    >>> model, task = hw.load(), hw.Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")])
    >>> effect = hw.knockout(model, hw.score(model, task, progress=False), task, k=(1, 2), draws=2, progress=False)
    >>> effect.frame[["k", "kind", "draw"]].values.tolist()
    [[1, 'top', 0], [1, 'control', 1], [1, 'control', 2], [2, 'top', 0], [2, 'control', 1], [2, 'control', 2]]
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"hw.knockout takes what hw.load gives, e.g. hw.load(model, tokenizer); got a {type(model).__name__}."
        )
    ks = _counts(k, model)
    for name, value in (("draws", draws), ("prompts", prompts)):
        if not _whole(value) or value < 1:
            raise ValueError(f"{name} is a whole number, 1 or more; got {value!r}.")
    if batch_size is not None and (not _whole(batch_size) or batch_size < 1):
        raise ValueError(
            f"batch_size is a number of prompts, 1 or more, or None to choose it; got {batch_size!r}."
        )
    if not _whole(seed):
        raise ValueError(f"seed is a whole number; got {seed!r}.")
    if (
        isinstance(factor, (bool, str))
        or not isinstance(factor, (int, float, np.number))
        or not math.isfinite(factor)
    ):
        raise ValueError(
            f"factor is what the heads' outputs are multiplied by, a finite number (0 turns them off); got {factor!r}."
        )
    if by is not None:
        _one_of("by", by, ("mean", "size"))
    _one_of("others", others, ("all", "top", "none"))
    named = _named(scores, model)
    chosen = list(listed(tasks, seed))
    sets = _sets(named, [t.name for t in chosen], ks, draws, by, seed, model)
    measured = [_measured(task, named, prompts, seed, model) for task in chosen]
    work = _Work(model, float(factor), sets, measured, others)
    asked = {
        "model": model.name,
        "weights": model.fingerprint(),
        "k": ks,
        "draws": draws,
        "prompts": prompts,
        "by": by,
        "others": others,
        "seed": seed,
    }
    partial = False
    with Progress(
        work.total, "prompts", "knockout" if factor == 0 else f"heads × {factor:g}", progress
    ) as bar:
        try:
            for task in measured:
                for landed in gated_forward.run(
                    model, task.encoded.examples, work.gates(task), batch_size
                ):
                    task.add(landed, model)
                    bar.note(task.name, len(landed.values) * len(landed.runs))
        except KeyboardInterrupt:
            partial = True
            if not work.rows():
                raise
    return work.effect({**asked, "partial": partial})


def amplify(
    model: Model,
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
    tasks: Task | str | Iterable[Task],
    k: int | Iterable[int] = (1, 4, 16),
    draws: int = 5,
    prompts: int = 20,
    *,
    factor: float = 2.0,
    **options: Any,
) -> Effect:
    """The same as :func:`knockout`, with the heads' outputs multiplied by ``factor`` instead of turned off; it takes the same options.

    >>> import headwidget as hw
    >>> model, task = hw.load(), hw.Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")])
    >>> hw.amplify(model, hw.score(model, task, progress=False), task, k=1, draws=1, progress=False).factor
    2.0
    """
    return knockout(model, scores, tasks, k, draws, prompts, factor=factor, **options)


# ---- which heads ----


@dataclass(frozen=True)
class _Set:
    """Some heads to change, and why these."""

    method: str
    heads_of: str
    k: int
    draw: int
    """0 for the top heads, controls from 1."""
    heads: tuple[Head, ...]
    in_top: int

    @property
    def kind(self) -> str:
        return "control" if self.draw else "top"


def _sets(
    named: Mapping[str, HeadScores],
    tasks: Sequence[str],
    ks: list[int],
    draws: int,
    by: rank.RankedBy | None,
    seed: int,
    model: Model,
) -> list[_Set]:
    """The top heads of every task of every scores, and their controls."""
    if not any(name in scores.tasks for scores in named.values() for name in tasks):
        have = dict.fromkeys(name for scores in named.values() for name in scores.tasks)
        raise ValueError(
            f"none of the tasks {', '.join(map(repr, tasks))} is in the scores, which have {', '.join(map(repr, have))}: there are no top heads."
        )
    sets = []
    for method, scores in named.items():
        for task in (name for name in tasks if name in scores.tasks):
            # (row, head): layers without attention have no row
            ranked = rank.top(scores, task, ks[-1], by=by)
            for k in ks:
                top = tuple(ranked[:k])
                sets.append(_Set(method, task, k, 0, top, k))
                for draw, heads in enumerate(controls(top, model.n_heads, draws, seed), 1):
                    sets.append(_Set(method, task, k, draw, heads, len(set(heads) & set(top))))
    return sets


def controls(top: Sequence[Head], n_heads: int, draws: int, seed: int) -> list[tuple[Head, ...]]:
    """Random sets of heads with as many in each layer as ``top`` has, no two alike, and no top head while a layer has enough others.

    >>> controls([(0, 1), (5, 2)], n_heads=2, draws=3, seed=0)
    [((0, 0), (5, 0)), ((0, 0), (5, 1))]
    """
    rng = random.Random(f"{seed} {sorted(top)}")
    layers = []  # (row, others, how many of them, top heads, how many of them)
    possible = 1
    for row, count in sorted(Counter(row for row, _ in top).items()):
        own = [head for r, head in sorted(top) if r == row]
        others = [head for head in range(n_heads) if head not in own]
        fresh = min(count, len(others))
        layers.append((row, others, fresh, own, count - fresh))
        possible *= math.comb(len(others), fresh) * math.comb(len(own), count - fresh)
    found: dict[tuple[Head, ...], None] = {}
    while len(found) < min(draws, possible):
        drawn = [
            (row, head)
            for row, others, n, own, m in layers
            for head in sorted(rng.sample(others, n) + rng.sample(own, m))
        ]
        found[tuple(drawn)] = None
    return list(found)


# ---- what they do ----


@dataclass(eq=False)
class _Measured:
    """A task's chosen prompts, and what has landed of them."""

    name: str
    encoded: EncodedTask
    held_out: int
    scored_on: int
    settings: dict[frozenset[Head], int] = field(default_factory=dict)
    """Where each set of changed heads stands among the task's settings; the untouched model, an empty set, is the first."""
    values: npt.NDArray[np.float32] = field(
        default_factory=lambda: np.empty((0, 0, 3), np.float32)
    )  # (setting, run, 3), NaN where nothing has landed

    def add(self, landed: gated_forward.Landed, model: Model) -> None:
        if not np.isfinite(landed.values).all():
            run = landed.runs[int(np.argwhere(~np.isfinite(landed.values))[0][1])]
            raise FloatingPointError(
                f"task {self.name!r}: log p(answer) is not a number for the prompt {self.encoded.examples[run].label[:80]!r} ({model.dtype}); "
                "load the model with dtype=torch.float32, or choose a smaller factor."
            )
        self.values[landed.settings, list(landed.runs)] = landed.values

    def means(self, heads: frozenset[Head]) -> dict[str, float] | None:
        """The three measures under a setting; None where a prompt has not landed, or the setting was not asked for here."""
        at = self.settings.get(heads)
        if at is None or not np.isfinite(self.values[at]).all():
            return None
        log_p, right, beats = self.values[at].astype(np.float64).T
        foiled = self.foiled()
        return {
            "accuracy": float(right.mean()),
            "beats_foil": float(beats[foiled].mean()) if foiled.any() else math.nan,
            "log_probability": float(log_p.mean()),
        }

    def foiled(self) -> npt.NDArray[np.bool_]:
        return np.array([e.foil is not None for e in self.encoded.examples])


def _measured(
    task: Task, named: Mapping[str, HeadScores], count: int, seed: int, model: Model
) -> _Measured:
    """Some of a task's prompts: what no scores were made from comes first, and what is held out before what is not."""
    known = [known_prompts(scores, task.name) for scores in named.values()]
    held_out = set(getattr(task, "held_out", ()))
    labels = [example.prompt + example.answer for example in task.examples]
    seen = [any(has(label) for has in known) for label in labels]
    order = random.Random(seed).sample(range(len(task)), len(task))
    chosen = sorted(sorted(order, key=lambda i: (seen[i], i not in held_out))[:count])
    encoded = encode(Task(task.name, [task.examples[i] for i in chosen], task.category), model)
    return _Measured(
        task.name, encoded, sum(i in held_out for i in chosen), sum(seen[i] for i in chosen)
    )


class _Work:
    """All that is to be measured; sets of heads that are alike are measured once."""

    def __init__(
        self, model: Model, factor: float, sets: list[_Set], tasks: list[_Measured], others: str
    ) -> None:
        self.model, self.factor, self.sets, self.tasks, self.others = (
            model,
            factor,
            sets,
            tasks,
            others,
        )
        for task in tasks:
            own = [s for s in sets if s.heads_of == task.name]
            more = [s for s in sets if s.heads_of != task.name and self._asked(s, task)]
            asked = [frozenset[Head](), *(self._changed(s) for s in (*own, *more))]
            task.settings = {heads: i for i, heads in enumerate(dict.fromkeys(asked))}
            task.values = np.full(
                (len(task.settings), len(task.encoded.examples), 3), np.nan, np.float32
            )

    def _asked(self, one: _Set, task: _Measured) -> bool:
        """Is the set measured on the task?"""
        return (
            one.heads_of == task.name
            or self.others == "all"
            or (self.others == "top" and one.kind == "top")
        )

    @property
    def total(self) -> int:
        """Prompts to run, each once a setting."""
        return sum(task.values.shape[0] * task.values.shape[1] for task in self.tasks)

    def _changed(self, one: _Set) -> frozenset[Head]:
        return frozenset() if self.factor == 1 else frozenset(one.heads)

    def gates(self, task: _Measured) -> npt.NDArray[np.float32]:
        """(setting, layer, head)."""
        gates = np.ones((len(task.settings), *self.model.shape), np.float32)
        for heads, at in task.settings.items():
            for row, head in heads:
                gates[at, row, head] = self.factor
        return gates

    def rows(self) -> list[dict[str, Any]]:
        """The frame's rows, as far as they have landed."""
        before = {task.name: task.means(frozenset()) for task in self.tasks}
        rows = []
        for one in self.sets:
            for task in self.tasks:
                was, now = before[task.name], task.means(self._changed(one))
                if (
                    was is None or now is None or not self._asked(one, task)
                ):  # a control may happen to be a set that was measured here for others
                    continue
                row: dict[str, Any] = {
                    "method": one.method,
                    "heads_of": one.heads_of,
                    "task": task.name,
                    "k": one.k,
                    "kind": one.kind,
                    "draw": one.draw,
                }
                row |= now | {f"{name}_change": now[name] - was[name] for name in MEASURES}
                row |= {
                    "in_top": one.in_top,
                    "heads": tuple((self.model.layers[r].index, h) for r, h in one.heads),
                }
                rows.append(row)
        return rows

    def effect(self, meta: Mapping[str, Any]) -> Effect:
        """What has landed, as an Effect."""
        import pandas as pd

        plain = []
        for task in self.tasks:
            if (found := task.means(frozenset())) is not None:
                counts = {
                    "prompts": len(task.encoded.examples),
                    "foils": int(task.foiled().sum()),
                    "held_out": task.held_out,
                    "scored_on": task.scored_on,
                }
                plain.append({"task": task.name, **found, **counts})
        return Effect(pd.DataFrame(self.rows()), pd.DataFrame(plain), self.factor, meta)


# ---- checks ----


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r}.")


def _counts(k: Any, model: Model) -> list[int]:
    given = [k] if _whole(k) or isinstance(k, str) or not isinstance(k, Iterable) else list(k)
    layers, heads = model.shape
    if not given:
        raise ValueError("k is one or more numbers of heads, such as (1, 4, 16); got none.")
    for value in given:
        if not _whole(value) or value < 1:
            raise ValueError(f"k is a number of heads, 1 or more, or several; got {value!r}.")
        if value > layers * heads:
            raise ValueError(
                f"k = {value} is more heads than {model.name} has: {layers} layers x {heads} heads = {layers * heads}."
            )
    return sorted({int(value) for value in given})


def _named(scores: Any, model: Model) -> dict[str, HeadScores]:
    """Every scores by a name, each checked to be this model's."""
    listed = list(scores.items()) if isinstance(scores, Mapping) else None
    if listed is None:
        several = (
            [scores]
            if isinstance(scores, HeadScores) or not isinstance(scores, Iterable)
            else list(scores)
        )
        listed = [(getattr(one, "method", ""), one) for one in several]
    if not listed:
        raise ValueError("no scores: give what hw.score gives, or several as {'name': scores, …}.")
    named: dict[str, HeadScores] = {}
    for name, one in listed:
        if not isinstance(one, HeadScores):
            raise TypeError(
                f"scores must be what hw.score or hw.open gives, or several as {{'name': scores, …}}; got a {type(one).__name__}."
            )
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"each scores' name must be text; got {name!r}.")
        if name in named:
            raise ValueError(
                f"two scores are named {name!r}; give each a name of its own: {{'name': scores, …}}."
            )
        same_model(name, one, model)
        named[name] = one
    return named


def same_model(name: str, scores: HeadScores, model: Model) -> None:
    """Refuse scores of another model."""
    if scores.shape != model.shape or scores.layers != tuple(layer.index for layer in model.layers):
        (layers, heads), (rows, columns) = scores.shape, model.shape
        raise ValueError(
            f"the scores {name!r} are of {layers} layers x {heads} heads, {model.name} has {rows} x {columns}: they are of another model."
        )
    weights = scores.record.weights
    if weights is None:
        warnings.warn(
            f"the scores {name!r} do not say which weights they are of; they are taken to be {model.name}'s.",
            stacklevel=4,
        )
    elif weights != model.fingerprint():
        raise ValueError(
            f"the scores {name!r} are of other weights ({scores.record.model or 'unknown model'}) than {model.name}'s: its top heads are not theirs. "
            "Score this very model, with hw.score(model, …)."
        )
