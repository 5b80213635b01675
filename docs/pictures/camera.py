"""The browser that takes the pictures: an exported page at a width, in a colour scheme, as PNG."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Locator, Page

import headwidget as hw
from tests.browser.explorer_page import READY, ExplorerPage

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTH = 968
"""The width of a notebook's output on a laptop, in CSS pixels."""
SCALE = 1.5
"""Pixels of a picture to a CSS pixel."""
MARGIN = 12
"""Room around the widget, in CSS pixels."""
BARE = f"""
    h1, footer {{ display: none }}
    body {{ margin: 0; padding: {MARGIN}px; max-width: none }}
    #headwidget .hw-model {{ display: inline }}
"""
"""The widget alone, with the model's name that the page's heading has otherwise."""


@contextmanager
def explorer_page(
    browser: Browser,
    explorer: hw.Explorer,
    scheme: Scheme,
    width: int = WIDTH,
    scale: float = SCALE,
) -> Iterator[ExplorerPage]:
    """The explorer's exported page; the widget is ``width`` CSS pixels wide."""
    context = browser.new_context(
        bypass_csp=True,  # for a style of our own
        color_scheme=scheme,
        device_scale_factor=scale,
        viewport={"width": width + 2 * MARGIN, "height": 900},
    )
    page = context.new_page()
    with tempfile.TemporaryDirectory() as folder:
        page.goto(explorer.to_html(Path(folder) / "page.html").as_uri())
        page.wait_for_selector(READY)
        page.add_style_tag(content=BARE)
        view = ExplorerPage(page, simple=True)
        view.drawn()
        is_wide = view.root.evaluate("(root) => root.getBoundingClientRect().width")
        assert is_wide == width, f"the widget is {is_wide} px wide, not {width}"
        yield view
    context.close()


def picture(page: Page, widget: Locator, margin: int = MARGIN) -> Image.Image:
    """The widget as it is on the page, with a margin; the page is made as tall as it."""
    box = widget.evaluate(
        """(el) => {
            const { x, y, width, height } = el.getBoundingClientRect();
            return { x: x + scrollX, y: y + scrollY, width, height };
        }"""
    )
    shot = page.screenshot(
        full_page=True,
        clip={
            "x": box["x"] - margin,
            "y": box["y"] - margin,
            "width": box["width"] + 2 * margin,
            "height": box["height"] + 2 * margin,
        },
    )
    return Image.open(io.BytesIO(shot)).convert("RGB")


def save(image: Image.Image, path: Path) -> Path:
    """Write a picture with a palette, which makes it a third as large.

    The palette covers all colours, rare ones such as a legend's too; its entries are then moved
    to the colours that are there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    small = image.quantize(192, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path
