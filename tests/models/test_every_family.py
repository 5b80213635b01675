"""Every family that transformers can build small: exact, or refused in words; never wrong."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import transformers

from tests.support import every_family, family_table

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
ALL = [(family, kind) for kind, names in every_family.MAPPINGS.items() for family in sorted(names)]
REACHED = {"causal": 155, "masked": 38, "encoder-decoder": 30, "image-text": 75}
"""How many families are exact at least."""
_exact: dict[str, int] = dict.fromkeys(REACHED, 0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(level)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind"), ALL)
def test_a_family_is_exact_or_refused_as_the_docs_say(family: str, kind: str) -> None:
    row = family_table.examine(family, kind)
    every_family.build.cache_clear()
    assert row.outcome != "wrong", row.text
    if row.outcome == "refused":
        assert row.text[0].isalpha() and row.text.endswith(".") and len(row.text.split()) > 8
    _exact[kind] += row.outcome == "exact"
    if f"transformers {transformers.__version__}\n" in PAGE:
        listed = family_table.listed(PAGE, kind)
        assert (family in listed) == (row.outcome == "exact"), f"{row}; run make models"


@pytest.mark.slow
def test_most_families_are_exact() -> None:
    """Behind all of them: the tests of a file run in one process, in order."""
    assert all(_exact[kind] >= least for kind, least in REACHED.items()), _exact
