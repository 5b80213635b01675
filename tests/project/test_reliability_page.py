"""docs/reliability.md promises only what a test holds."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_row_names_a_test_that_exists() -> None:
    page = (TESTS.parent / "docs" / "reliability.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|") and "::" in line]
    assert len(rows) > 20
    for row in rows:
        file, name = re.fullmatch(r"\| .* \| (\S+)::(\w+) \|", row).groups()
        assert f"def {name}(" in (TESTS / file).read_text(), row
    faults = [line for line in page.splitlines() if line.startswith("| ") and "fault" not in line]
    methods = [line for line in faults if "::" not in line]
    assert len(methods) == 5, "the table of methods, and no fault without a test"
