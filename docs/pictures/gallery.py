"""Takes the pictures of every view in docs/images: four sizes, light and dark, made-up scores.

python -m docs.pictures.gallery [folder]
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import headwidget as hw
from tests.browser.explorer_page import READY
from tests.support import made_up

SIZES = ((12, 12), (32, 32), (48, 32), (80, 64))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BARE = (
    "h1, footer { display: none } #headwidget .hw-model { display: inline } "
    "body { padding: 12px 16px; max-width: none }"
)


def explorers(layers: int, heads: int) -> dict[str, hw.Explorer]:
    """Each view as somebody would look at it."""
    scores = made_up.scores(layers, heads)
    best = scores.top(scores.tasks[0], 2)
    return {
        "tasks": hw.explore(scores, normalize="share", selected=best, preview=None),
        "agreement": hw.explore(made_up.fits(layers, heads), view="agreement", preview=None),
        "categories": hw.explore(
            made_up.relations(layers, heads), view="categories", threshold=0.15, preview=None
        ),
    }


def shoot(
    browser: Browser,
    explorer: hw.Explorer,
    path: Path,
    scheme: Literal["light", "dark"],
    width: int = 1080,
) -> None:
    """A picture of the whole explorer, in 128 colours: maps compress badly."""
    page_file = explorer.to_html(Path(tempfile.mkdtemp()) / "page.html")
    context = browser.new_context(
        bypass_csp=True,  # for a style of our own
        color_scheme=scheme,
        device_scale_factor=1.5,
        viewport={"width": width, "height": 700},
    )
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector(READY)
    page.add_style_tag(content=BARE)
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    shot.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    context.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for layers, heads in SIZES:
            for view, explorer in explorers(layers, heads).items():
                for scheme in SCHEMES:
                    path = folder / f"{view}-{layers}x{heads}-{scheme}.png"
                    shoot(browser, explorer, path, scheme)
                    print(path.name, path.stat().st_size // 1024, "KB")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
