"""The workshop's checks answer every answer, right, wrong or odd, with a sentence."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from tests.support import planted, tiny

check = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[2] / "notebooks" / "workshop_checks.py"))
)


class Odd:
    """Nothing that an answer should be: it cannot even be shown."""

    def __iter__(self) -> Any:
        raise RuntimeError("no.")

    def __repr__(self) -> str:
        raise RuntimeError("no.")


ODD: list[Any] = [
    "", "heads", b"x", 0, -3, True, 2.5, float("nan"), float("inf"), 10**400, 1j,
    [], [[]], [()], (), {}, {1: 2}, set(), [1, 2, 3], [[1, 2, 3]], [("a", "b")], [(1, None)],
    [None, None], ("a", None), (None, "a"), ("", ""), (" ", " "), ("x" * 3000, "y"),
    ("a\x00b", "\ud800"), [(99, 99)], [(-1, -1)], [(1.5, 2)], [(True, False)],
    np.zeros(0), np.zeros((2, 2)), np.zeros((3, 4, 5)), np.array("text"), np.array([np.nan]),
    np.float32("nan"), object(), Odd(), [Odd()], print, int, itertools.count(), hw,
]  # fmt: skip


@pytest.fixture(scope="module")
def lab() -> hw.Lab:
    """A lab of a model in which head (1, 2) alone does the task, scored."""
    model, task, _ = planted.planted()
    made = hw.live(model, [task], prompts=None)
    assert made.run(method="gradient").wait(60)
    return made


def made_up(method: str = "gradient", **tasks: Any) -> hw.HeadScores:
    return hw.HeadScores.from_arrays(tasks, method=method, signed=True)


def ladder(runs: int = 4) -> hw.HeadScores:
    """5 x 4 heads whose means on "sums" are 0.01, 0.02, …, 0.2, and reversed on "words".

    Head (4, 3), the strongest on "sums", helps in one run only.
    """
    means = np.arange(1, 21).reshape(5, 4) / 100
    values = np.repeat(means[None], runs, 0)
    values[:, 4, 3] = [0.2 * runs + 0.03, *[-0.01] * (runs - 1)]
    return made_up(sums=values, words=np.repeat(means[None, ::-1, ::-1], runs, 0))


def effect(after: float, *controls: float, heads: int = 8) -> dict[str, Any]:
    def row(log_p: float) -> dict[str, float]:
        return {"log_probability": log_p, "accuracy": float(np.exp(log_p))}

    rows = [
        {
            "name": name,
            "prompts": 12,
            "before": row(-0.2),
            "after": row(after),
            "controls": [row(one) for one in controls],
        }
        for name in ("sums", "words")
    ]
    return {"heads": heads, "tasks": rows, "done": True}


def test_every_check_says_not_answered_yet_and_is_neither_right_nor_wrong(lab: hw.Lab) -> None:
    for nothing in (None, ...):
        asked = [
            check.count(lab, nothing),
            check.next_token(lab, [], nothing),
            check.threshold(None, "sums", nothing),
            check.knockout(lab, "copy", nothing),
        ]
        asked += [check.shared(None, None, "sums", nothing), check.claim(nothing)]
        for said in asked:
            assert (
                said.right is None
                and not said
                and repr(said).startswith("· Not answered yet: the answer is ")
            )


@pytest.mark.parametrize("answer", ODD, ids=lambda one: type(one).__name__)
def test_an_odd_answer_gets_a_sentence(lab: hw.Lab, answer: Any) -> None:
    scores = ladder()
    for said in (
        check.count(lab, answer),
        check.next_token(lab._model, [], answer),
        check.threshold(scores, "sums", answer),
        check.knockout(lab, "copy", answer),
        check.shared(scores, scores, "sums", answer),
        check.claim(answer),
    ):
        assert said.right is False and said.text.endswith((".", "?")) and len(said.text) < 400, said


def test_count(lab: hw.Lab) -> None:
    assert (
        check.count(lab, 12)
        and repr(check.count(lab, np.int64(12)))
        == "✓ 3 layers x 4 heads = 12: one cell of the map each."
    )
    assert "7 is 3 + 4; every layer has 4 heads of its own, so multiply" in check.count(lab, 7).text
    assert (
        "3 is how many layers there are" in check.count(lab, 3).text
        and "4 is how many heads one layer has" in check.count(lab, 4).text
    )
    assert repr(check.count(lab, 13)).startswith("✗ 13 is not it: count the rows")
    assert "write the number without quotes" in check.count(lab, "12").text


def test_next_token() -> None:
    model = tiny.model("llama")
    ids = torch.tensor([model.tokenizer("abcab")["input_ids"]])
    with torch.no_grad():
        best = model.module(ids).logits[0, -1].softmax(-1).topk(2)
    first, second = (model.tokenizer.decode([i]) for i in best.indices.tolist())
    said = check.next_token(model, ["abc"], ("abcab", first))
    assert (
        said
        and f"says {first!r} with {best.values[0]:.0%}" in said.text
        and "adds most to its logit" in said.text
    )
    said = check.next_token(model, ["abc"], ["abcab", second])
    assert (
        said.right is False
        and f"{second!r} has {best.values[1]:.0%}, {first!r} has {best.values[0]:.0%}" in said.text
    )
    assert (
        "is the lesson's own example" in check.next_token(model, ["abcab "], ("abcab", first)).text
    )
    assert (
        "'zzz' is 3 tokens, 'z', 'z', 'z'; the list shows the first that follows"
        in check.next_token(model, [], ("abcab", "zzz")).text
    )
    assert "Shorten it" in check.next_token(model, [], ("x" * 2000, "y")).text
    assert "two texts, (prompt, token); got 'abcab'" in check.next_token(model, [], "abcab").text


def test_spaces_that_are_off_are_told() -> None:
    model = hw.load()
    said = check.next_token(model, [], ("The capital of Italy is", "Rome"))
    assert (
        "'Rome' is not what follows, ' Rome' is a candidate (38%): a word's space belongs to "
        "its token" in said.text
    )
    said = check.next_token(model, [], ("The capital of Italy is ", " Rome"))
    assert (
        said.text
        == "The prompt ends in a space, which ' Rome' brings along itself: try 'The capital of "
        "Italy is'."
    )
    assert (
        "' 4' is 2 tokens, ' ', '4'; the list shows the first that follows, here ' '"
        in check.next_token(model, [], ("1 + 1 = 2, 2 + 2 =", " 4")).text
    )
    assert check.next_token(model, [], ("1 + 1 = 2, 2 + 2 = ", "4"))


def test_threshold() -> None:
    scores = ladder()
    said = check.threshold(scores, "sums", 0.105)
    assert (
        said
        and said.text
        == "0.105 lets 10 of 20 heads pass on sums. 9 of them help in each of the 4 prompts, L4 "
        "H3 in 1 only: a mean hides that."
    )
    assert (
        "0.01 lets 20 of 20 heads pass on sums, more than 12: go higher"
        in check.threshold(scores, "sums", 0.01).text
    )
    assert (
        "0.15 lets 6 of 20 heads pass on sums, fewer than 8; the 8th strongest reaches 0.13: go "
        "lower" in check.threshold(scores, "sums", 0.15).text
    )
    assert (
        "lets 0 of 20 heads pass on sums, fewer than 8; the strongest reaches 0.2: go lower"
        in check.threshold(scores, "sums", 7).text
    )
    assert "a threshold for what helps is above 0" in check.threshold(scores, "sums", 0).text
    assert "Nothing is scored yet: press Run" in check.threshold(None, "sums", 0.1).text
    assert "verbs is not scored, only sums, words" in check.threshold(scores, "verbs", 0.1).text


def test_knockout_measures_against_random_heads_of_the_same_layers(lab: hw.Lab) -> None:
    said = check.knockout(lab, "copy", [(1, 2)])
    row = lab.effect["tasks"][0]
    lost = row["before"]["log_probability"] - row["after"]["log_probability"]
    assert (
        said
        and lost > 1
        and f"Off, this head costs {lost:.2f} of the answer's log-probability on copy; random heads"
        in said.text
    )
    assert lab.gates[1, 2] == 0 and lab.gates.sum() == 11
    assert check.knockout(lab, "copy", (1, 2)).text == said.text  # one head alone, without a list
    lab.selected = [(0, 1), (2, 3)]
    said = check.knockout(lab, "copy", lab.selected)
    assert (
        said.right is False
        and "That is no more than random heads do: pick heads with a high score on copy. Yours "
        "are in places"
        in said.text
    )
    assert (
        "9 heads; use 8 or fewer"
        in check.knockout(
            lab, "copy", itertools.islice(itertools.product(range(3), range(4)), 9)
        ).text
    )
    assert (
        "There is no head (4, 1): layers go from 0 to 2, heads from 0 to 3"
        in check.knockout(lab, "copy", [(4, 1)]).text
    )
    assert "The layer comes first" in check.knockout(lab, "copy", [(3, 2)]).text
    assert "twice" in check.knockout(lab, "copy", [(1, 1), [1, 1]]).text
    assert "The list is empty" in check.knockout(lab, "copy", []).text


def test_knockout_does_not_wait_for_a_run_that_is_under_way() -> None:
    model, task, _ = planted.planted()
    lab = hw.live(model, [task], prompts=None)
    lab.run(method="gradient").wait(60)
    lab.run(method="gating", updates=2000)
    said = check.knockout(lab, "copy", [(1, 2)])
    under_way = lab.state
    lab.stop()
    assert lab.wait(60) and said and under_way == "running"


def test_what_was_measured_in_a_sentence() -> None:
    said = check.compared(effect(-2.5, -0.3, -0.9, -0.1), "sums")
    assert said.startswith(
        "Off, these 8 heads cost 2.30 of the answer's log-probability on sums; random heads of "
        "the same layers cost -0.10 to 0.70 (below 0"
    )
    assert (
        "Right answers go from 82% to 8% of 12 prompts; words goes from -0.20 to -2.50. (A set "
        "beats 3 random ones by luck once in 4 times.)" in said
    )
    for wrong, sentence in [
        (
            effect(-0.9, -0.3, -0.9),
            "cost 0.70 of the answer's log-probability on sums; random heads of the same layers "
            "cost 0.10 to 0.70. That is no more than random",
        ),
        (
            effect(-0.1, -0.3),
            "cost -0.10 of the answer's log-probability on sums; random heads of the same "
            "layers cost 0.10 to 0.10 (below 0: better without)",
        ),
        (effect(-2.5), "There are no other heads in these layers to compare with"),
        ({"tasks": []}, "sums was not measured, only nothing"),
    ]:
        with pytest.raises(Exception) as off:
            check.compared(wrong, "sums")
        assert type(off.value) is check._Off and sentence in str(off.value)


def test_the_heads_of_another_task_are_recognised() -> None:
    scores = ladder()
    assert (
        check._places(scores, "sums", scores.top("words", 4))
        == " Yours are in places 17 to 20 of 20; 4 of them are among the top 8 of words."
    )
    assert check._places(scores, "sums", [(2, 0)]) == " Yours is in place 12 of 20."
    by_size = hw.HeadScores.from_arrays({"sums": [[0.1, -0.9]]}, method="probe", ranked_by="size")
    assert check._place(by_size, "sums", (0, 1)) == 1


def test_shared() -> None:
    one, other = (
        made_up(sums=np.arange(20.0).reshape(5, 4)),
        made_up("attribution", sums=np.roll(np.arange(20.0), 6).reshape(5, 4)),
    )
    both = sorted(set(one.top("sums", 8)) & set(other.top("sums", 8)))
    assert (
        len(both) == 2
        and check.shared(one, other, "sums", np.array(both)).text
        == "2 of 8 are shared: L4 H2, L4 H3."
    )
    assert (
        "1 found, 1 more to find: compare the top 8 by gradient and the top 8 by attribution"
        in check.shared(one, other, "sums", both[:1]).text
    )
    said = check.shared(one, other, "sums", [*both, (4, 1)])
    assert (
        said.text
        == "L4 H1 is not among the top 8 of both: its places on sums are 3 by gradient, 9 by "
        "attribution."
    )
    assert "0 found, 2 more" in check.shared(one, other, "sums", []).text
    apart = made_up("attribution", sums=-np.arange(20.0).reshape(5, 4))
    assert check.shared(one, apart, "sums", []).text == "0 of 8 are shared."


def test_claim() -> None:
    for right in ("b", " B. ", "(b)"):
        assert check.claim(right)
    for wrong in "acd":
        said = check.claim(wrong)
        assert said.right is False and f"({wrong}) says more than was measured. " in said.text
    assert "one of the letters a, b, c, d in quotes; got 2" in check.claim(2).text


def test_what_the_lab_says_goes_through() -> None:
    model, task, _ = planted.planted()
    lab = hw.live(model, [task], prompts=None)
    assert "Nothing is scored yet: press Run" in check.knockout(lab, "copy", [(1, 2)]).text
    lab.run(method="gradient").wait(60)
    lab.close()
    assert (
        "this lab is closed; make another with hw.live(model)"
        in check.knockout(lab, "copy", [(1, 2)]).text
    )
