"""The explorer in a real JupyterLab with a real kernel: what the page shows is what Python
holds, both ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import ROOT, Kernel
from .explorer_page import ExplorerPage, contrast
from .hosts import SYNTHETIC, Server, wait_until

Open = Callable[..., Kernel]


def follow_both_ways(page: Page, kernel: Kernel) -> None:
    """From the page to Python and back, for any notebook whose explorer is called ``explorer``."""
    view = ExplorerPage(page)
    facts = kernel.run(
        "",
        tasks="list(explorer.scores.tasks)",
        layers="list(explorer.scores.layers)",
        heads="explorer.scores.shape[1]",
    )
    tasks, layers, heads = facts["tasks"], facts["layers"], facts["heads"]
    assert view.titles() == tasks
    assert view.shape() == (len(layers), heads)
    assert len(view.bright()) == len(layers) * heads
    assert len({tuple(cell[:3]) for cell in view.cells()}) > 5, "a heatmap has many colours"

    view.drag_slider(0.4)
    threshold = kernel.until(
        "explorer.threshold",
        lambda value: value is not None and value == float(view.threshold() or "inf"),
    )
    setup = """
import numpy as np
strengths = explorer.scores.reduce("mean")
strengths = np.abs(strengths) if explorer.scores.signed else strengths
bar = np.float32(explorer.threshold)
"""
    passing = "[(task.ravel() >= bar).nonzero()[0].tolist() for task in strengths]"
    expected = kernel.run(setup, it=passing)["it"]
    for number, cells in enumerate(expected):
        assert view.bright(number) == cells, (
            f"{tasks[number]}: the page dims what Python says is below {threshold}"
        )

    row, head = len(layers) // 2, heads - 2
    view.click(row, head)
    kernel.until("explorer.selected", lambda s: s == [[layers[row], head]])
    view.click(0, 1, len(tasks) - 1, modifiers=["Shift"])
    both = [[layers[row], head], [layers[0], 1]]
    kernel.until("explorer.selected", lambda s: s == both)
    assert f"L{layers[row]} H{head}, L{layers[0]} H1" in view.text("selected")

    kernel.run(f"explorer.threshold = None; explorer.selected = [({layers[-1]}, 0)]")
    wait_until(lambda: len(view.bright()) == len(layers) * heads, "the page to drop the threshold")
    wait_until(
        lambda: view.text("selected") == f"1 selected: L{layers[-1]} H0",
        "the page to show Python's selection",
    )
    if len(tasks) > 1:
        kernel.run("explorer.tasks = explorer.tasks[::-1][:-1]")
        wait_until(lambda: view.titles() == tasks[::-1][:-1], "the page to show Python's tasks")


def test_an_explorer_follows_python_and_python_follows_it(
    page: Page, server: Server, open_notebook: Open, tmp_path: Path
) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax", "recall"])))
    page.screenshot(path=tmp_path / "lab.png")
    follow_both_ways(page, kernel)


@pytest.mark.parametrize("notebook", ["01_quickstart.ipynb"])
def test_a_notebook_of_ours_runs_and_its_explorer_follows(
    page: Page, server: Server, open_notebook: Open, notebook: str
) -> None:
    kernel = open_notebook(server.add(ROOT / "notebooks" / notebook), seconds=600)
    follow_both_ways(page, kernel)


def messages(page: Page) -> list[bytes]:
    """Every message that widgets on the page send to the kernel from now on, to be called
    before the page is opened."""
    sent: list[bytes] = []

    def keep(payload: str | bytes) -> None:
        content = payload if isinstance(payload, bytes) else payload.encode()
        if b'"comm_msg"' in content:
            sent.append(content)

    page.on("websocket", lambda socket: socket.on("framesent", keep))
    return sent


def sweep(view: ExplorerPage) -> None:
    """Move a pointer over 96 cells of the map, faster than any hand, ending at the last cell."""
    view.plot().evaluate(
        """(plot) => {
            const { x, y, width, height } = plot.getBoundingClientRect();
            for (let i = 0; i < 96; i++) {
                const [row, head] = [Math.floor(i / 8) % 6, i % 8];
                const clientX = x + (head + 0.5) * width / 8;
                const clientY = y + (row + 0.5) * height / 6;
                const at = { clientX, clientY, bubbles: true };
                plot.dispatchEvent(new PointerEvent('pointermove', at));
            }
        }"""
    )
    view.drawn()


def leave(view: ExplorerPage) -> None:
    view.plot().dispatch_event("pointerleave")
    view.drawn()


def test_hover_names_the_head_and_tells_python_only_when_asked(
    page: Page, server: Server, open_notebook: Open
) -> None:
    sent = messages(page)
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
    sent.clear()
    sweep(view)
    assert view.card().startswith("L11 H7")
    page.mouse.move(5, 5)
    leave(view)
    wait_until(lambda: not view.card(), "the card to go")
    page.wait_for_timeout(300)  # longer than what is unsaved may wait
    assert sent == [], "nobody asked for hover"
    assert kernel.value("(heard, explorer.hover)") == ([], None)

    kernel.run(
        "seen = []; listen = lambda change: seen.append(change.new)\n"
        "explorer.observe(listen, 'hover')"
    )
    wait_until(lambda: (sweep(view), kernel.value("seen"))[-1], "Python to hear of hover")
    leave(view)
    kernel.until("explorer.hover", lambda head: head is None)
    kernel.run("seen.clear()")
    view.drawn()  # messages are counted while the page is asked for something
    sent.clear()
    sweep(view)
    kernel.until("explorer.hover", lambda head: head == [11, 7])
    moved = kernel.value("seen")
    assert moved[-1] == [11, 7]
    wait_until(lambda: (view.drawn(), sent)[-1], "the message to be counted")
    assert 1 <= len(moved) <= 10 and 1 <= len(sent) <= 10, (
        f"{len(sent)} messages, {len(moved)} changes for 96 cells"
    )
    leave(view)
    kernel.until("explorer.hover", lambda head: head is None)
    kernel.run("explorer.hover = [5, 3]")
    wait_until(
        lambda: view.marked(0) > 20 and not view.card(), "the head Python points at, without a card"
    )

    kernel.run("explorer.unobserve(listen, 'hover'); explorer.hover = None")
    wait_until(lambda: view.marked(0) == 0, "no head pointed at")
    sent.clear()
    sweep(view)
    page.wait_for_timeout(300)
    assert sent == [], "nobody asks any more"


NOTEBOOK = """() => JSON.stringify([
    window.testPanel.content.activeCellIndex, window.testPanel.content.mode,
    Array.from(window.testPanel.model.cells).map((cell) => [cell.type, cell.sharedModel.source]),
    document.querySelectorAll('.jp-Dialog, .lm-Menu, .jp-Notebook .cm-lineNumbers').length])"""


def test_the_keyboard_moves_selects_and_clears_without_moving_the_notebook(
    page: Page, server: Server, open_notebook: Open
) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax"]), "1 + 1"))
    view = ExplorerPage(page)
    view.click(0, 0)  # focus; the notebook's active cell is now the widget's
    kernel.until("explorer.selected", bool)
    before = page.evaluate(NOTEBOOK)
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert kernel.until("explorer.selected", lambda s: s != [[1, 0]]) == [[5, 1]]
    for key in ("l", "h", "+", "-", "[", "]", "?", "Escape"):
        page.keyboard.press(key)
    kernel.until(
        "len(explorer.selected)", lambda n: n == 13
    )  # a layer of 8 and a head of 6, one in both
    # Keys that mean nothing here mean something to JupyterLab: new cells, delete, cut,
    # a dialog, line numbers.
    for place in (
        view.plot(),
        view.button("Agreement"),
        view.root.locator(".hw-chip").first,
        view.slider(),
    ):
        place.focus()
        for key in (
            "a",
            "b",
            "d",
            "d",
            "x",
            "m",
            "y",
            "1",
            "l",
            "Shift+L",
            "h",
            "Shift+M",
            "o",
            "j",
            "k",
            "0",
            "z",
        ):
            page.keyboard.press(key)
    view.drawn()
    assert page.evaluate(NOTEBOOK) == before
    view.plot().focus()
    page.keyboard.press("Escape")
    kernel.until("explorer.selected", lambda s: s == [])
    assert page.evaluate(NOTEBOOK) == before


def test_two_views_of_one_explorer_stay_in_step_and_close_apart(
    page: Page, server: Server, open_notebook: Open
) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math", "syntax"]), "explorer"))
    wait_until(lambda: page.locator(".hw-root[data-ready='1']").count() == 2, "the second view")
    one, two = ExplorerPage(page, 0), ExplorerPage(page, 1)
    one.drag_slider(0.3)
    wait_until(lambda: one.threshold() == two.threshold() != "", "the other view's slider")
    assert one.bright() == two.bright()
    two.hover(3, 3)
    wait_until(
        lambda: one.marked() > 20 and two.card() and not one.card(),
        "the cross hair in both, the card in one",
    )
    two.click(3, 3)
    wait_until(
        lambda: one.text("selected") == two.text("selected") == "1 selected: L7 H3",
        "the selection in both",
    )
    two.show_view("Agreement")
    wait_until(lambda: one.titles() == two.titles() != ["math", "syntax"], "the other view's view")
    two.root.locator(".hw-chip").first.click()
    wait_until(
        lambda: one.chips() == two.chips() == [("math", False), ("syntax", True)],
        "the other view's chips",
    )
    assert kernel.until(
        "[explorer.view, explorer.tasks, explorer.selected]",
        lambda now: now == ["agreement", ["syntax"], [[7, 3]]],
    )
    assert kernel.value("explorer.threshold") == float(one.threshold())
    page.evaluate("() => window.testPanel.content.widgets[0].model.clearExecution()")
    wait_until(lambda: page.locator(".hw-root").count() == 1, "the first view to close")
    one.click(1, 1)
    kernel.until("explorer.selected", lambda s: s == [[3, 1]])


def test_linked_explorers_share_a_selection_both_ways(
    page: Page, server: Server, open_notebook: Open
) -> None:
    code = SYNTHETIC.format(names=["math", "syntax"]).replace(
        "explorer = hw", "other = hw.explore(scores, view='agreement', preview=None)\nexplorer = hw"
    )
    link = """
