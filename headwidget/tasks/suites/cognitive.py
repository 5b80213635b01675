"""The suite "cognitive": eight cognitive functions, where there is a form that the embedded
model can do (docs/suites.md: accuracy, heuristics, surface).

Five tasks share their sixteen answer words; each task has two lists of worked lines before its
questions, none of which has a word of the answers. Questions stand in four rounds. A word is
answer and foil once a round, and the first round is held out.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headwidget.tasks.suites.cognitive_words import CAPITALS, NOUNS, SUMS
from headwidget.tasks.task import Task

ROUNDS = 4
_NAMES = tuple("Tom Anna Ben Mary Jack Lucy Sam Emma".split())


class _Slot(NamedTuple):
    """One question about a noun: what it is about, and what balance asks of it."""

    noun: str
    """The answer."""
    item: int
    """Which of the noun's four kinds, goals or clues."""
    foil: str
    third: str
    """A noun that is neither."""
    list: int
    """Which list of worked lines comes before it, 0 or 1."""
    position: int
    """Which of two places the answer takes, 0 or 1; ``place`` is the same of three."""
    place: int
    foil_place: int
    names: tuple[str, str, str]


def tasks(seed: int) -> list[Task]:
    """All eight, in the order of the figures of Ma et al. (2025)."""
    rng = random.Random(seed)
    return [
        _knowledge(rng),
        _of_nouns("Retrieval", rng, _RETRIEVAL, _retrieval),
        _of_nouns("Logical Reasoning", rng, _LOGIC, _logic),
        _of_nouns("Decision-making", rng, _DECISIONS, _decision),
        _of_nouns("Semantic Understanding", rng, _KINDS, _semantic),
        _syntax(rng),
        _of_nouns("Inference", rng, _CLUES, _inference),
        _math(rng),
    ]


