"""The explorer wherever notebooks are shown: Notebook 7, Voila, marimo, and the HTML that
nbconvert writes (docs/hosts.md).

JupyterLab has test_jupyterlab.py and a page of our own test_page_file.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import nbconvert
import numpy as np
import pytest
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page, Route

import headwidget as hw

from .conftest import Kernel
from .explorer_page import READY, ExplorerPage, open_page
from .host_styles import differences, styles
from .hosts import ROOT, SYNTHETIC, Server, free_port, marimo, notebook_of, serving, wait_until

EXPLORER = SYNTHETIC.format(names=["math", "syntax"])  # layers 1, 3, 5, 7, 9, 11 of 8 heads
THRESHOLD = 1.0
# Notebook 7.6 on its way up, also with an empty notebook
SCHEMA = "Cannot read properties of undefined (reading 'schema')"


@pytest.fixture
def wrong(page: Page) -> list[str]:
    """Every exception that the page did not catch."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


@pytest.fixture(scope="module")
def above() -> list[list[int]]:
    """The cells that reach THRESHOLD, for each task of EXPLORER."""
    made: dict[str, Any] = {}
    exec(EXPLORER, made)
    return [
        (mean.ravel() >= np.float32(THRESHOLD)).nonzero()[0].tolist()
        for mean in made["scores"].reduce("mean")
    ]


