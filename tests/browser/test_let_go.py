"""In a real JupyterLab: a lab that a page shows works without a variable, and ends, with
its run, when its output is cleared."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from .conftest import Kernel
from .explorer_page import ExplorerPage
from .hosts import Server, wait_until

CODE = """
import weakref
import headwidget as hw
from IPython.display import display
lab = hw.live(hw.load(), "math-syntax", method="ablation", prompts=20)
display(lab)
watch, model = weakref.ref(lab), lab._model
del lab
"""
THREADS = "[t.name for t in __import__('threading').enumerate() if t.name == 'headwidget']"
HOOKS = "sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.module.modules())"


def test_a_lab_ends_with_its_last_view(
    page: Page, server: Server, open_notebook: Callable[..., Kernel]
) -> None:
    kernel = open_notebook(server.write(CODE), seconds=120)
    page.locator(".hw-run .hw-go").click()
    kernel.until("watch().state", lambda state: state == "running", 60)
    view = ExplorerPage(page)
    wait_until(
        lambda: "not measured" in view.card() or view.hover(29, 3),
        "the card of a head that is not scored",
        60,
    )
    kernel.until(HOOKS, lambda count: count > 0, 120)
    page.evaluate("() => window.testPanel.content.widgets[0].model.outputs.clear()")
    kernel.until("watch() is None", bool, 60)
    kernel.until(THREADS, lambda names: names == [], 60)
    assert kernel.value(HOOKS) == 0
