"""A view that is closed leaves nothing behind: no listener, no observer, no canvas, no memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import CDPSession, Page

import headwidget as hw
from headwidget.display import assets
from tests.support import made_up

from .conftest import Kernel
from .explorer_page import ExplorerPage
from .hosts import Server, wait_until

# Counts what is held outside a view: the model's callbacks, listeners of document and
# window, ResizeObservers.
_COUNTED = """async ({ source, state, buffer }) => {
    const held = { model: 0, outside: 0, observers: 0, failed: [] };
    const bytes = Uint8Array.from(atob(buffer), (c) => c.charCodeAt(0));
    const keys = new WeakMap(); // else this count would hold on to what it counts
    let next = 0;
    for (const target of [document, window]) {
        const on = target.addEventListener.bind(target);
        const off = target.removeEventListener.bind(target);
        const known = new Set();
        const key = (type, callback, options) => {
            if (!keys.has(callback)) keys.set(callback, next++);
            return `${type} ${keys.get(callback)} ${options === true || Boolean(options?.capture)}`;
        };
        target.addEventListener = (type, callback, options) => {
            known.add(key(type, callback, options));
            options?.signal?.addEventListener('abort', () => {
                known.delete(key(type, callback, options));
                held.outside = known.size;
            });
            held.outside = known.size;
            on(type, callback, options);
        };
        target.removeEventListener = (type, callback, options) => {
            known.delete(key(type, callback, options));
            held.outside = known.size;
            off(type, callback, options);
        };
    }
    window.ResizeObserver = class extends ResizeObserver {
        constructor(callback) { super(callback); held.observers++; }
        disconnect() { super.disconnect(); held.observers--; }
    };
    window.addEventListener('error', (event) => held.failed.push(event.message));
    held.outside = 0;
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    const { default: widget } = await import(url);
    const callbacks = new Map();
    const values = { ...state, _buffer: new DataView(bytes.buffer) };
    const model = {
        get: (name) => values[name],
        set(name, value) {
            values[name] = value;
            for (const callback of callbacks.get(`change:${name}`) ?? []) callback();
        },
        save_changes() {},
        on(event, callback) {
            callbacks.set(event, (callbacks.get(event) ?? new Set()).add(callback));
            held.model++;
        },
        off(event, callback) { if (callbacks.get(event)?.delete(callback)) held.model--; },
    };
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    window.held = held;
    window.showAndClose = async (times) => {
        for (let i = 0; i < times; i++) {
            const el = document.body.appendChild(document.createElement('div'));
            const close = widget.render({ model, el });
            const find = (selector) => el.querySelector(selector);
            const plot = find('.hw-plot');
            const box = plot.getBoundingClientRect();
            const at = { clientX: box.x + 9, clientY: box.y + 9, bubbles: true };
            plot.dispatchEvent(new PointerEvent('pointermove', at));
            const slider = find('.hw-threshold .hw-slider');
            slider.value = String(20 + i % 50);
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            for (const menu of el.querySelectorAll('details')) menu.open = true;
            plot.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
            el.querySelectorAll('.hw-view-tab')[i % 3].click();
            await frame();
            if (i % 2) await frame(); // some are closed with the menu's toggle still to come
            else for (const menu of el.querySelectorAll('.hw-menu')) {
                menu.open = false;
                menu.open = true;
            }
            close();
            if (el.childElementCount) held.failed.push('the view left something in its element');
            el.remove();
        }
        await frame();
        await frame();
    };
}"""


def watched(page: Page) -> CDPSession:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.enable")
    return session


def measured(session: CDPSession) -> dict[str, float]:
    """Chromium's own counts after its garbage is collected, and how many views are still
    in memory, on the page or not."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    metrics = {
        item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]
    }
    kind = session.send("Runtime.evaluate", {"expression": "HTMLDivElement.prototype"})["result"][
        "objectId"
    ]
    every = session.send("Runtime.queryObjects", {"prototypeObjectId": kind})["objects"]["objectId"]
    count = (
        "function () { return this.filter((div) => div.classList?.contains('hw-root')).length; }"
    )
    views = session.send(
        "Runtime.callFunctionOn", {"objectId": every, "functionDeclaration": count}
    )["result"]["value"]
    session.send("Runtime.releaseObject", {"objectId": every})
    return {
        "views": views,
        **{name: metrics[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")},
    }


def test_two_hundred_views_shown_and_closed_leave_nothing_behind(page: Page) -> None:
    explorer = hw.explore(made_up.fits(12, 8, runs=6), preview=None)
    state: dict[str, Any] = {
        **explorer.page_state(),
        "_header": json.loads(json.dumps(explorer._header)),
        "hover": None,
        "_hover_heard": False,
    }
    page.set_content(f"<style>{assets.asset('widget.css')}</style>")
    page.evaluate(
        _COUNTED,
        {
            "source": assets.asset("widget.js"),
            "state": state,
            "buffer": base64.b64encode(explorer._buffer).decode(),
        },
    )
    session = watched(page)
    page.evaluate("() => window.showAndClose(5)")
    before = measured(session)
    page.evaluate("() => window.showAndClose(200)")
    after = measured(session)
    assert page.evaluate("() => window.held") == {
        "model": 0,
        "outside": 0,
        "observers": 0,
        "failed": [],
    }
    assert page.locator("canvas, .hw-root").count() == 0
    assert after["views"] == 0
    assert after["Nodes"] - before["Nodes"] < 100, (before, after)  # one view has hundreds
    assert after["JSEventListeners"] - before["JSEventListeners"] < 20, (before, after)
    assert after["JSHeapUsedSize"] - before["JSHeapUsedSize"] < 2_000_000, (
        before,
        after,
    )  # 10 KB a view; its scores alone are more


def test_views_closed_in_jupyterlab_leave_no_listener_behind(
    page: Page, server: Server, open_notebook: Callable[..., Kernel]
) -> None:
    code = """
from tests.support import made_up
import headwidget as hw
explorer = hw.explore(made_up.fits(6, 4, runs=3), preview=None)
explorer
"""
    kernel = open_notebook(server.write(code, "explorer"))
    wait_until(lambda: page.locator(".hw-root[data-ready='1']").count() == 2, "both views")
    session = watched(page)
    again = """async (times) => {
        const cell = window.testPanel.content.widgets[1];
        const output = cell.model.outputs.toJSON();
        for (let i = 0; i < times; i++) {
            cell.model.outputs.clear();
            while (cell.node.querySelector('.hw-root')) await new Promise(requestAnimationFrame);
            cell.model.outputs.fromJSON(output);
            const ready = '.hw-root[data-ready="1"]';
            while (!cell.node.querySelector(ready)) await new Promise(requestAnimationFrame);
        }
    }"""
    page.evaluate(again, 3)
    before = measured(session)
    page.evaluate(again, 20)
    after = measured(session)
    assert page.locator(".hw-root").count() == 2
    assert after["views"] <= 3, (
        before,
        after,
    )  # two are open; JupyterLab may hold on to the one it closed last
    assert after["JSEventListeners"] - before["JSEventListeners"] < 200, (before, after)
    ExplorerPage(page, 1).click(1, 1)
    kernel.until("explorer.selected", lambda s: s == [[1, 1]])
