"""Each view of the explorer as somebody would look at it, and one task alone."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

import headwidget as hw
from docs.pictures import saved
from docs.pictures.camera import SCHEMES, explorer_page, picture, save


def explorers() -> dict[str, hw.Explorer]:
    """An explorer for each picture, by the picture's name."""
    functions, fits, pairs = saved.ablation(), saved.gating(), saved.relations()
    alone = "Retrieval"
    return {
        "tasks": hw.explore(functions, normalize="share", selected=functions.top("Retrieval", 2)),
        "alone": hw.explore(functions, task=alone, rule="top", selected=functions.top(alone, 3)),
        "agreement": hw.explore(
            fits, view="agreement", threshold=0.5, agreement=0.75, selected=fits.top("Math", 3)
        ),
        "categories": hw.explore(pairs, selected=pairs.top("country to capital", 1)),
    }


def shoot(browser: Browser, folder: Path) -> list[Path]:
    """A picture of each, light and dark."""
    pictures = []
    for name, explorer in explorers().items():
        for scheme in SCHEMES:
            with explorer_page(browser, explorer, scheme) as view:
                shot = picture(view.page, view.root)
                pictures.append(save(shot, folder / f"{name}-{scheme}.png"))
    return pictures
