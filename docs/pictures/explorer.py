"""Takes docs/images/explorer-light.png and explorer-dark.png from saved scores.

python -m docs.pictures.explorer scores.safetensors [folder]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

import headwidget as hw

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def shoot(scores: hw.HeadScores, folder: Path, *, width: int = 1000) -> list[Path]:
    """The explorer in both schemes: a threshold at the elbow, the best heads selected, one
    pointed at."""
    folder.mkdir(parents=True, exist_ok=True)
    first = scores.tasks[0]
    best = scores.top(first, 3)
    explorer = hw.explore(scores, threshold=float(f"{scores.elbow(first):.2g}"), selected=best)
    page_file = explorer.to_html(Path(tempfile.mkdtemp()) / "explorer.html")
    pictures = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme in SCHEMES:
            context = browser.new_context(
                bypass_csp=True,  # for a style of our own
                color_scheme=scheme,
                device_scale_factor=2,
                viewport={"width": width, "height": 900},
            )
            page = context.new_page()
            page.goto(page_file.as_uri())
            page.wait_for_selector(".hw-root[data-ready='1']")
            page.add_style_tag(
                content="#headwidget .hw-model { display: inline } "
                "h1, footer { display: none } body { padding: 16px }"
            )
            right = page.locator(".hw-bar").evaluate("(bar) => bar.getBoundingClientRect().right")
            wide = min(width, max(720, round(right) + 24))  # no empty half beside a few narrow maps
            page.set_viewport_size({"width": wide, "height": 900})
            row, head = scores.layers.index(best[0][0]), best[0][1]
            box = page.locator(".hw-plot").first.bounding_box()
            assert box is not None
            layers, heads = scores.shape
            page.mouse.move(
                box["x"] + (head + 0.5) * box["width"] / heads,
                box["y"] + (row + 0.5) * box["height"] / layers,
            )
            page.wait_for_selector(".hw-card:visible")
            size = page.locator("body").bounding_box()
            assert size is not None
            pictures.append(folder / f"explorer-{scheme}.png")
            page.screenshot(
                path=pictures[-1], clip={"x": 0, "y": 0, "width": wide, "height": size["height"]}
            )
        browser.close()
    return pictures


if __name__ == "__main__":
    target = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/images")
    for picture in shoot(hw.open(sys.argv[1]), target):
        print(picture, picture.stat().st_size // 1024, "KB")
