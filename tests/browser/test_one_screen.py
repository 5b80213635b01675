"""The whole lab on one screen in a real JupyterLab, 968 px wide: nothing that belongs together
needs scrolling, and a student's path is short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from .conftest import Kernel, run_notebook
from .explorer_page import ExplorerPage
from .hosts import Server, wait_until

WIDTH, HEIGHT = 968, 760
"""The room that a notebook's output has on a laptop, in CSS pixels."""
MOST_ACTIONS = 12
"""Clicks, drags and typed lines from an idle lab to a tested claim."""
_BEYOND = """(root) => {
    const { left, right } = root.getBoundingClientRect();
    const beyond = (el) => {
        const box = el.getBoundingClientRect();
        return box.left < left - 1 || box.right > right + 1;
    };
    return Array.from(root.querySelectorAll('*'))
        .filter((el) => el.checkVisibility({ visibilityProperty: true }) && beyond(el))
        .map((el) => el.className);
}"""
CODE = """
import headwidget as hw
lab = hw.live(hw.load(), "math-syntax", prompts=2)
lab
"""


@dataclass
class Screen:
    """The lab as a student has it, and what was done with it."""

    page: Page
    kernel: Kernel
    view: ExplorerPage
    actions: list[str] = field(default_factory=list)

    def rest(self) -> dict[str, float]:
        """Where the lab and its parts stand on the screen."""
        self.view.drawn()
        places: dict[str, float] = self.view.root.evaluate(
            """(root) => {
                const box = (name) => root.querySelector(name).getBoundingClientRect();
                return {
                    left: box('.hw-top').left,
                    top: root.getBoundingClientRect().top,
                    maps: box('.hw-plot').top,
                    width: root.clientWidth,
                    height: root.getBoundingClientRect().height,
                };
            }"""
        )
        return places

    def on_screen(self, part: Locator) -> bool:
        """Is all of it inside the lab's 968 x 760 px?"""
        self.view.drawn()
        at, box = self.rest(), part.bounding_box()
        assert box is not None, f"{part} is not shown"
        return (
            box["y"] >= at["top"] - 1
            and box["y"] + box["height"] <= at["top"] + HEIGHT + 1
            and box["x"] + box["width"] <= at["left"] + WIDTH + 1
        )

    def do(self, what: str, on: Locator, act: Any) -> None:
        """One action of the student's, on what is on the screen; nothing may scroll or jump."""
        assert self.on_screen(on), f"{what} needs scrolling"
        before = self.rest()
        act()
        self.actions.append(what)
        after = self.rest()
        assert after["top"] == before["top"], f"{what} scrolled"
        assert after["maps"] == before["maps"], f"{what} moved the maps"


@pytest.fixture
def screen(chromium: Browser, server: Server) -> Iterator[Screen]:
    context = chromium.new_context(viewport={"width": 1100, "height": 980})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    kernel = run_notebook(page, server, server.write(CODE), seconds=180)
    root = page.locator(".hw-root")
    spare = 1100 - int(root.evaluate("(el) => el.clientWidth"))
    page.set_viewport_size({"width": WIDTH + spare, "height": 980})
    wait_until(lambda: root.evaluate("(el) => el.clientWidth") == WIDTH, "the width")
    yield Screen(page, kernel, ExplorerPage(page, simple=True))
    kernel.close()
    page.evaluate("() => window.testPanel.sessionContext.shutdown()")
    context.close()
    assert wrong == []


