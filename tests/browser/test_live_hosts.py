"""The lab in Notebook 7 and Voila as in JupyterLab (test_live.py): run, look at a head, turn it
off, measure, restore; a kernel that ends is said within a second."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from .conftest import READY, Kernel
from .explorer_page import ExplorerPage
from .hosts import Server, free_port, serving, wait_until

CODE = """
import os
from pathlib import Path
import headwidget as hw
from tests.support import tiny
Path("pid").write_text(str(os.getpid()))
tasks = [tiny.task("one"), tiny.task("two")]
lab = hw.live(tiny.model("llama"), tasks, method="gradient", prompt="one two")
lab
"""
# Notebook 7.6 on its way up, also with an empty notebook
SCHEMA = "Cannot read properties of undefined (reading 'schema')"
GONE = "The kernel is gone; what was scored stays. Run the cell again."
TROUBLES = ".hw-run-troubles .hw-error"
SOON = 8.0
"""Seconds in which a page here says that its kernel is gone: the promise is one, and a busy
machine takes several times that. A page that waits for a message of the kernel never says it."""


@contextmanager
def notebook_7(page: Page, open_notebook: Callable[..., Kernel], server: Server) -> Iterator[Path]:
    open_notebook(server.write(CODE), app="notebooks")
    yield server.root


@contextmanager
def voila(page: Page, base: Path) -> Iterator[Path]:
    (base / "root").mkdir()
    server = Server(f"http://127.0.0.1:{free_port()}", "", base / "root", base / "runtime")
    path = server.write(CODE)
    port = server.url.rpartition(":")[2]
    command = ["voila", str(server.root), "--no-browser", "--Voila.ip=127.0.0.1"]
    command += [f"--port={port}", "--Voila.port_retries=0"]
    command += [f"--Voila.connection_dir_root={base}"]
    with serving(base, command, server.url):
        page.goto(f"{server.url}/voila/render/{path}")
        page.wait_for_selector(READY, timeout=120_000)
        yield server.root


@pytest.fixture(params=["notebook 7", "voila"])
def folder(
    request: pytest.FixtureRequest,
    page: Page,
    server: Server,
    open_notebook: Callable[..., Kernel],
    tmp_path: Path,
) -> Iterator[Path]:
    """The folder of a kernel whose lab the page shows; nothing may go wrong in the page."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    if request.param == "voila":
        opened = voila(page, tmp_path)
    else:
        opened = notebook_7(page, open_notebook, server)
    with opened as root:
        yield root
        assert [error for error in wrong if error != SCHEMA] == []


def run_text(page: Page) -> str:
    return page.locator(".hw-run .hw-run-text").get_attribute("title") or ""


def run(page: Page) -> Locator:
    """Press Run and wait for the end."""
    go = page.locator(".hw-run .hw-go")
    go.click()
    wait_until(lambda: "done in" in run_text(page), "the run")
    wait_until(lambda: go.inner_text() == "Run", "the button")
    return go


def test_a_head_is_scored_turned_off_measured_and_restored(page: Page, folder: Path) -> None:
    view = ExplorerPage(page)
    inspector = page.locator(".hw-inspector")
    rows = page.locator(".hw-prompt .hw-prediction")
    wait_until(rows.count, "the next tokens")
    assert len(view.cells()) and all(cell[3] == 0 for cell in view.cells()), "nothing scored yet"
    run(page)
    wait_until(lambda: len({tuple(cell[:3]) for cell in view.cells()}) > 5, "real numbers")
    view.click(1, 2)
    page.mouse.move(2, 2)
    wait_until(
        lambda: inspector.locator(".hw-inspected-name").inner_text() == "L1 H2", "the inspector"
    )
    for tab in ("Prompt", "Words", "Scores"):
        inspector.get_by_role("tab", name=tab).click()
        wait_until(inspector.locator(f"[data-tab={tab.lower()}]").is_visible, tab)
    before = view.marked()
    inspector.get_by_role("button", name="Turn off").click()
    wait_until(lambda: "→" in rows.first.inner_text(), "before and after")
    wait_until(lambda: view.marked() > before, "the cross")
    assert page.locator(".hw-chip-changed").all_text_contents() == ["L1 H2 ×0 ✕"]
    inspector.get_by_role("button", name="Measure on tasks").click()
    table = inspector.locator(".hw-effect-table tbody tr")
    wait_until(lambda: table.count() == 2, "the tasks' table")
    page.locator(".hw-run-heed input").check()
    run(page)
    page.locator(".hw-run-past summary").click()
    runs = page.locator(".hw-run-past [aria-pressed]")
    wait_until(lambda: runs.count() == 2, "both runs")
    assert "1 head changed" in runs.first.inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Restore all").click()
    wait_until(lambda: page.locator(".hw-chip-changed").count() == 0, "all heads on")
    view.press("Control+z")
    wait_until(lambda: page.locator(".hw-chip-changed").count() == 1, "undo of gates")


def test_a_kernel_that_ends_is_said_within_a_second_and_what_was_scored_stays(
    page: Page, folder: Path
) -> None:
    view = ExplorerPage(page)
    go = run(page)
    cells = view.cells()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    began = time.monotonic()
    wait_until(lambda: GONE in page.locator(TROUBLES).inner_text(), "the sentence")
    took = time.monotonic() - began
    assert go.is_disabled()
    assert view.cells() == cells
    assert took < SOON
