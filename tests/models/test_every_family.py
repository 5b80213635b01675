"""Every family that transformers can build small: exact, or refused in words; never wrong."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import transformers

from tests.support import classifier_families, every_family, family_table

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
MAPPINGS = {**every_family.MAPPINGS, **classifier_families.MAPPINGS}
ALL = [(family, kind) for kind, names in MAPPINGS.items() for family in sorted(names)]
REACHED = {
    "causal": 155,
    "masked": 38,
    "encoder-decoder": 30,
    "image-text": 75,
    "image-class": 10,
    "audio-class": 11,
}
"""How many families are exact at least."""
_exact: dict[str, int] = dict.fromkeys(REACHED, 0)
_unlisted: list[str] = []
"""Families that are exact here and not in the docs."""


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
    of_tokens = kind in every_family.MAPPINGS
    examine = family_table.examine if of_tokens else classifier_families.examine
    row = examine(family, kind)
    every_family.build.cache_clear()
    assert row.outcome != "wrong", row.text
    if row.outcome == "refused":
        assert row.text[0].isalpha() and row.text.endswith(".") and len(row.text.split()) > 8
    _exact[kind] += row.outcome == "exact"
    if f"transformers {transformers.__version__}\n" in PAGE:
        listed = family in family_table.listed(PAGE, kind)
        assert row.outcome == "exact" or not listed, f"{row}; run make models"
        if row.outcome == "exact" and not listed:
            _unlisted.append(family)


@pytest.mark.slow
def test_most_families_are_exact() -> None:
    """Behind all of them: the tests of a file run in one process, in order."""
    assert all(_exact[kind] >= least for kind, least in REACHED.items()), _exact
    # a router near a tie may choose another way on another processor
    assert len(_unlisted) <= 2, f"{_unlisted} are exact; run make models"
