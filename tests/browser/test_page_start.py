"""How an exported page starts: large ones too, and with a sentence where it cannot be unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext

import headwidget as hw
from tests.support.made_up import scores

from .conftest import Show
from .explorer_page import READY, ExplorerPage
from .hosts import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).normal(size=(8, 64, 80, 64))
    made = hw.HeadScores.from_arrays(
        {f"task {i}": v for i, v in enumerate(values)}, method="mine", meta={"model": "tiny"}
    )
    return hw.explore(made, threshold=0.2).to_html(tmp_path / "heads.html")


@pytest.mark.parametrize("without", ["nothing", "fromBase64"])
def test_a_large_page_brings_every_score(context: BrowserContext, path: Path, without: str) -> None:
    context.add_init_script(f"delete Uint8Array.{without}")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(READY)
    means = np.abs(
        np.random.default_rng(1)
        .normal(size=(8, 64, 80, 64))
        .astype("float32")
        .mean(axis=1, dtype="float64")
        .astype("float32")
    )
    bright = (means[7].ravel() >= np.float32(0.2)).nonzero()[0].tolist()
    view = ExplorerPage(page)
    wait_until(lambda: view.bright(7) == bright, "the last task's heads")


def test_a_browser_that_cannot_unpack_the_page_says_so(context: BrowserContext, path: Path) -> None:
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".hw-error")
    assert (
        "This page could not start: this browser is too old to unpack its scores; open it in"
        in page.inner_text("main")
    )


def test_a_damaged_page_says_so(context: BrowserContext, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    start = text.index('"buffer": "') + len('"buffer": "')
    path.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".hw-error")
    assert page.inner_text("main").startswith("This page could not start: ")
    assert len(page.inner_text("main")) > len("This page could not start: ")


@pytest.mark.parametrize(
    "settings",
    [{}, {"view": "agreement", "threshold": 0.01, "agreement": 0.5}, {"view": "categories"}],
    ids=["tasks", "agreement", "categories"],
)
def test_maps_that_come_with_the_second_frame_have_their_place_and_their_axes(
    show: Show, settings: dict[str, Any]
) -> None:
    view = show(scores(80, 64, tasks=8, runs=16), **settings)
    maps = view.root.locator("figure.hw-map").evaluate_all(
        """(all) => {
            const seen = (map, name) =>
                map.querySelector(name).checkVisibility({ visibilityProperty: true });
            return all.map((map) =>
                [map.style.gridArea, seen(map, '.hw-label-y'), seen(map, '.hw-label-x')]);
        }"""
    )
    places = [tuple(int(part) for part in area.split("/")) for area, *_ in maps]
    assert len(maps) >= 8 and len(set(places)) == len(places)
    last = {column: max(row for row, other in places if other == column) for _, column in places}
    for (row, column), (_, down, across) in zip(places, maps):
        assert (down, across) == (column == 1, row == last[column])
