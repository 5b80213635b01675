"""Takes docs/images/live-light.png and live-dark.png, in a real JupyterLab.

The model is the embedded one.

    python -m docs.pictures.live [folder]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.browser import chromium
from tests.browser.conftest import jupyter, run_notebook
from tests.browser.hosts import wait_until

CODE = """
import headwidget as hw
model = hw.load()
lab = hw.live(model, "math-syntax", prompt="The capital of France is", prompts=16)
lab
"""


def shoot(folder: Path, width: int = 960) -> list[Path]:
    """The lab in both themes: a run, a prompt, a head, and eight heads off beside random ones."""
    pictures = []
    with (
        tempfile.TemporaryDirectory() as place,
        jupyter(Path(place)) as server,
        chromium() as browser,
    ):
        page = browser.new_context(
            viewport={"width": width + 120, "height": 2600}, device_scale_factor=1.5
        ).new_page()
        kernel = run_notebook(page, server, server.write(CODE), seconds=180)
        kernel.run("lab.run()")
        kernel.until("lab.state", lambda state: state == "done", 180)
        kernel.run("lab.threshold = 0.1; lab.selected = lab.scores.top('Math', 8)[::-1]")
        page.get_by_role("button", name="Turn 8 off").click()
        kernel.until("int((lab.gates == 0).sum())", lambda count: count == 8)
        page.get_by_role("button", name="Measure on tasks").click()
        kernel.until("lab.effect.get('done')", lambda done: done is True, 240)
        wait_until(
            lambda: "Amplifies anywhere" in page.locator(".hw-head").inner_text(),
            "salient tokens",
            60,
        )
        for theme in ("Light", "Dark"):
            page.evaluate(
                "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
                f"JupyterLab {theme}",
            )
            root = page.locator(f".hw-root[data-scheme={theme.lower()}]")
            wait_until(root.count, "the theme", 60)
            pictures.append(whole(page, folder / f"live-{theme.lower()}.png"))
        kernel.close()
        page.evaluate("() => window.testPanel.sessionContext.shutdown()")
    return pictures


def whole(page: Page, path: Path) -> Path:
    """The widget, all of it."""
    page.mouse.move(2, 2)
    page.evaluate("() => document.activeElement?.blur()")
    page.locator(".hw-root").screenshot(path=path)
    return path


if __name__ == "__main__":
    for picture in shoot(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")):
        print(picture, picture.stat().st_size // 1024, "KB")
