"""The pictures of the docs: each is on a page, each that a page names exists, all are small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
MOST_BYTES = 110_000
"""The largest size of a picture."""
MOST_BYTES_OF_ALL = 3_000_000


def pictures(markdown: str) -> dict[str, str]:
    """What a page shows: each picture's path and its alt text, empty for a dark variant."""
    shown = {path: alt for alt, path in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", markdown)}
    for tag in re.findall(r"<img[^>]*>", markdown):
        alt = re.search(r'alt="([^"]*)"', tag)
        shown[re.findall(r'src="([^"]+)"', tag)[0]] = alt[1] if alt else ""
    return shown | dict.fromkeys(re.findall(r'srcset="([^"]+)"', markdown), "")


def shown_on(page: Path) -> dict[Path, str]:
    """The same, by the picture's file."""
    texts = pictures(page.read_text(encoding="utf-8"))
    return {(page.parent / path).resolve(): alt for path, alt in texts.items()}


def test_every_picture_of_the_docs_is_on_a_page() -> None:
    shown: set[Path] = set().union(*(shown_on(page) for page in PAGES))
    assert len(shown) > 10
    assert sorted(path.name for path in set(IMAGES.iterdir()) - shown) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_that_a_page_names_exists_and_says_what_is_seen(page: Path) -> None:
    shown = shown_on(page)
    assert [path.name for path in shown if not path.is_file()] == []
    dark = {path for path in shown if path.stem.endswith("-dark")}
    assert [path.name for path, alt in shown.items() if path not in dark and len(alt) < 20] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_picture_of_the_widget_is_there_light_and_dark(page: Path) -> None:
    names = {path.stem for path in shown_on(page)}
    light = {name.removesuffix("-light") for name in names if name.endswith("-light")}
    dark = {name.removesuffix("-dark") for name in names if name.endswith("-dark")}
    assert light == dark


def test_pictures_are_read_from_markdown_and_html() -> None:
    page = (
        '![a map](a.png)\n<source srcset="b-dark.png"><img width="9" src="b.png" alt="two\nmaps">'
    )
    assert pictures(page) == {"a.png": "a map", "b-dark.png": "", "b.png": "two\nmaps"}


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in IMAGES.iterdir()}
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
    assert sum(sizes.values()) < MOST_BYTES_OF_ALL
