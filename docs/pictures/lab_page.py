"""A notebook in a real JupyterLab, for what needs a kernel or classic widgets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from docs.pictures.camera import SCALE, Scheme
from tests.browser.conftest import Kernel, jupyter, run_notebook
from tests.browser.explorer_page import FRAMES, READY
from tests.browser.hosts import wait_until

OUTPUT = ".jp-OutputArea-child:has(.hw-root) .jp-OutputArea-output"
"""Where JupyterLab shows the widget, with what stands beside it."""
ALONE = """
    .jp-OutputArea-child:not(:has(.hw-root)) { display: none } /* warnings of imports */
    .jp-OutputPrompt { visibility: hidden }
    .jp-Cell-outputWrapper { padding: 20px 0 }
"""
_HEIGHT = 1600
_SECONDS = 240
"""How long the cell may take; it may load the model."""


@contextmanager
def notebook(browser: Browser, code: str, width: int) -> Iterator[tuple[Page, Kernel]]:
    """A notebook of one cell that was run, whose output is ``width`` CSS pixels wide."""
    with tempfile.TemporaryDirectory() as folder, jupyter(Path(folder)) as server:
        context = browser.new_context(
            viewport={"width": width + 132, "height": _HEIGHT}, device_scale_factor=SCALE
        )
        page = context.new_page()
        kernel = run_notebook(page, server, server.write(code), seconds=_SECONDS)
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:hide-all-cell-code')")
        page.add_style_tag(content=ALONE)
        spare = width + 132 - int(page.locator(OUTPUT).evaluate("(el) => el.clientWidth"))
        page.set_viewport_size({"width": width + spare, "height": _HEIGHT})
        output = page.locator(OUTPUT)
        wait_until(lambda: output.evaluate("(el) => el.clientWidth") == width, "the width")
        yield page, kernel
        kernel.close()
        page.evaluate("() => window.testPanel.sessionContext.shutdown()")
        context.close()


def show_in(page: Page, scheme: Scheme) -> None:
    """JupyterLab in a colour scheme, without the pointer or a focus ring on the widget."""
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        f"JupyterLab {scheme.title()}",
    )
    wait_until(page.locator(f"{READY}[data-scheme={scheme}]").count, f"the {scheme} theme")
    page.mouse.move(2, 2)
    page.evaluate("() => document.activeElement?.blur()")
    page.locator(OUTPUT).scroll_into_view_if_needed()
    page.evaluate(FRAMES)
