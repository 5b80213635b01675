"""What a user does with an explorer on a page, and what they see: shared by the browser tests.

The page draws in its next frame, and after a change of its size in the one after that. So
whatever reads a page here first lets the frames pass that are due, and whatever acts on it lets
them pass afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from playwright.sync_api import BrowserContext, Locator, Page, Position

READY = ".hw-root[data-ready='1']"
SECONDS = 30
"""How long a page may take for three frames."""
FRAMES = f"""() => new Promise((done, fail) => {{
    const late = setTimeout(() => fail(new Error('no frame in {SECONDS} s')), {SECONDS * 1000});
    const passed = () => {{ clearTimeout(late); done(); }};
    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(passed)));
}})"""

_CELLS = """(canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: canvas.width * canvas.height }, (_, i) =>
        Array.from(data.slice(4 * i, 4 * i + 4)));
}"""

_MARKED = """(canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 === 3 && value).length;
}"""

_TABLE = """async (details) => {
    if (details.hidden) return null;
    details.open = true;
    const end = performance.now() + 30_000;
    while (!details.querySelector('table')) { // made when it is opened
        if (performance.now() > end) throw new Error('no table in 30 s');
        await new Promise(requestAnimationFrame);
    }
    return Array.from(details.querySelectorAll('tr')).map((row) =>
        Array.from(row.children).map((cell) => cell.textContent));
}"""

_CONTRAST = """(el) => {
    const pen = new OffscreenCanvas(1, 1).getContext('2d');
    const paint = (colour) => { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); };
    const light = () => Array.from(pen.getImageData(0, 0, 1, 1).data).slice(0, 3)
        .map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = [];
    for (let at = el; at; at = at.parentElement) {
        behind.unshift(getComputedStyle(at).backgroundColor);
    }
    paint('white');
    behind.forEach(paint);
    const back = light();
    paint(getComputedStyle(el).color);
    const [low, high] = [back, light()].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""

_LINES = """(track) => {
    const box = track.getBoundingClientRect();
    const lines = Array.from(track.querySelectorAll('.hw-track-line:not([hidden])'));
    return lines.map((line) => {
        const { left, width } = line.getBoundingClientRect();
        return (left + width / 2 - box.left) / box.width;
    });
}"""
_NAMES = """(all) => all.map((map) => ['.hw-map-name', '.hw-map-part']
    .map((name) => map.querySelector(name))
    .map((el) => (el.checkVisibility({ visibilityProperty: true }) ? el.innerText.trim() : '')))"""

Slider = Literal["threshold", "agreement", "solo"]


def open_page(
    context: BrowserContext, path: Path, *, simple: bool = False
) -> tuple[ExplorerPage, list[str], list[str]]:
    """The page, every request it made, and everything that went wrong."""
    page = context.new_page()
    requests: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.goto(path.as_uri())
    page.wait_for_selector(READY)
    return ExplorerPage(page, wrong=wrong, simple=simple), requests, wrong


def contrast(page: Page, selector: str) -> float:
    """The contrast ratio of an element's text with what is behind it, as WCAG defines it."""
    page.evaluate(FRAMES)
    ratio: float = page.locator(selector).first.evaluate(_CONTRAST)
    return ratio


