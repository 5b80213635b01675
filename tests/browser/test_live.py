"""The lab in a real JupyterLab on the embedded model: run, watch, stop, type, knock out
against the control, brush and lasso; then nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from .conftest import Kernel, run_notebook
from .explorer_page import ExplorerPage
from .hosts import Server, wait_until

CODE = """
import headwidget as hw
model = hw.load()
lab = hw.live(model, "math-syntax", method="ablation", prompts=1, asked=["Syntax"])
board = hw.dashboard(lab)
board
"""
# where the model's thread is, should it not have ended
THREADS = """[
''.join(__import__('traceback').format_stack(__import__('sys')._current_frames()[t.ident])[-6:])
for t in __import__('threading').enumerate() if t.name == 'headwidget']""".replace("\n", " ")
HOOKS = "sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.module.modules())"


@dataclass
class Bench:
    """The lab as a user has it before them."""

    page: Page
    kernel: Kernel
    view: ExplorerPage
    wrong: list[str]

    @property
    def go(self) -> Locator:
        return self.page.locator(".hw-run .hw-go")

    def status(self) -> str:
        return self.page.locator(".hw-run .hw-run-far .hw-run-text").get_attribute("title") or ""

    def hatched(self, map_: int) -> float:
        """The fraction of a map's heads that are not measured: the hatching shows there."""
        cells = self.view.cells(map_)
        return sum(cell[3] == 0 for cell in cells) / len(cells)


@pytest.fixture(scope="module")
def opened(chromium: Browser, server: Server) -> Iterator[Bench]:
    context = chromium.new_context(viewport={"width": 1300, "height": 1500})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    kernel = run_notebook(page, server, server.write(CODE), seconds=120)
    yield Bench(page, kernel, ExplorerPage(page), wrong)
    kernel.close()
    page.evaluate("() => window.testPanel.sessionContext.shutdown()")
    context.close()


@pytest.fixture
def bench(opened: Bench) -> Iterator[Bench]:
    yield opened
    assert opened.wrong == []


def test_cells_fill_while_the_kernel_stays_free_and_stop_answers(bench: Bench) -> None:
    assert bench.status() == "Nothing is scored yet."
    wait_until(
        lambda: bench.hatched(0) == pytest.approx(1, abs=0.01), "maps where nothing is scored"
    )
    bench.go.click()
    wait_until(lambda: 0.02 < bench.hatched(0) < 0.95, "some layers to be scored", 300)
    assert bench.go.inner_text() == "Stop" and "ablation · Syntax" in bench.status()
    assert bench.kernel.value("[6 * 7, lab.state]") == [42, "running"], (
        "another cell runs meanwhile"
    )
    bench.view.hover(0, 3)
    wait_until(
        lambda: "Syntax" in bench.view.card() and "not measured" not in bench.view.card(),
        "the card of a scored head",
    )
    bench.view.hover(29, 3)
    wait_until(lambda: "not measured" in bench.view.card(), "the card of a head that is not")
    bench.go.click()
    bench.kernel.until("lab.state", lambda state: state == "stopped", 90)
    wait_until(
        lambda: bench.go.inner_text() == "Run" and "stopped" in bench.status(),
        "the button",
    )
    measured = bench.kernel.value("lab.scores.measured('Syntax').ravel().tolist()")
    assert {0, 1} == set(measured), "what was finished is kept, the rest is missing"
    assert bench.hatched(0) == measured.count(0) / len(measured)
    assert bench.kernel.value(HOOKS) == 0


