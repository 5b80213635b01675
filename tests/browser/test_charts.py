"""Charts in a real JupyterLab: a brush drawn by hand is the threshold, a lasso is the
selection, and the heatmaps and the charts follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page

from .conftest import Kernel, run_notebook
from .explorer_page import ExplorerPage
from .hosts import Server, marimo, wait_until

CODE = """
from tests.support import made_up
import numpy as np, headwidget as hw
scores = made_up.scores(12, 8, tasks=2, signed=True)
explorer = hw.explore(scores, preview=None)
board = hw.dashboard(explorer)
histogram, profile, scatter = board.charts
mean = scores.reduce("mean")
board
"""
FILL = """(el) => {
    const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3)
        .map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const fill = getComputedStyle(el).fill;
    const text = getComputedStyle(el.closest('.hw-chart').querySelector('.hw-chart-text')).color;
    if (fill !== text) return fill; // not as the rest of the page writes
    const behind = getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor;
    const [low, high] = [fill, behind].map(light).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""


@dataclass
class Board:
    """The dashboard as a user has it before them."""

    page: Page
    kernel: Kernel
    view: ExplorerPage
    wrong: list[str]

    def chart(self, number: int) -> Locator:
        return self.page.locator(".hw-chart").nth(number)

    def text(self, number: int) -> str:
        return self.chart(number).locator(".hw-chart-text").first.inner_text()

    def brush(self) -> tuple[float, float]:
        """Where the brush begins and ends, as fractions of the axis; both 0 without one."""
        found: list[float] = self.chart(0).evaluate(
            """(el) => {
                const inside = el.querySelector('.brushintsel');
                const box = (name) => inside.querySelector(name).getBoundingClientRect();
                const [all, brush] = [box('.overlay'), box('.selection')];
                if (!brush.width) return [0, 0];
                return [brush.left, brush.right].map((x) => (x - all.left) / all.width);
            }"""
        )
        return found[0], found[1]

    def brushed(self, start: float, end: float, off: float = 0.02) -> bool:
        """The brush begins and ends about there."""
        return all(abs(at - goal) <= off for at, goal in zip(self.brush(), (start, end)))


@pytest.fixture(scope="module")
def opened(chromium: Browser, server: Server) -> Iterator[Board]:
    context = chromium.new_context(viewport={"width": 1200, "height": 1300})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    kernel = run_notebook(page, server, server.write(CODE))
    wait_until(
        lambda: (
            page.locator(".hw-chart .brushintsel .overlay").count()
            and page.locator(".hw-chart .lassoselector rect").count()
        ),
        "the charts",
    )
    yield Board(page, kernel, ExplorerPage(page), wrong)
    kernel.close()
    page.evaluate("() => window.testPanel.sessionContext.shutdown()")
    context.close()


@pytest.fixture
def board(opened: Board) -> Iterator[Board]:
    """The dashboard with nothing chosen yet."""
    opened.kernel.run(
        "explorer.rule = 'value'; explorer.threshold = None\n"
        "explorer.selected = []; explorer.task = None"
    )
    wait_until(
        lambda: opened.brush() == (0, 0) and opened.text(0).endswith("· 96 heads"),
        "a histogram without a threshold",
    )
    wait_until(
        lambda: opened.view.text("selected").startswith("Click to select"),
        "heatmaps without a selection",
    )
    yield opened
    assert opened.wrong == []


def test_a_brush_drawn_by_hand_is_the_threshold_and_the_heatmaps_follow(board: Board) -> None:
    board.view.drag(board.chart(0).locator(".overlay"), (0.3, 0.5), (0.6, 0.5))
    end = board.kernel.value("float(np.abs(mean).max())")
    threshold = board.kernel.until(
        "explorer.threshold", lambda t: t is not None and abs(t - 0.3 * end) < 0.02 * end
    )
    count = board.kernel.value(
        "int((np.abs(mean) >= np.float32(explorer.threshold)).any(axis=0).sum())"
    )
    assert 0 < count < 96
    wait_until(
        lambda: (
            board.view.text("count") == f"{count} of 96 heads"
            and board.text(0).endswith(f"· {count} of 96 heads pass")
        ),
        "both counts",
    )
    assert float(board.view.threshold()) == threshold
    assert len(board.view.bright(0)) == board.kernel.value(
        "int((np.abs(mean[0]) >= np.float32(explorer.threshold)).sum())"
    )
    wait_until(
        lambda: board.brushed(0.3, 1.0) and board.brush()[1] >= 0.99,
        "the brush to reach to the end",
    )
    board.view.drag(
        board.chart(0).locator(".handle--w"), (0.5, 0.5), (8.0, 0.5)
    )  # its edge, moved to the right
    board.kernel.until("explorer.threshold", lambda t: t > threshold)
    board.view.drag(board.chart(0).locator(".overlay"), (0.02, 0.5))  # a click beside it
    board.kernel.until("explorer.threshold", lambda t: t is None)


def test_a_threshold_set_in_the_heatmaps_moves_the_brush(board: Board) -> None:
    board.view.drag_slider(0.4)
    threshold = board.kernel.until(
        "explorer.threshold", lambda t: t is not None and t == float(board.view.threshold())
    )
    at = threshold / board.kernel.value("float(np.abs(mean).max())")
    wait_until(
        lambda: board.brushed(at, 1.0, 0.01),
        "the brush",
    )
    wait_until(lambda: board.text(0).endswith(f"{board.view.text('count')} pass"), "the same count")
    board.kernel.run("explorer.rule = 'top'; explorer.threshold = 5")
    wait_until(
        lambda: board.brush() == (0, 0) and board.view.text("count") != "",
        "lines in place of the brush",
    )
    wait_until(
        lambda: board.text(0).endswith(f"{board.view.text('count')} pass"), "the same count by rank"
    )
    board.view.drag(board.chart(0).locator(".overlay"), (0.5, 0.5), (0.7, 0.5))
    board.kernel.until(
        "[explorer.rule, explorer.threshold is not None]", lambda now: now == ["value", True]
    )
    wait_until(
        lambda: board.brush()[0] == pytest.approx(0.5, abs=0.02) and board.view.threshold() != "5",
        "a value again",
    )
    assert board.view.root.locator("select").first.input_value() == "value"