@dataclass
class ExplorerPage:
    """One view of an explorer."""

    page: Page
    number: int = 0
    wrong: list[str] = field(default_factory=list)
    """Errors of the page, where it was opened by ``open_page``."""
    simple: bool = False
    """Leave the controls that few need put away, as a new user has it."""

    def __post_init__(self) -> None:
        if not self.simple:
            more = self.button("More controls")
            if more.get_attribute("aria-expanded") == "false":
                more.click()
                self.page.mouse.move(1, 1)

    @property
    def root(self) -> Locator:
        return self.page.locator(READY).nth(self.number)

    def drawn(self) -> None:
        """Everything that happened so far is on the screen."""
        self.page.evaluate(FRAMES)

    def seen(self, selector: str) -> Locator:
        """What the view shows at a selector, once everything that happened is drawn."""
        self.drawn()
        return self.root.locator(selector)

    # ---- what is seen ----

    def text(self, name: str) -> str:
        return self.seen(f".hw-{name}").first.text_content() or ""

    def titles(self) -> list[str]:
        """What each map is called, "Math (Always)"; what is written is in ``names``."""
        maps = self.seen(".hw-maps .hw-map")
        titles: list[str] = maps.evaluate_all("(all) => all.map((map) => map.ariaLabel)")
        return titles

    def names(self) -> list[tuple[str, str]]:
        """What is written above each map: its task and, of several, which of its maps it is."""
        names: list[tuple[str, str]] = self.seen(".hw-maps .hw-map").evaluate_all(_NAMES)
        return names

    def counts(self) -> list[str]:
        """What stands beside each title."""
        return self.seen(".hw-map-count").all_text_contents()

    def threshold(self) -> str:
        """The threshold as the field shows it; empty without one."""
        return self.seen(".hw-value").input_value()

    def slider_at(self, which: Slider = "threshold") -> int:
        """The stop that a slider is at."""
        self.drawn()
        return int(self.slider(which).input_value())

    def legend(self) -> dict[str, int]:
        """The categories' legend, from the top: each name and its count."""
        names = self.seen(".hw-legend-name").all_text_contents()
        return dict(zip(names, map(int, self.root.locator(".hw-legend-count").all_text_contents())))

    def chips(self) -> list[tuple[str, bool]]:
        """Every task's chip, in order, and whether its task is shown."""
        chips = self.seen(".hw-chip").evaluate_all(
            "(all) => all.map((chip) => [chip.textContent, chip.ariaPressed])"
        )
        return [(str(name), pressed == "true") for name, pressed in chips]

    def table(self) -> list[list[str]]:
        """The table of the selected heads, headers first; empty when it is not there."""
        return self.seen(".hw-table-box").evaluate(_TABLE) or []

    def selected(self) -> list[tuple[int, int]]:
        """The selected heads as (layer, head), from the table of them."""
        names = [row[0].split() for row in self.table()[1:]]
        return [(int(layer[1:]), int(head[1:])) for layer, head in names]

    def spoken(self) -> str:
        """What a screen reader was told last."""
        return self.text("spoken")

    def card(self) -> str:
        """The head that the pointer or a key is at, with its numbers; empty without one.

        They stand in the inspector where that is beside the maps, else in a card.
        """
        inspector = self.seen(".hw-inspector[data-pointed]")
        if inspector.count():
            name = inspector.locator(".hw-inspected-name").inner_text()
            return f"{name}\n{inspector.locator('.hw-head-card').inner_text()}"
        card = self.root.locator("> .hw-card")
        return card.inner_text() if card.is_visible() else ""

    # ---- maps ----

    def plot(self, map_: int = 0) -> Locator:
        return self.root.locator(".hw-plot").nth(map_)

    def layers_across(self) -> bool:
        return self.root.locator(".hw-label-x").first.text_content() == "Layer"

    def shape(self, map_: int = 0) -> tuple[int, int]:
        """(layers, heads) of a map."""
        self.drawn()
        down, across = self.plot(map_).locator(".hw-cells").evaluate("(c) => [c.height, c.width]")
        return (across, down) if self.layers_across() else (down, across)

    def cells(self, map_: int = 0) -> list[list[int]]:
        """Every cell's colour, [red, green, blue, opacity], layer by layer."""
        layers, heads = self.shape(map_)
        colours: list[list[int]] = self.plot(map_).locator(".hw-cells").evaluate(_CELLS)
        if self.layers_across():
            return [colours[head * layers + layer] for layer, head in np.ndindex(layers, heads)]
        return colours

    def bright(self, map_: int = 0) -> list[int]:
        """Which cells are not dimmed, by their number."""
        return [i for i, cell in enumerate(self.cells(map_)) if cell[3] == 255]

    def marked(self, map_: int = 0) -> int:
        """How many pixels of outlines a map shows."""
        self.drawn()
        count: int = self.plot(map_).locator(".hw-marks").evaluate(_MARKED)
        return count

    def at(self, row: int, head: int, map_: int = 0) -> Position:
        """The middle of a cell, inside its plot."""
        layers, heads = self.shape(map_)
        box = self.plot(map_).bounding_box()
        assert box is not None
        across, down = (row + 0.5) / layers, (head + 0.5) / heads
        if not self.layers_across():
            across, down = down, across
        return {"x": across * box["width"], "y": down * box["height"]}

    # ---- what is done ----

    def click(self, row: int, head: int, map_: int = 0, **options: Any) -> None:
        self.plot(map_).click(position=self.at(row, head, map_), **options)
        self.drawn()

    def hover(self, row: int, head: int, map_: int = 0) -> None:
        self.plot(map_).hover(position=self.at(row, head, map_))
        self.drawn()

    def drag_box(
        self, start: tuple[int, int], end: tuple[int, int], map_: int = 0, key: str | None = None
    ) -> None:
        """Draw a box from one (row, head) to another, with a key held down."""
        self.plot(map_).scroll_into_view_if_needed()
        box = self.plot(map_).bounding_box()
        assert box is not None
        here, there = self.at(*start, map_), self.at(*end, map_)
        if key:
            self.page.keyboard.down(key)
        self.page.mouse.move(box["x"] + here["x"], box["y"] + here["y"])
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + there["x"], box["y"] + there["y"], steps=5)
        self.page.mouse.up()
        if key:
            self.page.keyboard.up(key)
        self.drawn()

    def drag(self, inside: Locator, *path: tuple[float, float]) -> None:
        """Drag along points given as fractions of an element, of the explorer or beside it."""
        inside.scroll_into_view_if_needed()
        box = inside.bounding_box()
        assert box is not None
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in path]
        self.page.mouse.move(*points[0])
        self.page.mouse.down()
        for point in points[1:]:
            self.page.mouse.move(*point, steps=6)
        self.page.mouse.up()

    def click_label(
        self, axis: Literal["x", "y"], index: int, map_: int = 0, **options: Any
    ) -> None:
        """Click beside row ``index`` (axis y) or below column ``index`` (axis x) on the screen."""
        layers, heads = self.shape(map_)
        down, across = (heads, layers) if self.layers_across() else (layers, heads)
        strip = self.root.locator(f".hw-ticks-{axis}").nth(map_)
        box = strip.bounding_box()
        assert box is not None
        if axis == "y":
            x, y = box["width"] / 2, (index + 0.5) * box["height"] / down
        else:
            x, y = (index + 0.5) * box["width"] / across, box["height"] / 2
        strip.click(position={"x": x, "y": y}, **options)
        self.drawn()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.drawn()

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def open_menu(self, name: str) -> Locator:
        """Open Display, Save or About; gives what pops up."""
        menu = self.root.locator(".hw-menu", has=self.page.locator(f"summary:text-is('{name}')"))
        if menu.get_attribute("open") is None:
            menu.locator("summary").click()
            self.drawn()
        return menu.locator(".hw-popup")

    def show_view(self, name: str) -> None:
        self.button(name).click()
        self.drawn()

    def choose(self, label: str, value: str) -> None:
        choice = self.root.locator(
            ".hw-choice", has=self.page.locator(f".hw-choice-name:text-is('{label}')")
        )
        choice.locator("select").select_option(value)
        self.drawn()

    def type_threshold(self, text: str) -> None:
        field = self.root.locator(".hw-value")
        field.fill(text)
        field.press("Enter")
        self.drawn()

    def slider(self, which: Slider = "threshold") -> Locator:
        return self.root.locator(f".hw-{which} .hw-slider")

    def set_slider(self, which: Slider, stop: int) -> None:
        self.slider(which).fill(str(stop))
        self.drawn()

    def line_at(self, which: Slider = "threshold") -> list[float]:
        """Where the lines of a track stand, as fractions of its width."""
        self.drawn()
        places: list[float] = self.root.locator(f".hw-{which} .hw-track").evaluate(_LINES)
        return places

    def drag_line(self, which: Slider, to: float) -> None:
        """Drag a track's line to a fraction of the track's width."""
        track = self.root.locator(f".hw-{which} .hw-track")
        self.drag(track, (self.line_at(which)[0], 0.6), (to, 0.6))
        self.drawn()

    def drag_slider(self, to: float) -> None:
        """Drag the threshold's line to a fraction of the way from none to the strongest."""
        signed = "hw-signed" in (self.root.locator(".hw-distribution").get_attribute("class") or "")
        none = 0.5 if signed else 0.0
        self.drag_line("threshold", none + to * (1 - none))
