"""The checks of 06_live_workshop: each says whether an answer is right and, if not, what to try.

A check never raises, whatever the variable holds. It returns a sentence that is true (as a
condition) where the answer is right.
"""

from __future__ import annotations

import functools
import itertools
import math
import numbers
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwidget.scores import rank

Head = tuple[int, int]
MOST = 8
"""The most heads that may be turned off: with enough heads off, any set breaks a model."""
FEW, MANY = 8, 12
"""How many heads a threshold should let pass."""
LONGEST = 180.0
"""Seconds that a measurement may take."""
MARKS = {True: "✓", False: "✗", None: "·"}


@dataclass(frozen=True)
class Verdict:
    """The result of a check. ``right`` is None where there was no answer yet."""

    right: bool | None
    text: str

    def __bool__(self) -> bool:
        return self.right is True

    def __repr__(self) -> str:
        return f"{MARKS[self.right]} {self.text}"


class _Off(Exception):
    """What is wrong with an answer, as a sentence."""


def check(what: str) -> Callable[[Callable[..., str]], Callable[..., Verdict]]:
    """Makes a check of a function whose last argument is an answer that should be ``what``.

    The function returns a sentence where the answer is right, and raises ``_Off`` where not.
    """

    def decorate(function: Callable[..., str]) -> Callable[..., Verdict]:
        @functools.wraps(function)
        def checked(*arguments: Any) -> Verdict:
            if arguments[-1] is None or arguments[-1] is ...:
                return Verdict(None, f"Not answered yet: the answer is {what}.")
            try:
                return Verdict(True, function(*arguments))
            except _Off as off:
                return Verdict(False, str(off))
            except Exception as error:  # the answer may be anything
                reason = " ".join(str(error).split()) or type(error).__name__
                return Verdict(
                    False, f"This could not be checked: {reason} The answer should be {what}."
                )

        return checked

    return decorate


# ---- the checks, in the order of the lesson ----


@check("a number, such as 144")
def count(lab: Any, answer: Any) -> str:
    """How many heads does the model have?"""
    layers, heads = lab.gates.shape
    number = _number(answer)
    if number == layers * heads:
        return f"{layers} layers x {heads} heads = {layers * heads}: one cell of the map each."
    if number == layers + heads:
        raise _Off(
            f"{number:g} is {layers} + {heads}; "
            f"every layer has {heads} heads of its own, so multiply."
        )
    if number in (layers, heads):
        what = "layers there are" if number == layers else "heads one layer has"
        raise _Off(f"{number:g} is how many {what}; count the cells of one whole map.")
    raise _Off(f"{number:g} is not it: count the rows and the columns of one map, and multiply.")


@check('a prompt and the token that follows, such as ("The capital of Italy is", " Rome")')
def next_token(model: Any, used: Iterable[str], answer: Any) -> str:
    """Is the token the likeliest after the prompt? Prompts in ``used`` are the lesson's own."""
    from headwidget.live import reading  # noqa: PLC0415

    text, token = _texts(answer)
    if text.strip() in {prompt.strip() for prompt in used}:
        raise _Off(f"{text!r} is the lesson's own example; find another.")
    read = reading.read(model, text)
    first = read.predictions[0]
    # Tokens may look alike: of two with one text, the likelier one counts.
    candidates = {token.text: token for token in reversed(read.predictions)}
    if token == first.text:
        adds = _strongest(model, read.maps[0]) if len(read.maps) else ""
        return f"After {text!r} the model says {token!r} with {first.probability:.0%}.{adds}"
    spaced = f" {token.strip()}"
    if text != text.rstrip():
        without_space = reading.read(model, text.rstrip()).predictions
        if spaced in {prediction.text for prediction in without_space}:
            raise _Off(
                f"The prompt ends in a space, which {spaced!r} brings along itself: "
                f"try {text.rstrip()!r}."
            )
    if token != spaced and token not in candidates and spaced in candidates:
        raise _Off(
            f"{token!r} is not what follows, {spaced!r} is a candidate "
            f"({candidates[spaced].probability:.0%}): a word's space belongs to its token."
        )
    token_ids = model.tokenizer(token, add_special_tokens=False)["input_ids"]
    pieces = [model.tokenizer.decode([token_id]) for token_id in token_ids]
    if token not in candidates and len(pieces) > 1:
        raise _Off(
            f"{token!r} is {len(pieces)} tokens, {', '.join(map(repr, pieces[:4]))}; "
            f"the list shows the first that follows, here {first.text!r}."
        )
    probability = (
        f"{candidates[token].probability:.0%}"
        if token in candidates
        else f"less than {read.predictions[-1].probability:.1%}"
    )
    raise _Off(
        f"{token!r} has {probability}, {first.text!r} has {first.probability:.0%}: "
        "answer with that, or change the prompt until the model agrees with you."
    )


