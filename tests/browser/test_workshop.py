"""A student's path through notebooks/06_live_workshop.ipynb in a real JupyterLab: cells
run one by one, the rest is clicked, answers are checked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from .conftest import READY, ROOT, Kernel, open_in
from .explorer_page import ExplorerPage
from .hosts import Server, wait_until

NOTEBOOK = ROOT / "notebooks" / "06_live_workshop.ipynb"
_RUN = """async (index) => {
    const notebook = window.testPanel.content;
    notebook.activeCellIndex = index;
    notebook.deselectAll();
    await window.jupyterapp.commands.execute('notebook:run-cell');
    const outputs = notebook.widgets[index].model.outputs.toJSON();
    const text = (output) => output.text ?? output.data?.['text/plain'] ?? output.evalue ?? '';
    return outputs.map(text).join('\\n');
}"""


@dataclass
class Student:
    """The notebook as a student has it open."""

    page: Page
    kernel: Kernel
    view: ExplorerPage

    def run(self, holds: str) -> str:
        """Run the first cell that holds a text; gives what it says."""
        cells = nbformat.read(NOTEBOOK, as_version=4).cells
        index = next(
            i for i, cell in enumerate(cells) if cell.cell_type == "code" and holds in cell.source
        )
        said: str = self.page.evaluate(_RUN, index)
        return said

    def answer(self, name: str, code: str) -> str:
        """Write an answer into the exercise's cell, run it and the check below it; gives
        what the check says."""
        cells = nbformat.read(NOTEBOOK, as_version=4).cells
        index = next(
            i
            for i, cell in enumerate(cells)
            if cell.cell_type == "code"
            and cell.source.rstrip().splitlines()[-1].startswith(f"{name} = None")
        )
        self.page.evaluate(
            "([i, text]) => window.testPanel.content.widgets[i].model.sharedModel.setSource(text)",
            [index, f"{name} = {code}"],
        )
        self.page.evaluate(_RUN, index)
        said: str = self.page.evaluate(_RUN, index + 1)
        return said

    def press(self, name: str) -> None:
        self.view.root.get_by_role("button", name=name, exact=True).click()


@pytest.fixture
def student(chromium: Browser, server: Server) -> Iterator[Student]:
    context = chromium.new_context(viewport={"width": 1300, "height": 2400})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    shutil.copy(NOTEBOOK.with_name("workshop_checks.py"), server.root)
    kernel = open_in(page, server, server.add(NOTEBOOK))
    yield Student(page, kernel, ExplorerPage(page, simple=True))
    kernel.close()
    page.evaluate("() => window.testPanel.sessionContext.shutdown()")
    context.close()
    assert wrong == []


def test_a_student_types_looks_thresholds_knocks_out_and_is_told_what_is_off(
    student: Student,
) -> None:
    page, kernel, view = student.page, student.kernel, student.view
    student.run("lab = hw.live(")
    wait_until(lambda: page.locator(READY).count() == 1, "the lab", 120)

    # 1 look around: the map's own size is the answer
    assert "30 + 9" in student.answer("my_count", "39") and student.answer(
        "my_count", "270"
    ).startswith("✓")

    # 2 type a prompt, look at another token
    page.locator(".hw-prompt textarea").fill("The keys to the cabinet")
    rows = page.locator(".hw-prompt .hw-prediction")
    wait_until(lambda: "are" in rows.first.inner_text(), "the next token", 60)
    rows.nth(1).click()
    wait_until(lambda: rows.nth(1).get_attribute("aria-pressed") == "true", "the other token's map")

    # 3 run, then a threshold for Math alone
    student.press("Run")
    kernel.until("lab.state", lambda state: state == "done", 180)
    kernel.run("by_gradient = lab.scores; lab.sign = 'helps'; lab.task = 'Math'")
    assert "go higher" in student.answer("my_threshold", "0.001")
    number = view.root.locator(".hw-value")
    number.fill("0.1")
    number.press("Enter")
    kernel.until("lab.threshold", lambda value: value == 0.1)
    assert student.answer("my_threshold", "lab.threshold").startswith("✓")

    # 4 knock out: what passes is too much, eight of them beat the control
    student.press("Select what passes")
    wait_until(lambda: len(kernel.value("lab.selected")) > 8, "the selection")
    assert "use 8 or fewer" in student.answer("my_heads", "lab.selected")
    kernel.run("lab.selected = by_gradient.top('Math', 8)")
    wait_until(lambda: view.text("selected").startswith("8 selected"), "eight heads")
    student.press("Turn 8 off")
    kernel.until("int((lab.gates == 0).sum())", lambda count: count == 8)
    student.press("Measure on tasks")
    kernel.until("lab.effect.get('done')", lambda done: done is True, 240)
    said = student.answer("my_heads", "lab.selected")
    assert said.startswith("✓") and "random heads of the same layers cost" in said
    wait_until(
        lambda: "not used for scoring: Math: 12 of 12" in page.locator(".hw-effect").inner_text(),
        "the table",
    )
    student.press("Restore all")
    kernel.until("bool((lab.gates == 1).all())", bool)

    # 6 what may we claim?
    assert student.answer("my_claim", "'a'").startswith("✗ (a) says more than was measured")
