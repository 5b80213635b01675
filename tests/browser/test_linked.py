"""Linked behaviour on an exported page: one cursor, one selection, one threshold in every
map, and Python's numbers throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import headwidget as hw
from headwidget.display import scales, views
from headwidget.display.settings import settings
from headwidget.scores.threshold import START
from tests.support import made_up

from .conftest import Show
from .explorer_page import ExplorerPage
from .hosts import wait_until

LAYERS, HEADS = 7, 5
SIGNED = made_up.scores(LAYERS, HEADS, tasks=3, runs=12, signed=True)
GATES = made_up.fits(LAYERS, HEADS, tasks=("Math", "Syntax"), runs=10)
RELATIONS = made_up.relations(LAYERS, HEADS, runs=30)
NAMES = list(SIGNED.tasks)


def same_picture(page: ExplorerPage, scores: hw.HeadScores, **given: Any) -> None:
    """The page shows what Python says: titles, counts and bright cells of every map, and
    how many heads pass."""
    expected = views.picture(scores, settings(scores, **given))
    assert page.titles() == [panel.title for panel in expected.panels]
    for number, panel in enumerate(expected.panels):
        passes = np.ones(scores.shape, bool) if panel.passes is None else panel.passes
        assert page.bright(number) == passes.ravel().nonzero()[0].tolist(), (panel.title, given)
    heads = f"{LAYERS * HEADS} heads"
    assert page.text("count") == (
        heads if expected.passing is None else f"{int(expected.passing.sum())} of {heads}"
    ), given
    if expected.legend:
        assert page.legend() == {entry.name: entry.count for entry in reversed(expected.legend)}


# ---- the head pointed at, and the selection ----


def test_the_head_pointed_at_is_marked_in_every_map_and_named_with_its_numbers(show: Show) -> None:
    view = show(SIGNED)
    assert [view.marked(n) for n in range(3)] == [0, 0, 0]
    view.hover(4, 2, 1)
    wait_until(lambda: view.card().startswith("L4 H2"), "the card")
    marks = [view.marked(n) for n in range(3)]
    assert marks[0] == marks[1] == marks[2] > 20
    means = SIGNED.reduce("mean")
    rows = view.root.locator(".hw-card-row")
    assert rows.locator(".hw-card-task").all_text_contents() == NAMES
    for shown, mean in zip(rows.locator(".hw-card-value").all_text_contents(), means[:, 4, 2]):
        assert abs(float(shown.replace("−", "-")) - mean) < 0.006 * np.abs(means).max()
    ranks = [f"#{int((m > m[4, 2]).sum()) + 1}" for m in means]  # by the mean, whatever sign counts
    assert rows.locator(".hw-card-rank").all_text_contents() == ranks
    view.page.mouse.move(2, 2)
    wait_until(lambda: not view.card(), "the card to go")
    assert [view.marked(n) for n in range(3)] == [0, 0, 0]


def test_a_box_selects_and_with_shift_or_control_adds_and_takes_away(show: Show) -> None:
    view = show(SIGNED)
    view.drag_box((1, 1), (2, 3))
    first = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert view.selected() == first
    view.drag_box((6, 4), (5, 4), 2, key="Shift")  # upwards, in another map
    assert view.selected() == [*first, (5, 4), (6, 4)]
    view.drag_box((1, 1), (2, 2), key="Control")
    assert view.selected() == [(1, 3), (2, 3), (5, 4), (6, 4)]
    view.drag_box((0, 0), (0, 1))
    assert view.selected() == [(0, 0), (0, 1)]


def test_a_click_selects_one_head_and_with_shift_or_control_joins_or_leaves(show: Show) -> None:
    view = show(SIGNED)
    view.click(3, 3)
    view.click(4, 4, 2, modifiers=["Shift"])
    view.click(5, 0, 1, modifiers=["Control"])
    view.drawn()
    assert view.selected() == [(3, 3), (4, 4), (5, 0)]
    assert view.text("selected") == "3 selected: L3 H3, L4 H4, L5 H0"
    view.click(4, 4, modifiers=["Control"])
    view.drawn()
    assert view.selected() == [(3, 3), (5, 0)]
    view.click(5, 0)
    view.drawn()
    assert view.selected() == [(5, 0)]
    view.click(5, 0)
    view.drawn()
    assert view.selected() == []


@pytest.mark.parametrize("orientation", ["y", "x"])
def test_a_label_selects_its_layer_or_head_index(show: Show, orientation: str) -> None:
    view = show(SIGNED, orientation=orientation)
    layer_axis, head_axis = ("y", "x") if orientation == "y" else ("x", "y")
    layer_3 = [(3, head) for head in range(HEADS)]
    view.click_label(layer_axis, 3, 1)  # type: ignore[arg-type]
    assert view.selected() == layer_3
    view.click_label(head_axis, 2, modifiers=["Shift"])  # type: ignore[arg-type]
    assert view.selected() == [*layer_3, *((layer, 2) for layer in range(LAYERS) if layer != 3)]
    view.click_label(head_axis, 4)  # type: ignore[arg-type]
    head_4 = [(layer, 4) for layer in range(LAYERS)]
    assert view.selected() == head_4
    view.click_label(head_axis, 4)  # type: ignore[arg-type]
    assert view.selected() == [], "a second click takes it back"
    view.click(6, 1)
    view.drawn()
    assert view.selected() == [(6, 1)]


def test_what_passes_can_be_selected_inverted_and_cleared(show: Show) -> None:
    view = show(SIGNED, rule="top", threshold=4)
    passing = views.picture(SIGNED, settings(SIGNED, rule="top", threshold=4)).passing
    assert passing is not None
    view.button("Select what passes").click()
    assert view.selected() == [tuple(head) for head in np.argwhere(passing).tolist()]
    view.button("Invert").click()
    assert view.selected() == [tuple(head) for head in np.argwhere(~passing).tolist()]
    view.root.locator(".hw-selection").get_by_role("button", name="Clear").click()
    assert view.selected() == []
    view.click(0, 0)
    view.press("Escape")
    assert view.selected() == []


# ---- threshold, sign, agreement, categories ----


@pytest.mark.parametrize("sign", ["either", "helps", "hurts"])
@pytest.mark.parametrize("which", ["tasks", "agreement", "categories"])
def test_bright_cells_are_those_python_lets_pass_under_every_rule_and_sign(
    show: Show, which: str, sign: str
) -> None:
    view = show(SIGNED, view=which)
    view.choose("Sign", sign)
    for rule in ("top", "percent", "elbow", "value"):
        view.choose("Threshold", rule)
        same_picture(view, SIGNED, view=which, sign=sign, rule=rule)
        assert view.threshold() == ("" if START[rule] is None else f"{START[rule]:g}")
        threshold = {"value": 0.004, "top": 3.7, "percent": 12.5, "elbow": 0.35}[rule]
        view.type_threshold(str(threshold))
        same_picture(view, SIGNED, view=which, sign=sign, rule=rule, threshold=threshold)


def test_the_number_may_be_a_mean_a_median_or_a_share(show: Show) -> None:
    view = show(SIGNED, threshold=0.006)
    for reduction, share in (("median", None), ("median", "share"), ("mean", "share")):
        view.choose("Number", f"{reduction} share" if share else reduction)
        threshold = (
            None if share and reduction == "median" else 0.03 if share else 0.006
        )  # a share is another scale
        same_picture(view, SIGNED, reduction=reduction, normalize=share, threshold=threshold)
        if share:
            view.type_threshold("0.03")
            same_picture(view, SIGNED, reduction=reduction, normalize=share, threshold=0.03)
    view.choose("Number", "mean")
    same_picture(view, SIGNED, threshold=0.006)  # what it was on this scale


def test_a_number_can_be_typed(show: Show) -> None:
    view = show(GATES, threshold=0.25)
    for typed, threshold, shown in (
        ("0.5", 0.5, "0.5"),
        ("0,3", 0.3, "0.3"),
        (" 1e-1 ", 0.1, "0.1"),
        ("−0.2", -0.2, "-0.2"),
        ("", None, ""),
        ("off", None, ""),
    ):
        view.type_threshold(typed)
        same_picture(view, GATES, threshold=threshold)
        assert view.threshold() == shown


@pytest.mark.parametrize("leave", ["Enter", "Tab"])
def test_what_is_no_number_changes_nothing_and_says_so(show: Show, leave: str) -> None:
    view = show(GATES, threshold=0.25)
    field = view.root.locator(".hw-value")
    for typed in ("garbage", "1.2.3", "Infinity"):
        field.fill(typed)
        field.press(leave)
        wait_until(
            lambda: view.spoken() == f"{typed} is not a number; the threshold stays.",
            "the sentence",
        )
        same_picture(view, GATES, threshold=0.25)
        assert view.threshold() == "0.25", "the field shows the threshold there is"


def test_the_slider_moves_the_threshold_and_clear_ends_it(show: Show) -> None:
    view = show(GATES)
    for stop in (40, 150, 320):
        view.set_slider("threshold", stop)
        same_picture(view, GATES, threshold=float(view.threshold()))
    assert view.text("count") != f"{LAYERS * HEADS} heads"
    view.root.locator(".hw-cut").get_by_role("button", name="Clear").click()
    view.drawn()
    same_picture(view, GATES)
    assert (view.threshold(), view.slider_at()) == ("", 0)


def test_a_legend_entry_stands_out_alone_and_a_second_click_shows_all_again(show: Show) -> None:
    view = show(RELATIONS, view="categories", threshold=0.1)
    same_picture(view, RELATIONS, view="categories", threshold=0.1)
    names = [name for name, count in view.legend().items() if count]
    assert len(names) > 2
    for name in names[:3]:
        entry = view.root.locator(".hw-legend-entry", has_text=name).first
        entry.click()
        view.drawn()
        same_picture(view, RELATIONS, view="categories", threshold=0.1, isolated=name)
        assert len(view.bright()) == view.legend()[name]
        assert entry.get_attribute("aria-pressed") == "true"
        entry.click()
        view.drawn()
        assert len(view.bright()) == LAYERS * HEADS
    before = view.legend()
    view.set_slider("threshold", 8)
    same_picture(view, RELATIONS, view="categories", threshold=float(view.threshold()))
    assert view.legend() != before, "counts follow the threshold"


# ---- tasks ----


def test_chips_hide_and_show_tasks_and_keep_the_colours(show: Show) -> None:
    view = show(SIGNED)
    last = view.cells(2)
    view.root.locator(".hw-chip").nth(1).click()
    view.drawn()
    assert view.titles() == [NAMES[0], NAMES[2]]
    assert view.chips() == [(NAMES[0], True), (NAMES[1], False), (NAMES[2], True)]
    assert view.cells(1) == last
    view.root.locator(".hw-chip").nth(1).click()
    view.drawn()
    assert view.titles() == NAMES


def test_chips_are_reordered_by_dragging(show: Show) -> None:
    view = show(SIGNED)
    boxes = [view.root.locator(".hw-chip").nth(n).bounding_box() for n in range(3)]
    (start, end) = (
        (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for box in (boxes[0], boxes[2])
        if box
    )
    view.page.mouse.move(*start)
    view.page.mouse.down()
    view.page.mouse.move(*end, steps=12)
    view.page.mouse.up()
    view.drawn()
    order = [NAMES[1], NAMES[2], NAMES[0]]
    assert view.titles() == order
    assert view.chips() == [(name, True) for name in order], "a drag is no click"


def test_chips_are_reordered_by_alt_and_arrows_and_keep_the_focus(show: Show) -> None:
    view = show(SIGNED)
    view.root.locator(".hw-chip").first.focus()
    view.press("Alt+ArrowRight")
    assert view.titles() == [NAMES[1], NAMES[0], NAMES[2]]
    view.press("Alt+ArrowRight")
    assert view.titles() == [NAMES[1], NAMES[2], NAMES[0]]
    wait_until(lambda: view.spoken() == f"{NAMES[0]} is now number 3", "what is read aloud")
    view.press("Alt+ArrowRight", "Alt+ArrowLeft")
    assert view.titles() == [NAMES[1], NAMES[0], NAMES[2]]
    assert view.page.evaluate("() => document.activeElement.textContent") == NAMES[0]
    view.press("Space")
    assert view.titles() == [NAMES[1], NAMES[2]]


@pytest.mark.parametrize(
    ("width", "in_card", "in_inspector"),
    [(700, True, True), (600, False, True), (530, False, True), (420, False, False)],
)
def test_a_caption_speaks_of_an_interval_where_there_is_one(
    show: Show, width: int, in_card: bool, in_inspector: bool
) -> None:
    view = show(SIGNED, threshold=0.001)  # with a column of how many runs reach it
    view.page.set_viewport_size({"width": width, "height": 1000})
    wait_until(lambda: (view.root.bounding_box() or {"width": 999})["width"] <= width, "the width")
    view.drawn()
    view.click(4, 2)
    view.hover(4, 2, 1)
    card, inspector = view.root.locator("> .hw-card"), view.root.locator(".hw-inspector")
    for part, has_interval in ((card, in_card), (inspector, in_inspector)):
        expect(part.locator(".hw-card-note")).to_be_visible()
        assert part.locator("td.hw-card-interval").first.is_visible() == has_interval
        caption = part.locator(".hw-card-note").inner_text()
        assert ("95% interval" in caption) == has_interval
        assert caption.startswith("mean") and caption.endswith("12 runs")
    scrolls = "(el) => el.scrollWidth > el.clientWidth"
    assert not inspector.locator(".hw-tab-page").first.evaluate(scrolls)


def test_one_task_at_a_time(show: Show) -> None:
    view = show(SIGNED, columns=3)
    view.page.set_viewport_size({"width": 480, "height": 1000})
    wait_until(lambda: (view.root.bounding_box() or {"width": 999})["width"] <= 480, "the width")
    view.drawn()
    small = view.plot().bounding_box()
    view.button("One at a time").click()
    view.drawn()
    assert view.titles() == [NAMES[0]]
    large = view.plot().bounding_box()
    assert small and large and large["height"] > small["height"]
    for n in (1, 2):
        view.set_slider("solo", n)
        assert view.titles() == [NAMES[n]]
        assert view.text("solo-name") == f"{NAMES[n]} ({n + 1} of 3)"
        same_picture(view, SIGNED, task=NAMES[n])
    for button, name in (("Next", NAMES[0]), ("Previous", NAMES[2]), ("Previous", NAMES[1])):
        view.button(f"{button} task").click()
        assert view.titles() == [name], "the first comes after the last"
    view.button("All tasks").click()
    assert view.titles() == NAMES


def test_a_title_shows_its_task_alone_and_the_keyboard_can_go_back(show: Show) -> None:
    view = show(SIGNED)
    view.button(f"{NAMES[1]}: show it alone").focus()
    view.press("Enter")
    assert view.titles() == [NAMES[1]]
    same_picture(view, SIGNED, task=NAMES[1])
    assert view.root.locator(".hw-map-open").count() == 0, "a task alone opens nothing"
    view.press("Enter")  # the focus went to "All tasks"
    assert view.titles() == NAMES


# ---- colours ----


def quiet_and_loud() -> hw.HeadScores:
    loud = SIGNED.values(NAMES[0])
    values = {"loud": loud, "quiet": 0.05 * SIGNED.values(NAMES[1])}
    return hw.HeadScores.from_arrays(values, method="mine", signed=True)


def test_a_quiet_task_says_so_and_offers_a_scale_of_its_own(show: Show) -> None:
    scores = quiet_and_loud()
    view = show(scores)
    notes = view.root.locator(".hw-quiet:visible")
    most = float(np.abs(scores.reduce("mean")[1]).max())
    assert notes.count() == 1
    assert notes.text_content() == f"quiet{most:.2g}own scale"
    assert f"at most {most:.2g}" in (notes.get_attribute("title") or "")
    over, cells = notes.bounding_box(), view.plot(1).bounding_box()
    assert over and cells and over["y"] + over["height"] <= cells["y"], "no cell is covered"
    before = view.cells(1)
    notes.click()
    view.drawn()
    assert notes.count() == 0 and view.cells(1) != before
    assert view.plot(1).bounding_box() == cells, "nothing jumped"
    expected = views.picture(scores, settings(scores, scale="own")).panels
    ends = [panel.range and scales.end_text(panel.range) for panel in expected]
    assert view.root.locator(".hw-map-end").all_text_contents() == ends
    assert view.root.locator(".hw-bar-labels .hw-tick").all_text_contents() == ["low", "high"]
    view.open_menu("Display")
    view.choose("Scale", "shared")
    assert view.cells(1) == before and notes.count() == 1


def test_a_change_of_the_layers_direction_is_marked_and_a_chosen_one_stays(show: Show) -> None:
    view = show(SIGNED)
    turned = view.root.locator(".hw-view.hw-turned")
    assert not view.layers_across() and turned.count() == 0
    view.show_view("Categories")
    assert view.layers_across() and turned.count() == 1
    view.show_view("Tasks")
    assert not view.layers_across() and turned.count() == 1
    view.show_view("Agreement")
    assert not view.layers_across() and turned.count() == 0
    view.open_menu("Display")
    view.choose("Axes", "x")
    view.press("Escape")
    for name in ("Tasks", "Categories", "Agreement"):
        view.show_view(name)
        assert view.layers_across() and turned.count() == 0, name


# ---- nothing scored ----


def test_before_any_run_there_are_empty_frames_with_a_sentence(show: Show) -> None:
    nothing = np.full((1, LAYERS, HEADS), np.nan)
    view = show(hw.HeadScores.from_arrays({"a": nothing, "b": nothing}, method="mine"))
    said = view.root.locator(".hw-unscored:visible")
    assert said.count() == 2
    # a lab says what to do: test_one_screen.py
    assert [text.strip() for text in said.all_inner_texts()] == ["Not measured"] * 2
    assert view.root.locator(".hw-hatched:visible").count() == 0
    assert view.root.locator(".hw-ticks-y .hw-tick").count() > 0, "the frame has its ticks"
    assert not view.root.locator(".hw-bar-labels").is_visible(), "there are no numbers yet"
    view.type_threshold("0.1")
    assert view.counts() == ["", ""], "nothing is counted"


def test_a_task_that_is_scored_in_part_is_hatched(show: Show) -> None:
    some = np.ones((2, LAYERS, HEADS))
    some[:, 4:] = np.nan
    nothing = np.full((2, LAYERS, HEADS), np.nan)
    view = show(hw.HeadScores.from_arrays({"a": some, "b": nothing}, method="mine"))
    assert view.root.locator(".hw-hatched:visible").count() == 1
    assert view.root.locator(".hw-unscored:visible").all_inner_texts() == ["Not measured"]
    assert view.bright() == list(range(4 * HEADS))


# ---- keys ----


def test_keys_move_and_select(show: Show) -> None:
    view = show(SIGNED)
    view.plot(1).focus()
    view.press("ArrowDown")  # the first key shows where the cursor is
    assert view.card().startswith("L0 H0")
    view.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert view.card().startswith("L2 H1")
    view.press("Space", "ArrowRight", "Space")
    assert view.selected() == [(2, 1), (2, 2)]
    view.press("Space")
    assert view.selected() == [(2, 1)]
    view.press("ArrowLeft", "ArrowUp", "Enter")
    assert view.selected() == [(1, 1)]
    view.press("Enter")
    assert view.selected() == []
    view.press("l")
    assert view.selected() == [(1, head) for head in range(HEADS)]
    view.press("Escape", "h")
    assert view.selected() == [(layer, 1) for layer in range(LAYERS)]
    view.press("Escape")
    assert view.selected() == []
    view.press(*["ArrowLeft"] * 9, *["ArrowUp"] * 9)
    assert view.card().startswith("L0 H0"), "the edge is the end"


def test_arrows_follow_the_screen_with_layers_across(show: Show) -> None:
    view = show(SIGNED, orientation="x")
    view.plot().focus()
    view.press("ArrowDown", "ArrowRight", "ArrowRight", "ArrowDown", "Enter")
    assert view.selected() == [(2, 1)]


def test_keys_move_the_threshold_and_the_agreement(show: Show) -> None:
    view = show(GATES, view="agreement", threshold=0.5)
    stop = view.slider_at()
    view.plot().focus()
    for key, by in (
        ("+", 1),
        ("-", -1),
        ("Shift++", 1),
        ("=", 1),
        ("_", -1),
    ):  # plus is Shift and = on many keyboards
        view.press(key)
        stop += by
        assert view.slider_at() == stop, key
    same_picture(view, GATES, view="agreement", threshold=float(view.threshold()))
    assert view.text("agreed") == "in all 10 runs"
    view.press("[", "[", "[")
    assert view.text("agreed") == "in at least 7 of 10 runs"
    view.press("]")
    assert view.text("agreed") == "in at least 8 of 10 runs"
    view.press("]", "]", "]", "]")
    assert view.text("agreed") == "in all 10 runs"


def test_the_question_mark_lists_the_keys_and_escape_gives_the_focus_back(show: Show) -> None:
    view = show(SIGNED, selected=[(1, 1)])
    view.plot(1).focus()
    view.press("?")
    assert view.root.locator(".hw-help").is_visible()
    view.press("Escape")
    assert not view.root.locator(".hw-help").is_visible()
    assert view.selected() == [(1, 1)], "Escape closed the list and nothing else"
    assert view.plot(1).evaluate("(plot) => plot === document.activeElement")


def test_escape_closes_a_menu_and_keeps_the_selection(show: Show) -> None:
    view = show(SIGNED, selected=[(1, 1)])
    for name in ("Display", "Save", "About"):
        popup = view.open_menu(name)
        assert popup.is_visible()
        view.press("Escape")
        assert not popup.is_visible()
        assert view.page.evaluate("() => document.activeElement.textContent") == name
    popup = view.open_menu("Save")
    view.page.mouse.click(5, 5)
    wait_until(lambda: not popup.is_visible(), "a press elsewhere to close it")
    assert view.selected() == [(1, 1)]


def test_the_threshold_says_what_it_is_compared_with(show: Show) -> None:
    for sign, text in (
        ("either", "|mean| at least"),
        ("helps", "mean at least"),
        ("hurts", "−mean at least"),
    ):
        assert show(SIGNED, sign=sign).text("unit") == text