def _strongest(model: Any, adds: Any) -> str:
    """The head that adds most to a token's logit, as a sentence; ``adds`` is (layer, head)."""
    row, head = np.unravel_index(int(adds.argmax()), adds.shape)
    name = _named((model.layers[row].index, int(head)))
    return f" {name} adds most to its logit, {adds[row, head]:.1f}."


@check("a number, such as 0.3, or lab.threshold")
def threshold(scores: Any, task: str, answer: Any) -> str:
    """Does the threshold let between ``FEW`` and ``MANY`` heads pass, by the mean of a task?"""
    _scored(scores, task)
    number = _number(answer)
    mean = scores.reduce("mean")[scores.tasks.index(task)]  # (layer, head)
    runs = scores.values(task)  # (run, layer, head)
    on = mean >= number
    passing = int(on.sum())
    lets = f"{number:g} lets {passing} of {mean.size} heads pass"
    if number <= 0:
        raise _Off(
            f"{lets}, also those that do nothing or hurt: a threshold for what helps is above 0."
        )
    if passing > MANY:
        raise _Off(f"{lets} on {task}, more than {MANY}: go higher.")
    if passing < FEW:
        top = (
            f"the strongest reaches {mean.max():.2g}"
            if not passing
            else f"the {FEW}th strongest reaches {np.sort(mean.ravel())[-FEW]:.2g}"
        )
        raise _Off(f"{lets} on {task}, fewer than {FEW}; {top}: go lower.")
    positive = (runs > 0).sum(0)  # (layer, head)
    sure = int((positive[on] == len(runs)).sum())
    row, head = min(np.argwhere(on).tolist(), key=lambda at: positive[at[0], at[1]])
    least = f"{_named((scores.layers[row], head))} in {positive[row, head]} only"
    helps = "helps" if sure == 1 else "help"
    return (
        f"{lets} on {task}. {sure} of them {helps} in each of the {len(runs)} prompts, {least}: "
        "a mean hides that."
    )


@check("a list of heads as (layer, head), such as [(3, 1), (5, 0)], or lab.selected")
def knockout(lab: Any, task: str, answer: Any) -> str:
    """Do these heads, turned off in the lab, hurt a task more than random heads of their layers?"""
    scores = lab.results.get("gradient", lab.scores)
    _scored(scores, task)
    heads = _heads(answer, scores)
    if len(heads) > MOST:
        raise _Off(
            f"These are {len(heads)} heads; use {MOST} or fewer: "
            "with enough heads off any set breaks the model."
        )
    gates = np.ones(scores.shape, np.float32)
    for layer, head in heads:
        gates[scores.layers.index(layer), head] = 0
    if not (np.array_equal(gates, lab.gates) and lab.effect.get("done")):
        lab.gates = gates
        _measure(lab)
    if "error" in lab.effect:
        raise _Off(f"The measurement failed: {lab.effect['error']}")
    return compared(lab.effect, task, _places(scores, task, heads))


def _measure(lab: Any) -> None:
    """Measure, and wait for that alone; ``lab.wait`` would wait for a run under way too."""
    lab.measure()
    end = time.monotonic() + LONGEST
    while not lab.effect.get("done"):
        if time.monotonic() > end:
            raise _Off(
                "Measuring takes too long: stop what else runs (lab.stop()) and check again."
            )
        time.sleep(0.05)


