"""The exported page, as text; tests/browser opens it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import headwidget as hw
from headwidget.display import assets, page
from headwidget.scores import provenance

HOSTILE = "</script><script>alert(1)</script> & <!-- <b>"


@pytest.fixture
def explorer() -> hw.Explorer:
    scores = hw.HeadScores.from_arrays(
        {HOSTILE: np.zeros((7, 2, 3)), "b": np.ones((1, 2, 3))},
        method="mine",
        meta={"model": "tiny", "seed": 3},
    )
    return hw.explore(scores, threshold=0.5, selected=[[1, 2]])


class Elements(HTMLParser):
    """The start tags of a page, as a browser's parser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_page_holds_the_scores_and_the_state(explorer: hw.Explorer, tmp_path: Path) -> None:
    path = explorer.to_html(tmp_path / "p.html")
    assert path == tmp_path / "p.html"
    text = path.read_text(encoding="utf-8")
    found = re.search(
        r'<script type="application/json" id="headwidget-state">(.*?)</script>', text, re.DOTALL
    )
    assert found
    state = json.loads(found[1])
    assert zlib.decompress(base64.b64decode(state["buffer"])) == explorer._buffer
    assert (state["threshold"], state["selected"], state["tasks"]) == (
        0.5,
        [[1, 2]],
        [HOSTILE, "b"],
    )
    assert state["_header"] == explorer._header


def test_a_page_has_the_state_its_explorer_gives() -> None:
    class Richer(hw.Explorer):
        def page_state(self) -> dict[str, object]:
            return {"threshold": self.threshold, "agreement": 0.25}

    text = page.render(
        Richer(hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine"), threshold=0.5)
    )
    state = json.loads(text.split('id="headwidget-state">')[1].split("</script>")[0])
    assert state.keys() == {"_header", "buffer", "threshold", "agreement"}
    assert (state["threshold"], state["agreement"]) == (0.5, 0.25)


def test_a_page_says_where_its_scores_come_from(explorer: hw.Explorer) -> None:
    text = provenance.line(explorer.scores)
    for part in (
        "model tiny",
        "method mine",
        f"{HOSTILE}: 7 runs",
        "b: 1 run ",
        "seed 3",
        f"headwidget {hw.__version__}",
    ):
        assert part in text


def test_a_page_says_so_when_its_scores_are_partial() -> None:
    scores = hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta={"partial": True})
    assert " · stopped before all was scored · " in page.render(hw.explore(scores))


def test_eight_tasks_of_a_model_with_1024_heads_and_64_runs_stay_below_a_megabyte() -> None:
    rng = np.random.default_rng(0)  # noise: what packs worst
    scores = hw.HeadScores.from_arrays(
        {f"task {i}": rng.normal(size=(64, 32, 32)) for i in range(8)},
        method="mine",
        meta={"model": "tiny"},
    )
    explorer = hw.explore(scores)
    assert len(page.render(explorer).encode()) < 1_000_000
    assert (
        len(page._packed(explorer._buffer)) < 800_000
    )  # the scores alone, so that the front end has room to grow


def test_no_name_can_end_a_script_and_nothing_is_fetched(explorer: hw.Explorer) -> None:
    text = page.render(explorer, title=HOSTILE)
    elements = Elements(text).found
    assert [tag for tag, _ in elements].count("script") == 2
    assert not [attrs for _, attrs in elements if {"src", "href"} & attrs.keys()]
    policy = next(
        attrs["content"]
        for tag, attrs in elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    script = text.split('<script type="module">')[1].split("</script>")[0]
    style = text.split("<style>")[1].split("</style>")[0]
    assert policy is not None and policy.split("; ") == [
        "default-src 'none'",
        f"script-src '{sha256(script)}'",
        f"style-src '{sha256(style)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]


def sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_code_that_could_end_its_script_is_defused(
    explorer: hw.Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("widget.js", "widget.css"):
        (tmp_path / name).write_text("/* </SCRIPT></style> */")
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    text = page.render(explorer)
    assert len(re.findall("</script", text, re.IGNORECASE)) == 2
    assert len(re.findall("</style", text, re.IGNORECASE)) == 1


def test_a_page_is_written_whole_or_not_at_all(
    explorer: hw.Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "p.html"
    target.write_text("before")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        explorer.to_html(target)
    assert target.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"]
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        explorer.to_html(tmp_path / "no" / "p.html")


def test_the_text_of_a_page_is_the_golden_one_that_the_browser_makes() -> None:
    golden = Path(__file__).parents[1] / "golden" / "page.json"
    for case in json.loads(golden.read_text(encoding="utf-8")):
        assert page.text(**case["texts"]) == case["page"]


def test_the_code_holds_no_tag_that_would_change_how_a_script_ends() -> None:
    assert not re.search(r"<!--|<script", assets.asset("widget.js"), re.IGNORECASE)
