"""The colours of maps and categories, as hex stops from low to high.

Twin of ``js/display/palette.ts``; ``tests/golden/palette.json`` holds the two together.
"""

from __future__ import annotations

MAPS = {
    # sampled from matplotlib's maps of the same names
    "viridis": (
        "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 "
        "3fbc73 5ec962 84d44b addc30 d8e219 fde725"
    ),
    "cividis": (
        "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 "
        "aba072 bcae6c cdbb63 dec958 f0d846 fee838"
    ),
    "magma": (
        "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 "
        "f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf"
    ),
    "turbo": (
        "30123b 392a73 4040a2 4456c7 466be3 4680f6 4294ff 37a8fa 28bceb 1ccdd8 18ddc2 "
        "1fe9af 32f298 4ef97d 6dfe62 8bff4b a4fc3c b9f635 cdec34 dfdf37 eecf3a f8be39 "
        "fdac34 fe962b fb7e21 f46617 eb500e df3f08 d02f05 be2102 a91601 920b01 7a0403"
    ),
    # blue to orange stays apart for every kind of colour vision
    "blue-orange": "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04",
}
CATEGORIES = "4a7ad8 fe8700 1fca7f ed492b 8fd8f7 b5b000 b0146a 5b6b7b"
"""Blue, orange, green and red as in the categories figure of Elhelo and Geva (2025).

The first seven and grey stay apart in every kind of colour vision.
"""
SEVERAL = "5e0b92 3f230e f496dd"
"""Heads of 2, 3 and 4 categories: purple, brown, pink; with more, the colours between these."""
UNCLASSIFIED = "d9d9d9"


def stops(name: str) -> list[str]:
    """A map's colours from low to high, as "#rrggbb"."""
    return [f"#{colour}" for colour in MAPS[name].split()]


def category_colours(categories: int) -> list[str]:
    """The colour of every class of the legend, by place.

    Unclassified, each category, "2 categories", "3 categories", and so on.

    >>> category_colours(2)
    ['#d9d9d9', '#4a7ad8', '#fe8700', '#5e0b92']
    """
    cycle = CATEGORIES.split()
    single = [cycle[i % len(cycle)] for i in range(categories)]
    several = [_between(SEVERAL.split(), i, categories - 1) for i in range(categories - 1)]
    return [f"#{colour}" for colour in (UNCLASSIFIED, *single, *several)]


def _between(colours: list[str], i: int, count: int) -> str:
    """The i-th of ``count`` colours: those listed while they last, else spread along them."""
    if count <= len(colours):
        return colours[i]
    at = i / (count - 1) * (len(colours) - 1)
    low = min(int(at), len(colours) - 2)
    channels = zip(bytes.fromhex(colours[low]), bytes.fromhex(colours[low + 1]))
    return bytes(int(a + (b - a) * (at - low) + 0.5) for a, b in channels).hex()
