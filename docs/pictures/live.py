"""The lab in JupyterLab: three heads off take Paris from 77% to 14%, beside random heads."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from docs.pictures.camera import SCHEMES, WIDTH, picture, save
from docs.pictures.lab_page import OUTPUT, notebook, show_in
from tests.browser.hosts import wait_until

HEADS = [(23, 4), (29, 1), (23, 1)]
"""The best three heads for capitals; docs/live.md names them, with what is measured."""
CODE = """
import headwidget as hw
model = hw.load()
relations = {task.name: task for task in hw.tasks.suite("relations")}
pairs = relations["country to capital"].examples
capitals = hw.Task("Capitals", [
    (f"The capital of {country.prompt} is", country.answer, other.answer)
    for country, other in zip(pairs, pairs[7:])
])
math = hw.tasks.suite("math-syntax")[0]
lab = hw.live(model, [capitals, math], "attribution", prompt="The capital of France is")
lab
"""
KNOCK_OUT = """
best = lab.scores.top("Capitals", 3)
gates = np.ones(model.shape)
for layer, head in best:
    gates[layer, head] = 0
lab.rule, lab.selected, lab.gates = "elbow", best[::-1], gates
lab.wait()
lab.measure()
"""


def shoot(browser: Browser, folder: Path) -> list[Path]:
    """live-light.png and live-dark.png: a run, its best three heads off, the effect measured."""
    pictures = []
    with notebook(browser, CODE, WIDTH) as (page, kernel):
        kernel.run("import numpy as np; lab.run()")
        kernel.until("lab.state", lambda state: state == "done", 240)
        kernel.run(KNOCK_OUT)
        best = kernel.value("[tuple(map(int, head)) for head in best]")
        assert best == HEADS, f"the best heads are {best} now: say so in docs/live.md"
        kernel.until("lab.effect.get('done')", lambda done: done is True, 240)
        page.get_by_role("tab", name="Effect").click()
        table = page.locator(".hw-effect-table tbody tr")
        wait_until(lambda: table.count() == 2, "the effect on both tasks", 60)
        for scheme in SCHEMES:
            show_in(page, scheme)
            shot = picture(page, page.locator(OUTPUT))
            pictures.append(save(shot, folder / f"live-{scheme}.png"))
    return pictures
