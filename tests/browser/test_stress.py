"""Odd scores on a page: the smallest, the largest, flat, huge and tiny ones, and names
that try to be more than text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext

import headwidget as hw
from tests.support import made_up

from .explorer_page import open_page
from .hosts import wait_until

ODD_NAMES = [
    "👩‍🔬🔥 emoji " * 4,
    "مهمة الاستدلال المنطقي والرياضي",
    '<img src=x onerror="window.hacked=1">',
    "a" * 120,
    "tab\tand\nnew line",
    "'; drop --\"",
]


def like(values: np.ndarray, tasks: int = 3) -> hw.HeadScores:
    return hw.HeadScores.from_arrays({f"task {i}": values for i in range(tasks)}, method="mine")


def odd_names() -> hw.HeadScores:
    values = np.random.default_rng(0).random((3, 6, 4))
    return hw.HeadScores.from_arrays(
        {name: values + i for i, name in enumerate(ODD_NAMES)},
        method=ODD_NAMES[2],
        meta={"model": ODD_NAMES[1]},
    )


SPREAD = np.random.default_rng(0).normal(size=(5, 9, 7))
CASES = {
    "one head": lambda: hw.HeadScores.from_arrays({"only": np.array([[[0.5]]])}, method="mine"),
    "one run": lambda: made_up.scores(6, 4, tasks=2, runs=1),
    "126 x 128 heads": lambda: made_up.scores(126, 128, tasks=4, runs=3),
    "one layer": lambda: made_up.scores(1, 64, tasks=2, runs=3),
    "one head index": lambda: made_up.scores(64, 1, tasks=2, runs=3),
    "20 tasks": lambda: made_up.relations(12, 12, runs=6),
    "odd names": odd_names,
    "all zero": lambda: like(np.zeros((3, 5, 4))),
    "all the same": lambda: like(np.full((3, 5, 4), 0.25)),
    "all the same and negative": lambda: like(np.full((3, 5, 4), -0.25)),
    "huge": lambda: like(SPREAD * 1e30),
    "huge and positive": lambda: like(np.abs(SPREAD) * 1e38 / 4),
    "tiny": lambda: like(SPREAD * 1e-30),
    "smallest there are": lambda: like(np.abs(SPREAD) * 1e-44),
    "huge and tiny": lambda: like(SPREAD * 10.0 ** np.linspace(-30, 30, 7)),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_scores_are_drawn_in_every_view(
    context: BrowserContext, tmp_path: Path, case: str
) -> None:
    scores = CASES[case]()
    view, _, wrong = open_page(
        context, hw.explore(scores).to_html(tmp_path / "p.html", title="Odd")
    )
    tasks, categories = len(scores.tasks), len(set(scores.categories.values()) or scores.tasks)
    expected = {"Tasks": tasks, "Agreement": 2 * tasks, "Categories": 1 + categories}
    for width in (340, 1200):
        view.page.set_viewport_size({"width": width, "height": 900})
        for name in ("Agreement", "Categories", "Tasks"):
            view.show_view(name)
            maps = view.root.locator(".hw-plot").count()
            assert maps == expected[name]
            assert view.shape(maps - 1) == scores.shape
            box = view.plot(maps - 1).bounding_box()
            assert box and box["width"] >= 1 and box["height"] >= 2 * min(scores.shape[0], 2)
            opaque = view.root.locator(".hw-cells").evaluate_all(
                """(all) => all.map((canvas) => {
                    const { width, height } = canvas;
                    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
                    return data.every((value, i) => i % 4 !== 3 || value === 255);
                })"""
            )
            if name != "Categories":
                assert all(opaque), name
            text = view.root.inner_text()
            assert "NaN" not in text and "Infinity" not in text and "undefined" not in text, name
            assert view.page.evaluate("() => document.documentElement.scrollWidth") <= width, (
                name,
                width,
            )
        for rule in ("top", "percent", "elbow", "value"):
            view.choose("Threshold", rule)
        view.set_slider("threshold", 1)
        view.plot().focus()
        view.press("ArrowDown", "Space", "+")
        assert view.card(), "the card of a head"
        view.press("?")
        view.press("Escape")
        assert view.selected() == [(scores.layers[0], 0)]
        view.press("Escape")
        view.type_threshold("")
    assert view.text("error") == ""
    assert wrong == []


def test_odd_names_stay_text_everywhere(context: BrowserContext, tmp_path: Path) -> None:
    view, _, wrong = open_page(
        context, hw.explore(odd_names(), selected=[(0, 0)]).to_html(tmp_path / "p.html")
    )
    assert view.titles() == ODD_NAMES
    assert [name for name, _ in view.chips()] == ODD_NAMES
    assert view.table()[0] == ["Head", *ODD_NAMES]
    view.hover(1, 1)
    wait_until(view.card, "the card")
    assert view.root.locator(".hw-card-task").all_text_contents() == ODD_NAMES
    view.open_menu("About")
    assert [
        name
        for name in ODD_NAMES
        if name not in view.root.locator(".hw-about-name").all_text_contents()
    ] == []
    view.press("Escape")
    view.show_view("Categories")
    assert [name for name in ODD_NAMES if name not in view.legend()] == []
    view.root.locator(".hw-legend-entry").last.click()
    assert view.page.locator("img").count() == 0
    assert view.page.evaluate("() => window.hacked") is None
    assert wrong == []


@pytest.mark.parametrize("which", ["Tasks", "Agreement", "Categories"])
def test_the_last_task_may_be_hidden_too_and_comes_back(
    context: BrowserContext, tmp_path: Path, which: str
) -> None:
    view, _, wrong = open_page(
        context,
        hw.explore(made_up.scores(6, 4, tasks=2, runs=4), rule="top").to_html(tmp_path / "p.html"),
    )
    view.show_view(which)
    before = view.titles()
    for n in range(2):
        view.root.locator(".hw-chip").nth(n).click()
    view.drawn()
    assert view.root.locator(".hw-plot:visible").count() == 0
    assert view.text("note").startswith("No task is shown. Choose one above")
    assert view.root.locator(".hw-note").is_visible()
    view.press("+", "[", "]", "Escape")
    for n in range(2):
        view.root.locator(".hw-chip").nth(n).click()
    view.drawn()
    assert view.titles() == before
    assert view.root.locator(".hw-plot:visible").count() == len(before)
    assert wrong == []
