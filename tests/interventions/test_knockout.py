"""Knock-out: exact under any batching, on every family; a planted head alone kills its own task."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import headwidget as hw
from headwidget.display.effect import Effect
from headwidget.models import hooks
from headwidget.scoring import gated_forward, prefix
from headwidget.scoring.batch import forward, log_probability
from headwidget.scoring.encode import encode
from tests.support import tiny
from tests.support.gpu import Syncs, copies_to_host, on_cuda
from tests.support.knockouts import FEW_SHOT, TASKS, by_hand, random_scores
from tests.support.planted import planted

KEY = ["method", "heads_of", "task", "k", "kind", "draw"]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_row_equals_a_loop_of_plain_forwards(family: str) -> None:
    model = tiny.model(family)
    effect = hw.knockout(model, random_scores(model), TASKS, k=(1, 3), draws=2, progress=False)
    examples = {task.name: encode(task, model).examples for task in TASKS}
    plain = {}
    for name, encoded in examples.items():
        plain[name] = np.mean([by_hand(model, example, ()) for example in encoded], 0)
    assert len(effect.frame) == 2 * 2 * 2 * 3  # heads of, measured on, k, top and two draws
    foiled = [0, 1, 3]
    for row in effect.frame.itertuples():
        found = np.array([by_hand(model, e, row.heads) for e in examples[row.task]])
        assert row.log_probability == pytest.approx(found[:, 0].mean(), abs=1e-4)
        assert row.log_probability_change == pytest.approx(
            found[:, 0].mean() - plain[row.task][0], abs=1e-4
        )
        assert row.accuracy == found[:, 1].mean()
        assert row.beats_foil == pytest.approx(
            found[:, 2].mean() if row.task == "letters" else found[foiled, 2].mean()
        )
    assert (
        effect.frame["log_probability_change"].abs().min() > 1e-4
    )  # every set of heads did something
    assert effect.untouched["foils"].tolist() == [4, 3]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_shared_prefix_equals_whole_prompts(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model(family)
    examples = encode(FEW_SHOT, model).examples
    gates = np.random.default_rng(0).uniform(-0.5, 2, (5, *model.shape)).astype(np.float32)
    assert [g.prefix for g in gated_forward.groups(model, examples)] == (
        [len("ab: ba, cd: dc, "), 0] if model.can_share_prefix else [0]
    )

    def values() -> np.ndarray:
        out = np.full((5, 4, 3), np.nan, np.float32)
        for landed in gated_forward.run(model, examples, gates):
            out[landed.settings, list(landed.runs)] = landed.values
        return out

    shared = values()
    monkeypatch.setattr(prefix, "SHORTEST_PREFIX", 1000)
    assert [g.prefix for g in gated_forward.groups(model, examples)] == [0]
    np.testing.assert_allclose(shared, values(), atol=1e-4)
    assert np.ptp(shared[..., 0], axis=0).min() > 1e-3  # each setting has gates of its own


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_factor_one_changes_nothing_bit_for_bit(family: str) -> None:
    model = tiny.model(family)
    effect = hw.knockout(model, random_scores(model), TASKS, k=2, draws=2, factor=1, progress=False)
    for measure in ("accuracy", "beats_foil", "log_probability"):
        assert (effect.frame[f"{measure}_change"] == 0).all()
    assert not effect.summary()["beats_control"].any()
    for group in gated_forward.groups(model, encode(tiny.task(), model).examples):
        assert not group.prefix
        found = gated_forward.answers(model, group, torch.ones(1, *model.shape))
        with hooks.scoring(model):
            logits = forward(model, group.batch)
            assert torch.equal(found[0, :, 0], log_probability(logits, group.batch))


@pytest.mark.parametrize("family", ["llama", "gpt2", "jamba", "bert"])
def test_all_heads_is_all_gates_at_zero(family: str) -> None:
    model = tiny.model(family)
    every = math.prod(model.shape)
    effect = hw.knockout(model, random_scores(model), TASKS, k=every, draws=5, progress=False)
    indices = [layer.index for layer in model.layers]
    everything = list(itertools.product(indices, range(model.n_heads)))
    for task in TASKS:
        expected = np.mean([by_hand(model, e, everything)[0] for e in encode(task, model).examples])
        for found in effect.frame[effect.frame["task"] == task.name]["log_probability"]:
            assert found == pytest.approx(expected, abs=1e-4)
    assert (effect.frame["draw"] <= 1).all()  # there is only one set of all heads
    assert (effect.frame["in_top"] == every).all() and not effect.summary()["beats_control"].any()


@pytest.mark.parametrize("size", [1, 2, 7])
def test_batches_change_nothing(size: int) -> None:
    model = tiny.model("llama")
    scores = random_scores(model)
    whole, parts = (
        hw.knockout(model, scores, TASKS, k=(1, 4), progress=False, batch_size=b)
        for b in (None, size)
    )
    pd.testing.assert_frame_equal(whole.frame, parts.frame, atol=1e-4)


def test_amplify_is_the_same_with_a_factor() -> None:
    model = tiny.model("llama")
    scores = random_scores(model)
    effect = hw.amplify(model, scores, FEW_SHOT, k=2, draws=2, progress=False)
    pd.testing.assert_frame_equal(
        effect.frame,
        hw.knockout(model, scores, FEW_SHOT, k=2, draws=2, factor=2.0, progress=False).frame,
    )
    row = effect.frame.iloc[0]
    assert row["log_probability"] == pytest.approx(
        np.mean(
            [by_hand(model, e, row["heads"], 2.0)[0] for e in encode(FEW_SHOT, model).examples]
        ),
        abs=1e-4,
    )


# ---- is it true? ----


def test_a_planted_head_kills_its_own_task_and_controls_do_not() -> None:
    model, task, head = planted()
    other = hw.Task("other", [("zyx", "z", "b"), ("qrs", "q", "c")])
    scores = hw.score(model, task, "ablation", progress=False)
    effect = hw.knockout(model, scores, [task, other], k=(1, 2), draws=3, progress=False)
    own = effect.frame[effect.frame["task"] == "copy"]
    assert own.iloc[0]["heads"] == (head,)
    top, control = own[own["kind"] == "top"], own[own["kind"] == "control"]
    assert effect.untouched.set_index("task").loc["copy", "accuracy"] == 1
    assert (top["accuracy"] <= 2 / 12).all() and (top["log_probability_change"] < -0.5).all()
    assert (control["accuracy"] == 1).all() and (
        control["log_probability_change"].abs() < 0.05
    ).all()
    summary = effect.summary()
    assert summary["beats_control"].all() and (summary["others"] > summary["top"] / 2).all()
    assert "in 2 of 2 cases" in repr(effect)
    # Heads that do not matter do not beat their control.
    values = scores.values("copy").copy()
    values[:, head[0], head[1]] = values.min() - 1
    worst = hw.HeadScores.from_arrays({"copy": values}, method="ablation", meta=scores.meta)
    assert (
        hw.knockout(model, worst, task, k=1, draws=3, progress=False).summary()["top"] > -0.05
    ).all()
    # But among the largest sizes the head is there.
    assert hw.knockout(model, worst, task, k=1, draws=3, by="size", progress=False).frame.iloc[0][
        "heads"
    ] == (head,)


# ---- stops, devices ----


def stop_after(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = gated_forward.run

    def run(*args: Any) -> Iterator[gated_forward.Landed]:
        for landed in real(*args):
            nonlocal batches
            if batches == 0:
                raise KeyboardInterrupt
            batches -= 1
            yield landed

    monkeypatch.setattr(gated_forward, "run", run)


def test_ctrl_c_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    scores = random_scores(model)

    def run() -> Effect:
        return hw.knockout(model, scores, TASKS, k=(1, 2), draws=2, batch_size=1, progress=False)

    whole = run()
    assert not whole.partial
    for batches, rows in (
        (8, 1),
        (11, 1),
        (12, 2),
        (60, 13),
    ):  # 4 prompts a setting; a task's first is the untouched model
        with monkeypatch.context() as patch:
            stop_after(batches, patch)
            part = run()
        assert part.partial and len(part.frame) == rows
        merged = part.frame.merge(whole.frame, on=KEY, suffixes=("", "_whole"))
        assert len(merged) == len(part.frame)
        np.testing.assert_array_equal(merged["log_probability"], merged["log_probability_whole"])
        assert "stopped before all was measured" in repr(part)
        part.plot()
    for batches in (0, 4, 7):  # no set of heads is done
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            stop_after(batches, patch)
            run()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.module.modules())


def test_numbers_that_are_none_are_refused() -> None:
    module = tiny.build("llama")
    with torch.no_grad():
        module.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    model = hw.load(module, tiny.tokenizer())
    with pytest.raises(
        FloatingPointError,
        match="task 'letters': log p.answer. is not a number for the prompt .* has NaN: load a ",
    ):
        hw.amplify(model, random_scores(model), tiny.task(), k=1, progress=False)
    with torch.no_grad():
        module.model.layers[1].mlp.down_proj.weight[0, 0] = 0
        for layer in module.model.layers:
            layer.self_attn.o_proj.weight *= 1e3
    with pytest.raises(FloatingPointError, match="With no head changed it is one: choose a small"):
        hw.amplify(model, random_scores(model), tiny.task(), k=1, factor=1e38, progress=False)


@pytest.mark.parametrize(
    "family", ["llama", "mistral", "gemma2", "gpt2", "opt", "falcon", "bloom", "bert"]
)
def test_it_runs_on_fake_cuda(fake_cuda: None, family: str) -> None:
    model = on_cuda(family)
    together = gated_forward.groups(model, encode(FEW_SHOT, model).examples)
    assert any(group.prefix for group in together) != model.encoder
    for group in together:
        found = gated_forward.answers(model, group, torch.ones(3, *model.shape))
        assert found.shape == (3, len(group.batch.runs), 3) and found.device.type == "cuda"


def test_nothing_waits_for_the_host_but_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    examples = encode(FEW_SHOT, model).examples
    gates = np.ones((6, *model.shape), np.float32)
    copies = copies_to_host(monkeypatch)
    with Syncs() as syncs:
        landed = list(gated_forward.run(model, examples, gates))
    assert sum(syncs.counts.values()) == 0, syncs.counts
    assert len(copies) == len(landed) == 2  # those that share a prefix, and the one that does not


def test_the_model_is_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    module = tiny.build("llama").train()
    model = hw.load(module, tiny.tokenizer())
    before = {n: p.clone() for n, p in module.named_parameters()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    hw.knockout(model, random_scores(model), TASKS, k=1, draws=1)
    assert all(torch.equal(p, before[n]) and p.requires_grad for n, p in module.named_parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        m.training and not m._forward_hooks and not m._forward_pre_hooks for m in module.modules()
    )
    assert "knockout · few-shot" in capfd.readouterr().err