@pytest.fixture(scope="module")
def plain(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How the explorer's parts are drawn where no host has rules: on a page of its own."""
    made: dict[str, Any] = {}
    exec(EXPLORER, made)
    path = made["explorer"].to_html(tmp_path_factory.mktemp("plain") / "heads.html")
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    view, _, _ = open_page(context, path)
    found = styles(view)
    context.close()
    return found


def try_by_hand(view: ExplorerPage) -> None:
    """What needs no kernel: maps in colour, lines that are dragged, a card on hover, a preset,
    undo, the tour, and a click that selects [5, 6]. All else is as it was before."""
    view.root.scroll_into_view_if_needed()
    assert view.shape() == (6, 8)
    assert len({tuple(cell[:3]) for cell in view.cells()}) > 5, "a heatmap has many colours"
    assert len(view.bright()) == 48
    view.drag_slider(0.4)
    wait_until(lambda: 0 < len(view.bright()) < 48, "the slider to dim heads")
    view.drag_slider(0.0)
    wait_until(lambda: len(view.bright()) == 48, "the slider to dim none")
    assert view.marked() == 0
    view.hover(4, 3)
    wait_until(lambda: "L9 H3" in view.card(), "the card")
    view.show_view("Agreement")
    wait_until(lambda: len(view.titles()) > 2, "always and any")
    view.open_menu("Presets").get_by_role("button", name="Top 10", exact=True).click()
    wait_until(lambda: view.threshold() == "10", "the preset's threshold")
    view.drag_line("agreement", 0.3)
    wait_until(lambda: "≥" in "".join(view.titles()), "the maps of some agreement")
    view.plot().focus()
    for _ in range(3):
        view.press("Control+z")
    wait_until(lambda: (view.threshold(), len(view.titles())) == ("", 2), "undo, step by step")
    view.press("?")
    view.root.get_by_role("dialog", name="Help").get_by_role(
        "button", name="Start the tour"
    ).click()
    said = view.root.locator(".hw-tour-box")
    wait_until(said.is_visible, "the tour")
    said.press("Escape")
    view.click(2, 6)
    view.page.mouse.move(2, 2)
    wait_until(lambda: not view.card() and view.marked() > 0, "the selected head's outline")


def test_notebook_7(
    page: Page,
    server: Server,
    open_notebook: Callable[..., Kernel],
    wrong: list[str],
    above: list[list[int]],
    plain: dict[str, Any],
) -> None:
    kernel = open_notebook(server.write(EXPLORER), app="notebooks")
    view = ExplorerPage(page)
    assert "\n".join(differences(plain, styles(view))) == ""
    try_by_hand(view)
    kernel.until("explorer.selected", lambda selected: selected == [[5, 6]])
    kernel.run(f"explorer.threshold = {THRESHOLD}")
    wait_until(
        lambda: [view.bright(0), view.bright(1)] == above, "the page to follow Python's threshold"
    )
    assert [error for error in wrong if error != SCHEMA] == []


VOILA = """
import ipywidgets
heard, button = ipywidgets.Label("nothing yet"), ipywidgets.Button(description="Python, set it")
explorer.observe(lambda change: setattr(heard, "value", f"Python heard {change.new}"), "selected")
button.on_click(lambda _: setattr(explorer, "threshold", %s))
ipywidgets.VBox([heard, button])
"""


def test_jupyterlab_draws_no_part_in_its_own_way(
    page: Page, server: Server, open_notebook: Callable[..., Kernel], plain: dict[str, Any]
) -> None:
    open_notebook(server.write(EXPLORER))
    assert "\n".join(differences(plain, styles(ExplorerPage(page)))) == ""


def test_voila(
    page: Page, wrong: list[str], above: list[list[int]], plain: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    server = Server(f"http://127.0.0.1:{free_port()}", "", tmp_path / "root", tmp_path / "runtime")
    path = server.write(EXPLORER, VOILA % THRESHOLD)
    command = [
        "voila",
        str(server.root),
        "--no-browser",
        "--Voila.ip=127.0.0.1",
        f"--port={server.url.rpartition(':')[2]}",
    ]
    command += ["--Voila.port_retries=0", f"--Voila.connection_dir_root={tmp_path}"]
    with serving(tmp_path, command, server.url):
        page.goto(f"{server.url}/voila/render/{path}")
        page.wait_for_selector(READY, timeout=60_000)
        view = ExplorerPage(page)
        assert "\n".join(differences(plain, styles(view))) == ""
        try_by_hand(view)
        page.get_by_text("Python heard [[5, 6]]").wait_for()
        page.get_by_text("Python, set it").click()
        wait_until(
            lambda: [view.bright(0), view.bright(1)] == above,
            "the page to follow Python's threshold",
        )
        assert wrong == []


MARIMO = """
import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
    import numpy as np, headwidget as hw
    {made}
    return explorer, hw, mo, scores

@app.cell
def _(explorer, mo):
    wrapped = mo.ui.anywidget(explorer)
    wrapped
    return (wrapped,)

@app.cell
def _(mo, wrapped):
    mo.md(f"Python heard {{wrapped.selected}} and {{wrapped.value['selected']}}")

@app.cell
def _(explorer, mo):
    def set_it(_):
        explorer.threshold = {threshold}
    mo.ui.button(label="Python, set it", on_click=set_it)

@app.cell
def _(hw, scores):
    hw.explore(scores)  # not wrapped

if __name__ == "__main__":
    app.run()
"""


def test_marimo(
    page: Page, wrong: list[str], above: list[list[int]], plain: dict[str, Any], tmp_path: Path
) -> None:
    made = EXPLORER.strip().removesuffix("\nexplorer").split("\n", 1)[1].replace("\n", "\n    ")
    with marimo(tmp_path, MARIMO.format(made=made, threshold=THRESHOLD)) as url:
        page.goto(url)
        wait_until(lambda: page.locator(READY).count() == 2, "both widgets", 60)
        view = ExplorerPage(page)
        # marimo's column is narrow: there the inspector stands under the maps
        by_width = ("div.hw-inspector ", "div.hw-tab-page ", "div.hw-undo.hw-more margin-right")
        lines = differences(plain, styles(view))
        assert [line for line in lines if not line.startswith(by_width)] == []
        try_by_hand(view)
        page.get_by_text("Python heard [[5, 6]] and [[5, 6]]").wait_for()
        page.get_by_text("Python, set it").click()
        wait_until(
            lambda: [view.bright(0), view.bright(1)] == above,
            "the page to follow Python's threshold",
        )
        try_by_hand(ExplorerPage(page, 1))
        assert wrong == []


NODE, ANYWIDGET = ROOT / "node_modules", Path(anywidget.__file__).parent
# What such a page asks CDNs for, and the same files as npm and pip brought them
# (require.js is not minified there).
VERSION = hw.Explorer._model_module_version.default_value
REQUIRE = "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.1.10/require.min.js"
MANAGER = "https://unpkg.com/@jupyter-widgets/html-manager@*/dist/embed-amd.js"
BRIDGE = f"https://cdn.jsdelivr.net/npm/anywidget@{VERSION}/dist/index.js"
CDN = {
    REQUIRE: NODE / "requirejs/require.js",
    MANAGER: NODE / "@jupyter-widgets/html-manager/dist/embed-amd.js",
    BRIDGE: ANYWIDGET / "nbextension/index.js",
}
# Every page asks for it, for formulas; ours has none.
MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"


def test_nbconvert_html(page: Page, wrong: list[str], tmp_path: Path) -> None:
    notebook = notebook_of(EXPLORER)
    NotebookClient(
        notebook, store_widget_state=True, resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    file = tmp_path / "heads.html"
    file.write_text(html, encoding="utf-8")
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if (here := CDN.get(route.request.url)) is not None:
            route.fulfill(
                path=here,
                content_type="text/javascript",
                headers={"Access-Control-Allow-Origin": "*"},
            )
        else:
            route.abort()

    page.route(re.compile("^(?!file:)"), answer)
    page.goto(file.as_uri())
    page.wait_for_selector(READY)
    try_by_hand(ExplorerPage(page))
    assert wrong == []
    assert sorted(url for url in asked if not url.startswith(MATHJAX)) == sorted(CDN)
