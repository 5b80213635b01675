"""An exported page, opened from disk: it works, and asks the network for nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext

import headwidget as hw

from .explorer_page import open_page
from .hosts import wait_until

HOSTILE = '</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script><!--'


@pytest.fixture
def scores() -> hw.HeadScores:
    values = np.random.default_rng(1).normal(size=(40, 30, 9)).astype("float32")
    meta = {"model": f"tiny {HOSTILE}"}
    return hw.HeadScores.from_arrays(
        {"math": values, HOSTILE: values[:, ::-1]}, method="gradient", meta=meta
    )


def test_a_page_from_disk_works_and_asks_the_network_for_nothing(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    path = hw.explore(scores, threshold=0.1, selected=[(3, 4)]).to_html(tmp_path / "heads.html")
    view, requests, wrong = open_page(context, path)
    means = np.abs(scores.reduce("mean"))
    assert view.titles() == ["math", HOSTILE]
    assert view.bright(1) == (means[1].ravel() >= np.float32(0.1)).nonzero()[0].tolist()
    assert view.text("selected") == "1 selected: L3 H4"

    view.drag_slider(0.6)
    wait_until(lambda: view.threshold() != "0.1", "the slider's number")
    edge = float(view.threshold())
    assert edge > 0.1
    assert view.bright(0) == (means[0].ravel() >= np.float32(edge)).nonzero()[0].tolist()
    assert (
        view.text("count") == f"{int((means >= np.float32(edge)).any(axis=0).sum())} of 270 heads"
    )
    view.drag_slider(0.0)
    wait_until(lambda: len(view.bright()) == 270 and view.threshold() == "", "no threshold")

    view.click(29, 8)
    wait_until(lambda: view.text("selected") == "1 selected: L29 H8", "the click")
    view.page.keyboard.press("Escape")
    wait_until(lambda: view.text("selected").startswith("Click to select"), "Escape")
    view.hover(10, 3)
    wait_until(lambda: view.card().startswith("L10 H3"), "the card")
    assert requests == [path.as_uri()]
    assert wrong == []


def test_names_in_a_page_stay_text(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    path = hw.explore(scores).to_html(tmp_path / "heads.html", title=HOSTILE)
    view, requests, wrong = open_page(context, path)
    assert view.page.title() == HOSTILE
    assert view.page.locator("h1").text_content() == HOSTILE
    assert HOSTILE in (view.page.locator("footer").text_content() or "")
    assert view.page.locator("img").count() == 0
    assert view.page.evaluate("() => window.hacked") is None
    assert len(requests) == 1 and wrong == []


def test_the_top_of_the_colour_bar_says_when_scores_go_beyond_it(
    context: BrowserContext, tmp_path: Path
) -> None:
    values = np.linspace(0, 1, 400, dtype="float32").reshape(20, 20)
    plain = hw.explore(hw.HeadScores.from_arrays({"a": values}, method="mine")).to_html(
        tmp_path / "plain.html"
    )
    values[-1, -1] = 9
    capped = hw.explore(hw.HeadScores.from_arrays({"a": values}, method="mine")).to_html(
        tmp_path / "capped.html"
    )
    tops = []
    for path in (plain, capped):
        view, _, _ = open_page(context, path)
        tops.append(view.root.locator(".hw-bar-labels .hw-tick").last.text_content())
    assert tops == ["1.00", "1.00+"]


@pytest.mark.parametrize("ratio", [1, 1.5, 2])
def test_cells_are_whole_device_pixels(
    chromium: Browser, ratio: float, scores: hw.HeadScores, tmp_path: Path
) -> None:
    path = hw.explore(scores).to_html(tmp_path / "heads.html")
    context = chromium.new_context(device_scale_factor=ratio)
    view, _, _ = open_page(context, path)
    box = view.plot().bounding_box()
    assert box is not None
    for length, cells in ((box["width"], 9), (box["height"], 30)):
        size = length * ratio / cells
        assert size >= 2 and abs(size - round(size)) < 0.02, size
    context.close()


@pytest.mark.parametrize("width", [340, 700, 1400])
def test_nothing_sticks_out_whatever_the_width(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path, width: int
) -> None:
    path = hw.explore(scores).to_html(tmp_path / "heads.html", title="Heads")
    view, _, _ = open_page(context, path)
    view.page.set_viewport_size({"width": width, "height": 800})
    view.hover(10, 4)
    wait_until(view.card, "the card")
    for name in ("view", "header", "inspector", "bar"):
        right = view.root.locator(f".hw-{name}").first.evaluate(
            "(el) => el.getBoundingClientRect().right"
        )
        assert right <= width, (name, right)
    assert view.page.evaluate("() => document.querySelector('.hw-root').scrollWidth") <= width