def test_what_was_done_before_stop_is_kept(bench: Bench) -> None:
    bench.page.locator(".hw-run select").first.select_option("gradient")
    bench.page.locator(".hw-run-score summary").click()
    bench.page.locator(".hw-run-task", has_text="Math").locator("input").check()
    prompts = bench.page.locator(".hw-run-row > .hw-choice input[type=number]")
    prompts.fill("64")
    prompts.press("Enter")
    bench.kernel.until(
        "[lab.method, lab.asked, lab.prompts]",
        lambda now: now == ["gradient", ["Math", "Syntax"], 64],
    )
    about = bench.page.locator(".hw-run select").first.get_attribute("title") or ""
    assert about.startswith("How fast log p(answer) changes"), "what the method does"
    bench.page.locator(".hw-run-options summary").click()
    option = bench.page.locator(".hw-run-option", has_text="size without sign")
    assert "abs" in (option.locator(".hw-choice").get_attribute("title") or ""), "for Python"
    assert option.locator(".hw-option-note").inner_text().endswith("."), "the help of an option"
    bench.page.keyboard.press("Escape")
    bench.go.click()
    under_way = "lab.state == 'running' and lab.scores is not None"  # not the run before
    bench.kernel.until(under_way, bool, 300)
    bench.go.click()
    bench.kernel.until("lab.state", lambda state: state == "stopped", 180)
    kept = bench.kernel.value(
        "[lab.scores.partial, sum(len(lab.scores.runs(t)) for t in lab.scores.tasks)]"
    )
    assert kept[0] and 0 < kept[1] < 128
    wait_until(lambda: f"stopped, {kept[1]} prompts kept" in bench.status(), "what is kept")
    assert bench.view.titles() == bench.kernel.value("list(lab.scores.tasks)")
    wait_until(lambda: bench.hatched(0) == 0, "no hatching")
    assert len({tuple(cell[:3]) for cell in bench.view.cells()}) > 5, "real numbers in the map"


def test_a_prompt_is_read_as_it_is_typed_and_another_target_needs_no_forward(bench: Bench) -> None:
    box = bench.page.locator(".hw-prompt textarea")
    box.click()
    bench.page.keyboard.type("The capital of France is")
    rows = bench.page.locator(".hw-prompt .hw-prediction")
    wait_until(
        lambda: rows.count() >= 10 and "Paris" in rows.first.inner_text(), "the next token", 180
    )
    assert bench.page.locator(".hw-prompt .hw-token").all_inner_texts() == [
        "The",
        "␣capital",
        "␣of",
        "␣France",
        "␣is",
    ]
    bench.page.get_by_role("tab", name="Prompt").click()
    title = bench.page.locator(".hw-prompt-map .hw-map-name")
    wait_until(lambda: title.inner_text() == "adds to ␣Paris", "its map")
    bench.kernel.run(
        "count = []; handle = model.blocks[0].register_forward_pre_hook(lambda *_: count.append(1))"
    )
    second = rows.nth(1).locator(".hw-prediction-text").inner_text()
    rows.nth(1).click()
    wait_until(lambda: title.inner_text() == f"adds to {second}", "the other map")
    bench.kernel.until("lab.target == lab._reading['predictions'][1][0]", bool)
    assert bench.kernel.run("handle.remove()", it="len(count)")["it"] == 0


def test_the_top_heads_of_a_task_matter_more_to_it_than_the_control(bench: Bench) -> None:
    bench.kernel.run("lab.run(method='gradient', prompts=8)")
    bench.kernel.until("lab.state", lambda state: state == "done", 300)
    bench.kernel.run("lab.selected = lab.scores.top('Math', 8)")
    wait_until(lambda: bench.view.text("selected").startswith("8 selected"), "the selection")
    head = bench.page.locator(".hw-inspector")
    head.get_by_role("tab", name="Scores").click()
    wait_until(lambda: "gradient · Math" in head.inner_text(), "its rank", 180)
    head.get_by_role("tab", name="Words").click()
    wait_until(lambda: "Amplifies anywhere" in head.inner_text(), "its salient tokens", 180)
    head.get_by_role("tab", name="Prompt").click()
    wait_until(lambda: "Promotes here" in head.inner_text(), "what it does here", 180)
    weights = head.locator(".hw-tab-page .hw-tokens .hw-token").evaluate_all(
        "(all) => all.map((one) => Number(one.style.getPropertyValue('--hw-weight')))"
    )
    assert sum(weights) == pytest.approx(1, abs=0.01)
    bench.page.get_by_role("button", name="Turn 8 off").click()
    bench.kernel.until("int((lab.gates == 0).sum())", lambda count: count == 8)
    wait_until(
        lambda: "→" in bench.page.locator(".hw-prediction-value").first.inner_text(),
        "predictions before and after",
        180,
    )
    bench.page.get_by_role("button", name="Measure on tasks").click()
    bench.kernel.until("lab.effect.get('done')", lambda done: done is True, 180)
    effect = bench.kernel.value("lab.effect")
    math = effect["tasks"][0]
    fell = [
        math["before"]["log_probability"] - one["log_probability"]
        for one in (math["after"], *math["controls"])
    ]
    assert math["name"] == "Math" and len(fell) == 4 and fell[0] > max(fell[1:]), (
        "more than any control of the same layers"
    )
    wait_until(
        lambda: (
            "Random heads are of the same layers, mean of 3 draws"
            in bench.page.locator(".hw-effect").inner_text()
        ),
        "the table",
    )
    assert bench.page.locator(".hw-effect .hw-greedy").count() == 2
    bench.page.get_by_role("button", name="Restore all").click()
    bench.kernel.until("bool((lab.gates == 1).all())", bool)


