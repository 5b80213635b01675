"""Inside a shadow root, where marimo puts widgets: what depends on the focus works there too."""

from __future__ import annotations

import base64

from playwright.sync_api import Page

import headwidget as hw
from headwidget.display import assets
from tests.support import made_up

from .explorer_page import READY, ExplorerPage
from .hosts import wait_until

_RENDER = """async ({ source, css, state, buffer }) => {
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    const { default: widget } = await import(url);
    const bytes = Uint8Array.from(atob(buffer), (c) => c.charCodeAt(0));
    const values = { ...state, _buffer: new DataView(bytes.buffer) };
    const model = {
        get: (name) => values[name],
        set(name, value) { values[name] = value; },
        save_changes() {}, on() {}, off() {},
    };
    const host = document.body.appendChild(document.createElement('div'));
    window.shadow = host.attachShadow({ mode: 'open' });
    const style = shadow.appendChild(document.createElement('style'));
    style.textContent = css;
    widget.render({ model, el: shadow.appendChild(document.createElement('div')) });
}"""


def test_focus_stays_where_it_was_in_a_shadow_root(page: Page) -> None:
    explorer = hw.explore(made_up.scores(6, 4, tasks=3, runs=4), preview=None)
    state = {**explorer.page_state(), "_header": explorer._header}
    parts = {
        "source": assets.asset("widget.js"),
        "css": assets.asset("widget.css"),
        "state": state,
        "buffer": base64.b64encode(explorer._buffer).decode(),
    }
    page.set_content("<body></body>")
    page.evaluate(_RENDER, parts)
    page.wait_for_selector(READY)
    view = ExplorerPage(page)
    focused = "() => window.shadow.activeElement?.textContent"
    first, second, third = (name for name, _ in view.chips())
    view.root.locator(".hw-chip").first.focus()
    view.press("Alt+ArrowRight")
    view.press("Alt+ArrowRight")
    assert [name for name, _ in view.chips()] == [second, third, first]
    assert page.evaluate(focused) == first

    view.plot(1).focus()
    view.press("?")
    assert view.root.locator(".hw-help").is_visible()
    view.press("Escape")
    assert page.evaluate("() => window.shadow.activeElement?.className") == "hw-plot"

    field = view.root.locator(".hw-value")
    field.fill("0.0")  # still being typed
    view.root.locator(".hw-view-tab").nth(1).dispatch_event("click")
    view.drawn()
    assert field.input_value() == "0.0"
    view.open_menu("Save")
    page.mouse.click(2, 2)
    wait_until(lambda: not view.root.locator(".hw-menu[open]").count(), "the menu to close")
