"""Batches in portions: the same prompts, a few at a time, by how long the last ones took."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headwidget as hw
from headwidget.scoring import portions, score, slopes
from headwidget.scoring.portions import Portions
from tests.support import tiny

PLANNED = [list(range(32)), [40, 33, 34], list(range(50, 82))]


def sizes(prompt_seconds: float) -> list[tuple[float, int]]:
    """(when it began, how many prompts) of each portion of a model that takes so long a prompt."""
    now = 0.0
    taken = []
    for portion in Portions(clock=lambda: now)(PLANNED):
        taken.append((now, len(portion)))
        now += prompt_seconds * len(portion)
    return taken


def test_every_prompt_comes_once_in_order_and_never_with_those_of_another_batch() -> None:
    for seconds in (0.0, 0.01, 0.3, 5.0):
        now = itertools.count(0, seconds)
        split = list(Portions(clock=lambda: next(now))(PLANNED))
        assert list(itertools.chain(*split)) == list(itertools.chain(*PLANNED))
        assert all(any(set(part) <= set(batch) for batch in PLANNED) for part in split)


def test_a_slow_model_lands_scores_within_a_second_at_first_and_larger_portions_later() -> None:
    taken = sizes(0.3)
    assert taken[0] == (0.0, 1)
    young = {size for at, size in taken if 0 < at < portions.YOUNG - 1}
    old = [size for at, size in taken if at > portions.YOUNG]
    assert young <= {1, 2} and max(old) == round(portions.SECONDS / 0.3)
    assert {size for _, size in sizes(9.0)} == {1}


def test_a_fast_model_runs_one_prompt_and_then_whole_batches() -> None:
    assert [size for _, size in sizes(1e-4)] == [1, 31, 3, 32]


@pytest.mark.parametrize("method", ["gradient", "attribution", "patterns"])
def test_portions_change_no_score(method: str) -> None:
    model = tiny.model("llama")
    tasks = [tiny.task("one"), tiny.task("two")]
    expected = hw.score(model, tasks, method, progress=False)
    split = score.prepare(model, tasks, method, batch_size=None, seed=0)
    split.portions = lambda planned: ([run] for batch in planned for run in batch)
    chunks = [chunk for _, chunk in split.land(lambda what, steps: None)]
    assert max(len(chunk.runs) for chunk in chunks) < len(tasks[0])
    for task in expected.tasks:
        found = split.scores(partial=False).values(task)
        np.testing.assert_allclose(found, expected.values(task), atol=2e-6)


def test_slopes_are_checked_in_as_many_directions_however_the_batch_is_split(
    monkeypatch: Any,
) -> None:
    model, asked = tiny.model("llama"), []
    check = slopes.check

    def noted(model: Any, batch: Any, measured: Any, seed: int, directions: int) -> Any:
        asked.append((len(batch.runs), seed, directions))
        return check(model, batch, measured, seed, directions)

    monkeypatch.setattr(slopes, "check", noted)
    hw.score(model, [tiny.task("one")], "gradient", progress=False)
    (whole,) = asked
    assert whole[1:] == (0, slopes.DIRECTIONS)
    asked.clear()
    split = score.prepare(model, [tiny.task("one")], "gradient", batch_size=None, seed=0)
    split.portions = lambda planned: ([run] for batch in planned for run in batch)
    list(split.land(lambda what, steps: None))
    assert asked == [(1, 0, 2), (1, 2, 2)], "the first prompts, in directions of their own"
