"""Tasks: read from anywhere, refused with a sentence, tokenised as written; the suites."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest

import headwidget as hw
from headwidget.scoring.encode import encode
from headwidget.tasks import Example
from tests.support import tiny

ROWS = [
    {"prompt": "1 +", "answer": " 1", "foil": " 2"},
    {"prompt": "a, b", "answer": "\n", "foil": None},
]
EXPECTED = (Example("1 +", " 1", " 2"), Example("a, b", "\n", None))


def test_a_task_is_read_from_everything_users_have(tmp_path: Path) -> None:
    csv, jsonl, json = tmp_path / "t.csv", tmp_path / "t.jsonl", tmp_path / "t.json"
    pd.DataFrame(ROWS).to_csv(csv, index=False)
    pd.DataFrame(ROWS).to_json(jsonl, orient="records", lines=True)
    pd.DataFrame(ROWS).to_json(json, orient="records")
    for source in (csv, str(csv), jsonl, json):
        task = hw.Task.read(source, category="c")
        assert (task.name, task.examples, task.category) == ("t", EXPECTED, "c")
    for data in (ROWS, pd.DataFrame(ROWS), datasets.Dataset.from_list(ROWS)):
        assert hw.Task.read(data, "mine").examples == EXPECTED


def test_columns_may_have_other_names() -> None:
    assert hw.Task.read([{"q": "x", "a": "y"}], "t", prompt="q", answer="a").examples == (
        Example("x", "y"),
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hw.Task("t", []), "task 't' has no examples"),
        (lambda: hw.Task(" ", [("a", "b")]), "a task needs a name"),
        (lambda: hw.Task("t", [("a", "b"), ("", "b")]), "task 't', example 1: the prompt is empty"),
        (lambda: hw.Task("t", [("  ", "b")]), "example 0: the prompt is empty"),
        (lambda: hw.Task("t", [("a", "")]), "example 0: the answer is empty"),
        (lambda: hw.Task("t", [("a", "b", "")]), "example 0: the foil is empty"),
        (lambda: hw.Task("t", [("a", "b", "b")]), "the foil 'b' is the answer itself"),
        (lambda: hw.Task("t", [("a", 3)]), "the answer must be text; got 3"),
        (lambda: hw.Task("t", "The capital"), "got the text 'The capital'"),
        (lambda: hw.Task("t", [("a", "b")]).sample("8"), "1 example or more; got '8'"),
        (
            lambda: hw.Task("t", ["ab"]),
            r"an example is \(prompt, answer\) or \(prompt, answer, foil\); got 'ab'",
        ),
        (lambda: hw.Task("t", ROWS), r"for dicts, use hw.Task.read\(rows, 't'\)"),
        (lambda: hw.Task.read(ROWS), "needs a name"),
        (lambda: hw.Task.read([{"q": "x"}], "t"), "row 0: no column 'prompt'; it has 'q'"),
        (lambda: hw.Task.read([("a", "b")], "t"), "row 0 must be a dict"),
        (lambda: hw.Task.read("nowhere.csv"), "there is no file 'nowhere.csv'"),
        (
            lambda: hw.Task("t", [("a", "b")], held_out=[1]),
            "held_out takes indices of its examples, 0 to 0; got 1",
        ),
        (lambda: hw.Task("t", [("a", "b")], held_out=[-1]), "0 to 0; got -1"),
        (lambda: hw.Task("t", [("a", "b")], held_out=[True]), "got True"),
        (lambda: hw.Task("t", [("a", "b")], held_out=["0"]), "got '0'"),
        (
            lambda: hw.Task("t", [("a", "b")], held_out=0),
            "held_out is a list of example indices; got 0",
        ),
        (lambda: hw.Task("t", [("a", "b")], held_out=[0, 0]), "names example 0 twice"),
        (lambda: hw.Task("t", [("a", "b")]).split(), "has no held-out examples"),
        (lambda: hw.Task("t", [("a", "b")], held_out=[0]).split(), "all 1 examples are held out"),
        (
            lambda: hw.Task.read([{"prompt": "x", "answer": "y", "split": "dev"}], "t"),
            "row 0: the column 'split' says 'dev'",
        ),
        (
            lambda: hw.tasks.suite("nope"),
            "there is no suite 'nope'; the built-in ones are 'math-syntax'",
        ),
    ],
)
def test_a_bad_task_is_a_sentence(make, sentence: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        make()


def test_a_held_out_split_is_kept_by_all_that_makes_a_task_of_a_task(tmp_path: Path) -> None:
    task = hw.Task("t", [(f"p{n}", f" {n}") for n in range(12)], "c", held_out=np.array([9, 2, 5]))
    assert (
        task.held_out == (2, 5, 9)
        and repr(task) == "Task('t', 12 examples, 3 held out, category 'c')"
    )
    train, test = task.split()
    assert (
        [e.prompt for e in test] == ["p2", "p5", "p9"]
        and len(train) == 9
        and not {*train} & {*test}
    )
    assert (train.name, train.category, train.held_out, test.held_out) == ("t", "c", (), ())
    for count in range(1, 13):
        drawn = task.sample(count, seed=count)
        assert len(drawn) == count and drawn.sample(count) == drawn
        assert {drawn.examples[i] for i in drawn.held_out} == {*drawn} & {*test}
        if count > 1:
            assert abs(len(drawn.held_out) - count / 4) <= 0.5 and 0 < len(drawn.held_out) < count
    assert encode(task, tiny.model("llama")).held_out == (2, 5, 9)
    rows = [
        {"prompt": "a", "answer": "b", "split": part}
        for part in ("train", "test", None, "held_out")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    for source in (rows, pd.DataFrame(rows), tmp_path / "t.csv"):
        assert hw.Task.read(source, "t").held_out == (1, 3)
    assert hw.Task.read(rows, "t", split="other").held_out == ()


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"prompt": "a", "answer": "b"}\n{"prompt": \n')
    with pytest.raises(ValueError, match=r"t\.jsonl, line 2: not JSON"):
        hw.Task.read(tmp_path / "t.jsonl")
    (tmp_path / "t.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"read from \.csv, \.jsonl or \.json files"):
        hw.Task.read(tmp_path / "t.xlsx")


def test_the_answers_tokens_follow_the_prompts_as_written() -> None:
    model = tiny.model("llama")
    (example,) = encode(hw.Task("t", [("abc", " xy", " xz")]), model).examples
    ids = tiny.tokenizer()("abc xy")["input_ids"]
    assert example.ids == tuple(ids[:-1])  # the last answer token is never fed
    assert example.answer == tuple(ids[3:])
    assert example.at == (2, 3, 4)
    assert (example.parting, example.foil) == (2, tiny.tokenizer()("z")["input_ids"][0])


def test_a_tokenizer_that_puts_a_space_and_a_bos_before_a_text_puts_them_once() -> None:
    """As Llama 2's does: alone, " cd" would become two spaces and "cd"."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.normalizers import Prepend, Replace, Sequence
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(
        BPE({token: i for i, token in enumerate(["<s>", "<pad>", "▁", *"abcdef"])}, [])
    )
    inner.normalizer = Sequence([Prepend("▁"), Replace(" ", "▁")])
    inner.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", pad_token="<pad>")
    task = encode(hw.Task("t", [("ab", " cd", " ce")]), hw.load(tiny.build("llama"), tokenizer))
    (example,) = task.examples
    assert tokenizer.convert_ids_to_tokens(list(example.ids)) == ["<s>", "▁", "a", "b", "▁", "c"]
    assert tokenizer.convert_ids_to_tokens(list(example.answer)) == ["▁", "c", "d"]
    assert (example.at, example.parting, task.before, task.joint_differs) == (
        (3, 4, 5),
        2,
        ("<s>",),
        0,
    )