def _slots(rng: random.Random) -> list[_Slot]:
    """Sixteen nouns in four rounds.

    No pair of answer and foil comes twice, in either order: in a ring of nouns, a round's
    foil is another number of steps away.
    """
    ring = rng.sample(list(NOUNS), len(NOUNS))
    steps = [step * rng.choice((-1, 1)) for step in rng.sample(range(1, len(ring) // 2), ROUNDS)]
    items = [rng.sample(range(ROUNDS), ROUNDS) for _ in ring]
    slots = []
    for turn, step in enumerate(steps):
        for n, noun in enumerate(ring):
            foil = ring[(n + step) % len(ring)]
            third = rng.choice([other for other in ring if other not in (noun, foil)])
            place = (n + turn) % 3
            foil_place = (place + 1 + (n // 3 + turn) % 2) % 3
            first, second, last = rng.sample(_NAMES, 3)
            slots.append(
                _Slot(
                    noun=noun,
                    item=items[n][turn],
                    foil=foil,
                    third=third,
                    list=(n // 2 + turn) % 2,
                    position=(n + turn) % 2,
                    place=place,
                    foil_place=foil_place,
                    names=(first, second, last),
                )
            )
    return slots


def _of_nouns(
    name: str, rng: random.Random, lists: Sequence[str], ask: Callable[[_Slot], str]
) -> Task:
    slots = _slots(rng)
    return _task(name, [(lists[s.list] + ask(s), s.noun, s.foil) for s in slots])


def _task(name: str, examples: Sequence[tuple[str, str, str]]) -> Task:
    """The first quarter is held out."""
    return Task(
        name,
        [(p, f" {a}", f" {f}") for p, a, f in examples],
        category=name,
        held_out=range(len(examples) // ROUNDS),
    )


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


_RETRIEVAL = (
    _lines(
        "Paul apple, Kate drum, Mark lamp, Kate drum",
        "Jane clock, Peter pencil, Susan bottle, Susan bottle",
        "David candle, Linda ladder, George pillow, David candle",
        "Helen guitar, Frank ticket, Alice basket, Frank ticket",
    ),
    _lines(
        "Frank basket, Alice clock, Paul ticket, Alice clock",
        "Linda bottle, Mark guitar, Helen drum, Helen drum",
        "Susan lamp, George apple, Kate candle, Susan lamp",
        "Peter pillow, Jane ladder, David pencil, Jane ladder",
    ),
)


def _retrieval(s: _Slot) -> str:
    things = [s.third] * 3
    things[s.place], things[s.foil_place] = s.noun, s.foil
    facts = ", ".join(f"{name} {thing}" for name, thing in zip(s.names, things))
    return f"{facts}, {s.names[s.place]}"


_LOGIC = (
    _lines(
        "drum, lamp. If Paul does not take the drum, Paul takes the lamp",
        "clock, bottle. If Kate does not take the bottle, Kate takes the clock",
    ),
    _lines(
        "ladder, pencil. If Mark does not take the ladder, Mark takes the pencil",
        "guitar, candle. If Jane does not take the candle, Jane takes the guitar",
    ),
)


def _logic(s: _Slot) -> str:
    first, second = _pair(s)
    return f"{first}, {second}. If {s.names[0]} does not take the {s.foil}, {s.names[0]} takes the"


_DECISIONS = (
    _lines(
        "drum, lamp. To see in the dark, Paul takes the lamp",
        "clock, bottle. To know the time, Kate takes the clock",
    ),
    _lines(
        "ladder, pencil. To write a note, Mark takes the pencil",
        "guitar, candle. To play a tune, Jane takes the guitar",
    ),
)


def _decision(s: _Slot) -> str:
    first, second = _pair(s)
    return f"{first}, {second}. To {NOUNS[s.noun].goals[s.item]}, {s.names[0]} takes the"


_KINDS = (
    _lines(
        "A kitten is a cat",
        "A mug is a cup",
        "A lad is a boy",
        "A waltz is a dance",
        "A violin is a fiddle",
    ),
    _lines(
        "A lass is a girl",
        "A kitten is a cat",
        "A ballad is a song",
        "A tumbler is a glass",
        "A sack is a bag",
    ),
)


def _semantic(s: _Slot) -> str:
    kind = NOUNS[s.noun].kinds[s.item]
    return f"{'An' if kind[0] in 'aeiou' else 'A'} {kind} is a"


_CLUES = (
    _lines(
        "It ticked on the wall, so it was a clock",
        "It burned with a small flame, so it was a candle",
        "It was full of wine, so it was a bottle",
    ),
    _lines(
        "It rolled over the goal line, so it was a ball",
        "It purred on the sofa, so it was a cat",
        "It had six strings, so it was a guitar",
    ),
)


def _inference(s: _Slot) -> str:
    return f"It {NOUNS[s.noun].clues[s.item]}, so it was a"


def _pair(s: _Slot) -> tuple[str, str]:
    """Answer and foil, in the order that the slot asks for."""
    return (s.noun, s.foil) if s.position == 0 else (s.foil, s.noun)


_COUNTRIES = (
    _lines(
        "Pakistan: the capital is Islamabad",
        "England: the capital is London",
        "Mali: the capital is Bamako",
        "Brazil: the capital is Brasilia",
    ),
    _lines(
        "Morocco: the capital is Rabat",
        "Cyprus: the capital is Nicosia",
        "Qatar: the capital is Doha",
        "Slovakia: the capital is Bratislava",
    ),
)


def _knowledge(rng: random.Random) -> Task:
    """A round's capitals are each other's foils: no held-out capital is among the others."""
    pairs = rng.sample(CAPITALS, len(CAPITALS))
    size = len(pairs) // ROUNDS
    step = rng.randrange(1, size)
    examples = []
    for i, (country, capital) in enumerate(pairs):
        foil = pairs[i - i % size + (i + step) % size][1]
        examples.append((f"{_COUNTRIES[i % 2]}{country}: the capital is", capital, foil))
    return _task("Knowledge Recall", examples)


_SENTENCES = (
    _lines(
        "The cats near the box are small",
        "The lamp behind the walls is small",
        "The nurse near the shops is small",
        "The stones behind the door are small",
    ),
    _lines(
        "The clock near the walls is small",
        "The nurses behind the box are small",
        "The stones near the shop are small",
        "The lamp behind the doors is small",
    ),
)
# The plural of fish is fish.
_PLURALS = {noun: "knives" if noun == "knife" else f"{noun}s" for noun in NOUNS if noun != "fish"}
_PLACES = tuple("window table garden school bridge tower fence hill".split())


def _syntax(rng: random.Random) -> Task:
    """In every round half the subjects are plural.

    Half of the nouns between subject and verb have the other number, so the nearest noun does
    not tell.
    """
    phrases: dict[str, bool] = {}  # phrase -> is its subject plural?
    while len(phrases) < ROUNDS * len(NOUNS):
        plural, differs = len(phrases) % 2 == 1, len(phrases) // 2 % 2 == 1
        subject, place = rng.choice(list(_PLURALS)), rng.choice(_PLACES)
        between = f"{rng.choice(('near', 'behind'))} the {place}{'s' * (plural != differs)}"
        phrases.setdefault(f"The {_PLURALS[subject] if plural else subject} {between}", plural)
    verbs = ("is", "are")
    return _task(
        "Syntactic Understanding",
        [
            (_SENTENCES[i // 4 % 2] + phrase, verbs[p], verbs[not p])
            for i, (phrase, p) in enumerate(phrases.items())
        ],
    )


def _math(rng: random.Random) -> Task:
    """Ten sums and six differences a round, of digits and to digits.

    A round's foils are its answers in another order.
    """
    # (question, answer) of each round and sign: sums at even places, differences at odd ones
    groups: list[list[tuple[str, int]]] = [[] for _ in range(2 * ROUNDS)]
    for number, (sign, (size, worked)) in enumerate(SUMS.items()):
        shots = "".join(f"{a} {sign} {b} = {_result(a, sign, b)}, " for a, b in worked)
        problems = [
            (a, b)
            for a, b in itertools.product(range(10), repeat=2)
            if 0 <= _result(a, sign, b) <= 9 and (a, b) not in worked
        ]
        chosen = rng.sample(problems, ROUNDS * size)
        # Dealt out by answer, so that no round has one answer more than half of the time.
        chosen.sort(key=lambda pair: _result(pair[0], sign, pair[1]))
        for i, (a, b) in enumerate(chosen):
            question = f"{shots}{a} {sign} {b} ="
            groups[i % ROUNDS * 2 + number].append((question, _result(a, sign, b)))
    examples = []
    for group in groups:
        foils = _apart([answer for _, answer in group], rng)
        for (question, answer), foil in zip(group, foils):
            examples.append((question, str(answer), str(foil)))
    return _task("Math Calculation", examples)


def _apart(answers: Sequence[int], rng: random.Random) -> list[int]:
    """The answers in another order, none in its own place."""
    while True:
        foils = rng.sample(answers, len(answers))
        if all(a != f for a, f in zip(answers, foils)):
            return foils


def _result(a: int, sign: str, b: int) -> int:
    return a + b if sign == "+" else a - b
