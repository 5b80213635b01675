"""The browser's part: how long a drag takes to be drawn and a first paint to appear, in
Chromium, and how many bytes go there.

A page of our own imports the built widget, with a stand-in for Jupyter's model. Times
are the page's own, on the main thread:

- *script* is ours: the event's handler, and all that runs in the frame drawn for it
  (reduce and draw);
- *processor* is what of that the main thread itself was given, from the browser's
  trace: on a busy machine script waits too;
- *work* adds the style, layout and paint that follow in that frame;
- *painted* is from the event until that frame was handed to the compositor, the wait
  for the frame included.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, Route, sync_playwright

import headwidget as hw
from headwidget.display import page as pages
from headwidget.display import wire
from headwidget.display.assets import asset
from tests.browser.conftest import FLAGS
from tests.support.made_up import scores

LAYERS, HEADS, TASKS, RUNS = 80, 64, 8, 64
MOVES, WARM_UP, PAGES, FIRST_PAGES = 200, 20, 3, 9
MOST_SCRIPT, MOST_FIRST = 5, 80  # ms
MOVE = "pointermove"
MOST_PAGE = 1_000_000  # bytes of 8 x 32 x 32 x 64
HOST = "http://localhost:1"  # every request is answered here, none leaves
SELECTED = [[layer, layer % HEADS] for layer in range(0, LAYERS, 4)]
THRESHOLD, AGREEMENT = ".hw-threshold .hw-track", ".hw-agreement .hw-track"


@dataclass(frozen=True)
class Drag:
    what: str
    track: str
    settings: dict[str, Any]


DRAGS = (
    Drag("tasks, threshold by value", THRESHOLD, {"threshold": 0.01}),
    Drag("tasks, threshold by top k", THRESHOLD, {"rule": "top", "threshold": 10}),
    Drag(
        "agreement, threshold by value",
        THRESHOLD,
        {"view": "agreement", "agreement": 0.5, "threshold": 0.01},
    ),
    Drag(
        "agreement, its line, with a threshold",
        AGREEMENT,
        {"view": "agreement", "agreement": 0.5, "threshold": 0.01},
    ),
    Drag("agreement, its line, no threshold", AGREEMENT, {"view": "agreement", "agreement": 0.5}),
    Drag(
        "categories, threshold by elbow",
        THRESHOLD,
        {"view": "categories", "rule": "elbow", "threshold": 1.0},
    ),
)
FIRST = {
    "tasks": {},
    "agreement (unpacks the order statistics)": {
        "view": "agreement",
        "agreement": 0.5,
        "threshold": 0.01,
    },
    "categories": {"view": "categories"},
}

_HTML = """<!doctype html><html lang="en"><meta charset="utf-8"><title>bench</title>
<link rel="stylesheet" href="/widget.css">
<style>body { margin: 24px; font: 14px/1.5 system-ui, sans-serif; }</style><main></main>"""

# A task that a frame's own callback posts runs when the frame has been laid out,
# painted and handed over.
_TOOLS = """
const now = () => performance.now();
const posted = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0);
});
window.timed = async (act) => {
    let first, last;
    requestAnimationFrame(() => { first = now(); }); // before what the act asks of the frame
    const start = now();
    act();
    const acted = now();
    await new Promise((done) => requestAnimationFrame(() => { // and after it
        last = now();
        posted().then(done);
    }));
    const painted = now();
    const [script, work] = [acted - start + last - first, acted - start + painted - first];
    return { start, script, work, painted: painted - start };
};
// until it was handed over
window.frame = () => new Promise((done) => requestAnimationFrame(() => posted().then(done)));
window.standIn = (state) => {
    const listeners = new Map();
    return {
        get: (key) => state[key],
        set(key, value) {
            if (Object.is(state[key], value)) return;
            state[key] = value;
            for (const callback of listeners.get(`change:${key}`) ?? []) callback();
        },
        save_changes() {},
        on: (event, callback) =>
            listeners.set(event, (listeners.get(event) ?? new Set()).add(callback)),
        off: (event, callback) => listeners.get(event)?.delete(callback),
    };
};
"""

# `presented` is the browser's own word: when the first text or canvas of the page was
# on the screen. `complete` is when the last map was
# painted: the first frame has the controls and the maps it gets to in time, the second has all.
_RENDER = """async (settings) => {
    const got = await Promise.all(['/header.json', '/buffer'].map((path) => fetch(path)));
    const [_header, buffer] = [await got[0].json(), await got[1].arrayBuffer()];
    const widget = (await import('/widget.js')).default;
    const tasks = _header.tasks.map((task) => task.name);
    const model = standIn({ ...settings, tasks, _header, _buffer: new DataView(buffer) });
    const presented = new Promise((done) => {
        new PerformanceObserver((list) => {
            const paint = list.getEntriesByName('first-contentful-paint')[0];
            if (paint) done(paint.startTime);
        }).observe({ type: 'paint', buffered: true });
    });
    await new Promise((done) => setTimeout(done, 200));
    const taken = await timed(() => widget.render({ model, el: document.querySelector('main') }));
    while (!document.querySelector('.hw-root[data-ready]')) await frame();
    const complete = performance.now() - taken.start;
    return { ...taken, complete, presented: (await presented) - taken.start };
}"""

# A pixel may be the same stop as the one before it: `changed` says which moves moved the line.
_DRAG = """async ([name, moves]) => {
    const track = document.querySelector(name);
    const slider = track.querySelector('input');
    const found = [];
    const box = track.getBoundingClientRect();
    const send = (kind, at) => track.dispatchEvent(new PointerEvent(kind, {
        clientX: box.left + at * box.width, clientY: box.top + box.height / 2,
        pointerId: 1, isPrimary: true, button: 0, bubbles: true,
    }));
    const way = 100; // from end to end, and back
    send('pointerdown', 0);
    for (let i = 1, done = 0; done < moves; i++) {
        if (i > 50 * moves) throw new Error(`${done} moves of ${i} changed something`);
        const at = (way - Math.abs((i % (2 * way)) - way)) / way;
        const before = slider.value;
        const taken = await timed(() => send('pointermove', at));
        const changed = slider.value !== before;
        found.push({ ...taken, changed });
        done += changed;
    }
    send('pointerup', 0);
    return found;
}"""

_READY = """
window.ready = new Promise((done) => new MutationObserver((_, observer) => {
    if (!document.querySelector('.hw-root[data-ready]')) return;
    observer.disconnect();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
}).observe(document, { subtree: true, childList: true, attributes: true }));
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if not path:
        raise SystemExit("the browser's part needs Chromium: install it with your package manager.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


Files = dict[str, tuple[str, str | bytes]]
"""What a path of the page holds: its type and its content."""


def files(shown: hw.HeadScores) -> Files:
    header, buffer = wire.encode(shown)
    return {
        "/": ("text/html", _HTML),
        "/widget.css": ("text/css", asset("widget.css")),
        "/widget.js": ("text/javascript", asset("widget.js")),
        "/header.json": ("application/json", json.dumps(header)),
        "/buffer": ("application/octet-stream", buffer),
    }


@contextmanager
def opened(browser: Browser, content: Files) -> Iterator[Page]:
    """A fresh page with everything at hand but nothing drawn; isolated, so that its clock
    ticks in microseconds."""
    isolated = {
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
    }

    def answer(route: Route) -> None:
        kind, body = content.get(route.request.url.removeprefix(HOST), ("text/plain", ""))
        route.fulfill(body=body, headers={**isolated, "Content-Type": kind})

    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.route("**/*", answer)
    page = context.new_page()
    page.add_init_script(_TOOLS)
    page.goto(f"{HOST}/")
    yield page
    context.close()


def show() -> None:
    """Print the tables: drags, first paints, bytes."""
    shown = scores(LAYERS, HEADS, tasks=TASKS, runs=RUNS, signed=True)
    content = files(shown)
    with chromium() as browser:
        print(
            f"Chromium {browser.version}, {LAYERS} x {HEADS} heads x {TASKS} tasks x {RUNS} runs, "
            f"load {load()} as this starts.\n"
        )
        drags(browser, content)
        first_paints(browser, content)
        exported(browser, shown)
    print(f"Load {load()} as the browser's part ends.\n")
    payload()


def load() -> str:
    """The load of the last minute: above the number of cores, times are upper bounds."""
    return f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"


def drags(browser: Browser, content: Files) -> None:
    """Every drag in fresh pages; the promise is about all moves of all of them."""
    heads(
        "drag: ms for each move",
        "script",
        "p95",
        "p95 of each page",
        "processor",
        "p95",
        "work",
        "p95",
        "painted",
        "p95",
        "promise",
        "kept",
    )
    for drag in DRAGS:
        taken, processor_ms = [], []
        for _ in range(PAGES):
            with opened(browser, content) as page:
                page.evaluate(_RENDER, {**drag.settings, "selected": SELECTED})
                browser.start_tracing(page=page, categories=["devtools.timeline"])
                moves = page.evaluate(_DRAG, [drag.track, WARM_UP + MOVES])
                times = processor(browser.stop_tracing())
                changed = [i for i, move in enumerate(moves) if move["changed"]][WARM_UP:]
                taken.append([moves[i] for i in changed])
                processor_ms.append([times[i] for i in changed])
        script, work, painted = (
            [[move[kind] for move in moves] for moves in taken]
            for kind in ("script", "work", "painted")
        )  # (page, move)
        each = " ".join(f"{p95(moves):.1f}" for moves in script)
        line(
            drag.what,
            *both(script),
            each,
            *both(processor_ms),
            *both(work),
            *both(painted),
            f"script's p95 <= {MOST_SCRIPT}",
            kept(p95(script), MOST_SCRIPT),
        )
    print()


def processor(trace: bytes) -> list[float]:
    """Thread time of each move's handler and frame callbacks, ms."""
    events = [
        event
        for event in json.loads(trace)["traceEvents"]
        if event["name"] in ("EventDispatch", "FireAnimationFrame") and "tdur" in event
    ]
    moves: list[float] = []
    for event in sorted(events, key=lambda event: event["ts"]):
        if event["name"] == "EventDispatch" and event["args"]["data"]["type"] == MOVE:
            moves.append(0)
        if moves:
            moves[-1] += (
                event["tdur"] / 1000
                if event["name"] == "FireAnimationFrame" or event["args"]["data"]["type"] == MOVE
                else 0
            )
    return moves


def first_paints(browser: Browser, content: Files) -> None:
    """From the call of render, header and buffer in memory, to the first frame on the
    screen; every time in a fresh page, nothing compiled yet."""
    heads(
        "first paint: ms from render",
        "script",
        "worst",
        "presented",
        "worst",
        "complete",
        "worst",
        "promise",
        "kept",
    )
    for what, settings in FIRST.items():
        renders = []
        for _ in range(FIRST_PAGES):
            with opened(browser, content) as page:
                renders.append(page.evaluate(_RENDER, settings))
        times = [
            [render[kind] for render in renders] for kind in ("script", "presented", "complete")
        ]
        numbers = [f"{number:.0f}" for ms in times for number in (np.median(ms), max(ms))]
        line(
            what,
            *numbers,
            f"presented's median <= {MOST_FIRST}",
            kept(np.median(times[1]), MOST_FIRST),
        )
    print()


def exported(browser: Browser, large: hw.HeadScores) -> None:
    """From the start of navigation to a page on disk until its widget was drawn."""
    heads("an exported page: ms from navigation", "drawn", "worst", "size, KB")
    with tempfile.TemporaryDirectory() as folder:
        for layers, width in ((32, 32), (LAYERS, HEADS)):
            page_scores = (
                large
                if layers == LAYERS
                else scores(layers, width, tasks=TASKS, runs=RUNS, signed=True)
            )
            path = hw.explore(page_scores).to_html(Path(folder) / f"{layers}.html")
            drawn = []
            for _ in range(FIRST_PAGES):
                context = browser.new_context(viewport={"width": 1280, "height": 1000})
                page = context.new_page()
                page.add_init_script(_READY)
                page.goto(path.as_uri())
                drawn.append(page.evaluate("() => window.ready"))
                context.close()
            line(
                f"{TASKS} x {layers} x {width} x {RUNS}",
                f"{np.median(drawn):.0f}",
                f"{max(drawn):.0f}",
                f"{path.stat().st_size / 1000:.0f}",
            )
    print()


def payload() -> None:
    """Bytes: on the wire, in an exported page, and of the front end."""
    heads("bytes", "KB", "note", "promise", "kept")
    for layers, width, runs in ((32, 32, 16), (32, 32, 64), (32, 32, 512), (LAYERS, HEADS, RUNS)):
        shown = scores(layers, width, tasks=TASKS, runs=runs, signed=True)
        header, buffer = wire.encode(shown)
        bytes_each, count = len(buffer) / (TASKS * layers * width), len(header["tasks"][0]["ranks"])
        each = f"{bytes_each:g} bytes for each head of a task: {count} order statistics, 4 maps"
        size = f"{TASKS} x {layers} x {width} x {runs}"
        line(f"on the wire, {size}", f"{len(buffer) / 1000:.0f}", each, "", "")
        page = len(pages.render(hw.explore(shown)).encode())
        promised = (layers, runs) == (32, 64)
        verdict = (f"<= {MOST_PAGE // 1000}", kept(page, MOST_PAGE)) if promised else ("", "")
        line(f"exported page, {size}", f"{page / 1000:.0f}", "everything in it", *verdict)
    for name in ("widget.js", "widget.css"):
        text = asset(name).encode()
        line(
            name,
            f"{len(text) / 1000:.1f}",
            f"{len(gzip.compress(text)) / 1000:.1f} gzipped",
            "",
            "",
        )
    print()


def p95(times: Any) -> float:
    return float(np.percentile(times, 95))


def both(times: Any) -> tuple[str, str]:
    """Median and p95."""
    return f"{np.median(times):.1f}", f"{p95(times):.1f}"


def kept(measured: float, most: float) -> str:
    return "yes" if measured <= most else "NO"


def heads(first: str, *names: str) -> None:
    print(f"| {first:<42} | {' | '.join(names)} |\n|{'-' * 44}|{'|'.join('---' for _ in names)}|")


def line(what: str, *cells: str) -> None:
    print(f"| {what:<42} | {' | '.join(cells)} |", flush=True)
