"""The README: its code runs, in order; what it names exists; it stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwidget as hw

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
LONGEST = 900
"""The most words that the README may have."""


def blocks(markdown: str, language: str) -> list[str]:
    """The fenced code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", markdown, re.DOTALL | re.MULTILINE)


def anchors(markdown: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(markdown: str) -> list[str]:
    """What the page links to in the repository, pictures included."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    return [target for target in targets if "://" not in target]


def broken(page: Path, markdown: str) -> list[str]:
    """The links of a page that lead to no file, or to no heading of it."""
    missing = []
    for link in links(markdown):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        here = target.exists() and (
            not anchor or anchor in anchors(target.read_text(encoding="utf-8"))
        )
        if not here:
            missing.append(link)
    return missing


@pytest.mark.slow
def test_every_python_block_of_the_readme_runs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    sources = blocks(README, "python")
    assert len(sources) >= 5
    try:
        for number, source in enumerate(sources, 1):
            exec(compile(source, f"README.md, python block {number}", "exec"), names)
    finally:
        if isinstance(lab := names.get("lab"), hw.Lab):
            lab.close()
    scores = names["scores"]
    assert isinstance(scores, hw.HeadScores) and scores.tasks == ("Math", "Syntax")
    made = {path.name for path in tmp_path.iterdir()}
    assert {"smol.safetensors", "heads.html", "heads.pdf"} <= made


def test_every_python_block_about_the_explorer_runs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    sources = blocks((ROOT / "docs" / "explorer.md").read_text(encoding="utf-8"), "python")
    for number, source in enumerate(sources, 1):
        exec(compile(source, f"docs/explorer.md, python block {number}", "exec"), names)
    assert "board" in names and (tmp_path / "heads.svg").exists()


def make_targets(markdown: str) -> set[str]:
    """The targets that a page calls, in shell blocks and in code spans."""
    code = [*blocks(markdown, "sh"), *re.findall(r"`([^`\n]+)`", markdown)]
    return set(re.findall(r"\bmake ([a-z][\w-]*)", "\n".join(code)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_make_targets_that_a_page_names_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    assert make_targets(page.read_text(encoding="utf-8")) <= targets


def test_the_readme_names_the_two_commands() -> None:
    assert make_targets(README) >= {"demo", "test"}
    assert make_targets("```sh\nmake nothing\n```") == {"nothing"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    markdown = page.read_text(encoding="utf-8")
    assert broken(page, markdown) == []
    assert broken(page, f"{markdown}\n[gone](no-such-file.md) [x](#no-such-heading)") == [
        "no-such-file.md",
        "#no-such-heading",
    ]


def test_the_names_that_the_readme_calls_exist() -> None:
    called = set(re.findall(r"`hw\.(\w+)", README))
    assert called
    assert {name for name in called if not hasattr(hw, name)} == set()


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= LONGEST