def test_a_lasso_is_the_selection_and_a_selection_shows_in_the_scatter(board: Board) -> None:
    area, drawn = (
        board.chart(2).locator(".lassoselector rect"),
        board.chart(2).locator(".lassoselector path"),
    )
    right = [(0.5, 0.01), (0.99, 0.01), (0.99, 0.99), (0.5, 0.99), (0.5, 0.02)]
    board.view.drag(area, *right)
    middle = "(scatter.figure.axes[0].scale.min + scatter.figure.axes[0].scale.max) / 2"
    expected = board.kernel.run(
        f"wanted = [[int(l), int(h)] for l, h in np.argwhere(mean[0] > {middle})]", it="wanted"
    )["it"]
    assert 0 < len(expected) < 96
    board.kernel.until("explorer.selected", lambda s: s == expected)
    wait_until(
        lambda: board.view.text("selected").startswith(f"{len(expected)} selected"),
        "the heatmaps' selection",
    )
    assert board.view.selected() == [(layer, head) for layer, head in expected]
    dots = board.chart(2).locator(".object_grp")
    wait_until(
        lambda: dots.count() == 96 + len(expected) and drawn.count() == 0 < area.count(),
        "orange dots, and no lasso",
    )
    board.view.click(3, 4)
    board.kernel.until("explorer.selected", lambda s: s == [[3, 4]])
    wait_until(lambda: dots.count() == 97, "the head that was clicked")
    board.view.drag(area, *right)  # the same lasso again
    board.kernel.until("explorer.selected", lambda s: s == expected)
    wait_until(
        lambda: dots.count() == 96 + len(expected) and drawn.count() == 0 < area.count(),
        "the lasso to go",
    )
    board.view.drag(area, (0.9, 0.02), (0.97, 0.02), (0.97, 0.06), (0.9, 0.02))  # round nothing
    board.kernel.until("explorer.selected", lambda s: s == [])


def test_charts_can_be_read_on_light_and_dark(board: Board, tmp_path: Path) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        board.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            theme,
        )
        shade = str(theme.endswith("Light")).lower()
        wait_until(
            lambda: board.page.locator(f"body[data-jp-theme-light={shade}]").count(), theme, 40
        )
        for selector in (".tick text", "text.axislabel"):
            for label in board.page.locator(f".hw-chart .axis {selector}").all():
                contrast = label.evaluate(FILL)
                assert not isinstance(contrast, str), f"{theme}: {selector} is {contrast}"
                assert contrast >= 4.5, (theme, selector)
        board.page.screenshot(path=tmp_path / f"{theme}.png")


def test_on_a_narrow_page_charts_stand_below_the_heatmaps(board: Board) -> None:
    def boxes() -> tuple[FloatRect, FloatRect]:
        view, chart = board.view.root.bounding_box(), board.chart(0).bounding_box()
        assert view is not None
        assert chart is not None
        return view, chart

    view, chart = boxes()
    assert chart["x"] >= view["x"] + view["width"]
    try:
        board.page.set_viewport_size({"width": 640, "height": 1300})
        wait_until(
            lambda: boxes()[1]["y"] >= boxes()[0]["y"] + boxes()[0]["height"], "the charts below"
        )
        plot = board.chart(0).locator(".overlay")
        wait_until(
            lambda: (plot.bounding_box() or {"width": 0})["width"] > 300,
            "a chart as wide as the page",
        )
        assert boxes()[1]["x"] + boxes()[1]["width"] <= 640
    finally:
        board.page.set_viewport_size({"width": 1200, "height": 1300})


def test_a_closed_board_leaves_the_explorer(board: Board) -> None:
    board.kernel.run("spare = hw.dashboard(explorer); spare.close(); explorer.threshold = 0.01")
    wait_until(
        lambda: (
            board.view.threshold() == "0.01"
            and board.text(0).endswith(f"{board.view.text('count')} pass")
        ),
        "the first dashboard to go on",
    )


MARIMO = """
import marimo
app = marimo.App()

@app.cell
def _():
    import numpy as np, headwidget as hw
    scores = hw.HeadScores.from_arrays({"a": np.eye(4), "b": np.eye(4)[::-1]}, method="mine")
    explorer = hw.explore(scores, preview=None)
    return explorer, hw

@app.cell
def _(explorer, hw):
    hw.charts.histogram(explorer)

@app.cell
def _(explorer, hw):
    hw.dashboard(explorer)

if __name__ == "__main__":
    app.run()
"""


def test_in_marimo_the_heatmaps_work_and_charts_say_why_not(page: Page, tmp_path: Path) -> None:
    with marimo(tmp_path, MARIMO) as url:
        page.goto(url)
        sentence = page.get_by_text("marimo shows no bqplot charts")
        wait_until(
            lambda: sentence.count() == 2, "the sentence, for the chart and for the dashboard", 60
        )
        wait_until(
            lambda: page.locator(".hw-root[data-ready='1']").count() == 1,
            "the dashboard's heatmaps",
        )
        view = ExplorerPage(page)
        view.drag_slider(0.5)
        wait_until(lambda: len(view.bright()) == 4, "the slider to dim heads")
