"""The dashboard in JupyterLab: the explorer with charts beside it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from docs.pictures import saved
from docs.pictures.camera import SCHEMES, picture, save
from docs.pictures.lab_page import OUTPUT, notebook, show_in
from tests.browser.hosts import wait_until

WIDTH = 1320
CODE = f"""
import headwidget as hw
scores = hw.open({str(saved.DATA / "smollm2-cognitive-ablation.safetensors")!r})
four = scores.select(["Retrieval", "Logical Reasoning", "Decision-making", "Math Calculation"])
explorer = hw.explore(four, threshold=0.3, selected=four.top("Retrieval", 4))
hw.dashboard(explorer)
"""


def shoot(browser: Browser, folder: Path) -> list[Path]:
    """charts-light.png and charts-dark.png."""
    pictures = []
    with notebook(browser, CODE, WIDTH) as (page, _):
        wait_until(lambda: page.locator(".hw-chart .lassoselector rect").count(), "the charts")
        for scheme in SCHEMES:
            show_in(page, scheme)
            shot = picture(page, page.locator(OUTPUT))
            pictures.append(save(shot, folder / f"charts-{scheme}.png"))
    return pictures
