"""The explorer in a real JupyterLab with a real kernel: what the page shows is what Python holds, both ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import ROOT, Kernel, Server, wait_until
from .explorer_page import ExplorerPage, contrast

SYNTHETIC = """
import numpy as np, headwidget as hw
rng = np.random.default_rng(0)
names = {names!r}
values = {{name: rng.exponential(size=(5, 6, 8)).astype("float32") for name in names}}
scores = hw.HeadScores.from_arrays(values, method="mine", layers=[1, 3, 5, 7, 9, 11], meta={{"model": "made up"}})
explorer = hw.explore(scores, preview=None)
explorer
"""

Open = Callable[..., Kernel]


def follow_both_ways(page: Page, kernel: Kernel) -> None:
    """From the page to Python and back, for any notebook whose explorer is called ``explorer``."""
    view = ExplorerPage(page)
    facts = kernel.run("", tasks="list(explorer.scores.tasks)", layers="list(explorer.scores.layers)", heads="explorer.scores.shape[1]")
    tasks, layers, heads = facts["tasks"], facts["layers"], facts["heads"]
    assert view.titles() == tasks
    assert view.shape() == (len(layers), heads)
    assert len(view.bright()) == len(layers) * heads
    assert len({tuple(cell[:3]) for cell in view.cells()}) > 5, "a heatmap has many colours"

    view.drag_slider(0.4)
    threshold = kernel.until("explorer.threshold", lambda value: value is not None and view.threshold() and value == float(view.threshold()))
    passing = (
        "[(np.abs(m) if explorer.scores.signed else m).ravel().__ge__(np.float32(explorer.threshold)).nonzero()[0].tolist()"
        " for m in explorer.scores.reduce('mean')]"
    )
    expected = kernel.run("import numpy as np", it=passing)["it"]
    for number, cells in enumerate(expected):
        assert view.bright(number) == cells, f"{tasks[number]}: the page dims what Python says is below {threshold}"

    row, head = len(layers) // 2, heads - 2
    view.click(row, head)
    kernel.until("explorer.selected", lambda s: s == [[layers[row], head]])
    view.click(0, 1, len(tasks) - 1, modifiers=["Shift"])
    both = [[layers[row], head], [layers[0], 1]]
    kernel.until("explorer.selected", lambda s: s == both)
    assert f"L{layers[row]} H{head}, L{layers[0]} H1" in view.text("selected")

    kernel.run(f"explorer.threshold = None; explorer.selected = [({layers[-1]}, 0)]")
    wait_until(lambda: len(view.bright()) == len(layers) * heads, "the page to drop the threshold")
    wait_until(lambda: view.text("selected") == f"1 selected: L{layers[-1]} H0", "the page to show Python's selection")
    if len(tasks) > 1:
        kernel.run("explorer.tasks = explorer.tasks[::-1][:-1]")
        wait_until(lambda: view.titles() == tasks[::-1][:-1], "the page to show Python's tasks")


def test_an_explorer_follows_python_and_python_follows_it(page: Page, server: Server, open_notebook: Open, tmp_path: Path) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax", "recall"])))
    page.screenshot(path=tmp_path / "lab.png")
    follow_both_ways(page, kernel)


@pytest.mark.parametrize("notebook", ["01_quickstart.ipynb"])
def test_a_notebook_of_ours_runs_and_its_explorer_follows(page: Page, server: Server, open_notebook: Open, notebook: str) -> None:
    kernel = open_notebook(server.add(ROOT / "notebooks" / notebook), seconds=600)
    follow_both_ways(page, kernel)


def test_hover_names_the_head_and_its_value_in_every_task_and_tells_python_nothing(page: Page, server: Server, open_notebook: Open) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax", "recall"])))
    view = ExplorerPage(page)
    kernel.run("heard = []; explorer.observe(lambda change: heard.append(change.name))")
    assert view.marked(2) == 0
    view.hover(2, 5)
    wait_until(view.card, "the card")
    means = kernel.value("[float(v) for v in scores.reduce('mean')[:, 2, 5]]")
    words = view.card().split()
    assert words[:2] == ["L5", "H5"]
    for name, mean in zip(["math", "syntax", "recall"], means):
        assert abs(float(words[words.index(name) + 1]) - mean) < 0.006, (words, mean)
    assert view.marked(2) > 20, "the same head is outlined in the other maps"
    page.mouse.move(5, 5)
    wait_until(lambda: not view.card(), "the card to go")
    assert kernel.value("heard") == []


def test_the_keyboard_moves_selects_and_clears_without_moving_the_notebook(page: Page, server: Server, open_notebook: Open) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math"]), "1 + 1"))
    view = ExplorerPage(page)
    cell = "() => window.testPanel.content.activeCellIndex"
    view.click(0, 0)  # focus; the notebook's active cell is now the widget's
    kernel.until("explorer.selected", bool)
    active = page.evaluate(cell)
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert kernel.until("explorer.selected", lambda s: s != [[1, 0]]) == [[5, 1]]
    assert page.evaluate(cell) == active
    page.keyboard.press("Escape")
    kernel.until("explorer.selected", lambda s: s == [])


def test_two_views_of_one_explorer_stay_in_step_and_close_apart(page: Page, server: Server, open_notebook: Open) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math"]), "explorer"))
    wait_until(lambda: page.locator(".hw-root[data-ready='1']").count() == 2, "the second view")
    one, two = ExplorerPage(page, 0), ExplorerPage(page, 1)
    one.drag_slider(0.3)
    wait_until(lambda: one.threshold() == two.threshold() != "", "the other view's slider")
    assert one.bright() == two.bright()
    page.evaluate("() => window.testPanel.content.widgets[0].model.clearExecution()")
    wait_until(lambda: page.locator(".hw-root").count() == 1, "the first view to close")
    one.click(1, 1)
    assert kernel.until("explorer.selected", bool) == [[3, 1]]


def test_names_stay_text(page: Page, server: Server, open_notebook: Open) -> None:
    hostile = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
    open_notebook(server.write(SYNTHETIC.format(names=[hostile, "math"])))
    view = ExplorerPage(page)
    view.hover(1, 1)
    wait_until(view.card, "the card")
    assert view.titles()[0] == hostile
    assert hostile in view.card()
    assert view.root.locator("img, script").count() == 0
    assert page.evaluate("() => window.hacked") is None


def test_what_goes_wrong_is_a_sentence_in_the_widget(page: Page, server: Server, open_notebook: Open) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math"])))
    view = ExplorerPage(page)
    kernel.run("explorer._buffer, kept = b'1234', explorer._buffer")
    wait_until(lambda: "promises" in view.text("error"), "the error")
    assert view.text("error").startswith("These scores cannot be shown: the buffer holds 4 bytes; its header promises")
    kernel.run("explorer._buffer = kept")
    wait_until(lambda: view.titles() == ["math"] and not view.root.locator(".hw-error").is_visible(), "the maps to come back")
    kernel.run("explorer.tasks = []")
    wait_until(lambda: "No task is shown" in view.text("note"), "the sentence about no task")


def test_a_dark_theme_changes_text_and_diverging_maps_at_once(page: Page, server: Server, open_notebook: Open, tmp_path: Path) -> None:
    signed = "values['math'] *= rng.choice([-1, 1], (6, 8))\nscores = hw.HeadScores.from_arrays(values, method='mine')\n"
    open_notebook(server.write(SYNTHETIC.format(names=["math"]).replace("explorer = hw", f"{signed}explorer = hw")))
    view = ExplorerPage(page)
    light = view.cells()
    assert view.root.get_attribute("data-scheme") == "light"
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    wait_until(lambda: view.root.get_attribute("data-scheme") == "dark" and view.cells() != light, "the dark maps", 40)
    page.screenshot(path=tmp_path / "dark.png")
    for name in ("map-name", "tick", "about", "selected"):
        assert contrast(page, f".hw-root .hw-{name}") >= 4.5, name
