"""The suite "patterns": text of many kinds, text that repeats its words, needles in filler.

``method="patterns"`` looks at heads with it. Texts are the same for every seed; the seed draws
who gives what to whom, and where a needle lies among which sentences. A needle has the words of
its question ("The key to the harbour is velvet." … "The key to the harbour is"), so that
finding the same words and copying what follows (induction) answers it; two other needles are in
the way, one of which is the foil. Every answer word stands once in its prompt, in each third of
the filler equally often.
"""

from __future__ import annotations

import itertools
import random

from headwidget.tasks.task import Task

REPEATS, NEEDLES = 24, 24

_TEXTS = (
    (
        "The ferry leaves at seven, but nobody on the pier seems to know whether it will "
        "stop at the second| island"
    ),
    (
        "Melt the butter in a small pan, add the onions, and let them turn golden before you "
        "pour in the warm| milk"
    ),
    (
        "def area(width, height):\n    if width < 0 or height < 0:\n        raise "
        "ValueError('sides are positive')\n    return round(width * height,| 2"
    ),
    (
        "Dear Professor Lind, thank you for the kind letter of last week; I would be glad to "
        "read your new| manuscript"
    ),
    (
        "Rain in the north, clearing by noon. Winds light and variable. Tomorrow mostly dry "
        "with some high| clouds"
    ),
    (
        "She opened the drawer, found it empty, and knew at once that her brother had been "
        "there before| dawn"
    ),
    (
        "Water boils at a lower temperature on a mountain, because the air presses on it "
        "with less| force"
    ),
    "Once there was a miller who owned nothing but a wheel, a cat and a great deal of| patience",
    (
        '"You are late," said the captain. "The road was flooded," I answered, and showed '
        "him my wet| boots"
    ),
    (
        "1. Unplug the lamp. 2. Wait until the bulb is cold. 3. Turn it to the left. 4. Put "
        "in the new| one"
    ),
    "Most birds that breed here fly south in autumn; the few that stay live on berries and| seeds",
    (
        "The committee met on Tuesday to vote on the budget, which had been returned twice "
        "by the| mayor"
    ),
    "If a triangle has two equal sides, then the angles opposite those sides are the| same",
    "Grey stone, green moss, a gate that no one closes: this is what remains of the old| monastery",
    "My grandmother kept her buttons in a tin that smelled of tea, sorted by colour and by| size",
    (
        "The match was decided in the last minute, when the goalkeeper slipped and the ball "
        "rolled over the| line"
    ),
    (
        "Select all rows where the price is above ten, group them by country, and show only "
        "the| largest"
    ),
    "Copper conducts heat better than iron, which is why good cooks pay more for their| pans",
    "We walked along the canal until the lamps came on, talking about nothing in| particular",
    (
        "For rent: two rooms, third floor, quiet street, no lift. Please call after six in "
        "the| evening"
    ),
    "A lawyer may not speak for both sides of the same quarrel, however small the| fee",
    (
        "The comet will be visible to the naked eye shortly before dawn, low above the "
        "eastern| horizon"
    ),
    "Sleep little, eat slowly, and never trust a map that was drawn by someone who stayed at| home",
    "Sales fell in spring and rose again in summer, so that the year ended much as it had| begun",
)

_NAMES = tuple("Anna Tom Mary Jack Lucy Ben Emma Paul".split())
_THINGS = tuple("map key coin book lamp rope bell cup".split())
_PLACES = tuple("station market garden bridge library kitchen".split())

_HOLDERS = tuple("harbour museum tower school castle stable chapel bakery".split())
_SECRETS = tuple("velvet copper winter silver orange marble thunder ginger cotton purple".split())
_FILLER = (
    "The bread was still warm when the children came home.",
    "Nobody had swept the stairs since the festival.",
    "A grey dog slept under the bench near the door.",
    "Some say the clock has been wrong for a hundred years.",
    "The mail arrives late when the roads are icy.",
    "Two painters argued about the colour of the ceiling.",
    "In June the river is low enough to cross on foot.",
    "The baker's daughter plays the violin on Sundays.",
    "They sold the last cherries before noon.",
    "A letter without a stamp lay on the table.",
    "The wind turned, and the smoke went the other way.",
    "Our neighbour repairs bicycles in his cellar.",
)


def tasks(seed: int) -> list[Task]:
    """All three."""
    rng = random.Random(seed)
    texts = [tuple(text.split("|")) for text in _TEXTS]
    return [
        Task("Text", [(prompt, answer) for prompt, answer in texts]),
        Task("Repeated words", [_repeated(rng) for _ in range(REPEATS)]),
        Task("Needles", [_needle(rng, i) for i in range(NEEDLES)]),
    ]


def _repeated(rng: random.Random) -> tuple[str, str]:
    a, b = rng.sample(_NAMES, 2)
    thing, other = rng.sample(_THINGS, 2)
    place = rng.choice(_PLACES)
    gifts = f"{a} gave {b} a {thing} and {b} gave {a} a {other}"
    first = f"{a} met {b} at the {place}. At the {place}, {gifts}."
    return f"{first} Then {a} left the {place} with the {other}, and {b} with the", f" {thing}"


def _needle(rng: random.Random, number: int) -> tuple[str, str, str]:
    """The needle asked for lies in each third of the filler in turn."""
    holders, secrets = rng.sample(_HOLDERS, 3), rng.sample(_SECRETS, 3)
    filler = rng.sample(_FILLER, 6)
    thirds = [filler[i::3] for i in range(3)]
    third = number % 3
    # Where the needle asked for lies, then the two in the way.
    order = [(third + i) % 3 for i in range(3)]
    for place, holder, secret in zip(order, holders, secrets):
        thirds[place].insert(rng.randrange(3), f"The key to the {holder} is {secret}.")
    text = " ".join(itertools.chain.from_iterable(thirds))
    return f"{text} The key to the {holders[0]} is", f" {secrets[0]}", f" {secrets[1]}"