def compared(effect: Mapping[str, Any], task: str, hint: str = "") -> str:
    """What was measured, in a sentence; ``_Off`` where the heads did no more than a control."""
    rows = {row["name"]: row for row in effect.get("tasks", ())}
    if task not in rows:
        raise _Off(
            f"{task} was not measured, only {', '.join(rows) or 'nothing'}: "
            "put it among the tasks of the lab (lab.asked) and try again."
        )
    row = rows[task]
    before, after = _log_p(row["before"]), _log_p(row["after"])
    controls = [_log_p(control) for control in row["controls"]]
    if not controls:
        raise _Off(
            "There are no other heads in these layers to compare with: take fewer heads of a layer."
        )
    cost, least, most = before - after, before - max(controls), before - min(controls)
    heads = "this head costs" if effect["heads"] == 1 else f"these {effect['heads']} heads cost"
    these = f"Off, {heads} {cost:.2f} of the answer's log-probability on {task}"
    note = " (below 0: better without)" if min(cost, least) < 0 else ""
    control = f"random heads of the same layers cost {least:.2f} to {most:.2f}{note}"
    if cost <= most:
        raise _Off(
            f"{these}; {control}. That is no more than random heads do: "
            f"pick heads with a high score on {task}.{hint}"
        )
    elsewhere = [
        f"; {name} goes from {_log_p(other['before']):.2f} to {_log_p(other['after']):.2f}"
        for name, other in rows.items()
        if name != task
    ]
    accuracy = [f"{row[when]['accuracy']:.0%}" for when in ("before", "after")]
    right = f"Right answers go from {' to '.join(accuracy)} of {row['prompts']} prompts"
    return (
        f"{these}; {control}. {right}{''.join(elsewhere)}. "
        f"(A set beats {len(controls)} random ones by luck once in {len(controls) + 1} times.)"
    )


@check("a list of heads as (layer, head), such as [(3, 1), (5, 0)]; [] for none")
def shared(first: Any, second: Any, task: str, answer: Any) -> str:
    """Are these the heads that are among the top ``MOST`` of a task by both methods?"""
    for scores in (first, second):
        _scored(scores, task)
    heads = set(_heads(answer, first, none=True))
    tops = {scores.method: set(scores.top(task, MOST)) for scores in (first, second)}
    both = set.intersection(*tops.values())
    for head in sorted(heads - both):
        places = ", ".join(
            f"{_place(scores, task, head)} by {scores.method}" for scores in (first, second)
        )
        raise _Off(
            f"{_named(head)} is not among the top {MOST} of both: "
            f"its places on {task} are {places}."
        )
    if missing := len(both - heads):
        lists = " and ".join(f"the top {MOST} by {name}" for name in tops)
        raise _Off(
            f"{len(heads)} found, {missing} more to find: compare {lists}, "
            "or look at the scatter's upper right."
        )
    names = ", ".join(map(_named, sorted(both)))
    return f"{len(both)} of {MOST} are shared{': ' if both else ''}{names}."


CLAIMS = {
    "a": "L21 H2 is the head that adds numbers.",
    "b": (
        "Turned off together, each method's top 8 heads cost these sums more than "
        "three random sets of the same layers did."
    ),
    "c": "The heads outside the top 8 do not matter for sums.",
    "d": "The two methods name different heads, so one of them is wrong.",
}
_WHY_NOT = {
    "a": (
        "It was off together with seven others, and a loss without it says that sums lean on it, "
        "not what it does. Look for a weaker claim."
    ),
    "c": (
        "The second method's top 8 are nearly all outside the first one's, "
        "and without them sums suffer too. Look for what was measured."
    ),
    "d": (
        "They ask different questions: whether a little more of a head would help, "
        "and what it writes to the answer directly. Both sets passed the control."
    ),
}


@check("one letter, such as 'c'")
def claim(answer: Any) -> str:
    """Which of the claims do the numbers of this lesson carry?"""
    letter = answer.strip().strip(".()'\"").lower() if isinstance(answer, str) else None
    if letter not in CLAIMS:
        raise _Off(
            f"The answer is one of the letters {', '.join(CLAIMS)} in quotes; got {_shown(answer)}."
        )
    if letter in _WHY_NOT:
        raise _Off(f"({letter}) says more than was measured. {_WHY_NOT[letter]}")
    return (
        f"({letter}) is what was measured, with its control, and no more. "
        f"On {MOST} heads, 12 prompts and 3 random sets: a start, not a proof."
    )


