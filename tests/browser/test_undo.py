"""Undo, redo and reset, by keys and buttons, on a page without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

import headwidget as hw
from tests.support import made_up

from .explorer_page import ExplorerPage, open_page

SCORES = made_up.scores(8, 6, tasks=3, runs=9, signed=True)


@pytest.fixture
def view(context: BrowserContext, tmp_path: Path) -> ExplorerPage:
    path = hw.explore(SCORES, threshold=0.004, selected=[(1, 2)]).to_html(tmp_path / "heads.html")
    return open_page(context, path)[0]


def can(view: ExplorerPage) -> tuple[bool, bool]:
    """Whether there is something to undo, and to redo."""
    view.drawn()
    back, forth = (view.button(name).get_attribute("aria-disabled") for name in ("Undo", "Redo"))
    return back == "false", forth == "false"


def test_every_click_is_undone_and_redone_one_by_one(view: ExplorerPage) -> None:
    assert can(view) == (False, False)
    view.click(3, 4)
    view.click(5, 1, modifiers=["Shift"])
    view.show_view("Agreement")
    assert can(view) == (True, False)
    view.press("Control+z")
    assert view.button("Tasks").get_attribute("aria-pressed") == "true"
    assert view.selected() == [(3, 4), (5, 1)]
    view.press("Control+z")
    assert view.selected() == [(3, 4)]
    view.press("Control+z")
    assert (view.selected(), can(view)) == ([(1, 2)], (False, True))
    view.button("Undo").click(force=True)  # nothing is left
    assert view.selected() == [(1, 2)]
    view.press("Control+Shift+Z")
    assert view.selected() == [(3, 4)]
    view.press("Control+y")
    assert view.selected() == [(3, 4), (5, 1)]
    view.button("Redo").click()
    assert view.button("Agreement").get_attribute("aria-pressed") == "true"
    assert can(view) == (True, False)


def test_a_drag_and_a_held_key_are_one_step_each(view: ExplorerPage) -> None:
    view.drag_slider(0.7)
    dragged = view.threshold()
    assert dragged != "0.004"
    view.slider().focus()
    for _ in range(5):
        view.page.keyboard.down("ArrowLeft")  # held: it repeats
    view.page.keyboard.up("ArrowLeft")
    view.drawn()
    assert view.threshold() != dragged
    view.press("Control+z")
    assert view.threshold() == dragged
    view.press("Control+z")
    assert (view.threshold(), can(view)) == ("0.004", (False, True))


def test_what_is_typed_has_the_browsers_own_undo(view: ExplorerPage) -> None:
    view.click(3, 4)
    field = view.root.locator(".hw-value")
    field.click()
    view.page.keyboard.type("77")
    typed = field.input_value()
    view.press("Control+z")
    assert field.input_value() != typed
    assert view.selected() == [(3, 4)]


def test_reset_is_how_it_was_at_first_and_can_be_undone(view: ExplorerPage) -> None:
    view.show_view("Categories")
    view.click(3, 4)
    view.type_threshold("0.001")
    view.open_menu("Display").get_by_role("button", name="Reset").click()
    assert (view.threshold(), view.selected()) == ("0.004", [(1, 2)])
    assert view.button("Tasks").get_attribute("aria-pressed") == "true"
    view.press("Control+z")
    assert (view.threshold(), view.selected()) == ("0.001", [(3, 4)])
    assert view.button("Categories").get_attribute("aria-pressed") == "true"
