"""Which leading tokens run once for several prompts."""

from __future__ import annotations

import pytest

from headwidget.scoring import prefix
from headwidget.scoring.encode import Encoded
from tests.support import tiny


def prompt(*ids: int) -> Encoded:
    return Encoded(str(ids), ids, (len(ids) - 1,), (0,))


LONG = [prompt(1, 2, 3, 4, 5, 6), prompt(1, 2, 3, 4, 5, 7, 8)]


def test_the_position_that_predicts_the_answer_is_never_shared() -> None:
    assert prefix.shared_prefix(LONG) == 5
    assert prefix.shared_prefix([prompt(1, 2, 3), prompt(1, 2, 3, 4)]) == 2
    assert prefix.shared_prefix([prompt(1, 2, 3), prompt(9, 2, 3)]) == 0


def test_an_example_belongs_to_a_batch_that_keeps_half_of_its_prefix() -> None:
    assert prefix.belong_together(LONG, prompt(1, 2, 3, 9, 9))
    assert not prefix.belong_together(LONG, prompt(1, 2, 9, 9))
    assert prefix.belong_together(LONG[:1], prompt(9, 9))


def test_a_prefix_is_used_where_it_is_long_enough_and_shared() -> None:
    model = tiny.model("llama")
    assert prefix.usable_prefix(model, LONG) == 5
    assert prefix.usable_prefix(model, LONG[:1]) == 0
    shorter = [prompt(*e.ids[5 - prefix.SHORTEST_PREFIX + 1 :]) for e in LONG]
    assert prefix.shared_prefix(shorter) == prefix.SHORTEST_PREFIX - 1
    assert prefix.usable_prefix(model, shorter) == 0


def test_no_prefix_is_used_where_the_model_cannot_share_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert prefix.usable_prefix(tiny.model("bert"), LONG) == 0
    model = tiny.model("llama")
    monkeypatch.setattr(type(model), "switches_rope", lambda self, length: length > 6)
    assert prefix.usable_prefix(model, LONG) == 0
    assert prefix.usable_prefix(model, [LONG[0], prompt(1, 2, 3, 4, 5, 9)]) == 5
