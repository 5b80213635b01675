"""Tests of one file share what they set up, so they run in one process and in their order, however many cores there are."""

from __future__ import annotations

import pytest

seen: list[int] = []


@pytest.mark.parametrize("number", range(6))
def test_a_files_tests_run_in_one_process(number: int) -> None:
    seen.append(number)
    assert len(seen) == 1 or seen == list(range(number + 1))
