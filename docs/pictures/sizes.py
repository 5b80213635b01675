"""The explorer with 1, 2, 8 and 19 tasks, at the widths of a phone and of notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

import headwidget as hw
from docs.pictures import saved
from docs.pictures.camera import SCHEMES, WIDTH, Scheme, explorer_page, picture, save

WIDTHS = (400, 644, WIDTH, 1380)
"""A phone, a narrow, a usual and a wide notebook, in CSS pixels."""
SMALLER = 2
"""CSS pixels to a pixel of a contact sheet."""
GAP = 16
"""Pixels between the pictures of a contact sheet."""
BACKGROUND = {"light": "#d8d8d8", "dark": "#404040"}


def explorers() -> dict[int, hw.Explorer]:
    """An explorer for each number of tasks."""
    two, eight, nineteen = saved.gradient(), saved.ablation(), saved.relations()
    best = two.top("Math", 3)
    return {
        1: hw.explore(two.select("Math"), rule="elbow", selected=best),
        2: hw.explore(two, rule="elbow", scale="own", selected=best),
        8: hw.explore(eight, normalize="share", selected=eight.top("Retrieval", 2)),
        19: hw.explore(nineteen, view="tasks", selected=nineteen.top("country to capital", 1)),
    }


def shoot(browser: Browser, folder: Path) -> list[Path]:
    """Contact sheets: eight tasks at every width, and every number of tasks at the usual one."""
    shown = explorers()
    sheets = {
        "widths": [(shown[8], width) for width in WIDTHS],
        "counts": [(explorer, WIDTH) for explorer in shown.values()],
    }
    pictures = []
    for name, cases in sheets.items():
        for scheme in SCHEMES:
            shots = [shot(browser, explorer, scheme, width) for explorer, width in cases]
            image = side_by_side([smaller(image) for image in shots], BACKGROUND[scheme])
            pictures.append(save(image, folder / f"{name}-{scheme}.png"))
    return pictures


def shoot_all(browser: Browser, folder: Path) -> list[Path]:
    """Every number of tasks at every width in full size, to be looked at; no page has them."""
    pictures = []
    for tasks, explorer in explorers().items():
        for width in WIDTHS:
            for scheme in SCHEMES:
                image = shot(browser, explorer, scheme, width)
                pictures.append(save(image, folder / f"{tasks:02}-tasks-{width}-px-{scheme}.png"))
    return pictures


def shot(browser: Browser, explorer: hw.Explorer, scheme: Scheme, width: int) -> Image.Image:
    """The whole explorer, a pixel for a CSS pixel."""
    with explorer_page(browser, explorer, scheme, width, scale=1) as view:
        return picture(view.page, view.root)


def smaller(image: Image.Image) -> Image.Image:
    size = (image.width // SMALLER, image.height // SMALLER)
    return image.resize(size, Image.Resampling.LANCZOS)


def side_by_side(images: Sequence[Image.Image], background: str) -> Image.Image:
    wide = sum(image.width + GAP for image in images) + GAP
    tall = max(image.height for image in images) + 2 * GAP
    whole = Image.new("RGB", (wide, tall), background)
    left = GAP
    for image in images:
        whole.paste(image, (left, GAP))
        left += image.width + GAP
    return whole
