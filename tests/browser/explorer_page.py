"""What a user does with an explorer on a page, and what they see: shared by the browser tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page

READY = ".hw-root[data-ready='1']"

_CELLS = """(canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: canvas.width * canvas.height }, (_, i) => Array.from(data.slice(4 * i, 4 * i + 4)));
}"""


@dataclass
class ExplorerPage:
    """One view of an explorer."""

    page: Page
    number: int = 0

    @property
    def root(self) -> Locator:
        return self.page.locator(READY).nth(self.number)

    def titles(self) -> list[str]:
        return self.root.locator(".hw-map-name").all_text_contents()

    def plot(self, map_: int = 0) -> Locator:
        return self.root.locator(".hw-plot").nth(map_)

    def shape(self, map_: int = 0) -> tuple[int, int]:
        """(layers, heads) of a map."""
        height, width = self.plot(map_).locator(".hw-cells").evaluate("(c) => [c.height, c.width]")
        return height, width

    def cells(self, map_: int = 0) -> list[list[int]]:
        """Every cell's colour, [red, green, blue, opacity], layer by layer."""
        out: list[list[int]] = self.plot(map_).locator(".hw-cells").evaluate(_CELLS)
        return out

    def bright(self, map_: int = 0) -> list[int]:
        """Which cells are not dimmed, by their number."""
        return [i for i, cell in enumerate(self.cells(map_)) if cell[3] == 255]

    def at(self, row: int, head: int, map_: int = 0) -> dict[str, float]:
        """The middle of a cell, inside its plot."""
        layers, heads = self.shape(map_)
        box = self.plot(map_).bounding_box()
        assert box is not None
        return {"x": (head + 0.5) * box["width"] / heads, "y": (row + 0.5) * box["height"] / layers}

    def click(self, row: int, head: int, map_: int = 0, **options: Any) -> None:
        self.plot(map_).click(position=self.at(row, head, map_), **options)

    def hover(self, row: int, head: int, map_: int = 0) -> None:
        self.plot(map_).hover(position=self.at(row, head, map_))

    def drag_slider(self, to: float) -> None:
        """Drag the threshold's thumb to a fraction of its way; 0 goes beyond the end, as a hand does."""
        slider = self.root.locator(".hw-slider")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        assert box is not None
        value, most = (float(v) for v in slider.evaluate("(s) => [s.value, s.max]"))
        middle = box["y"] + box["height"] / 2
        start = box["x"] + 8 + (box["width"] - 16) * value / most
        self.page.mouse.move(start, middle)
        self.page.mouse.down()
        end = box["x"] + 8 + (box["width"] - 16) * to if to > 0 else box["x"] - 8
        self.page.mouse.move(end, middle, steps=8)
        self.page.mouse.up()
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # drawn by now

    def text(self, name: str) -> str:
        return self.root.locator(f".hw-{name}").first.text_content() or ""

    def card(self) -> str:
        return self.root.locator(".hw-card").inner_text() if self.root.locator(".hw-card").is_visible() else ""

    def marked(self, map_: int = 0) -> int:
        """How many pixels of outlines a map shows."""
        count: int = (
            self.plot(map_)
            .locator(".hw-marks")
            .evaluate("(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length")
        )
        return count