import ipywidgets
link = ipywidgets.jslink((explorer, "selected"), (other, "selected"))
other
"""
    kernel = open_notebook(server.write(code, link))
    wait_until(lambda: page.locator(".hw-root[data-ready='1']").count() == 2, "both explorers")
    one, two = ExplorerPage(page, 0), ExplorerPage(page, 1)
    both = "[explorer.selected, other.selected]"

    def shared(*heads: list[int]) -> None:
        named = f"{len(heads)} selected: " + ", ".join(f"L{layer} H{head}" for layer, head in heads)
        wait_until(
            lambda: one.text("selected") == two.text("selected") == named, f"{named} in both"
        )
        kernel.until(both, lambda now: now == [list(heads)] * 2)

    one.click(1, 2)
    shared([3, 2])
    two.click(4, 5, 1, modifiers=["Shift"])
    shared([3, 2], [9, 5])
    kernel.run("other.selected = [[11, 7]]")
    shared([11, 7])
    kernel.run("explorer.selected = [(1, 0), (1, 1)]")
    shared([1, 0], [1, 1])
    two.plot().focus()
    page.keyboard.press("Escape")
    kernel.until(both, lambda now: now == [[], []])
    assert kernel.value("[explorer.view, other.view]") == ["tasks", "agreement"], (
        "only what is linked is shared"
    )


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


def test_what_goes_wrong_is_a_sentence_in_the_widget(
    page: Page, server: Server, open_notebook: Open
) -> None:
    kernel = open_notebook(server.write(SYNTHETIC.format(names=["math"])))
    view = ExplorerPage(page)
    kernel.run("explorer._buffer, kept = b'1234', explorer._buffer")
    wait_until(lambda: "promises" in view.text("error"), "the error")
    assert view.text("error").startswith(
        "These scores cannot be shown: the buffer holds 4 bytes; its header promises"
    )
    kernel.run("explorer._buffer = kept")
    wait_until(
        lambda: view.titles() == ["math"] and not view.root.locator(".hw-error").is_visible(),
        "the maps to come back",
    )
    kernel.run("explorer.tasks = []")
    wait_until(lambda: "No task is shown" in view.text("note"), "the sentence about no task")


def test_a_dark_theme_changes_text_and_diverging_maps_at_once(
    page: Page, server: Server, open_notebook: Open, tmp_path: Path
) -> None:
    signed = """values["math"] *= rng.choice([-1, 1], (6, 8))
scores = hw.HeadScores.from_arrays(values, method="mine")
"""
    open_notebook(
        server.write(
            SYNTHETIC.format(names=["math"]).replace("explorer = hw", f"{signed}explorer = hw")
        )
    )
    view = ExplorerPage(page)
    light = view.cells()
    assert view.root.get_attribute("data-scheme") == "light"
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        "JupyterLab Dark",
    )
    wait_until(
        lambda: view.root.get_attribute("data-scheme") == "dark" and view.cells() != light,
        "the dark maps",
        40,
    )
    page.screenshot(path=tmp_path / "dark.png")
    for name in ("map-name", "tick", "about", "selected"):
        assert contrast(page, f".hw-root .hw-{name}") >= 4.5, name
