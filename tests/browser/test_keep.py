"""What is shown, kept elsewhere: as a page, as a link, as Python; all made in the browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

import headwidget as hw
from tests.support import made_up

from .explorer_page import ExplorerPage, open_page
from .hosts import wait_until

SCORES = made_up.scores(8, 6, tasks=3, runs=9, signed=True)
STATE = re.compile(r'(id="headwidget-state">)(.*?)(?=</script>)', re.DOTALL)


@pytest.fixture
def view(context: BrowserContext, tmp_path: Path) -> ExplorerPage:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    path = hw.explore(SCORES, threshold=0.004, selected=[(1, 2)]).to_html(tmp_path / "heads.html")
    return open_page(context, path)[0]


def copied(view: ExplorerPage, item: str) -> str:
    """What an item of the Save menu puts on the clipboard."""
    menu = view.open_menu("Save")
    menu.get_by_role("button", name=item, exact=True).click()
    note = menu.locator(".hw-option-note")
    wait_until(lambda: note.text_content() == "Copied.", "the sentence")
    text: str = view.page.evaluate("() => navigator.clipboard.readText()")
    view.press("Escape")
    return text


def made(view: ExplorerPage, path: Path) -> Path:
    """The page that the browser makes, saved at ``path``."""
    item = view.open_menu("Save").get_by_role("button", name="Page (HTML)", exact=True)
    with view.page.expect_download() as download:
        item.click()
    download.value.save_as(path)
    return path


def taken_apart(page: str) -> tuple[str, dict[str, Any]]:
    """A page without its state, and the state with its scores unpacked."""
    found = STATE.search(page)
    assert found
    state = json.loads(found[2])
    state["buffer"] = zlib.decompress(base64.b64decode(state["buffer"]))
    return STATE.sub(r"\1", page), state


def test_the_page_made_in_the_browser_is_the_one_python_makes(
    context: BrowserContext, view: ExplorerPage, tmp_path: Path
) -> None:
    view.show_view("Agreement")
    view.type_threshold("0.003")
    view.click(3, 4)
    path = made(view, tmp_path / "again.html")
    asked = {"view": "agreement", "threshold": 0.003, "selected": [(3, 4)]}
    theirs = hw.explore(SCORES, **asked).to_html(tmp_path / "python.html")
    here, there = (taken_apart(p.read_text(encoding="utf-8")) for p in (path, theirs))
    assert here == there

    again, requests, wrong = open_page(context, path)
    assert again.selected() == [(3, 4)]
    assert again.titles() == view.titles()
    assert (requests, wrong) == ([path.as_uri()], [])
    copy = made(again, tmp_path / "copy.html")  # and so on
    assert taken_apart(copy.read_text(encoding="utf-8")) == here


def test_what_somebody_put_into_a_page_does_not_get_into_the_next(
    context: BrowserContext, view: ExplorerPage, tmp_path: Path
) -> None:
    text = (tmp_path / "heads.html").read_text(encoding="utf-8")
    added = '<script type="module">window.hacked = 1</script><style>h1 { color: red }</style>'
    (tmp_path / "more.html").write_text(text.replace("<main", f"{added}<main"), encoding="utf-8")
    more = context.new_page()
    more.goto((tmp_path / "more.html").as_uri())
    more.wait_for_selector(".hw-root[data-ready='1']")
    path = made(ExplorerPage(more), tmp_path / "again.html")
    assert taken_apart(path.read_text(encoding="utf-8")) == taken_apart(text)


def test_a_page_whose_browser_makes_no_checksums_says_why_it_makes_no_page(
    context: BrowserContext, view: ExplorerPage, tmp_path: Path
) -> None:
    context.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    plain, _, wrong = open_page(context, tmp_path / "heads.html")
    item = plain.open_menu("Save").get_by_role("button", name="Page (HTML)", exact=True)
    assert item.is_disabled()
    assert 'explorer.to_html("heads.html") in Python makes it.' in (
        item.get_attribute("title") or ""
    )
    assert wrong == []


def test_python_that_is_copied_shows_the_same(
    view: ExplorerPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a page's reader has a file, and no variable of ours
    SCORES.save("scores.safetensors")
    view.show_view("Categories")
    view.choose("Threshold", "top")
    view.type_threshold("7")
    view.root.locator(".hw-chip").first.click()
    view.click(2, 3)
    text = copied(view, "Copy as Python")
    names: dict[str, Any] = {}
    lines = text.rstrip().replace("hw.explore(", "explorer = hw.explore(")
    exec(lines, names)
    state = names["explorer"].page_state()
    usual = hw.explore(SCORES).page_state()
    assert {name: value for name, value in state.items() if value != usual[name]} == {
        "view": "categories",
        "rule": "top",
        "threshold": 7.0,
        "tasks": list(SCORES.tasks[1:]),
        "selected": [[2, 3]],
    }


def test_a_link_shows_what_was_shown(context: BrowserContext, view: ExplorerPage) -> None:
    view.show_view("Agreement")
    view.click(4, 5)
    view.type_threshold("0.002")
    link = copied(view, "Copy link")
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector(".hw-root[data-ready='1']")
    other = ExplorerPage(page)
    assert other.button("Agreement").get_attribute("aria-pressed") == "true"
    assert (other.threshold(), other.selected()) == ("0.002", [(4, 5)])

    view.show_view("Tasks")  # the link is followed in the page itself
    view.page.evaluate("(link) => { location.href = link; }", link)
    pressed = '.hw-view-tab[aria-pressed="true"]'
    wait_until(lambda: view.root.locator(pressed).text_content() == "Agreement", "the link's view")


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("#show=%7Bno", "which is shown as it was saved: it cannot be read."),
        ("#show=%7B%22rule%22%3A%22best%22%7D", 'rule cannot be "best" here.'),
        ("#results", ""),
    ],
)
def test_a_link_that_does_not_fit_is_left_with_a_sentence(
    context: BrowserContext, view: ExplorerPage, tmp_path: Path, fragment: str, sentence: str
) -> None:
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((tmp_path / "heads.html").as_uri() + fragment)
    page.wait_for_selector(".hw-root[data-ready='1']")
    other = ExplorerPage(page)
    assert other.threshold() == "0.004"
    assert other.text("status .hw-error").endswith(sentence)
    assert other.seen(".hw-status .hw-error").is_visible() == bool(sentence)
    assert wrong == []


def test_text_that_cannot_go_to_the_clipboard_is_shown(
    context: BrowserContext, view: ExplorerPage, tmp_path: Path
) -> None:
    context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    plain, _, wrong = open_page(context, tmp_path / "heads.html")
    menu = plain.open_menu("Save")
    menu.get_by_role("button", name="Copy as Python").click()
    wait_until(lambda: menu.locator(".hw-copy-text").is_visible(), "the text")
    assert "selected=[(1, 2)]" in menu.locator(".hw-copy-text").input_value()
    assert wrong == []
