"""The explorer at the head of the README: heads that pass the elbow, three selected, one
pointed at."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

import headwidget as hw
from docs.pictures import saved
from docs.pictures.camera import SCHEMES, explorer_page, picture, save


def shoot(browser: Browser, folder: Path) -> list[Path]:
    """explorer-light.png and explorer-dark.png."""
    scores = saved.gradient()
    explorer = hw.explore(scores, rule="elbow", scale="own", selected=scores.top("Math", 3))
    layer, head = scores.top("Syntax", 1)[0]
    pictures = []
    for scheme in SCHEMES:
        with explorer_page(browser, explorer, scheme) as view:
            view.hover(scores.layers.index(layer), head, scores.tasks.index("Syntax"))
            assert f"L{layer} H{head}" in view.card()
            shot = picture(view.page, view.root)
            pictures.append(save(shot, folder / f"explorer-{scheme}.png"))
    return pictures
