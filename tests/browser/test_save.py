"""The Save menu: pictures, drawings and tables that arrive and hold what is shown."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import BrowserContext

import headwidget as hw
from headwidget.display import views
from headwidget.display.settings import settings
from headwidget.scores import threshold
from tests.support import made_up

from .explorer_page import ExplorerPage, open_page
from .hosts import wait_until

SVG = "{http://www.w3.org/2000/svg}"
NAMES = {0: 'less < more & "quoted"', 1: "=SUM(A1), Ünï 🎉"}


@pytest.fixture(scope="module")
def scores() -> hw.HeadScores:
    made = made_up.scores(8, 6, tasks=3, runs=9, signed=True)
    values = {NAMES.get(i, name): made.values(name) for i, name in enumerate(made.tasks)}
    return hw.HeadScores.from_arrays(
        values, method="made up", layers=range(2, 18, 2), meta={"model": "tiny/model: v1"}
    )


def saved(view: ExplorerPage, item: str) -> tuple[str, bytes]:
    """What an item of the menu downloads: its name and its content."""
    button = view.open_menu("Save").get_by_role("button", name=item, exact=True)
    with view.page.expect_download() as download:
        button.click()
    name = download.value.suggested_filename
    wait_until(
        lambda: (
            view.open_menu("Save").locator(".hw-option-note").text_content() == f"Saved {name}."
        ),
        "the sentence",
    )
    return name, Path(download.value.path()).read_bytes()


@pytest.mark.parametrize("which", ["tasks", "agreement", "categories"])
def test_a_picture_and_a_drawing_hold_what_is_shown(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path, which: str
) -> None:
    view, requests, wrong = open_page(
        context,
        hw.explore(scores, view=which, threshold=0.004, agreement=0.5, selected=[(2, 0)]).to_html(
            tmp_path / "p.html"
        ),
    )
    expected = views.picture(scores, settings(scores, view=which, threshold=0.004, agreement=0.5))
    name, drawing = saved(view, "SVG")
    assert name == f"tiny-model-v1-made-up-{which}.svg"
    tree = ElementTree.fromstring(drawing)
    texts = ["".join(element.itertext()) for element in tree.iter(f"{SVG}text")]
    shown = set(texts) | {text.split(" · ")[0] for text in texts}  # "Always · 3 on"
    for panel in expected.panels:
        name = panel.task or panel.title
        part = panel.title.removeprefix(name).removeprefix(" (").removesuffix(")")
        assert {name, part} - {""} <= shown, panel.title
    assert [
        f"{entry.name} ({entry.count})"
        for entry in expected.legend
        if f"{entry.name} ({entry.count})" not in texts
    ] == []
    assert "tiny/model: v1 · made up" in texts
    if which != "categories":
        dim = sum(
            path.get("d", "").count("z")
            for path in tree.iter(f"{SVG}path")
            if path.get("fill-opacity")
        )
        assert dim == sum(
            int((~panel.passes).sum()) for panel in expected.panels if panel.passes is not None
        ), "dimmed cells"
    name, picture = saved(view, "PNG")
    assert name.endswith(f"{which}.png")
    with Image.open(io.BytesIO(picture)) as image:
        image.load()
        assert image.size == (2 * int(tree.get("width", 0)), 2 * int(tree.get("height", 0)))
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 10, "not blank"
        pixels = np.asarray(image.convert("RGB"))
        assert (pixels[0, 0] == 255).all(), "on white"
    assert (
        wrong == []
        and [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    )


def test_the_csv_has_the_selected_heads_with_pythons_numbers(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    heads = [(4, 5), (16, 0), (2, 3)]
    view, _, wrong = open_page(
        context,
        hw.explore(scores, selected=heads, rule="top", threshold=7).to_html(tmp_path / "p.html"),
    )
    name, content = saved(view, "CSV of selected heads")
    assert name == "tiny-model-v1-made-up-tasks.csv"
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    for row in rows:
        row["task"] = row["task"].removeprefix(
            "'"
        )  # which tells a spreadsheet that "=SUM(A1)" is text
    assert [(row["task"], int(row["layer"]), int(row["head"])) for row in rows] == [
        (task, *head) for task in scores.tasks for head in heads
    ]
    given = settings(scores, rule="top", threshold=7)
    low, high = scores.interval()
    for row in rows:
        t, layer, head = (
            scores.tasks.index(row["task"]),
            scores.layers.index(int(row["layer"])),
            int(row["head"]),
        )
        values = scores.values(row["task"])[:, layer, head]
        expected = [
            scores.reduce("mean")[t, layer, head],
            low[t, layer, head],
            high[t, layer, head],
            values.min(),
            values.max(),
        ]
        assert [
            np.float32(row[column]) for column in ("mean", "low95", "high95", "min", "max")
        ] == [np.float32(v) for v in expected]
        means = scores.reduce("mean")[t]
        passes = threshold.passing(scores, row["task"], given)
        assert passes is not None
        assert (int(row["rank"]), int(row["runs"]), int(row["passes"])) == (
            1 + int((means > means[layer, head]).sum()),
            9,
            int(passes[layer, head]),
        )
    assert wrong == []


def test_without_a_selection_there_is_no_csv_and_without_a_task_no_picture(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    view, _, wrong = open_page(context, hw.explore(scores, tasks=[]).to_html(tmp_path / "p.html"))
    menu = view.open_menu("Save")
    assert menu.get_by_role("button", name="CSV of selected heads").is_disabled()
    for item in ("PNG", "SVG"):
        menu.get_by_role("button", name=item, exact=True).click()
        wait_until(
            lambda: (
                menu.locator(".hw-option-note").text_content()
                == "There is nothing to save: no task is shown."
            ),
            item,
        )
    assert wrong == []


def test_a_picture_can_be_copied(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    view, _, wrong = open_page(context, hw.explore(scores).to_html(tmp_path / "p.html"))
    menu = view.open_menu("Save")
    menu.get_by_role("button", name="Copy picture").click()
    wait_until(lambda: menu.locator(".hw-option-note").text_content() == "Copied.", "the sentence")
    size = view.page.evaluate("""async () => {
        const [item] = await navigator.clipboard.read();
        const picture = await createImageBitmap(await item.getType('image/png'));
        return [picture.width, picture.height];
    }""")
    assert min(size) > 200
    assert wrong == []


def test_a_page_that_may_not_use_the_clipboard_says_so(
    context: BrowserContext, scores: hw.HeadScores, tmp_path: Path
) -> None:
    context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    view, _, wrong = open_page(context, hw.explore(scores).to_html(tmp_path / "p.html"))
    menu = view.open_menu("Save")
    menu.get_by_role("button", name="Copy picture").click()
    wait_until(
        lambda: (
            menu.locator(".hw-option-note").text_content()
            == "This page may not use the clipboard; save the PNG instead."
        ),
        "the sentence",
    )
    assert wrong == []
