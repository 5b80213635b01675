"""The Explorer's Python side: traits that are checked before they are sent, and no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traitlets import TraitError

import headwidget as hw
from headwidget import widget, wire


@pytest.fixture
def scores() -> hw.HeadScores:
    values = np.random.default_rng(0).normal(size=(4, 3, 5))
    return hw.HeadScores.from_arrays({"math": values, "syntax": -values}, method="mine", layers=[2, 5, 8], meta={"model": "tiny"})


def test_an_explorer_starts_with_every_task_and_nothing_else(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    assert (explorer.tasks, explorer.selected, explorer.threshold, explorer.view) == (["math", "syntax"], [], None, "tasks")
    np.testing.assert_array_equal(wire.decode(explorer._header, explorer._buffer)[1]["mean"], scores.reduce("mean")[1])


def test_traits_take_what_scores_give(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores, tasks=("syntax",), threshold=np.float32(0.5), selected=[(5, np.int64(4)), [5, 4], (2, 0)])
    assert explorer.tasks == ["syntax"]
    assert explorer.threshold == 0.5 and type(explorer.threshold) is float
    assert explorer.selected == [[5, 4], [2, 0]]
    assert all(type(n) is int for head in explorer.selected for n in head)
    explorer.selected = scores.top("math", 2)
    explorer.threshold = scores.elbow("math")
    assert [tuple(head) for head in explorer.selected] == scores.top("math", 2)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("selected", [[1, 0]], r"no head \[1, 0\] in these scores: they have 3 layers \(2 to 8\) of 5 heads"),
        ("selected", [[2, 5]], r"no head \[2, 5\]"),
        ("selected", [[2, -1]], r"no head \[2, -1\]"),
        ("selected", [[2]], r"a list of \[layer, head\]"),
        ("selected", [7], r"a list of \[layer, head\]"),
        ("selected", [[2.5, 1]], r"two whole numbers"),
        ("threshold", float("nan"), "a finite number, or None"),
        ("threshold", float("inf"), "a finite number, or None"),
        ("threshold", "0.5", "a finite number, or None"),
        ("threshold", True, "a finite number, or None"),
        ("tasks", ["recall"], "no task 'recall' in these scores; they have 'math', 'syntax'"),
        ("tasks", ["math", "math"], "twice"),
        ("tasks", [3], "no task 3"),
        ("view", "agreement", "view 'agreement' is not known; use 'tasks'"),
        ("view", ["tasks"], "is not known"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence_and_changes_nothing(scores: hw.HeadScores, name: str, value: Any, sentence: str) -> None:
    explorer = hw.explore(scores, threshold=0.1, selected=[[2, 1]])
    before = getattr(explorer, name)
    with pytest.raises(TraitError, match=sentence):
        setattr(explorer, name, value)
    assert getattr(explorer, name) == before
    with pytest.raises(TraitError, match=sentence):
        hw.explore(scores, **{name: value})


def test_unknown_keywords_and_foreign_scores_are_refused_with_a_sentence(scores: hw.HeadScores) -> None:
    with pytest.raises(TypeError, match="no 'treshold'; it has selected, threshold"):
        hw.explore(scores, treshold=1)
    with pytest.raises(TypeError, match="HeadScores or the path of a saved file; got ndarray"):
        hw.explore(np.zeros((3, 4)))  # type: ignore[arg-type]


def test_a_saved_file_is_explored_by_its_path(scores: hw.HeadScores, tmp_path: Path) -> None:
    path = scores.save(tmp_path / "s.safetensors")
    assert hw.explore(path)._buffer == hw.explore(str(path))._buffer == hw.explore(scores)._buffer


def test_every_public_trait_is_documented() -> None:
    source = Path(widget.__file__).read_text(encoding="utf-8").splitlines()
    for name in ("selected", "threshold", "tasks", "view"):
        line = next(i for i, text in enumerate(source) if text.startswith((f"    {name} =", f"    {name}:")))
        assert source[line + 1].startswith('    """'), name
        assert widget.Explorer.class_traits()[name].help, name


def test_a_front_end_that_is_not_built_gives_the_command(scores: hw.HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widget, "STATIC", tmp_path)
    with pytest.raises(FileNotFoundError, match="npm run build"):
        hw.explore(scores)


def test_the_bundle_is_small() -> None:
    assert len(widget.asset("widget.js")) + len(widget.asset("widget.css")) < 60_000


def test_exploring_needs_no_torch() -> None:
    code = (
        "import sys, headwidget as hw\n"
        "hw.explore(hw.HeadScores.from_arrays({'a': [[1.0]]}, method='m'))\n"
        "print([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
