"""What tests of checkpoints share: runs of every method, and when two of them are the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import headwidget as hw
from headwidget.scoring import score
from headwidget.scoring.checkpoint import Checkpoint
from headwidget.scoring.journal import Entry, Journal
from headwidget.scoring.run import Scoring
from tests.support import tiny, words

WORDS = ("cat", "dog", "hen", "cow", "owl", "fox", "bee", "ant", "elk", "eel")


def task(name: str, prompts: int = 7) -> hw.Task:
    """Prompts and answers of unequal length."""
    rows = []
    for i in range(prompts):
        word = WORDS[i % len(WORDS)]
        prompt = f"{name}: " + " ".join(WORDS[: 1 + i % 3]) + f" and the {word}"
        rows.append((prompt, " sat"[: 2 + i % 3], " ran"[: 2 + i % 3]))
    return hw.Task(name, rows)


TASKS = (task("one"), task("two", 9))
CONTRAST = task("other", 5)
GATING = {"updates": 11, "fits": 2, "batch_size": 4}
PROBE = {"folds": 2, "epochs": 4, "minibatch": 4, "units": 4, "hidden": 8, "batch_size": 3}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient": ("gradient", {"batch_size": 2}),
    "gradient, size": ("gradient", {"abs": True, "batch_size": 3}),
    "ablation": ("ablation", {"batch_size": 3}),
    "ablation, mean": ("ablation", {"replace": "mean", "batch_size": 2}),
    "ablation, last": ("ablation", {"replace": "mean", "where": "last", "batch_size": 3}),
    "attribution": ("attribution", {"batch_size": 2}),
    "patterns": ("patterns", {"sequences": 3, "lengths": (5, 8), "batch_size": 3}),
    "relations": ("relations", {"chunk": 4000}),
    "gating": ("gating", GATING),
    "gating, bootstrap": ("gating", {**GATING, "bootstrap": True, "lr_end": 0.2}),
    "gating, settle": ("gating", {**GATING, "updates": 30, "settle": 0.3}),
    "gating, contrast": ("gating", {**GATING, "contrast": CONTRAST}),
    "probe": ("probe", PROBE),
    "probe, seeds": ("probe", {**PROBE, "seeds": 2, "folds": 3}),
    "probe, published": ("probe", {**PROBE, "published": True}),
}


def model_of(method: str) -> hw.Model:
    return words.made("llama") if method == "relations" else tiny.model("llama")


def tasks_of(method: str) -> list[hw.Task]:
    if method != "relations":
        return list(TASKS)
    same = hw.Relation("same", [(a, a) for a in words.LETTERS[:40]], "Algorithmic")
    return [words.following(), same]


def prepared(case: str, path: Path | None = None, **changes: Any) -> Scoring:
    """A run of a case, ready to land; ``changes`` to its model, tasks, method, seed and options."""
    method, options = CASES[case]
    model = changes.pop("model", None) or model_of(method)
    tasks, method = changes.pop("tasks", None) or tasks_of(method), changes.pop("method", method)
    asked = {"batch_size": None, "seed": 0, **options, **changes}
    scoring = score.prepare(model, tasks, method, **asked)
    if path is not None:
        scoring.checkpoint = Checkpoint(path)
    return scoring


def landed(scoring: Scoring) -> tuple[hw.HeadScores, float]:
    """The scores of a run, and the sum of the steps that it noted."""
    steps = 0.0

    def note(what: str, more: float) -> None:
        nonlocal steps
        steps += more

    try:
        for _ in scoring.land(note):
            pass
    finally:
        if scoring.checkpoint is not None:
            scoring.checkpoint.close()
            assert scoring.checkpoint.broken is None
    return scoring.scores(partial=False), steps


def entries(path: Path) -> list[Entry]:
    """The records of a checkpoint."""
    journal = Journal(path)
    try:
        return list(journal.entries())
    finally:
        journal.close()


def ends(path: Path) -> Iterator[int]:
    """Where each record of a checkpoint ends."""
    end = 0
    for entry in entries(path):
        end += 20 + len(entry.payload())
        yield end


def record(scores: hw.HeadScores) -> dict[str, Any]:
    """The scores' record without the check of slopes, which a resumed run does anew."""
    meta = copy.deepcopy(dict(scores.meta))
    for task_record in meta["tasks"].values():
        task_record.pop("slopes_off", None)
    return meta


def check_same(found: hw.HeadScores, expected: hw.HeadScores) -> None:
    """The same values bit for bit, runs, aspects, and record."""
    assert found.tasks == expected.tasks and set(found.aspects) == set(expected.aspects)
    pairs = [(found, expected)]
    pairs += [(found.aspects[name], expected.aspects[name]) for name in expected.aspects]
    for a, b in pairs:
        for name in expected.tasks:
            assert list(a.runs(name)) == list(b.runs(name))
            assert np.isfinite(a.values(name)).all()
            assert a.values(name).tobytes() == b.values(name).tobytes(), name
    assert record(found) == record(expected)