def test_a_factor_is_read_as_it_is_though_the_slider_ends_before_it(bench: Bench) -> None:
    bench.kernel.run(
        "gates = lab.gates.copy(); gates[1, 2], gates[1, 3], gates[1, 4] = -2.5, 5, 0.123;"
        "lab.gates = gates"
    )
    bench.page.get_by_role("tab", name="Effect").click()
    text = bench.page.locator(".hw-factor")
    slider = bench.page.get_by_label("What the selected heads' outputs are multiplied by")
    for head, factor in ((2, "×-2.5"), (3, "×5"), (4, "×0.123"), (5, "×1")):
        bench.kernel.run(f"lab.selected = [[1, {head}]]")
        expect(text).to_have_text(factor)
        assert slider.get_attribute("aria-valuetext") == factor
    slider.fill("0.15")
    chip = bench.page.locator(".hw-chip-changed").last
    expect(chip).to_have_text("L1 H5 ×0.15 ✕")
    bench.page.get_by_role("button", name="Restore all").click()
    bench.kernel.until("bool((lab.gates == 1).all())", bool)


def test_the_charts_beside_it_are_linked(bench: Bench) -> None:
    bench.view.drag(
        bench.page.locator(".hw-chart").nth(0).locator(".overlay"), (0.3, 0.5), (0.6, 0.5)
    )
    threshold = bench.kernel.until("lab.threshold", lambda value: value is not None)
    wait_until(
        lambda: bench.view.threshold() != "" and float(bench.view.threshold()) == threshold,
        "the heatmaps' threshold",
    )
    area = bench.page.locator(".hw-chart .lassoselector rect")
    bench.view.drag(area, (0.75, 0.01), (0.99, 0.01), (0.99, 0.99), (0.75, 0.99), (0.75, 0.02))
    setup = """
import numpy as np
scale = board.charts[2].figure.axes[0].scale
edge = scale.min + 0.75 * (scale.max - scale.min)
wanted = np.argwhere(lab.scores.reduce("mean")[0] > edge).tolist()
"""
    expected = bench.kernel.run(setup, it="wanted")["it"]
    chosen = bench.kernel.until("lab.selected", lambda heads: heads == expected)
    wait_until(
        lambda: bench.view.text("selected").startswith(f"{len(chosen)} selected"),
        "the heatmaps' selection",
    )


def test_a_past_run_is_compared_with_the_one_shown_by_python_that_runs(bench: Bench) -> None:
    bench.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for method in ("attribution", "gradient"):
        bench.kernel.run(f"lab.run(method={method!r}, tasks=['Syntax'], prompts=1).wait(120)")
    wait_until(lambda: "gradient: done" in bench.status(), "the last run")
    bench.page.locator(".hw-run-past summary").click()
    rows = bench.page.locator(".hw-past-run")
    assert rows.count() == bench.kernel.value("len(lab.history)")
    compare = bench.page.locator(".hw-run-past").get_by_role("button", name="Compare")
    assert rows.first.get_by_role("button").count() == 1, "not with itself"
    compare.first.click()
    note = bench.page.locator(".hw-run-past .hw-option-note")
    wait_until(lambda: (note.text_content() or "").startswith("Copied."), "the sentence")
    text: str = bench.page.evaluate("() => navigator.clipboard.readText()")
    assert "hw.compare(lab.history[0], lab.history[1]" in text
    bench.page.keyboard.press("Escape")
    imports, call = text.strip().split("\n\n")
    bench.kernel.run(imports)
    tasks = bench.kernel.value(f"{call}.tasks")
    assert len(tasks) == 3 and all(task.startswith("Syntax: ") for task in tasks)


def test_twenty_fast_starts_and_stops_leave_no_hook(bench: Bench) -> None:
    for _ in range(40):
        bench.go.click(force=True)
    bench.kernel.run("lab.stop()")
    bench.kernel.until("lab.state", lambda state: state in ("stopped", "done", "failed"), 180)
    assert bench.kernel.value("lab.state") != "failed"
    bench.kernel.run("lab.close()")
    bench.kernel.until(THREADS, lambda stacks: stacks == [], 90)
    assert bench.kernel.value(HOOKS) == 0
