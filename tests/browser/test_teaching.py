"""What helps a class: simple first, help, a tour, large text, a header that reads everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, FloatRect, Locator

import headwidget as hw
from tests.support import made_up

from .explorer_page import ExplorerPage, open_page
from .test_access import axe, serious  # noqa: F401

MEANING = "How much the answer changes with the head; positive helps."
METHOD = {
    "explained": ["It is worked out so.", "A score of 1 is large."],
    "paper": ["A. Author 2026", "https://example.org/paper"],
}
MADE = made_up.scores(12, 8, tasks=3, runs=9, signed=True)
SCORES = hw.HeadScores.from_arrays(
    {name: MADE.values(name) for name in MADE.tasks},
    method="gradient",
    signed=True,
    meta={"model": "a model with a rather long name / revision 12", "meaning": MEANING, **METHOD},
)
SIZES = {"normal": 1.0, "large": 1.25, "projector": 1.6}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return hw.explore(SCORES, threshold=0.004, selected=[(1, 2)]).to_html(tmp_path / "heads.html")


def box(part: Locator) -> FloatRect:
    found = part.bounding_box()
    assert found is not None
    return found


def overlap(a: FloatRect, b: FloatRect) -> float:
    """Square pixels that two boxes share."""
    across = min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"])
    down = min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"])
    return max(across, 0) * max(down, 0)


def start_tour(view: ExplorerPage) -> Locator:
    view.plot().focus()
    view.press("?")
    view.button("Start the tour").click()
    view.drawn()
    return view.root.locator(".hw-tour-box")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [968, 400])
def test_the_tour_outlines_six_parts_covers_none_and_ends_where_it_began(
    chromium: Browser,
    path: Path,
    axe: str,  # noqa: F811
    scheme: Any,
    width: int,
) -> None:
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    view, _, wrong = open_page(context, path)
    before = (view.selected(), view.threshold(), view.titles())
    said = start_tour(view)
    titles = []
    for step in range(6):
        titles.append(said.locator(".hw-tour-title").text_content())
        assert said.locator(".hw-tour-place").text_content() == f"{step + 1} of 6"
        assert said.evaluate("(box) => box === document.activeElement")
        assert overlap(box(said), box(view.root.locator(".hw-tour-ring"))) == 0, titles
        assert box(said)["x"] >= 0 and box(said)["x"] + box(said)["width"] <= width, titles
        assert serious(view.page, axe) == [], titles
        if step < 5:
            view.press("ArrowRight")
    assert titles == ["What is measured", "Views", "Threshold", "Maps", "One head", "Save"]
    view.press("ArrowLeft")
    assert said.locator(".hw-tour-title").text_content() == "One head"
    view.press("Escape")
    assert not said.is_visible()
    assert view.plot().evaluate("(plot) => plot === document.activeElement")
    assert (view.selected(), view.threshold(), view.titles()) == before
    assert wrong == []
    context.close()


def test_the_tour_says_what_a_score_means_and_ends_with_its_buttons(
    context: BrowserContext, path: Path
) -> None:
    view, _, _ = open_page(context, path)
    said = start_tour(view)
    assert f"Here: {MEANING}" in (said.text_content() or "")
    for _ in range(5):
        said.get_by_role("button", name="Next").click()
    said.get_by_role("button", name="Done").click()
    view.drawn()
    assert not said.is_visible()


def test_help_lists_the_mouse_and_the_keys(context: BrowserContext, path: Path) -> None:
    view, _, _ = open_page(context, path)
    view.plot().focus()
    view.press("?")
    help_ = view.root.get_by_role("dialog", name="Help")
    text = help_.inner_text()
    for words in ("Mouse", "Shift + click", "Drag over a map", "Keys", "Ctrl Z", "Escape"):
        assert words in text, words
    view.press("Escape")
    assert not help_.is_visible()
    assert view.plot().evaluate("(plot) => plot === document.activeElement")


CONTROLS = "button, select, input, summary"
"""What can be used, by its tag."""
_NAMES = """(all) => all
    .filter((el) => el.checkVisibility({ visibilityProperty: true }))
    .map((el) => el.ariaLabel || el.labels?.[0]?.firstElementChild?.textContent
        || el.textContent)"""


def test_a_new_user_sees_views_threshold_maps_and_what_a_score_means(
    context: BrowserContext, path: Path
) -> None:
    view, _, _ = open_page(context, path, simple=True)
    names = view.root.locator(f".hw-top :is({CONTROLS})").evaluate_all(_NAMES)
    assert names == [
        *("Tasks", "Agreement", "Categories", "Save", "More controls", "Help"),
        *("How gradient works", "Threshold", "Threshold, |mean| at least"),
        *("Threshold as a number", "Clear"),
    ]
    names = view.root.locator(f".hw-status :is({CONTROLS})").evaluate_all(_NAMES)
    assert names == ["Select what passes", "Clear"]
    assert view.text("meaning-text") == MEANING
    more = view.button("More controls")
    more.click()
    view.drawn()
    assert all(part.is_visible() for part in view.root.locator(".hw-more").all())
    assert more.get_attribute("aria-expanded") == "true"
    more.click()
    view.drawn()
    assert not any(part.is_visible() for part in view.root.locator(".hw-more").all())


@pytest.mark.parametrize(
    ("settings", "stays"),
    [
        ({"sign": "hurts"}, "Sign"),
        ({"reduction": "median"}, "Number"),
        ({"task": SCORES.tasks[0]}, "All tasks"),
        ({"tasks": SCORES.tasks[:2]}, "One at a time"),
    ],
)
def test_what_is_not_as_usual_is_in_sight(
    context: BrowserContext, tmp_path: Path, settings: dict[str, Any], stays: str
) -> None:
    path = hw.explore(SCORES, **settings).to_html(tmp_path / "unusual.html")
    view, _, _ = open_page(context, path, simple=True)
    assert view.root.get_by_text(stays, exact=True).is_visible()
    assert not view.root.get_by_text("Presets", exact=True).is_visible()


@pytest.mark.parametrize("width", [968, 400])
def test_a_method_says_how_it_works_and_where_it_is_from(
    context: BrowserContext, path: Path, width: int
) -> None:
    view, requests, wrong = open_page(context, path, simple=True)
    view.page.set_viewport_size({"width": width, "height": 900})
    view.drawn()
    view.root.locator("summary", has_text="How gradient works").click()
    said = view.root.locator(".hw-method .hw-popup")
    assert [part.inner_text() for part in said.locator("p").all()] == [
        *METHOD["explained"],
        "From A. Author 2026.",
    ]
    paper = said.get_by_role("link", name="A. Author 2026")
    assert paper.get_attribute("href") == METHOD["paper"][1]
    assert paper.get_attribute("rel") == "noopener noreferrer"
    at, root = box(said), box(view.root)
    assert at["x"] >= root["x"] and at["x"] + at["width"] <= root["x"] + root["width"]
    assert len(requests) == 1 and wrong == []
    view.press("Escape")
    assert not said.is_visible()


def test_an_address_that_is_no_web_page_is_no_link(context: BrowserContext, tmp_path: Path) -> None:
    meta = {**SCORES.meta, "paper": ["A. Author 2026", "javascript:alert(1)"]}
    values = {name: SCORES.values(name) for name in SCORES.tasks}
    made = hw.HeadScores.from_arrays(values, method="gradient", signed=True, meta=meta)
    view, _, _ = open_page(context, hw.explore(made).to_html(tmp_path / "odd.html"))
    view.root.locator("summary", has_text="How gradient works").click()
    assert view.root.locator(".hw-paper").evaluate("(el) => el.tagName") == "SPAN"


@pytest.mark.parametrize("name", SIZES)
def test_text_of_any_size_keeps_maps_sharp_and_the_pointer_on_its_head(
    context: BrowserContext, path: Path, name: str
) -> None:
    view, _, wrong = open_page(context, path)
    scale = SIZES[name]
    tick = view.root.locator(".hw-ticks-y .hw-tick").first
    small = box(tick)["height"]
    view.open_menu("Display")
    view.choose("Text size", str(scale).removesuffix(".0"))
    view.press("Escape")
    assert box(tick)["height"] == pytest.approx(scale * small, abs=0.6)
    assert view.page.evaluate("() => document.documentElement.scrollWidth") <= 1280
    cells = view.plot().locator(".hw-cells")
    size = cells.evaluate("(c) => [c.width, c.height]")
    seen = box(cells)
    cell = (seen["width"] / size[0], seen["height"] / size[1])
    assert cell == pytest.approx((round(cell[0]), round(cell[1])), abs=0.02)  # whole pixels
    view.click(11, 7)
    assert view.selected() == [(11, 7)]
    view.hover(3, 2)
    assert view.card().startswith("L3 H2")
    assert overlap(box(view.root.locator(".hw-inspector .hw-card")), box(view.root)) > 0
    assert wrong == []


@pytest.mark.parametrize("width", [768, 1016, 1280])
def test_the_header_is_one_line_whose_names_are_cut_short(
    chromium: Browser, path: Path, width: int
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 900})
    view, _, _ = open_page(context, path)
    height = box(view.root.locator(".hw-header"))["height"]
    assert height == 24 + 2 + 16  # and one line of what a score means
    tops = [box(part)["y"] for part in view.root.locator(".hw-tools > *").all()]
    assert max(tops) - min(tops) <= 2
    about = view.root.locator(".hw-about")
    assert about.get_attribute("title") == about.text_content() == "gradient · 9 runs"
    context.close()


HOST = """.host dl dt { float: left; display: block; width: 20%; overflow: hidden;
    text-overflow: ellipsis; white-space: nowrap; font-weight: bold }
    .host dl dd { float: left; display: block; width: 80%; padding-left: 40px }"""


def test_about_reads_in_a_host_that_floats_lists_of_terms(chromium: Browser, path: Path) -> None:
    context = chromium.new_context(bypass_csp=True, viewport={"width": 968, "height": 900})
    view, _, _ = open_page(context, path)
    view.page.add_style_tag(content=HOST)  # as JupyterLab's styles of rendered HTML
    view.root.evaluate("(root) => root.parentElement.classList.add('host')")
    menu = view.open_menu("About")
    for term in menu.locator("dt").all():
        wide = term.evaluate("(dt) => [dt.scrollWidth, dt.clientWidth, dt.innerText]")
        assert wide[0] <= wide[1] and wide[2], wide
    method = menu.locator("dt", has_text="method")
    value = menu.locator("dt:text-is('method') + dd")
    assert box(method)["height"] < 24, "letters under letters"
    assert abs(box(method)["y"] - box(value)["y"]) <= 1
    assert box(value)["x"] >= box(method)["x"] + box(method)["width"]
    context.close()
