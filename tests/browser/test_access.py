"""Everybody can use it: axe finds nothing serious, the focus is seen, keys are read aloud,
and it fits small and zoomed screens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

import headwidget as hw
from tests.support import made_up

from .conftest import ROOT
from .explorer_page import ExplorerPage, open_page
from .hosts import wait_until

SCORES = made_up.scores(10, 6, tasks=4, runs=8, signed=True)
SELECTED = [(1, 2), (3, 4)]
VIEWS = ["tasks", "agreement", "categories"]

_FOCUS = """() => {
    const el = document.activeElement;
    if (!el || el === document.body || !el.closest('.hw-root')) return null;
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(el);
    const box = el.getBoundingClientRect();
    const name = el.ariaLabel || el.labels?.[0]?.textContent || el.textContent || el.placeholder;
    return {
        name, tag: el.tagName, style: outlineStyle, width: parseFloat(outlineWidth),
        colour: outlineColor, area: box.width * box.height,
        panel: el.closest('.hw-top > *, .hw-main > *, .hw-inspector, .hw-root > *').classList[0],
    };
}"""

# Pairs of texts and controls of the widget that lie on one another, and what lies outside of it.
_MESS = """(root) => {
    const seen = (el) =>
        el.checkVisibility({ visibilityProperty: true }) && !el.closest('.hw-spoken');
    const inside = 'button, input, select, summary, .hw-model, .hw-about, .hw-count, '
        + '.hw-agreed, .hw-unit, .hw-selected, .hw-map-name, .hw-map-meta, '
        + '.hw-plot, .hw-bar-title, .hw-legend-entry, .hw-choice-name, .hw-note, .hw-solo-name';
    const found = Array.from(root.querySelectorAll(inside)).filter(seen);
    // What a list is scrolled away from is not on anything.
    const box = (el) => {
        const { left, right, top, bottom } = el.getBoundingClientRect();
        const list = el.parentElement.closest('.hw-chip-list')?.getBoundingClientRect();
        if (!list) return { left, right, top, bottom };
        return { left, right, top: Math.max(top, list.top), bottom: Math.min(bottom, list.bottom) };
    };
    const name = (el) => `${el.className}: ${(el.ariaLabel ?? el.textContent).slice(0, 30)}`;
    const around = box(root);
    const [left, right] = [around.left - 1, Math.min(around.right, innerWidth) + 1];
    const out = found.filter((el) => box(el).left < left || box(el).right > right).map(name);
    const on = [];
    found.forEach((a, i) => found.slice(i + 1).forEach((b) => {
        if (a.contains(b) || b.contains(a)) return;
        const [p, q] = [box(a), box(b)];
        const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (w > 1 && h > 1) on.push(`${name(a)} / ${name(b)}`);
    }));
    return { out, on };
}"""

# Seconds of the longest transition or animation of anything in the widget.
_LONGEST = """(root) => {
    const times = [];
    for (const el of [root, ...root.querySelectorAll('*')]) {
        for (const part of ['', '::before', '::after']) {
            const style = getComputedStyle(el, part);
            for (const name of ['transitionDuration', 'animationDuration', 'transitionDelay']) {
                times.push(...style[name].split(',').map(parseFloat));
            }
        }
    }
    return Math.max(...times);
}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hw.explore(SCORES, selected=SELECTED, threshold=0.004).to_html(
        tmp_path_factory.mktemp("access") / "heads.html", title="Heads"
    )


@pytest.fixture(scope="module")
def axe() -> str:
    return (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def serious(page: Page, axe: str) -> list[str]:
    """What axe calls serious or critical, each with the place where it was found."""
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate(
        "async () => (await axe.run('.hw-root')).violations"
    )
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    return [
        f"{v['id']}: {v['help']}: {node['html'][:120]} {node['failureSummary'][-160:]}"
        for v in bad
        for node in v["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view_menu_or_list(
    chromium: Browser, path: Path, axe: str, scheme: Any
) -> None:
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1000})
    view, _, wrong = open_page(context, path)
    assert view.root.get_attribute("data-scheme") == scheme
    view.table()
    for name in ("Categories", "Agreement", "Tasks"):
        view.show_view(name)
        assert serious(view.page, axe) == [], name
    view.root.locator(".hw-chip").first.click()  # one is hidden
    view.button("One at a time").click()
    for menu in ("Display", "Save", "About"):
        view.open_menu(menu)
        assert serious(view.page, axe) == [], menu
        view.press("Escape")
    view.hover(2, 2)
    view.plot().focus()
    view.press("?")
    assert serious(view.page, axe) == [], "the list of keys"
    assert wrong == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", VIEWS)
