"""The policy of an exported page, in a real browser: what is not the page's own does not run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

import headwidget as hw

from .explorer_page import READY
from .hosts import wait_until

SECRET = "window.hacked = 1"

INJECTED = {
    "a script": f"<script>{SECRET}</script>",
    "a module": f'<script type="module">{SECRET}</script>',
    "a script of a data URL": f'<script src="data:text/javascript,{SECRET}"></script>',
    "a handler": f'<img src="data:," onerror="{SECRET}">',
    "a frame": '<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe>',
}
"""What somebody might add to a page's file, each setting ``window.hacked``."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).normal(size=(4, 6, 5))
    scores = hw.HeadScores.from_arrays({"copy": values}, method="mine")
    return hw.explore(scores, threshold=0.1).to_html(tmp_path / "heads.html")


def change(path: Path, edit: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def without_policy(text: str) -> str:
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)


def opened(context: BrowserContext, path: Path) -> tuple[Page, list[str]]:
    """The page once the widget is drawn, and what the browser said that it refused."""
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    page.wait_for_selector(READY)
    return page, said


@pytest.mark.parametrize("name", INJECTED)
def test_what_is_added_to_a_page_does_not_run(
    context: BrowserContext, path: Path, name: str
) -> None:
    change(path, lambda text: text.replace("<footer>", f"{INJECTED[name]}<footer>"))
    page, said = opened(context, path)  # the page itself still works
    wait_until(lambda: "Content Security Policy" in " ".join(said), "the refusal")
    assert page.evaluate("() => window.hacked") is None

    change(path, without_policy)  # it would have run
    page, _ = opened(context, path)
    wait_until(lambda: page.evaluate("() => window.hacked") == 1, f"{name} to run")


def test_a_style_that_is_added_to_a_page_does_not_act(context: BrowserContext, path: Path) -> None:
    style = "<style>h1 { color: rgb(1, 2, 3) }</style><p style='color: rgb(4, 5, 6)'>injected</p>"
    change(path, lambda text: text.replace("<footer>", f"{style}<footer>"))
    colours = """() => ['h1', 'p'].map((name) =>
        getComputedStyle(document.querySelector(`body > ${name}`)).color)"""
    page, _ = opened(context, path)
    assert not {"rgb(1, 2, 3)", "rgb(4, 5, 6)"} & set(page.evaluate(colours))
    change(path, without_policy)
    page, _ = opened(context, path)
    assert page.evaluate(colours) == ["rgb(1, 2, 3)", "rgb(4, 5, 6)"]


def test_a_changed_script_does_not_run(context: BrowserContext, path: Path) -> None:
    script = '<script type="module">'
    change(path, lambda text: text.replace(script, f"{script}{SECRET};"))
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    wait_until(lambda: "Content Security Policy" in " ".join(said), "the refusal")
    assert page.evaluate("() => window.hacked") is None
    assert page.locator(READY).count() == 0


def test_a_page_makes_no_html_or_code_of_text_and_asks_nobody(
    context: BrowserContext, path: Path
) -> None:
    page, _ = opened(context, path)
    page.evaluate(
        """async () => {
            window.refused = [];
            document.addEventListener('securitypolicyviolation', (event) =>
                window.refused.push(event.effectiveDirective));
            const acts = [
                () => { document.createElement('div').innerHTML = '<b>text</b>'; },
                () => { new Function('return 1')(); },
                () => fetch('https://localhost/'),
            ];
            // from a timer: what is evaluated from outside, as here, may do more
            for (const act of acts)
                await new Promise((done) =>
                    setTimeout(() => Promise.resolve().then(act).catch(() => {}).finally(done)));
        }"""
    )
    refused = ["connect-src", "require-trusted-types-for", "require-trusted-types-for"]
    wait_until(lambda: page.evaluate("() => window.refused.sort()") == refused, str(refused))


def test_line_endings_that_an_editor_or_a_mail_changed_do_not_matter(
    context: BrowserContext, path: Path
) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    opened(context, path)
