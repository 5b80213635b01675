"""The facts behind the suite "cognitive": nouns, capitals and worked sums.

The sixteen nouns are the answers of five tasks; each has four kinds, goals and clues.
"""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """Four questions' worth of each task about one answer word."""

    kinds: tuple[str, str, str, str]
    """Words for kinds of it: a poodle is a dog."""
    goals: tuple[str, str, str, str]
    """What one may want it for: "wants to cross the lake"."""
    clues: tuple[str, str, str, str]
    """What one may notice of it: "barked at the mailman"."""


NOUNS: dict[str, Noun] = {
    "dog": Noun(
        ("poodle", "beagle", "puppy", "hound"),
        ("guard the farm", "herd the sheep", "have a loyal pet", "track a scent"),
        ("barked at the mailman", "wagged its tail", "fetched the stick", "buried a bone"),
    ),
    "horse": Noun(
        ("pony", "stallion", "mare", "foal"),
        ("ride to the hills", "pull the old cart", "gallop over the fields", "be a jockey"),
        (
            "wore a saddle",
            "neighed in the stable",
            "galloped with its rider",
            "jumped the fence with a jockey",
        ),
    ),
    "fish": Noun(
        ("salmon", "trout", "tuna", "cod"),
        ("make sushi", "fill the aquarium", "cook some seafood", "feed the seal"),
        ("swam in the tank", "took the bait", "had gills and fins", "was caught in a net"),
    ),
    "bird": Noun(
        ("eagle", "sparrow", "robin", "owl"),
        (
            "keep a pet in the cage",
            "hear a song at dawn",
            "see wings in the sky",
            "fill the empty nest",
        ),
        ("built a nest", "flapped its wings", "sang on a branch", "had feathers and a beak"),
    ),
    "tree": Noun(
        ("oak", "pine", "maple", "willow"),
        ("have shade in the yard", "hang up a swing", "grow apples", "have something to climb"),
        (
            "dropped its leaves in autumn",
            "had deep roots",
            "was cut down for wood",
            "had a thick trunk",
        ),
    ),
    "flower": Noun(
        ("rose", "tulip", "daisy", "lily"),
        ("decorate the vase", "smell something sweet", "attract the bees", "give the bride a gift"),
        ("opened its petals", "stood in a vase", "bloomed in spring", "gave nectar to the bee"),
    ),
    "car": Noun(
        ("sedan", "taxi", "limousine", "convertible"),
        ("drive to work", "go on a road trip", "travel on the highway", "race around the track"),
        (
            "ran out of gas",
            "needed new tires",
            "was parked in the garage",
            "stopped at the traffic light",
        ),
    ),
    "boat": Noun(
        ("canoe", "yacht", "ferry", "kayak"),
        ("cross the lake", "sail on the sea", "row down the river", "reach the island"),
        ("sailed into the harbor", "dropped its anchor", "sank in the lake", "had two oars"),
    ),
    "house": Noun(
        ("cottage", "cabin", "mansion", "villa"),
        (
            "raise a family",
            "live in the village",
            "own three bedrooms",
            "have a roof above the bed",
        ),
        (
            "had three bedrooms",
            "had a chimney and a roof",
            "was rented to a family",
            "had a kitchen and a porch",
        ),
    ),
    "coat": Noun(
        ("jacket", "parka", "raincoat", "overcoat"),
        ("stay warm in winter", "go out in the snow", "dress for the cold", "be dry in the rain"),
        (
            "had sleeves and buttons",
            "was worn in winter",
            "was zipped up in the cold",
            "had a warm lining",
        ),
    ),
    "shoe": Noun(
        ("sneaker", "boot", "sandal", "slipper"),
        ("protect a foot", "run a marathon", "walk on sharp stones", "cover the toes"),
        ("had laces", "lost its heel", "fit the left foot", "had a worn sole"),
    ),
    "hat": Noun(
        ("cap", "helmet", "bonnet", "beanie"),
        ("cover the head", "keep the sun off the face", "hide messy hair", "shade the eyes"),
        (
            "was worn on the head",
            "had a wide brim",
            "had a feather in its brim",
            "was taken off the head",
        ),
    ),
    "book": Noun(
        ("novel", "dictionary", "diary", "textbook"),
        ("read a story", "study history", "learn some grammar", "pass the exam"),
        (
            "had two hundred pages",
            "came from the library",
            "had twelve chapters",
            "was written by a famous author",
        ),
    ),
    "knife": Noun(
        ("dagger", "blade", "scalpel", "sword"),
        ("cut the meat", "slice some bread", "peel a potato", "chop the onions"),
        ("cut the bread", "had a sharp edge", "lay beside the fork", "sliced the cheese"),
    ),
    "phone": Noun(
        ("telephone", "cellphone", "smartphone", "handset"),
        ("call a friend", "send a message", "talk to someone far away", "dial a number"),
        ("rang twice", "needed a new battery", "lost the call", "received a text message"),
    ),
    "chair": Noun(
        ("stool", "armchair", "bench", "throne"),
        ("sit down", "rest the legs", "sit at the table", "sit by the desk"),
        (
            "stood by the table",
            "had four legs and a back",
            "was pulled up to the desk",
            "was made for sitting",
        ),
    ),
}

_CAPITALS = (
    "France:Paris Italy:Rome Spain:Madrid Germany:Berlin Japan:Tokyo China:Beijing "
    "Russia:Moscow Egypt:Cairo Greece:Athens Portugal:Lisbon Austria:Vienna Ireland:Dublin "
    "Norway:Oslo Sweden:Stockholm Finland:Helsinki Denmark:Copenhagen Poland:Warsaw "
    "Hungary:Budapest Cuba:Havana Peru:Lima Kenya:Nairobi Iran:Tehran Iraq:Baghdad "
    "Turkey:Ankara Canada:Ottawa Belgium:Brussels Thailand:Bangkok Vietnam:Hanoi "
    "Chile:Santiago Syria:Damascus Lebanon:Beirut Scotland:Edinburgh Wales:Cardiff "
    "Australia:Canberra Bulgaria:Sofia Romania:Bucharest Serbia:Belgrade Croatia:Zagreb "
    "Ukraine:Kiev Libya:Tripoli Afghanistan:Kabul Nepal:Kathmandu Israel:Jerusalem "
    "Jordan:Amman Venezuela:Caracas Colombia:Bogota Ecuador:Quito Jamaica:Kingston "
    "Ghana:Accra Somalia:Mogadishu Sudan:Khartoum Uganda:Kampala Bangladesh:Dhaka "
    "Indonesia:Jakarta Philippines:Manila Taiwan:Taipei Latvia:Riga Iceland:Reykjavik "
    "Uruguay:Montevideo Rwanda:Kigali Zimbabwe:Harare Armenia:Yerevan Georgia:Tbilisi "
    "Albania:Tirana"
)
CAPITALS: tuple[tuple[str, str], ...] = tuple(
    (country, capital) for country, capital in (pair.split(":") for pair in _CAPITALS.split())
)
"""Countries with their capitals."""

SUMS: dict[str, tuple[int, tuple[tuple[int, int], ...]]] = {
    "+": (10, ((1, 2), (7, 2), (1, 1), (4, 4), (2, 6))),
    "-": (6, ((9, 2), (8, 3), (6, 2), (5, 4), (9, 6))),
}
"""How many sums and differences there are in a round, and the worked ones."""
