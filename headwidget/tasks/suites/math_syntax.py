"""The suite "math-syntax": small sums and subject-verb agreement, few-shot.

They are in a form that the embedded model can do (docs/suites.md has its accuracy).
"""

from __future__ import annotations

import itertools
import random

from headwidget.tasks.task import Task

PER_TASK = 120

# Three lists of worked sums; a problem is never among its own list's sums.
_SUMS = (
    ((2, 3), (4, 4), (1, 6), (5, 2), (3, 1)),
    ((6, 2), (1, 2), (4, 4), (5, 2), (1, 1)),
    ((1, 2), (7, 2), (1, 1), (4, 4), (2, 6)),
)
_PROBLEMS = tuple((a, b) for a, b in itertools.product(range(10), repeat=2) if a + b <= 9)

_SENTENCES = (
    "The cats near the box are small.",
    "The lamp behind the chairs is small.",
    "The nurse near the shops is small.",
    "The stones behind the wall are small.",
)
_SUBJECTS = tuple(
    (
        "boy girl dog teacher doctor driver author farmer key book car tree king friend picture "
        "letter pilot singer bird horse"
    ).split()
)
_PLACES = tuple(
    (
        "cabinet window table garden house street river door school market bridge tower station "
        "office"
    ).split()
)
_PREPOSITIONS = ("near", "behind")


def tasks(seed: int) -> list[Task]:
    """Both tasks."""
    rng = random.Random(seed)
    return [_math(rng), _syntax(rng)]


def _math(rng: random.Random) -> Task:
    examples = []
    for shots in _SUMS:
        worked = "".join(f"{a} + {b} = {a + b}, " for a, b in shots)
        for a, b in rng.sample([p for p in _PROBLEMS if p not in shots], PER_TASK // len(_SUMS)):
            wrong = rng.choice([n for n in range(10) if n != a + b])
            examples.append((f"{worked}{a} + {b} =", f" {a + b}", f" {wrong}"))
    return Task("Math", examples, category="Math")


def _syntax(rng: random.Random) -> Task:
    """Half the subjects are plural.

    Half the nouns between subject and verb have the other number, so the nearest noun does
    not tell.
    """
    shots = "".join(f"{sentence}\n" for sentence in _SENTENCES)
    phrases: dict[str, bool] = {}  # phrase -> is its subject plural?
    while len(phrases) < PER_TASK:
        plural, differs = len(phrases) % 2 == 1, len(phrases) // 2 % 2 == 1
        subject, place = rng.choice(_SUBJECTS), rng.choice(_PLACES)
        between = f"{rng.choice(_PREPOSITIONS)} the {place}{'s' * (plural != differs)}"
        phrases.setdefault(f"{subject}{'s' * plural} {between}", plural)
    verbs = (" is", " are")
    return Task(
        "Syntax",
        [(f"{shots}The {phrase}", verbs[p], verbs[not p]) for phrase, p in phrases.items()],
        category="Syntax",
    )
