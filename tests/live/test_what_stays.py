"""What stays on view in a lab when other scores come: settings, tasks put away, earlier runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headwidget as hw
from headwidget.display import wire
from headwidget.live.lab import Lab
from headwidget.live.runner import UNDER_WAY
from headwidget.models import hooks
from tests.support.lab_tools import TASKS, fresh


def lab_of(method: str = "gradient") -> Lab:
    return hw.live(fresh(), TASKS, method, prompts=None)


def test_a_run_with_heads_changed_says_so_and_stands_beside_the_clean_one() -> None:
    lab = lab_of()
    lab.run().wait()
    clean = lab.scores
    gates = np.ones(lab.gates.shape)
    gates[1, 2] = 0
    lab.gates, lab.heed_gates = gates, True
    lab.run().wait()
    lab.gates = np.ones_like(gates)
    assert lab.results["gradient"] is clean
    changed = lab.results["gradient · 1 head changed"]
    assert changed is lab.scores and lab._header["changed"] == "1 head changed"
    labels = [axes.yaxis.label.get_text() for axes in changed.figure().axes]
    assert any(label.startswith("gradient · 1 head changed") for label in labels), labels
    assert clean is not None and "changed" not in wire.encode(clean)[0]


def test_a_run_that_is_stopped_before_its_first_prompt_leaves_the_maps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lab = lab_of()
    lab.run().wait()
    before, header = lab.scores, lab._header

    def stopped(*_: object) -> None:
        raise hooks.Stopped

    monkeypatch.setattr("headwidget.scoring.run.Scoring.check_model", stopped)
    lab.run(method="ablation").wait()
    assert lab.state == "stopped"
    assert lab.scores is None, "the last run gave none"
    assert lab.shown is before and lab._header == header
    assert lab.to_png(tmp_path / "lab.png").stat().st_size
    assert [run["shown"] for run in lab._past] == [True]


def test_tasks_that_are_put_away_stay_so() -> None:
    lab = lab_of()
    lab.run().wait()
    lab.tasks = [TASKS[1].name]
    lab.run().wait()
    assert lab.tasks == [TASKS[1].name]
    lab.run(tasks=[TASKS[0].name]).wait()  # nothing else is scored: it is shown
    assert lab.tasks == [TASKS[0].name]
    lab.run(tasks=[task.name for task in TASKS]).wait()
    assert lab.tasks == [task.name for task in TASKS]


def test_shares_are_for_the_method_that_asks_for_them() -> None:
    lab = lab_of("ablation")
    lab.run().wait()
    assert lab.normalize is None
    lab.run(method="probe", folds=2).wait()
    assert lab.state == "done" and lab.normalize == "share"
    lab.show_again(1)
    assert lab.shown.method == "ablation" and lab.normalize is None
    lab.show_again(0)
    assert lab.normalize == "share"
    lab.normalize = None
    lab.run(method="probe", folds=2).wait()
    assert lab.normalize is None, "what the user chose is kept at the next run of the method"


def test_the_list_of_runs_marks_what_the_maps_show(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of()
    lab.run().wait()
    seen: list[list[bool]] = []
    show = lab._show

    def showing(scores: hw.HeadScores, final: bool) -> None:
        show(scores, final)
        seen.append([run["shown"] for run in lab._past])

    monkeypatch.setattr(lab._runner, "_show", lambda: showing)
    lab.run().wait()
    assert seen[0] == [False], "the maps are those of the run under way"
    assert [run["shown"] for run in lab._past] == [True, False]


def test_past_runs_say_their_options() -> None:
    lab = lab_of("ablation")
    lab.run().wait()
    lab.run(replace="mean").wait()
    assert [run["options"] for run in lab._past] == ["replace mean", None]


def test_a_note_beside_a_run_ends_with_it() -> None:
    lab = lab_of()
    lab.run().wait()
    lab._report("return", UNDER_WAY)
    assert lab._trouble
    lab.run().wait()
    assert lab._trouble == ""


def test_an_emptied_prompt_leaves_nothing_of_the_old_one() -> None:
    lab = lab_of()
    lab.selected = [(0, 1)]
    lab.prompt = "abc"
    lab.wait()
    assert lab._head["tokens"]
    lab.prompt = ""
    lab.wait()
    assert "tokens" not in lab._head and "promoted" not in lab._head


def test_a_lab_asked_for_no_task_is_refused() -> None:
    with pytest.raises(ValueError, match="asked names the tasks of the next run"):
        hw.live(fresh(), TASKS, asked=[])
