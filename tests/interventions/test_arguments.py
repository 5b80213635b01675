"""What interventions cannot be called with: a sentence before any forward."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import headwidget as hw
from tests.support import tiny
from tests.support.knockouts import TASKS, random_scores


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 13}, "k = 13 is more heads than .* has: 3 layers x 4 heads = 12"),
        ({"k": -1}, "k is a number of heads, 1 or more, or several; got -1"),
        ({"k": 0}, "got 0"),
        ({"k": ()}, "k is one or more numbers of heads"),
        ({"k": (1, 2.5)}, "got 2.5"),
        ({"k": "4"}, "got '4'"),
        ({"k": True}, "got True"),
        ({"draws": 0}, "draws is a whole number, 1 or more; got 0"),
        ({"prompts": 0}, "prompts is a whole number, 1 or more; got 0"),
        ({"batch_size": 0}, "batch_size is a number of prompts"),
        ({"seed": "x"}, "seed is a whole number"),
        ({"factor": float("nan")}, "factor is what the heads' outputs are multiplied by"),
        ({"factor": "off"}, "a finite number"),
        ({"by": "rank"}, "by must be 'mean' or 'size'; got 'rank'"),
        ({"others": 3}, "others must be 'all' or 'top' or 'none'; got 3"),
        ({"scores": []}, "no scores: give what hw.score gives"),
        (
            {"scores": "scores.safetensors"},
            "scores must be what hw.score or hw.open gives.*; got a str",
        ),
        ({"scores": 3}, "got a int"),
        (
            {"scores": lambda m: [random_scores(m), random_scores(m)]},
            "two scores are named 'mine'; give each a name of its own",
        ),
        ({"scores": lambda m: {"": random_scores(m)}}, "each scores' name must be text"),
        (
            {"scores": lambda m: random_scores(m, "else")},
            "none of the tasks 'letters', 'few-shot' is in the scores, which have 'else'",
        ),
        (
            {"scores": lambda m: random_scores(m, weights="w3-0123")},
            "the scores 'mine' are of other weights .* Score this very model",
        ),
        (
            {"scores": lambda m: random_scores(tiny.model("jamba"))},
            "the scores 'mine' are of 2 layers x 4 heads, .* has 3 x 4",
        ),
        ({"tasks": []}, "no tasks"),
        ({"tasks": "nope"}, "there is no suite 'nope'"),
        ({"tasks": 7}, "tasks must be hw.Task objects"),
    ],
)
def test_bad_input_is_a_sentence_before_any_forward(
    arguments: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model("llama")
    monkeypatch.setattr(type(model.module), "forward", lambda *a, **k: pytest.fail("a forward ran"))
    given = {"scores": random_scores(model), "tasks": TASKS, "k": 1, **arguments}
    if callable(given["scores"]):
        given["scores"] = given["scores"](model)
    with pytest.raises((ValueError, TypeError), match=sentence):
        hw.knockout(model, **given)


def test_a_bare_model_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"hw.knockout takes what hw.load gives, e.g. hw.load\(model, tokenizer\)"
    ):
        hw.knockout(tiny.build("llama"), random_scores(tiny.model("llama")), TASKS)  # type: ignore[arg-type]


def test_scores_of_unknown_weights_are_warned_of() -> None:
    model = tiny.model("llama")
    with pytest.warns(UserWarning, match="do not say which weights they are of") as caught:
        hw.knockout(model, random_scores(model, weights=None), TASKS, k=1, draws=1, progress=False)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.knockout(model, random_scores(model), TASKS, k=1, draws=1, progress=False)
