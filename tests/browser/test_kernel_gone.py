"""A kernel that restarts, dies or is busy under a lab: the lab says what is known, no more."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from playwright.sync_api import Page

from .conftest import Kernel
from .hosts import Server, wait_until

CODE = """
import os, sys
import headwidget as hw
from tests.support import tiny
tasks = [tiny.task("one"), tiny.task("two")]
lab = hw.live(tiny.model("llama"), tasks, method="gating")
lab
"""
GONE = "The kernel is gone; what was scored stays. Run the cell again."
TROUBLES = ".hw-run-troubles .hw-error"
Open = Callable[..., Kernel]


def row(page: Page) -> str:
    return page.locator(".hw-run .hw-run-far .hw-run-text").inner_text()


def button(page: Page) -> tuple[str, bool]:
    go = page.locator(".hw-run .hw-go")
    return go.inner_text(), go.is_disabled()


def opened(page: Page, server: Server, open_notebook: Open) -> tuple[Kernel, list[str]]:
    """A lab in JupyterLab whose run is under way, and what goes wrong in its page."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    kernel = open_notebook(server.write(CODE))
    page.locator(".hw-run .hw-go").click()
    wait_until(lambda: "left" in row(page), "the run to be under way")
    return kernel, wrong


def says_that_it_is_gone(page: Page, wrong: list[str]) -> None:
    wait_until(lambda: GONE in page.locator(TROUBLES).inner_text(), "the sentence")
    assert row(page) == "The kernel is gone." and button(page) == ("Run", True)
    assert not page.locator(".hw-run .hw-progress").is_visible()
    # JupyterLab asks what is to be done about a kernel that has died, in a dialog of its own.
    page.evaluate("() => document.querySelectorAll('dialog.jp-Dialog').forEach((d) => d.remove())")
    page.locator(".hw-plot").first.click(position={"x": 5, "y": 5})  # what is shown still answers
    page.locator(".hw-run-score summary").click()
    page.locator(".hw-run-task input").first.click()
    assert page.locator(".hw-maps .hw-map-name").all_inner_texts() == ["one", "two"]
    assert wrong == []


def test_a_restart_during_a_run_is_said(page: Page, server: Server, open_notebook: Open) -> None:
    _, wrong = opened(page, server, open_notebook)
    page.evaluate("() => void window.testPanel.sessionContext.session.kernel.restart()")
    says_that_it_is_gone(page, wrong)
    page.wait_for_function("() => window.testPanel.sessionContext.session.kernel.status === 'idle'")


def test_a_kernel_that_is_killed_during_a_run_is_said(
    page: Page, server: Server, open_notebook: Open
) -> None:
    kernel, wrong = opened(page, server, open_notebook)
    os.kill(kernel.value("os.getpid()"), signal.SIGKILL)
    says_that_it_is_gone(page, wrong)
    page.wait_for_function("() => window.testPanel.sessionContext.session.kernel.status === 'idle'")


def test_a_busy_kernel_is_not_called_dead(page: Page, server: Server, open_notebook: Open) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    open_notebook(server.write(CODE))
    go_on = server.root / "go_on"
    go_on.unlink(missing_ok=True)
    loop = f"import time\nwhile not os.path.exists({str(go_on)!r}):\n    time.sleep(0.05)"
    page.evaluate(
        "(code) => void window.testPanel.sessionContext.session.kernel.requestExecute({ code })",
        loop,
    )
    page.wait_for_function("() => window.testPanel.sessionContext.session.kernel.status === 'busy'")
    page.locator(".hw-run .hw-go").click()
    # Some hosts answer widgets while a cell runs (subshells of ipykernel 7): then the run begins.
    said = wait_until(
        lambda: row(page) if "busy" in row(page) or "left" in row(page) else "", "what is known"
    )
    assert said == "The kernel is busy with a cell." or " of " in said
    assert page.locator(TROUBLES).is_hidden() and not button(page)[1]
    go_on.touch()
    wait_until(lambda: "left" in row(page) or "done" in row(page), "the run to be under way")
    assert wrong == []
