"""CogQA files: read as they are published, in order, with nothing dropped in silence."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import headwidget as hw
from headwidget.tasks import CogQAReport, Example
from headwidget.tasks.cogqa import SKILLS


def step(skill: str, n: int = 0, answer: Any = "yes") -> dict[str, Any]:
    return {"subquestion": f"Sub {skill} {n}?", "answer": answer, "cognitive_skill": skill}


def write(path: Path, items: Any) -> Path:
    path.write_text(json.dumps(items), encoding="utf-8")
    return path


def test_a_step_is_asked_after_its_question_and_the_steps_before_it(tmp_path: Path) -> None:
    steps = [
        step("Retrieval", answer="Paris"),
        step("Math Calculation", answer=4),
        step("Retrieval", 1, answer=" spaced "),
    ]
    path = write(tmp_path / "c.json", [{"question": "Whole?", "answer": "x", "generated": steps}])
    retrieval, math = hw.tasks.read_cogqa(path, least=1)
    assert (retrieval.name, math.name) == ("Retrieval", "Math Calculation")
    assert retrieval.examples[0] == Example("Question: Whole?\nQ: Sub Retrieval 0?\nA:", " Paris")
    assert math.examples == (
        Example(
            "Question: Whole?\nQ: Sub Retrieval 0?\nA: Paris\nQ: Sub Math Calculation 0?\nA:", " 4"
        ),
    )
    assert retrieval.examples[1] == Example(
        "Question: Whole?\nQ: Sub Retrieval 0?\nA: Paris\nQ: Sub Math Calculation 0?\nA: 4\n"
        "Q: Sub Retrieval 1?\nA:",
        " spaced",
    )


def test_tasks_come_in_the_order_of_the_figures_whatever_their_spelling(tmp_path: Path) -> None:
    spelt = [
        "math  calculation",
        "INFERENCE",
        "syntactic-understanding",
        "Semantic_Understanding",
        "decision making",
        "Logical Reasoning",
        "retrieval",
        "Knowledge recall",
    ]
    path = write(
        tmp_path / "c.json",
        [{"question": "q", "answer": "a", "generated": [step(s) for s in spelt]}],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # case, spaces and hyphens are nothing to report
        tasks = hw.tasks.read_cogqa(path, least=1)
    assert tuple(t.name for t in tasks) == SKILLS


def test_rare_unknown_and_misspelt_skills_are_reported_with_their_examples(tmp_path: Path) -> None:
    steps = [
        *(step("Retrieval", n) for n in range(11)),
        step("Retreival"),
        step("Logical Resoning"),
        *(step("Cooking", n) for n in range(2)),
    ]
    path, report = (
        write(tmp_path / "c.json", [{"question": "q", "answer": "a", "generated": steps}]),
        CogQAReport(),
    )
    with pytest.warns(
        UserWarning,
        match=r"c\.json: too few examples for a task: 'Logical Reasoning' \(1\)\. "
        r"skills that are none of the eight: 'Cooking' \(2\)\. misspelt",
    ) as caught:
        (task,) = hw.tasks.read_cogqa(path, report=report)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert (task.name, len(task)) == ("Retrieval", 12)
    assert report.respelt == {"Retreival": "Retrieval", "Logical Resoning": "Logical Reasoning"}
    assert {k: len(v) for k, v in report.unknown.items()} == {"Cooking": 2} and {
        k: len(v) for k, v in report.rare.items()
    } == {"Logical Reasoning": 1}
    kept = [*task.examples, *report.unknown["Cooking"], *report.rare["Logical Reasoning"]]
    assert len(kept) == report.steps == len(steps)  # nothing is lost
    assert all(len({e.prompt for e in kept}) == len(steps) for _ in kept)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (3, "item 1 is a int, not an object."),
        ({"answer": "a", "generated": []}, "item 1 has no 'question' text."),
        ({"question": "q", "answer": "a"}, "item 1 has no list 'generated' of sub-questions."),
        ({"question": "q", "generated": ["x"]}, "item 1, step 0 is a str, not an object."),
        (
            {
                "question": "q",
                "generated": [
                    step("Inference"),
                    {"subquestion": "s", "answer": ""},
                    step("Inference"),
                ],
            },
            "item 1, step 1 has no 'answer' text (nor the 1 after it).",
        ),
        (
            {"question": "q", "generated": [{"subquestion": "s", "answer": "a"}]},
            "item 1, step 0 has no 'cognitive_skill' text.",
        ),
    ],
)
def test_what_is_malformed_is_left_out_and_says_where(
    item: Any, sentence: str, tmp_path: Path
) -> None:
    good = {"question": "q", "answer": "a", "generated": [step("Retrieval")]}
    path, report = write(tmp_path / "c.json", [good, item, good]), CogQAReport()
    with pytest.warns(UserWarning, match="left out"):
        tasks = hw.tasks.read_cogqa(path, least=1, report=report)
    assert report.malformed == [sentence]
    assert {t.name: len(t) for t in tasks}["Retrieval"] == 2


def test_a_file_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        hw.tasks.read_cogqa(tmp_path / "no.json")
    (tmp_path / "bad.json").write_text('[{"question": ')
    with pytest.raises(ValueError, match=r"bad\.json: not JSON \(.* at line 1, column"):
        hw.tasks.read_cogqa(tmp_path / "bad.json")
    with pytest.raises(ValueError, match=r"must hold a JSON list .* it holds a dict"):
        hw.tasks.read_cogqa(write(tmp_path / "d.json", {"question": "q"}))
    with (
        pytest.raises(ValueError, match="none of the eight skills has 10 examples or more"),
        pytest.warns(UserWarning, match="too few"),
    ):
        hw.tasks.read_cogqa(
            write(
                tmp_path / "e.json",
                [{"question": "q", "answer": "a", "generated": [step("Inference")]}],
            )
        )
    with pytest.raises(ValueError, match="least is how many examples a task needs"):
        hw.tasks.read_cogqa(tmp_path / "e.json", least=0)


def test_a_megabyte_is_read_with_one_look_at_each_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking a label up by likeness is what costs: it is done once a label, not once a step."""
    import difflib

    looks: list[str] = []
    plain = difflib.get_close_matches
    monkeypatch.setattr(
        difflib,
        "get_close_matches",
        lambda word, *a, **k: looks.append(word) or plain(word, *a, **k),
    )
    labels = [*SKILLS, "Retreival", "Cooking"]
    items = [
        {
            "question": f"Question {i}? " + "word " * 20,
            "answer": "a",
            "generated": [step(labels[(i + j) % 10], i) for j in range(5)],
        }
        for i in range(2000)
    ]
    path = write(tmp_path / "big.json", items)
    assert path.stat().st_size > 1_000_000
    with pytest.warns(UserWarning, match="Cooking"):
        tasks = hw.tasks.read_cogqa(path)
    assert sum(map(len, tasks)) == 9000 and len(looks) == 2
