"""No module of the package reaches for another module's private names.

import-linter holds the direction of imports; ruff's rule about private names (PLC2701)
leaves out imports within one package, so this reads the imports itself.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "headwidget"


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def borrowed(source: str) -> list[str]:
    """The private names of other modules that a module imports or reads."""
    tree = ast.parse(source)
    names, modules = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or ".").startswith("headwidget"):
            for alias in node.names:
                if private(alias.name):
                    names.append(f"{node.module}.{alias.name}")
                elif not alias.name[0].isupper():
                    modules.add(alias.asname or alias.name)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if private(node.attr) and node.value.id in modules:
            names.append(f"{node.value.id}.{node.attr}")
    return sorted(names)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_module_uses_no_private_name_of_another(path: Path) -> None:
    assert borrowed(path.read_text(encoding="utf-8")) == []


def test_private_names_are_found_however_they_are_reached() -> None:
    source = """
from headwidget.display import page
from headwidget.display.page import _closed, render
page._closed(render, page.__name__, own._closed)
"""
    assert borrowed(source) == ["headwidget.display.page._closed", "page._closed"]
