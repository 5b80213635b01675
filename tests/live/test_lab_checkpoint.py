"""The lab's checkpoints: stop, go on, and what is said where a file cannot be used."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import headwidget as hw
from headwidget.scoring import journal
from tests.support.checkpoints import TASKS, check_same
from tests.support.lab_tools import at_each_block, forwards, fresh


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def has_chunk(path: Path) -> bool:
    return path.exists() and b'"kind": "chunk"' in path.read_bytes()


def test_a_stopped_run_goes_on_where_it_stood(path: Path) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    expected = hw.score(model, TASKS, "ablation", progress=False)

    def act(size: int) -> None:
        if has_chunk(path):
            lab.stop()

    with at_each_block(model, act):
        assert lab.run(checkpoint=path).wait(60) and lab.state == "stopped", lab._state
    assert lab.scores is not None and lab.scores.partial
    assert has_chunk(path)
    counted = forwards(model, lambda: lab.run(checkpoint=path).wait(60))
    assert lab.state == "done" and lab._state["done"] == pytest.approx(lab._state["total"])
    assert counted < forwards(model, lambda: lab.run().wait(60))
    assert lab.run(checkpoint=path).wait(60) and lab.state == "done"
    check_same(lab.scores, expected)
    assert forwards(model, lambda: lab.run(checkpoint=path).wait(60)) == 0


def test_closing_the_lab_lets_go_of_the_file(path: Path) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    begun = threading.Event()
    with at_each_block(model, lambda size: begun.set()):
        lab.run(checkpoint=path)
        assert begun.wait(60)
        run = lab._runner._run
        assert run is not None
        lab.close()
        assert run.ended.wait(60)
    scores = hw.score(model, TASKS, "ablation", progress=False, checkpoint=path)
    check_same(scores, hw.score(model, TASKS, "ablation", progress=False))


def test_a_file_that_another_run_holds_is_refused_and_that_run_goes_on(path: Path) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "gradient", prompts=None)
    free = threading.Event()
    with at_each_block(model, lambda size: free.wait(30) and None):
        lab.run(checkpoint=path)
        with pytest.raises(ValueError, match="another run writes to it; wait for that run"):
            lab.run(checkpoint=path)
        with pytest.raises(ValueError, match="another run writes to it; wait for that run"):
            hw.live(model, TASKS).run(checkpoint=path)
        free.set()
        assert lab.wait(60) and lab.state == "done"


def test_other_gates_are_another_run(path: Path) -> None:
    model = fresh()
    gates = np.ones(model.shape, np.float32)
    gates[0, 1] = 0.5
    lab = hw.live(model, TASKS, "gradient", prompts=None, gates=gates, heed_gates=True)
    assert lab.run(checkpoint=path).wait(60) and lab.state == "done"
    assert lab.run(checkpoint=path).wait(60) and lab.state == "done", "the same gates go on"
    kept = lab.scores
    for factor, difference in ((0.25, "its heads changed is"), (0.5 + 2**-24, "its gates is")):
        gates = gates.copy()
        gates[0, 1] = factor
        lab.gates = gates
        lab.run(checkpoint=path).wait(60)
        assert lab.state == "failed" and "is of another run" in lab._state["message"]
        assert difference in lab._state["message"]
        assert lab.shown is kept, "what was shown stays"
    lab.heed_gates = False
    lab.run(checkpoint=path).wait(60)
    assert lab.state == "failed" and "its heads changed is" in lab._state["message"]


def test_a_file_that_is_removed_is_said_and_the_scores_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SYNC_SECONDS", 0)
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    told: list[str] = []
    lab.observe(lambda change: told.append(change["new"]), "_trouble")
    removed = threading.Event()

    def act(size: int) -> None:
        if has_chunk(path):
            path.unlink()
            removed.set()

    with at_each_block(model, act):
        assert lab.run(checkpoint=path).wait(60) and lab.state == "done"
    assert removed.is_set()
    assert "was removed, or replaced, meanwhile. Scoring goes on without it" in lab._trouble
    assert len([sentence for sentence in told if sentence]) == 1
    assert lab.scores is not None and not lab.scores.partial
    assert lab.run().wait(60) and lab._trouble == ""


def test_a_path_that_cannot_be_written_starts_no_run(tmp_path: Path) -> None:
    lab = hw.live(fresh(), TASKS)
    with pytest.raises(OSError, match="does not exist; make it first"):
        lab.run(checkpoint=tmp_path / "none" / "run.ckpt")
    assert lab.state == "idle"
