"""Is a count of right answers more than guessing gives, or fewer than a fair model gives?

One-sided and exact, by the binomial distribution.
"""

from __future__ import annotations

import math

LEVEL = 0.05
"""Significance level: a count is better than guessing where guessing reaches it with at
most this probability."""


def tail(right: int, asked: int, guess: float) -> float:
    """The probability that guessing gets at least ``right`` of ``asked``.

    Each guess is right with probability ``guess``.

    >>> tail(9, 10, 0.5), tail(0, 10, 0.5)
    (0.0107421875, 1.0)
    """
    if right <= 0 or guess >= 1:
        return 1.0
    if guess <= 0:
        return 0.0
    odds = math.log(guess) - math.log1p(-guess)
    start = asked * math.log1p(-guess)
    logs = (
        math.lgamma(asked + 1) - math.lgamma(k + 1) - math.lgamma(asked - k + 1) + start + k * odds
        for k in range(right, asked + 1)
    )
    return round(min(1.0, math.fsum(math.exp(x) for x in logs)), 12)


def too_few(right: int, asked: int, accuracy: float) -> bool:
    """Would a model of this accuracy seldom get so few right?

    >>> too_few(0, 10, 0.25), too_few(0, 11, 0.25), too_few(1, 20, 0.25)
    (False, True, True)
    """
    return 1 - tail(right + 1, asked, accuracy) <= LEVEL


def at_chance(right: int, asked: int, guess: float) -> bool:
    """Could so many right answers well be guesses?

    >>> at_chance(31, 60, 0.5), at_chance(40, 60, 0.5)
    (True, False)
    """
    return tail(right, asked, guess) > LEVEL


def needed(asked: int, guess: float) -> int | None:
    """The fewest right answers of ``asked`` that are more than guessing gives.

    None where even all of them are not.

    >>> needed(60, 0.5), needed(4, 0.5)
    (37, None)
    """
    return next((right for right in range(asked + 1) if not at_chance(right, asked, guess)), None)


def foil_warning(share: float, foils: int, then: str = "these head scores are noise") -> str | None:
    """A sentence where the model beats the foil no more often than a coin may.

    None where it does, or where so few prompts could never tell.

    >>> foil_warning(0.52, 60, "noise")
    'The model beats the foil on 52% of 60 prompts, no better than chance: noise.'
    """
    if needed(foils, 0.5) is None or not at_chance(round(share * foils), foils, 0.5):
        return None
    fact = f"The model beats the foil on {math.floor(100 * share + 1e-9)}% of {foils} prompts"
    if share > 0.65:
        return f"{fact}, which so few cannot tell from chance."
    return f"{fact}, no better than chance: {then}."
