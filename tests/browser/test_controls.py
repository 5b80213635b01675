"""The line of controls on an exported page: the threshold's distribution and the agreement's
curve, dragged by mouse and finger, moved by keys and typed; and that nothing moves below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, CDPSession

import headwidget as hw
from tests.support import made_up

from .conftest import Show
from .explorer_page import ExplorerPage, Slider, open_page
from .hosts import wait_until
from .test_linked import GATES, HEADS, LAYERS, SIGNED, same_picture

MEANS = SIGNED.reduce("mean")
STRONGEST = float(np.abs(MEANS).max())

# What the bars of each colour hold, in bars' heights: none where nothing has the colour.
_COLOURED = """(track) => Object.fromEntries(['above', 'below'].map((side) => {
    const bars = track.querySelector(`.hw-bars-${side}`);
    const { x, width, height } = bars.getBBox();
    return [side, height ? [x / 120, (x + width) / 120] : null];
}))"""


def coloured(view: ExplorerPage) -> dict[str, list[float] | None]:
    view.drawn()
    found: dict[str, list[float] | None] = view.root.locator(".hw-distribution").evaluate(_COLOURED)
    return found


# ---- the threshold ----


def test_the_line_is_dragged_and_its_mirror_image_follows(show: Show) -> None:
    view = show(SIGNED)
    assert view.line_at() == pytest.approx([0.5], abs=0.01), "parked at zero"
    for to in (0.7, 0.62, 0.2):
        view.drag_line("threshold", to)
        threshold = float(view.threshold())
        assert threshold == pytest.approx(abs(to - 0.5) * 2 * STRONGEST, rel=0.05)
        right, left = view.line_at()
        assert right == pytest.approx(0.5 + abs(to - 0.5), abs=0.01)
        assert left == pytest.approx(1 - right, abs=0.005)
        same_picture(view, SIGNED, threshold=threshold)
        assert view.text("unit") == "|mean| at least"
    view.drag_line("threshold", 0.5)
    assert view.threshold() == "", "at zero it is off"
    same_picture(view, SIGNED)


def test_a_press_anywhere_brings_the_line_there_and_keys_go_on(show: Show) -> None:
    view = show(GATES)
    track = view.root.locator(".hw-distribution")
    box = track.bounding_box()
    assert box is not None
    track.click(position={"x": 0.4 * box["width"], "y": box["height"] / 2})
    assert view.line_at() == pytest.approx([0.4], abs=0.01)
    stop = view.slider_at()
    view.press("ArrowRight")
    assert view.slider_at() == stop + 1
    same_picture(view, GATES, threshold=float(view.threshold()))


@pytest.mark.parametrize(("sign", "sides"), [("helps", ["above"]), ("hurts", ["below"])])
def test_one_sign_has_one_line_on_its_side_and_the_colour_of_its_heads(
    show: Show, sign: str, sides: list[str]
) -> None:
    view = show(SIGNED, sign=sign)
    to = 0.6 if sign == "helps" else 0.4
    view.drag_line("threshold", to)
    assert view.line_at() == pytest.approx([to], abs=0.01)
    same_picture(view, SIGNED, sign=sign, threshold=float(view.threshold()))
    found = coloured(view)
    assert [side for side in found if found[side]] == sides
    span = found[sides[0]]
    assert span and (span[0] >= to - 0.02 if sign == "helps" else span[1] <= to + 0.02)
    view.drag_line("threshold", 1 - to)  # where no head of this sign is
    assert view.threshold() == ""


def test_what_passes_is_coloured_and_with_either_sign_on_both_sides(show: Show) -> None:
    view = show(SIGNED)
    assert coloured(view)["below"] and coloured(view)["above"], "without a threshold all are"
    view.type_threshold(str(STRONGEST / 4))
    found = coloured(view)
    for side, scores in (("above", MEANS), ("below", -MEANS)):
        span, passing = found[side], scores[scores >= STRONGEST / 4]
        assert span and passing.size, "made-up scores on either side"
        weakest, strongest = sorted(span, key=lambda place: abs(place - 0.5))
        for place, strength in ((weakest, passing.min()), (strongest, passing.max())):
            assert abs(place - 0.5) == pytest.approx(strength / STRONGEST / 2, abs=0.01)
    view.type_threshold("99")
    assert coloured(view) == {"above": None, "below": None}
    assert view.text("count") == f"0 of {LAYERS * HEADS} heads"


@pytest.mark.parametrize("which", ["tasks", "agreement", "categories"])
@pytest.mark.parametrize("rule", ["top", "percent", "elbow"])
def test_a_drag_moves_the_rules_own_number(show: Show, which: str, rule: str) -> None:
    view = show(SIGNED, view=which, rule=rule)
    counts = []
    for to in (0.95, 0.6, 0.53):
        view.drag_line("threshold", to)
        threshold = float(view.threshold())
        assert threshold > 0
        same_picture(view, SIGNED, view=which, rule=rule, threshold=threshold)
        counts.append(int(view.text("count").split()[0]))
    assert counts == sorted(counts) and counts[0] < counts[-1], "nearer to zero more pass"


def test_the_line_stands_where_the_rule_cuts_the_middle_task_and_others_have_thin_lines(
    show: Show,
) -> None:
    view = show(SIGNED, rule="top", threshold=4)
    thin = view.seen(".hw-bars-cuts")
    assert (thin.get_attribute("d") or "").count("M") == 6, "three tasks, either side"
    cuts = sorted(np.sort(np.abs(mean).ravel())[-4] for mean in MEANS)
    high = float(view.seen(".hw-track-high").text_content() or "nan")
    assert high == pytest.approx(STRONGEST, rel=0.06)
    assert view.line_at()[0] == pytest.approx(0.5 + cuts[1] / STRONGEST / 2, abs=0.01)
    view.choose("Threshold", "value")
    assert not view.seen(".hw-bars-cuts").get_attribute("d"), "one number cuts all"


def test_keys_on_the_slider_and_what_it_says(show: Show) -> None:
    view = show(GATES, threshold=0.5)
    slider = view.slider()
    assert view.root.get_by_role("slider", name="Threshold, mean at least").count() == 1
    slider.focus()
    for key in ("ArrowRight", "ArrowUp", "PageUp", "ArrowLeft", "End", "PageDown"):
        before = view.slider_at()
        view.press(key)
        assert view.slider_at() != before, key
        same_picture(view, GATES, threshold=float(view.threshold()))
        said = f"{view.threshold()}, {view.text('count')}"
        assert slider.get_attribute("aria-valuetext") == said
    view.press("Home")
    assert view.threshold() == ""
    assert slider.get_attribute("aria-valuetext") == f"off, {LAYERS * HEADS} heads"


def test_switching_rules_and_back_keeps_what_was_typed_for_each(show: Show) -> None:
    view = show(SIGNED)
    typed = {"value": "0.004", "top": "3", "percent": "12.5", "elbow": "0.35"}
    for rule, number in typed.items():
        view.choose("Threshold", rule)
        view.type_threshold(number)
    for rule, number in typed.items():
        view.choose("Threshold", rule)
        assert view.threshold() == number
        same_picture(view, SIGNED, rule=rule, threshold=float(number))
    view.button("Clear").first.click()
    view.choose("Threshold", "value")
    view.choose("Threshold", "elbow")
    assert view.threshold() == "1", "a rule that was cleared starts anew"


# ---- the agreement ----


def test_the_agreements_line_is_dragged_over_its_curve(show: Show) -> None:
    view = show(GATES, view="agreement", threshold=0.5)
    on = [int(GATES.on(0.5, k / 10).any(axis=0).sum()) for k in range(1, 11)]
    for needed in (3, 8, 1, 10):
        view.drag_line("agreement", (needed - 1) / 9)
        assert view.line_at("agreement") == pytest.approx([(needed - 1) / 9], abs=0.01)
        assert view.slider_at("agreement") == needed - 1
        assert view.text("count") == f"{on[needed - 1]} of {LAYERS * HEADS} heads"
        same_picture(view, GATES, view="agreement", threshold=0.5, agreement=needed / 10)
    assert view.text("agreed") == "in all 10 runs"
    view.slider("agreement").focus()
    view.press("ArrowLeft")
    assert view.text("agreed") == "in at least 9 of 10 runs"


def test_without_a_threshold_the_agreement_has_a_plain_track_and_says_why(show: Show) -> None:
    view = show(GATES, view="agreement", agreement=0.5)
    agreement = view.root.locator(".hw-agreement")
    flat = view.seen(".hw-curve-all").get_attribute("d")
    assert "with a threshold this is a curve" in (agreement.get_attribute("title") or "")
    view.drag_line("agreement", 0.9)
    assert view.seen(".hw-curve-all").get_attribute("d") == flat
    assert view.text("agreed") == "in at least 9 of 10 runs"
    view.type_threshold("0.5")
    assert view.seen(".hw-curve-all").get_attribute("d") != flat
    assert (agreement.get_attribute("title") or "").startswith("How many heads are on")


# ---- fingers ----


@pytest.fixture
def fingers(chromium: Browser, tmp_path: Path) -> Any:
    context = chromium.new_context(has_touch=True, viewport={"width": 700, "height": 900})
    path = hw.explore(GATES, view="agreement", threshold=0.5).to_html(tmp_path / "touch.html")
    view, _, wrong = open_page(context, path)
    session = context.new_cdp_session(view.page)
    yield view, session
    assert wrong == []
    context.close()


def swipe(
    view: ExplorerPage, session: CDPSession, which: Slider, *path: tuple[float, float]
) -> None:
    """Touch along points given as fractions of a track."""
    box = view.root.locator(f".hw-{which} .hw-track").bounding_box()
    assert box is not None
    kinds = ["touchStart", *["touchMove"] * (len(path) - 1)]
    for kind, (x, y) in zip(kinds, path):
        point = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    view.drawn()


def test_a_finger_drags_a_line_and_a_tap_brings_it(
    fingers: tuple[ExplorerPage, CDPSession],
) -> None:
    view, session = fingers
    swipe(view, session, "threshold", (0.5, 0.5), (0.6, 0.5), (0.7, 0.5), (0.8, 0.5))
    wait_until(lambda: view.line_at()[0] == pytest.approx(0.8, abs=0.02), "the drag")
    swipe(view, session, "threshold", (0.3, 0.5))
    wait_until(lambda: view.line_at()[0] == pytest.approx(0.3, abs=0.02), "the tap")
    same_picture(view, GATES, view="agreement", threshold=float(view.threshold()))
    swipe(view, session, "agreement", (0.9, 0.5), (0.7, 0.5), (0.56, 0.5))
    wait_until(lambda: view.text("agreed") == "in at least 6 of 10 runs", "the agreement")


def test_a_finger_that_scrolls_the_page_moves_no_line(
    fingers: tuple[ExplorerPage, CDPSession],
) -> None:
    view, session = fingers
    view.page.set_viewport_size({"width": 700, "height": 320})  # the page is longer
    swipe(view, session, "threshold", *((0.8, 0.5 - 0.2 * step) for step in range(15)))
    wait_until(lambda: view.page.evaluate("() => scrollY") > 50, "the page to scroll")
    view.drawn()
    assert (view.threshold(), view.text("agreed")) == ("0.5", "in all 10 runs")


# ---- presets ----


def test_a_preset_sets_rule_threshold_and_agreement_at_once(show: Show) -> None:
    view = show(GATES, view="agreement", threshold=0.3, agreement=0.2)

    def preset(name: str) -> None:
        view.open_menu("Presets").get_by_role("button", name=name, exact=True).click()
        view.drawn()
        assert not view.root.locator(".hw-controls .hw-popup").is_visible()

    preset("In half the runs")
    same_picture(view, GATES, view="agreement", threshold=0.3, agreement=0.5)
    for name, rule, threshold in (("Top 10", "top", 10), ("Top 5%", "percent", 5)):
        preset(name)
        same_picture(view, GATES, view="agreement", rule=rule, threshold=threshold)
    preset("No threshold")
    same_picture(view, GATES, view="agreement")
    preset("In half the runs")
    same_picture(view, GATES, view="agreement", rule="elbow", threshold=1, agreement=0.5)
    preset("In every run")
    same_picture(view, GATES, view="agreement", rule="elbow", threshold=1)
    view.show_view("Tasks")
    items = view.open_menu("Presets").get_by_role("button")
    assert items.filter(visible=True).all_text_contents() == [
        "Top 10",
        "Top 5%",
        "Elbow",
        "No threshold",
    ], "a view of means has no runs to agree"


# ---- nothing moves ----


@pytest.mark.parametrize("width", [720, 968, 1280])
@pytest.mark.parametrize("signed", [True, False])
def test_the_maps_stand_at_one_place_whatever_is_chosen_above(
    show: Show, width: int, signed: bool
) -> None:
    scores = made_up.scores(30, 9, tasks=2, runs=12, signed=signed)
    view = show(scores)
    view.page.set_viewport_size({"width": width + 48, "height": 900})
    wait_until(lambda: view.root.evaluate("(r) => r.clientWidth") <= width, "the width")
    assert view.root.evaluate("(r) => r.clientWidth") >= width - 40
    view.choose("Number", "mean")  # brings all controls
    places: dict[str, Any] = {}

    def note(what: str) -> None:
        view.drawn()
        boxes = view.root.evaluate(
            """(root) => ['.hw-controls', '.hw-view', '.hw-distribution', '.hw-value'].map((s) => {
                const { x, y, width, height } = root.querySelector(s).getBoundingClientRect();
                return s === '.hw-controls' ? [y, height] : s === '.hw-view' ? y : [x, y, width];
            })"""
        )
        places[what] = boxes

    for name in ("Tasks", "Agreement", "Categories"):
        view.show_view(name)
        for rule in ("value", "top", "percent", "elbow"):
            view.choose("Threshold", rule)
            note(f"{name}, {rule}")
            view.type_threshold("")
            note(f"{name}, {rule}, none")
    if signed:
        for sign in ("helps", "hurts", "either"):
            view.choose("Sign", sign)
            note(sign)
    view.show_view("Tasks")
    for number in ("median share", "median", "mean share", "mean"):
        view.choose("Number", number)
        note(number)
    first = next(iter(places.values()))
    assert {what: place for what, place in places.items() if place != first} == {}
    assert first[0][1] <= 64