# ---- reading an answer ----


def _shown(value: Any) -> str:
    return (
        f"{value!r:.60}"
        if isinstance(value, (str, numbers.Number, tuple, list, dict))
        else f"a {type(value).__name__}"
    )


def _number(value: Any) -> float:
    if isinstance(value, str):
        raise _Off(f"{_shown(value)} is text; write the number without quotes.")
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise _Off(f"The answer is one number; got {_shown(value)}.")
    if not math.isfinite(value):
        raise _Off(f"{value} is no number to compare with; write one such as 0.3.")
    return float(value)


def _texts(value: Any) -> tuple[str, str]:
    pair = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        raise _Off(f"The answer is two texts, (prompt, token); got {_shown(value)}.")
    if not pair[0].strip() or not pair[1]:
        raise _Off("The prompt or the token is empty; write both.")
    return pair


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _heads(value: Any, scores: Any, *, none: bool = False) -> list[Head]:
    """Heads as (layer, head), each once and each in the model; one alone needs no list."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise _Off(
            f"Heads are a list of (layer, head), such as [(3, 1), (5, 0)]; got {_shown(value)}."
        )
    listed = list(itertools.islice(value, scores.shape[0] * scores.shape[1] + 1))
    if len(listed) == 2 and all(map(_whole, listed)):
        listed = [listed]
    heads = []
    for item in listed:
        pair = tuple(item) if isinstance(item, (tuple, list, np.ndarray)) else ()
        if len(pair) != 2 or not all(map(_whole, pair)):
            raise _Off(
                f"A head is two whole numbers, (layer, head), such as (3, 1); got {_shown(item)}."
            )
        layer, head = int(pair[0]), int(pair[1])
        if layer not in scores.layers or not 0 <= head < scores.shape[1]:
            swapped = (
                " Is it (head, layer)? The layer comes first."
                if head in scores.layers and 0 <= layer < scores.shape[1]
                else ""
            )
            raise _Off(
                f"There is no head ({layer}, {head}): "
                f"layers go from {scores.layers[0]} to {scores.layers[-1]}, "
                f"heads from 0 to {scores.shape[1] - 1}.{swapped}"
            )
        heads.append((layer, head))
    if len(set(heads)) < len(heads):
        raise _Off("A head is in the list twice; name each once.")
    if not heads and not none:
        raise _Off(
            "The list is empty: name a head, or select some in the widget and use lab.selected."
        )
    return heads


def _scored(scores: Any, task: str) -> None:
    if scores is None:
        raise _Off("Nothing is scored yet: press Run, or run the cell with lab.run, first.")
    if task not in scores.tasks:
        raise _Off(
            f"{task} is not scored, only {', '.join(scores.tasks)}: "
            "run again with all tasks of the lesson."
        )


# ---- wording ----


def _named(head: Head) -> str:
    return f"L{head[0]} H{head[1]}"


def _log_p(row: Mapping[str, float]) -> float:
    return float(row["log_probability"])


def _place(scores: Any, task: str, head: Head) -> int:
    """Where a head stands on a task, 1 is first."""
    return int(rank.ranks(scores, task)[scores.layers.index(head[0]), head[1]])


def _places(scores: Any, task: str, heads: list[Head]) -> str:
    """Where heads stand on the task, and whether most are top heads of another task."""
    places = sorted(_place(scores, task, head) for head in heads)
    size = scores.shape[0] * scores.shape[1]
    where = (
        f" Yours are in places {places[0]} to {places[-1]} of {size}"
        if len(places) > 1
        else f" Yours is in place {places[0]} of {size}"
    )
    for other in scores.tasks:
        among = len(set(heads) & set(scores.top(other, MOST)))
        if other != task and 2 * among > len(heads):
            return f"{where}; {among} of them are among the top {MOST} of {other}."
    return f"{where}."
