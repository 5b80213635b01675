"""The property that holds for every composition and every method.

Either the result equals the method's definition by a plain loop on that very model object, or
headwidget raises an error in words; and in both cases the model is left as it was.
"""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

import headwidget as hw
from tests.fuzz.checks import CHECKS, Asked, Compare, Fault
from tests.support import left_alone
from tests.support.compositions import Composition, Unbuildable, tasks
from tests.support.ingredients import Held
from tests.support.plain_loops import Plain

PACKAGE = Path(hw.__file__).parent
ERRORS = (ValueError, TypeError, RuntimeError, FloatingPointError)
FEWEST_WORDS = 8


@dataclass(frozen=True)
class Verdict:
    """How a check of a composition ended."""

    kind: Literal["equal", "refused", "unbuildable", "fault"]
    check: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.check}: {self.kind}{': ' if self.text else ''}{self.text}"


# ---- what must be refused, and what must not ----

FORWARD_CHECKS = tuple(name for name in CHECKS if name not in ("relations",))
ANSWER_CHECKS = tuple(name for name in FORWARD_CHECKS if name not in ("patterns", "probe"))
MUST_REFUSE: dict[str, tuple[Sequence[str], str]] = {
    "shared block": (FORWARD_CHECKS, ""),
    "prompt learning": (FORWARD_CHECKS, r"(?i)prompt|prefix|virtual"),
    "unsteady answers": (ANSWER_CHECKS, ""),
}
"""By fact of the model: the checks that must refuse it, and what their sentence must say."""
PLAIN = ("tied", "attention", "dropout", "train", "freeze", "dtype:float64")
"""Ingredients that no method has a reason to refuse."""
RUNS = ("adapter", "call:", "carry", "checkpoint", "forward", "hook", "input_grads", "stop")
"""Ingredients with which a model still runs, so that methods by forwards alone score it."""
BY_FORWARDS = tuple(name for name in ANSWER_CHECKS if name.startswith("ablation"))
BY_FORWARDS += ("probe", "patterns", "knockout", "keep_only")


def must_be_scored(asked: Asked, check: str) -> bool:
    """Has a method no reason to refuse this model?"""
    if asked.held.encoder and check in ("attribution", "relations"):
        return False
    ingredients = asked.composition.ingredients
    # a PeftModel is scored without its wrapper, so hooks there are refused
    wrapped = asked.held.module is not asked.held.base
    on_wrapper = wrapped and any(
        ":wrapper." in text or text.startswith("hook:global") for text in ingredients
    )
    if "unsteady answers" in asked.held.facts or on_wrapper:
        return False
    fine = PLAIN + (RUNS if check in BY_FORWARDS else ())
    return all(text.startswith(fine) for text in ingredients)


def refusal(error: BaseException, check: str, held: Held) -> str:
    """The sentence of an error that headwidget raised, or a fault."""
    frames = traceback.extract_tb(error.__traceback__)
    message = str(error)
    said = PACKAGE in Path(frames[-1].filename).parents and str(frames[-1].line).startswith("raise")
    if not isinstance(error, ERRORS) or not said:
        at = next((f for f in reversed(frames) if PACKAGE in Path(f.filename).parents), frames[-1])
        place = f"{Path(at.filename).name}:{at.name}"
        first = (message.splitlines() or [""])[0][:160]
        raise Fault(f"raw {type(error).__name__} below {place}: {first}")
    words_said = message.split()
    if not message[:1].isalpha() or not message.endswith(".") or len(words_said) < FEWEST_WORDS:
        raise Fault(f"not a sentence: {type(error).__name__}: {message[:160]}")
    for fact, (checks, says) in MUST_REFUSE.items():
        if fact in held.facts and check in checks and not re.search(says, message):
            raise Fault(f"the refusal does not say {says!r}: {message[:160]}")
    return message


# ---- the property ----


def examine(composition: Composition, checks: Sequence[str] | None = None) -> list[Verdict]:
    """A verdict for each check; the model is built anew after a fault."""
    verdicts: list[Verdict] = []
    waiting = list(checks or CHECKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            alone = _by_itself(composition)
            while waiting:
                verdicts += _examine(composition, waiting, alone)
        except Unbuildable as error:
            verdicts.append(Verdict("unbuildable", "build", str(error)))
    return verdicts


@dataclass(frozen=True)
class Alone:
    """What the user's own model does without headwidget."""

    facts: set[str]
    changes: set[str]
    """What a forward of the user's changes by itself: accelerate brings new weights in every
    one, bitsandbytes packs weights and casts biases in the first without gradients."""


def _by_itself(composition: Composition) -> Alone:
    """Does the user's own model answer a prompt at all, and twice the same?

    On a model of its own: the checks begin with one that was never run.
    """
    with composition.built() as held, torch.no_grad():
        plain = Plain(held)
        ids = Asked(composition, held, plain, []).examples(tasks(composition.prompts)[0])[0].ids
        try:
            with held.as_computed():
                before = left_alone.state(held.module)
                held.module(input_ids=torch.tensor([ids]))
                changed = left_alone.changes(before, left_alone.state(held.module))
            answers = [plain.run(ids).logits for _ in range(2)]
        except Exception as error:
            raise Unbuildable.by(error, "a plain forward") from error
    facts = set() if torch.equal(*answers) else {"unsteady answers"}
    return Alone(facts, set(changed))


def _examine(composition: Composition, waiting: list[str], alone: Alone) -> list[Verdict]:
    """Verdicts up to the first fault; what is left stays in ``waiting``."""
    verdicts: list[Verdict] = []
    with composition.built() as held:
        held.facts |= alone.facts
        asked = Asked(composition, held, Plain(held), tasks(composition.prompts))
        while waiting:
            check = waiting.pop(0)
            try:
                verdicts.append(_verdict(asked, check, alone))
            except Fault as fault:
                verdicts.append(Verdict("fault", check, str(fault)))
                break
    return verdicts


def _verdict(asked: Asked, check: str, alone: Alone) -> Verdict:
    held, (ask, compare) = asked.held, CHECKS[check]
    answer, error = None, None
    with held.as_called():
        before = left_alone.state(held.module)
        try:
            answer = ask(asked)
        except Exception as raised:
            error = raised
        after = left_alone.state(held.module)
    changed = [name for name in left_alone.changes(before, after) if name not in alone.changes]
    try:
        verdict = _judged(asked, check, compare, answer, error)
    except Fault as fault:
        also = f"; also left changed: {changed[0]}" if changed else ""
        raise Fault(f"{fault}{also}") from fault
    if changed:
        raise Fault(f"left changed: {', '.join(changed[:3])} ({len(changed)} in all)")
    return verdict


def _judged(
    asked: Asked, check: str, compare: Compare, answer: Any, error: BaseException | None
) -> Verdict:
    """Is what came of a check, an answer or an error, as it has to be?"""
    held = asked.held
    if error is not None:
        sentence = refusal(error, check, held)
        if must_be_scored(asked, check):
            raise Fault(f"refused without a reason: {sentence[:160]}")
        return Verdict("refused", check, sentence)
    for fact, (checks, _) in MUST_REFUSE.items():
        # in 16 bits, noise below rounding need not be seen: the numbers below decide
        hidden = fact == "unsteady answers" and held.grain == "half"
        if fact in held.facts and check in checks and not hidden:
            raise Fault(f"scored a model with {fact}, which has to be refused")
    try:
        compare(asked, answer)
    except Fault:
        raise
    except Exception as failure:
        text = f"the definition does not run: {type(failure).__name__}: {failure}"
        raise Fault(text) from failure
    return Verdict("equal", check)