def test_a_student_tests_a_claim_in_few_actions_on_one_screen(screen: Screen) -> None:
    page, kernel, view = screen.page, screen.kernel, screen.view
    inspector = page.locator(".hw-inspector")
    empty = view.root.locator(".hw-unscored:visible").all_inner_texts()
    assert empty == ["Not scored yet\nPress Run: cells fill as they are scored.", "Not scored yet"]
    box = page.locator(".hw-prompt textarea")
    screen.do("type a prompt", box, lambda: box.fill("The capital of France is"))
    rows = page.locator(".hw-prediction")
    wait_until(lambda: rows.count() and "Paris" in rows.first.inner_text(), "the next token", 180)
    go = page.locator(".hw-run .hw-go")
    screen.do("run", go, go.click)
    kernel.until("lab.state", lambda state: state == "done", 300)
    wait_until(lambda: view.counts() and go.inner_text() == "Run", "the button")
    number = page.locator(".hw-value")
    screen.do("threshold", number, lambda: view.type_threshold("0.1"))
    kernel.until("lab.threshold", lambda value: value == 0.1)

    first, second = kernel.value("[list(map(int, head)) for head in lab.scores.top('Math', 2)]")
    screen.do("select", view.plot(), lambda: view.click(*first))
    screen.do("add", view.plot(), lambda: view.click(*second, modifiers=["Shift"]))
    page.mouse.move(2, 2)
    name = inspector.locator(".hw-inspected-name")
    wait_until(lambda: name.inner_text() == f"L{second[0]} H{second[1]}", "the selected head")
    assert inspector.locator(".hw-card-task").all_text_contents() == ["Math", "Syntax"]
    off = inspector.get_by_role("button", name="Turn 2 off")
    screen.do("turn off", off, off.click)
    kernel.until("int((lab.gates == 0).sum())", lambda count: count == 2)
    wait_until(lambda: "→" in rows.first.inner_text(), "before and after", 180)
    assert view.marked() > 40 and page.locator(".hw-chip-changed").count() == 2
    measure = inspector.get_by_role("button", name="Measure on tasks")
    screen.do("measure", measure, measure.click)
    kernel.until("lab.effect.get('done')", lambda done: done is True, 240)
    table = inspector.locator(".hw-effect-table tbody tr")
    wait_until(lambda: table.count() == 2, "the table of the tasks")
    greedy = inspector.locator(".hw-greedy")
    wait_until(lambda: greedy.count() == 2, "how the text goes on")

    shown = [*(page.locator(".hw-map").nth(n) for n in (0, 1)), rows.first, name]
    shown += [inspector.locator(".hw-effect-table"), greedy.last, page.locator(".hw-changed")]
    for part in shown:
        assert screen.on_screen(part), part
    assert screen.rest()["height"] <= HEIGHT
    for tab in ("Scores", "Prompt", "Words", "Effect"):
        inspector.get_by_role("tab", name=tab).click()
        assert screen.rest()["height"] <= HEIGHT, tab

    more = page.get_by_role("button", name="More controls")
    more.click()
    assert screen.rest()["height"] <= HEIGHT, "with every control shown"
    more.click()
    restore = page.get_by_role("button", name="Restore all")
    screen.do("undo", restore, restore.click)
    kernel.until("bool((lab.gates == 1).all())", bool)
    assert len(screen.actions) <= MOST_ACTIONS, screen.actions


def test_nothing_is_wider_than_the_lab_at_any_width(screen: Screen) -> None:
    page, kernel, view = screen.page, screen.kernel, screen.view
    kernel.run("lab.gates = lab.gates.copy(); lab.run(prompts=1).wait(120)")
    kernel.run("gates = lab.gates.copy(); gates[13, 4] = 0; lab.gates = gates; lab.threshold = 0.1")
    page.get_by_role("button", name="More controls").click()
    heed, runs = page.locator(".hw-run-heed"), page.locator(".hw-run-past")
    wait_until(lambda: heed.is_visible() and runs.is_visible(), "the whole line", 60)
    for width in (400, 515, 516, 644, 720, 800, WIDTH):
        view.root.evaluate("(el, width) => { el.style.width = `${width}px`; }", width)
        view.drawn()
        assert view.root.evaluate(_BEYOND) == [], width
        said = page.locator(".hw-run-far .hw-run-text")
        assert said.evaluate("(el) => el.scrollWidth <= el.clientWidth"), f"cut at {width}"
        box = said.bounding_box()
        assert box and box["width"] >= 180, width
        for menu in ("score", "options", "past"):
            opener, popup = (
                page.locator(f".hw-run-{menu} > {part}") for part in ("summary", ".hw-popup")
            )
            opener.click()
            view.drawn()
            above, below = opener.bounding_box(), popup.bounding_box()
            assert above and below and 0 <= below["y"] - above["y"] < 100, f"{menu} at {width}"
            assert view.root.evaluate(_BEYOND) == [], f"{menu} at {width}"
            page.keyboard.press("Escape")


def test_another_head_that_is_pointed_at_stands_in_for_the_open_tab(screen: Screen) -> None:
    page, view = screen.page, screen.view
    inspector = page.locator(".hw-inspector")
    view.click(3, 3)
    inspector.get_by_role("tab", name="Effect").click()
    view.hover(3, 3)
    assert inspector.locator("[data-tab=effect]").is_visible(), "the selected head itself"
    view.hover(5, 1)
    wait_until(lambda: view.card().startswith("L5 H1"), "the other head")
    assert inspector.locator("[data-tab=scores]").is_visible()
    assert page.locator(".hw-root > .hw-card").is_hidden(), "no card over the maps"
    page.mouse.move(2, 2)
    wait_until(lambda: inspector.locator("[data-tab=effect]").is_visible(), "the tab again")
    close = inspector.get_by_role("button", name="Close the inspector")
    before = view.plot().bounding_box()
    close.click()
    view.drawn()
    after = view.plot().bounding_box()
    assert before and after and after["width"] > before["width"], "the maps get its room"
    view.hover(5, 1)
    card = page.locator(".hw-root > .hw-card")
    wait_until(card.is_visible, "the card")
    at, over = view.at(5, 1), card.bounding_box()
    plot = view.plot().bounding_box()
    assert over and plot
    x, y = plot["x"] + at["x"], plot["y"] + at["y"]
    assert not over["x"] <= x <= over["x"] + over["width"], "not over the pointer's column"
    assert not over["y"] <= y <= over["y"] + over["height"], "not over the pointer's row"