def test_tab_goes_through_everything_in_order_and_the_focus_is_seen(
    chromium: Browser, path: Path, which: str, scheme: Any
) -> None:
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1000})
    view, _, _ = open_page(context, path)
    view.show_view(which.capitalize())
    view.page.evaluate("() => document.activeElement.blur()")
    view.page.mouse.click(3, 3)
    stops = []
    view.page.keyboard.press("Tab")
    while focus := view.page.evaluate(_FOCUS):
        stops.append(focus)
        assert len(stops) < 80, "the focus is caught"
        view.page.keyboard.press("Tab")
    for focus in stops:
        assert focus["style"] != "none" and focus["width"] >= 2, f"no outline on {focus['name']}"
        assert focus["area"] > 0 and focus["name"], focus
    panels = list(dict.fromkeys(focus["panel"] for focus in stops))
    assert panels == [
        "hw-header",
        "hw-controls",
        "hw-chips",
        "hw-view",
        "hw-status",
        "hw-inspector",
    ]
    names = [focus["name"] for focus in stops]
    assert names[:10] == [
        *("Tasks", "Agreement", "Categories", "Undo", "Redo"),
        *("Display", "About", "Save", "More controls", "Help"),
    ]
    controls = "button:enabled, input:enabled, select, summary, .hw-plot"
    everything = view.root.locator(controls).evaluate_all(
        "(all) => all.filter((el) => el.checkVisibility({ visibilityProperty: true })).length"
    )
    assert len(stops) == everything, names
    context.close()


@pytest.mark.parametrize(
    ("width", "height", "ratio"), [(640, 500, 2), (320, 640, 1), (1000, 800, 1)]
)
def test_nothing_sticks_out_or_overlaps(
    chromium: Browser, path: Path, width: int, height: int, ratio: float
) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=ratio
    )
    view, _, wrong = open_page(context, path)
    for name in ("Categories", "Agreement", "Tasks"):
        view.show_view(name)
        assert view.root.evaluate(_MESS) == {"out": [], "on": []}, name
        assert view.page.evaluate("() => document.documentElement.scrollWidth") <= width, name
        for menu in ("Display", "Save", "About"):
            box = view.open_menu(menu).bounding_box()
            assert box and box["x"] >= 0 and box["x"] + box["width"] <= width + 1, (name, menu, box)
            view.press("Escape")
    view.plot().focus()
    view.press("?")
    box = view.root.locator(".hw-help").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= width + 1, box
    assert wrong == []
    context.close()


def test_nothing_moves_for_those_who_want_it_still(chromium: Browser, path: Path) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    view, _, _ = open_page(context, path)
    view.show_view("Categories")
    view.open_menu("Save")
    assert view.root.evaluate(_LONGEST) <= 0.001
    context.close()


def test_the_selected_heads_are_a_table_with_headers(context: BrowserContext, path: Path) -> None:
    view, _, _ = open_page(context, path)
    rows = view.table()
    assert rows[0] == ["Head", *SCORES.tasks]
    assert [row[0] for row in rows[1:]] == ["L1 H2", "L3 H4"]
    means = SCORES.reduce("mean")
    for row, (layer, head) in zip(rows[1:], SELECTED):
        for t, text in enumerate(row[1:]):
            assert (
                abs(float(text.replace("−", "-")) - means[t, layer, head])
                < 0.006 * abs(means[t]).max()
            )
    table = view.root.locator(".hw-table-box").get_by_role("table")
    assert table.get_by_role("columnheader").all_text_contents() == rows[0]
    assert table.get_by_role("rowheader").all_text_contents() == ["L1 H2", "L3 H4"]
    assert view.root.locator(".hw-table thead th[scope=col]").count() == 5
    assert view.root.locator(".hw-table tbody th[scope=row]").count() == 2


def spoken(view: ExplorerPage, start: str) -> None:
    try:
        wait_until(
            lambda: view.root.locator(".hw-spoken[role=status]").filter(has_text=start).count(),
            f"{start!r} to be read aloud",
        )
    except pytest.fail.Exception:
        pytest.fail(f"{start!r} was to be read aloud; it was {view.spoken()!r}")


def test_what_a_key_does_is_read_aloud(context: BrowserContext, path: Path) -> None:
    view, _, _ = open_page(context, path)
    mean = np.format_float_positional(SCORES.reduce("mean")[0, 1, 1], precision=3, fractional=False)
    view.plot().focus()
    view.press("ArrowDown", "ArrowDown", "ArrowRight")
    spoken(view, f"Layer 1, head 1: {SCORES.tasks[0]} {mean}")
    view.press("Space")
    spoken(view, "L1 H1 selected, 3 in all")
    view.press("Space")
    spoken(view, "L1 H1 not selected, 2 in all")
    view.press("l")
    spoken(view, "7 selected")
    view.press("+")
    spoken(view, "Threshold 0.")
    view.show_view("Agreement")
    view.plot().focus()
    view.press("[")
    spoken(view, "in at least 7 of 8 runs")
    view.press("Escape")
    spoken(view, "Nothing selected")
