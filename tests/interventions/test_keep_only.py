"""hw.keep_only: all heads but the kept ones off, beside as many random heads of the same layers."""

from __future__ import annotations

import numpy as np
import pytest

import headwidget as hw
from headwidget.models.hooks import gate, scoring
from headwidget.scoring.batch import collate, correct, forward, log_probability
from headwidget.scoring.encode import encode
from tests.support import tiny
from tests.support.planted import HELPS, helped_and_harmed

MODEL = tiny.model("llama")


def random_scores(model: hw.Model, task: hw.Task, runs: int = 2, seed: int = 0) -> hw.HeadScores:
    values = np.random.default_rng(seed).random((runs, *model.shape))
    return hw.HeadScores.from_arrays(
        {task.name: values}, method="made up", meta={"weights": model.fingerprint()}
    )


def test_the_numbers_are_those_of_a_forward_with_the_other_heads_off() -> None:
    import torch

    task = tiny.task()
    scores = random_scores(MODEL, task)
    frame = hw.keep_only(MODEL, scores, task, threshold=0.6, draws=2, progress=False)
    assert frame.kind.tolist() == ["all", "kept", "random", "random", "kept", "random", "random"]
    examples = encode(task, MODEL).examples
    batch = collate(range(len(examples)), examples, MODEL)
    for run, (_, row) in zip(scores.values(task.name), frame[frame.kind == "kept"].iterrows()):
        on = run >= 0.6
        with scoring(MODEL), gate(MODEL, torch.tensor(on).float()):
            logits = forward(MODEL, batch)
        assert row.heads == on.sum()
        assert row.log_probability == pytest.approx(
            log_probability(logits, batch).mean().item(), abs=1e-4
        )
        assert row.accuracy == pytest.approx(correct(logits, batch)[0].float().mean().item())


def test_controls_have_as_many_heads_in_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwidget.scoring import gated_forward

    seen: list[np.ndarray] = []
    real = gated_forward.run
    monkeypatch.setattr(
        gated_forward,
        "run",
        lambda model, examples, gates, size: (
            seen.append(gates) or real(model, examples, gates, size)
        ),
    )
    scores = random_scores(MODEL, tiny.task(), runs=1)
    frame = hw.keep_only(MODEL, scores, tiny.task(), threshold=0.5, draws=3, progress=False)
    whole, kept, *random = seen[0]
    assert (whole == 1).all() and len(random) == 3 and frame.draw.tolist() == [0, 0, 1, 2, 3]
    for one in random:
        np.testing.assert_array_equal(one.sum(1), kept.sum(1))
        assert not np.array_equal(one, kept)


def test_a_planted_head_alone_is_enough_and_another_is_not() -> None:
    model, task = helped_and_harmed()
    values = np.zeros((1, *model.shape))
    values[0][HELPS] = 1
    scores = hw.HeadScores.from_arrays(
        {task.name: values}, method="planted", meta={"weights": model.fingerprint()}
    )
    frame = hw.keep_only(model, scores, task, progress=False).set_index("kind")
    assert (
        frame.loc["kept", "heads"] == 1
        and frame.loc["kept", "log_probability"] > frame.loc["all", "log_probability"] + 0.1
    )  # without the harmful one
    assert frame.loc["random", "log_probability"].max() < frame.loc["kept", "log_probability"] - 0.5


def test_what_cannot_be_is_said_before_any_work() -> None:
    task = tiny.task()
    scores = random_scores(MODEL, task)
    for bad, said in (
        ({"threshold": "high"}, "threshold is a finite number"),
        ({"threshold": float("nan")}, "finite"),
        ({"draws": -1}, "draws is a whole number"),
        ({"batch_size": 0}, "batch_size is a number of prompts, 1 or more"),
        ({"seed": "x"}, "seed is a whole number; got 'x'"),
    ):
        with pytest.raises(ValueError, match=said):
            hw.keep_only(MODEL, scores, task, **bad)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="none of the tasks is in the scores, which have 'letters'"
    ):
        hw.keep_only(MODEL, scores, tiny.task("other"))
    with pytest.raises(TypeError, match="hw.keep_only takes what hw.load gives"):
        hw.keep_only(MODEL.module, scores, task)
    with pytest.raises(TypeError, match="scores must be what hw.score or hw.open gives"):
        hw.keep_only(MODEL, {"a": scores}, task)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of other weights"):
        hw.keep_only(
            MODEL,
            hw.HeadScores.from_arrays(
                {task.name: scores.values(task.name)}, method="m", meta={"weights": "w3-x"}
            ),
            task,
        )
