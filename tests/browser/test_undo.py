"""Undo, redo and reset, by keys and buttons: on a page without a kernel, and in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

import headwidget as hw
from tests.support import made_up

from .conftest import Kernel
from .explorer_page import ExplorerPage, open_page
from .hosts import SYNTHETIC, Server, wait_until

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
    view.drawn()
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


def test_in_jupyterlab_undo_reaches_python_and_leaves_what_python_did(
    page: Page, server: Server, open_notebook: Callable[..., Kernel]
) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax"])))
    view = ExplorerPage(page)
    view.type_threshold("0.01")
    kernel.until("explorer.threshold", lambda value: value == 0.01)
    view.click(1, 2)
    kernel.until("explorer.selected", lambda heads: len(heads) == 1)
    kernel.run("explorer.view = 'categories'")
    tab = view.button("Categories")
    wait_until(lambda: tab.get_attribute("aria-pressed") == "true", "the view that Python set")
    view.plot().focus()
    cells = page.locator(".jp-Cell").count()
    view.press("Control+z")
    kernel.until("explorer.selected", lambda heads: heads == [])
    view.press("Control+z", "Control+z")
    kernel.until("explorer.threshold", lambda value: value is None)
    assert kernel.value("explorer.view") == "categories"
    view.press("Control+y")
    kernel.until("explorer.threshold", lambda value: value == 0.01)
    assert page.locator(".jp-Cell").count() == cells  # the notebook undid nothing


def test_in_jupyterlab_a_page_is_made_and_about_reads(
    page: Page,
    server: Server,
    open_notebook: Callable[..., Kernel],
    context: BrowserContext,
    tmp_path: Path,
) -> None:
    open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax"])))
    view = ExplorerPage(page)
    view.click(1, 2)
    selected = view.text("selected")
    item = view.open_menu("Save").get_by_role("button", name="Page (HTML)", exact=True)
    with page.expect_download() as download:
        item.click()
    download.value.save_as(tmp_path / "heads.html")
    made, requests, wrong = open_page(context, tmp_path / "heads.html")
    assert (made.text("selected"), made.titles()) == (selected, view.titles())
    assert (len(requests), wrong) == (1, [])
    for term in view.open_menu("About").locator("dt").all():
        wide = term.evaluate("(dt) => [dt.scrollWidth, dt.clientWidth, dt.innerText]")
        assert wide[0] <= wide[1] and wide[2], wide
