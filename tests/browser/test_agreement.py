"""The agreement view on an exported page: a task's maps side by side, and a slider from Any to
Always whose column stays while it is held."""

from __future__ import annotations

import numpy as np

import headwidget as hw
from tests.support import made_up

from .conftest import Show
from .hosts import wait_until

LAYERS, HEADS = 7, 5
GATES = made_up.fits(LAYERS, HEADS, tasks=("Math", "Syntax"), runs=10)


def test_the_agreement_slider_goes_from_any_to_always_with_pythons_counts(show: Show) -> None:
    view = show(GATES, view="agreement", threshold=0.5)
    for needed in range(1, 11):
        view.set_slider("agreement", needed - 1)
        on = GATES.on(0.5, needed / 10)  # (task, layer, head)
        between = [] if needed in (1, 10) else [f"≥ {needed} of 10"]
        columns = ["Always", *between, "Any"]
        assert view.titles() == [f"{task} ({column})" for task in GATES.tasks for column in columns]
        at = {1: len(columns) - 1, 10: 0}.get(needed, 1)
        counts = [f"{int(mask.sum())} on" for mask in on]
        assert [view.counts()[t * len(columns) + at] for t in range(2)] == counts
        assert view.text("count") == f"{int(on.any(axis=0).sum())} of {LAYERS * HEADS} heads"
        for t, mask in enumerate(on):
            assert view.bright(t * len(columns) + at) == mask.ravel().nonzero()[0].tolist()
    assert view.text("agreed") == "in all 10 runs"


def test_no_column_comes_or_goes_while_the_slider_is_held(show: Show) -> None:
    view = show(GATES, view="agreement", threshold=0.5, agreement=0.5)
    slider = view.slider("agreement")
    box = slider.bounding_box()
    assert box is not None
    middle, ends = box["y"] + box["height"] / 2, (box["x"] + 4, box["x"] + box["width"] - 4)
    for end, needed in zip(ends, (1, 10)):
        view.page.mouse.move(box["x"] + box["width"] / 2, middle)
        view.page.mouse.down()
        view.page.mouse.move(end, middle, steps=4)
        view.drawn()
        held = view.titles()
        assert held[:3] == ["Math (Always)", f"Math (≥ {needed} of 10)", "Math (Any)"]
        assert view.bright(1) == view.bright(0 if needed == 10 else 2)
        view.page.mouse.up()
        view.drawn()
        assert view.titles() == [
            f"{task} ({column})" for task in GATES.tasks for column in ("Always", "Any")
        ]


def test_the_maps_of_a_task_stay_together_whatever_its_runs(show: Show) -> None:
    rng = np.random.default_rng(0)
    scores = hw.HeadScores.from_arrays(
        {
            "many": rng.random((10, 3, 4)),
            "once": rng.random((1, 3, 4)),
            "more": rng.random((10, 3, 4)),
        },
        method="mine",
    )
    view = show(scores, view="agreement", agreement=0.5, columns=1)
    assert view.titles() == [
        *("many (Always)", "many (≥ 5 of 10)", "many (Any)"),
        *("once (Always)", "once (Any)"),
        *("more (Always)", "more (≥ 5 of 10)", "more (Any)"),
    ]
    boxes = [view.plot(i).bounding_box() for i in range(8)]
    lefts, tops = ([round(box[side]) for box in boxes if box] for side in ("x", "y"))
    assert lefts[0] == lefts[3] == lefts[5] and lefts[2] == lefts[4] == lefts[7]
    assert tops[0] == tops[2] < tops[3] == tops[4] < tops[5] == tops[7]


def test_tasks_wrap_over_the_width_and_keep_their_names(show: Show) -> None:
    tasks = tuple(made_up.COGNITIVE)
    view = show(made_up.fits(30, 9, tasks=tasks, runs=4), view="agreement", threshold=0.5)
    view.button("Close the inspector").click()  # the maps have the whole width
    for width, columns in ((1030, 4), (560, 2), (360, 1)):
        view.page.set_viewport_size({"width": width, "height": 1000})
        wait_until(lambda: view.root.evaluate("(el) => el.clientWidth") <= width, "the width")
        view.drawn()
        boxes = [view.plot(i).bounding_box() for i in range(16)]
        tops = [round(box["y"]) for box in boxes if box]
        assert tops.count(tops[0]) == 2 * columns
        assert all(tops[i] == tops[i + 1] for i in range(0, 16, 2)), "pairs stay together"
        names = view.names()
        assert [name for name, _ in names[::2]] == list(tasks)
        assert [part for _, part in names] == ["Always", "Any"] * 8
        cut = view.root.locator(".hw-map-task:visible").evaluate_all(
            "(all) => all.filter((el) => el.scrollHeight > el.clientHeight + 1).length"
        )
        assert cut == 0, "no name is cut"
        assert view.page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_one_task_alone_has_its_maps_large(show: Show) -> None:
    view = show(made_up.fits(30, 9, tasks=tuple(made_up.COGNITIVE), runs=4), view="agreement")
    small = view.plot().bounding_box()
    view.button("Inference: show it alone").click()
    assert view.titles() == ["Inference (Always)", "Inference (Any)"]
    large = view.plot().bounding_box()
    assert (
        small and large and large["width"] * large["height"] > 3 * small["width"] * small["height"]
    )