def test_masks_stand_for_the_answer_in_an_encoder() -> None:
    model, mask = tiny.model("bert"), tiny.tokenizer().mask_token_id
    appended, inside = encode(hw.Task("t", [("abc", "xy"), ("ab<mask>c", "xy")]), model).examples
    assert appended.ids[3:] == (mask, mask) and appended.at == (3, 4)
    assert inside.ids[2:4] == (mask, mask) and inside.at == (2, 3) and len(inside.ids) == 5
    with pytest.raises(ValueError, match="the prompt has 2 mask tokens"):
        encode(hw.Task("t", [("a<mask><mask>", "x")]), model)


def test_prompts_that_would_be_tokenised_differently_with_their_answer_are_counted() -> None:
    model = hw.load()
    scores = hw.score(
        model,
        hw.Task("t", [("The capit", "al"), ("The capital of France is", " Paris")]),
        progress=False,
    )
    assert scores.meta["tasks"]["t"]["tokenised_differently_with_answer"] == 1


@pytest.mark.parametrize(
    ("examples", "sentence"),
    [
        ([("abc", "ab", "abc")], "begin with the same tokens and never part"),
        ([("abc", "x"), ("a" * 3000, "x")], "example 1: 3000 tokens, but .* reads at most 2048"),
    ],
)
def test_what_the_model_cannot_read_is_said_before_any_forward(
    examples: list, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model("llama")
    monkeypatch.setattr(type(model.module), "forward", lambda *a, **k: pytest.fail("a forward ran"))
    with pytest.raises(ValueError, match=sentence):
        hw.score(model, hw.Task("t", examples))


def test_an_answer_that_tokenises_to_nothing_is_refused() -> None:
    from tokenizers.normalizers import Replace

    quiet = tiny.tokenizer().__class__(
        tokenizer_object=tiny.tokenizer()._tokenizer.__class__.from_str(
            tiny.tokenizer()._tokenizer.to_str()
        ),
        pad_token="<pad>",
    )
    quiet._tokenizer.normalizer = Replace("~", "")
    model = hw.load(tiny.build("llama"), quiet)
    with pytest.raises(ValueError, match="the answer '~' tokenises to nothing"):
        hw.score(model, hw.Task("t", [("abc", "~")]))
    with pytest.raises(ValueError, match="the prompt '~' tokenises to nothing"):
        hw.score(model, hw.Task("t", [("~", "a")]))


def test_math_syntax_is_balanced_and_repeats_with_its_seed() -> None:
    math, syntax = hw.tasks.suite("math-syntax")
    assert hw.tasks.suite("math-syntax") == [math, syntax] != hw.tasks.suite("math-syntax", seed=1)
    for task in (math, syntax):
        assert len({e.prompt for e in task.examples}) == len(task) >= 100
        assert all(e.foil and e.foil != e.answer for e in task.examples)
    for e in math.examples:
        a, b = e.prompt.rsplit(", ", 1)[1].removesuffix(" =").split(" + ")
        assert int(e.answer) == int(a) + int(b)
        assert f"{a} + {b} = " not in e.prompt  # never among its own worked sums
    assert Counter(e.answer for e in syntax.examples) == {" is": 60, " are": 60}
    nearest = [e.prompt.endswith("s") == (e.answer == " are") for e in syntax.examples]
    assert sum(nearest) == 60  # the nearest noun tells nothing
