"""Knock-out: exact under any batching, on every family; a planted head alone kills its own task; controls are what they say; nothing is hidden."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import headwidget as hw
from headwidget.display.effect import Effect
from headwidget.interventions import measuring
from headwidget.interventions.sampling import controls
from headwidget.models import hooks
from headwidget.scoring import gated_forward
from headwidget.scoring.batch import collate, correct, forward, log_probability
from headwidget.scoring.encode import Encoded, encode
from tests.support import tiny
from tests.support.gpu import Syncs, on_cuda
from tests.support.planted import planted

FEW_SHOT = hw.Task(
    "few-shot",
    [
        ("ab: ba, cd: dc, xy:", " yx", " xx"),
        ("ab: ba, cd: dc, pqr:", " r", " q"),
        ("ab: ba, cd: dc, m:", " mm"),
        ("one", " two", " six"),
    ],
)
TASKS = [tiny.task("letters"), FEW_SHOT]
KEY = ["method", "heads_of", "task", "k", "kind", "draw"]


def made_up(
    model: hw.Model, *names: str, seed: int = 0, method: str = "mine", weights: str | None = ""
) -> hw.HeadScores:
    """Random scores that say they are the model's."""
    rng = np.random.default_rng(seed)
    meta = {} if weights is None else {"weights": weights or model.fingerprint()}
    arrays = {name: rng.normal(size=(3, *model.shape)) for name in names or ("letters", "few-shot")}
    return hw.HeadScores.from_arrays(
        arrays, method=method, layers=[layer.index for layer in model.layers], meta=meta
    )


def by_hand(model: hw.Model, example: Encoded, heads: Any, factor: float = 0.0) -> list[float]:
    """log p(answer), accuracy and beats-foil of one prompt in one plain forward of its own."""
    gates = torch.ones(model.shape)
    rows = {layer.index: row for row, layer in enumerate(model.layers)}
    for layer, head in heads:
        gates[rows[layer], head] = factor
    batch = collate([0], [example], model)
    with hooks.scoring(model), hooks.gate(model, gates):
        logits = forward(model, batch)
        return [
            float(log_probability(logits, batch)[0]),
            *(float(x[0]) for x in correct(logits, batch)),
        ]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_row_equals_a_loop_of_plain_forwards(family: str) -> None:
    model = tiny.model(family)
    effect = hw.knockout(model, made_up(model), TASKS, k=(1, 3), draws=2, progress=False)
    examples = {task.name: encode(task, model).examples for task in TASKS}
    plain = {
        name: np.mean([by_hand(model, e, ()) for e in some], 0) for name, some in examples.items()
    }
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
    monkeypatch.setattr(gated_forward, "SHORTEST_PREFIX", 1000)
    assert [g.prefix for g in gated_forward.groups(model, examples)] == [0]
    np.testing.assert_allclose(shared, values(), atol=1e-4)
    assert np.ptp(shared[..., 0], axis=0).min() > 1e-3  # each setting has gates of its own


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_factor_one_changes_nothing_bit_for_bit(family: str) -> None:
    model = tiny.model(family)
    effect = hw.knockout(model, made_up(model), TASKS, k=2, draws=2, factor=1, progress=False)
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
    effect = hw.knockout(model, made_up(model), TASKS, k=every, draws=5, progress=False)
    everything = [(layer.index, head) for layer in model.layers for head in range(model.n_heads)]
    for task in TASKS:
        expected = np.mean([by_hand(model, e, everything)[0] for e in encode(task, model).examples])
        for found in effect.frame[effect.frame["task"] == task.name]["log_probability"]:
            assert found == pytest.approx(expected, abs=1e-4)
    assert (effect.frame["draw"] <= 1).all()  # there is only one set of all heads
    assert (effect.frame["in_top"] == every).all() and not effect.summary()["beats_control"].any()


@pytest.mark.parametrize("size", [1, 2, 7])
def test_batches_change_nothing(size: int) -> None:
    model = tiny.model("llama")
    scores = made_up(model)
    whole, parts = (
        hw.knockout(model, scores, TASKS, k=(1, 4), progress=False, batch_size=b)
        for b in (None, size)
    )
    pd.testing.assert_frame_equal(whole.frame, parts.frame, atol=1e-4)


def test_amplify_is_the_same_with_a_factor() -> None:
    model = tiny.model("llama")
    scores = made_up(model)
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


def test_summary_counts_a_beaten_control_only_when_every_draw_is_beaten() -> None:
    def effect(changes: list[float], factor: float) -> Effect:
        rows = [
            {
                "method": "m",
                "heads_of": "t",
                "task": "t",
                "k": 1,
                "kind": "control" if i else "top",
                "draw": i,
                "accuracy_change": c,
                "log_probability_change": c,
            }
            for i, c in enumerate(changes)
        ]
        return Effect(
            pd.DataFrame(rows),
            pd.DataFrame([{"task": "t", "log_probability": -1.0, "accuracy": 1.0}]),
            factor,
        )

    for factor, changes, beats in [
        (0, [-3.0, -1.0, -2.0], True),
        (0, [-2.0, -1.0, -2.0], False),  # a tie is not better
        (0, [-1.5, -1.0, -2.0], False),
        (2, [1.0, 0.5, -0.5], True),
        (2, [-3.0, 0.5, -0.5], False),  # amplified, a helping head should help
    ]:
        found = effect(changes, factor).summary().iloc[0]
        assert bool(found["beats_control"]) is beats
        assert (found["control_low"], found["control_high"], found["draws"]) == (
            min(changes[1:]),
            max(changes[1:]),
            2,
        )
        assert found["control"] == pytest.approx(np.mean(changes[1:])) and found["before"] == -1
    assert effect([-1, 0], 0).summary("accuracy")["before"].item() == 1
    with pytest.raises(
        ValueError, match="measure is 'log_probability', 'accuracy', 'beats_foil'; got 'speed'"
    ):
        effect([-1, 0], 0).summary("speed")


# ---- which heads, which prompts ----


def test_top_heads_are_the_largest_means_and_controls_come_from_their_layers() -> None:
    model = tiny.model("llama")
    scores = made_up(model)
    effect = hw.knockout(model, scores, TASKS, k=(4, 2), draws=3, progress=False)
    assert effect.frame["k"].unique().tolist() == [2, 4]
    for (heads_of, k), part in effect.frame.groupby(["heads_of", "k"]):
        top = list(part[part["kind"] == "top"]["heads"].iloc[0])
        assert top == scores.top(heads_of, k)
        per_layer = Counter(layer for layer, _ in top)
        drawn = part[(part["kind"] == "control") & (part["task"] == heads_of)]
        assert drawn["heads"].nunique() == len(drawn)
        for heads, in_top in zip(drawn["heads"], drawn["in_top"]):
            assert len(set(heads)) == k and Counter(layer for layer, _ in heads) == per_layer
            assert (
                len(set(heads) & set(top))
                == in_top
                == sum(max(0, 2 * n - model.n_heads) for n in per_layer.values())
            )


def test_a_layer_without_enough_others_lends_its_top_heads() -> None:
    top = [(0, 0), (0, 1), (0, 2), (2, 5)]
    drawn = controls(top, 4 + 2, 50, 0)
    assert len(drawn) == len(set(drawn)) == 5  # (0: the three others) x (2: five others)
    assert all(
        set(heads[:3]) == {(0, 3), (0, 4), (0, 5)} and heads[3][0] == 2 and heads[3] != (2, 5)
        for heads in drawn
    )
    short = controls(top[:3], 4, 50, 0)
    assert len(short) == 3 and all(
        (0, 3) in heads and len(set(heads) & set(top)) == 2 for heads in short
    )
    assert controls(top, 6, 3, 0) != controls(top, 6, 3, 1)
    assert controls(top, 6, 3, 0) == controls(top, 6, 3, 0)


def test_layers_without_attention_are_counted_in_the_models_own_numbers() -> None:
    model = tiny.model("jamba")
    effect = hw.knockout(model, made_up(model), TASKS, k=3, draws=1, progress=False)
    assert {layer for heads in effect.frame["heads"] for layer, _ in heads} <= {0, 2}


def test_prompts_that_no_score_has_seen_come_first_and_held_out_ones_before_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny.model("llama")
    task = hw.Task("many", [(f"prompt {i}", "x", "y") for i in range(12)])
    object.__setattr__(task, "held_out", (3, 9, 10))
    scores = hw.HeadScores.from_arrays(
        {"many": np.zeros((9, *model.shape))},
        method="mine",
        runs={"many": [f"prompt {i}x" for i in range(9)]},
        meta={"weights": model.fingerprint()},
    )
    chosen: list[list[str]] = []
    monkeypatch.setattr(
        measuring,
        "encode",
        lambda t, m: chosen.append([e.prompt for e in t.examples]) or encode(t, m),
    )
    counts = []
    for prompts in (2, 3, 4, 12, 20):
        row = hw.knockout(
            model, scores, task, k=1, draws=1, prompts=prompts, progress=False
        ).untouched.iloc[0]
        counts.append((row["prompts"], row["held_out"], row["scored_on"]))
    assert counts == [(2, 2, 0), (3, 2, 0), (4, 3, 1), (12, 3, 9), (12, 3, 9)]
    assert chosen[:3] == [
        ["prompt 9", "prompt 10"],
        ["prompt 9", "prompt 10", "prompt 11"],
        ["prompt 3", "prompt 9", "prompt 10", "prompt 11"],
    ]


def test_several_scores_stand_side_by_side_and_like_settings_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny.model("llama")
    first, second = made_up(model), made_up(model, "letters", seed=1, method="yours")
    ran: list[np.ndarray] = []
    real = gated_forward.run
    monkeypatch.setattr(
        gated_forward, "run", lambda m, e, gates, b: ran.append(gates) or real(m, e, gates, b)
    )
    both = hw.knockout(model, [first, second], TASKS, k=(1, 3), draws=2, progress=False)
    for gates in ran:
        assert len({g.tobytes() for g in gates}) == len(gates) and (gates[0] == 1).all()
    assert both.summary()[["method", "heads_of"]].drop_duplicates().values.tolist() == [
        ["mine", "letters"],
        ["mine", "few-shot"],
        ["yours", "letters"],
    ]
    for name, one in {"mine": first, "yours": second}.items():
        alone = hw.knockout(model, {name: one}, TASKS, k=(1, 3), draws=2, progress=False).frame
        pd.testing.assert_frame_equal(
            both.frame[both.frame["method"] == name].reset_index(drop=True), alone, atol=1e-4
        )
    ran.clear()
    hw.knockout(model, {"a": first, "b": first}, FEW_SHOT, k=1, draws=2, progress=False)
    assert [len(g) for g in ran] == [1 + 1 + 2]


@pytest.mark.parametrize(
    ("others", "kinds"), [("all", {"top", "control"}), ("top", {"top"}), ("none", set())]
)
def test_how_much_is_measured_on_other_tasks(others: Any, kinds: set[str]) -> None:
    model = tiny.model("llama")
    effect = hw.knockout(model, made_up(model), TASKS, k=2, draws=2, others=others, progress=False)
    elsewhere = effect.frame[effect.frame["task"] != effect.frame["heads_of"]]
    assert set(elsewhere["kind"]) == kinds
    assert len(effect.frame) == 6 + len(elsewhere)
    assert effect.summary()["others"].isna().all() == (others == "none") and effect.summary()[
        "others_control"
    ].isna().all() == (others != "all")
    effect.plot()


def test_a_control_that_is_another_tasks_top_head_is_not_taken_for_a_measurement_elsewhere() -> (
    None
):
    model = tiny.model("llama")
    values = np.zeros((2, *model.shape))
    values[0, 1, 0] = values[1, 1, 1] = (
        1  # in one layer, so that each is among the other's three possible controls
    )
    scores = hw.HeadScores.from_arrays(
        dict(zip([t.name for t in TASKS], values)),
        method="mine",
        meta={"weights": model.fingerprint()},
    )
    frame = hw.knockout(model, scores, TASKS, k=1, draws=3, others="top", progress=False).frame
    assert set(frame[frame["task"] != frame["heads_of"]]["kind"]) == {"top"}


def test_the_seed_decides_the_draws() -> None:
    model = tiny.model("llama")
    scores = made_up(model)
    one, again, two = (
        hw.knockout(model, scores, TASKS, k=3, draws=2, seed=s, progress=False).frame
        for s in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one, again)
    assert one["heads"].tolist() != two["heads"].tolist()


# ---- sentences, stops, discipline ----


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
            {"scores": lambda m: [made_up(m), made_up(m)]},
            "two scores are named 'mine'; give each a name of its own",
        ),
        ({"scores": lambda m: {"": made_up(m)}}, "each scores' name must be text"),
        (
            {"scores": lambda m: made_up(m, "else")},
            "none of the tasks 'letters', 'few-shot' is in the scores, which have 'else'",
        ),
        (
            {"scores": lambda m: made_up(m, weights="0123")},
            "the scores 'mine' are of other weights .* Score this very model",
        ),
        (
            {"scores": lambda m: made_up(tiny.model("jamba"))},
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
    given = {"scores": made_up(model), "tasks": TASKS, "k": 1, **arguments}
    if callable(given["scores"]):
        given["scores"] = given["scores"](model)
    with pytest.raises((ValueError, TypeError), match=sentence):
        hw.knockout(model, **given)


def test_a_bare_model_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"hw.knockout takes what hw.load gives, e.g. hw.load\(model, tokenizer\)"
    ):
        hw.knockout(tiny.build("llama"), made_up(tiny.model("llama")), TASKS)  # type: ignore[arg-type]


def test_scores_of_unknown_weights_are_warned_of() -> None:
    model = tiny.model("llama")
    with pytest.warns(UserWarning, match="do not say which weights they are of") as caught:
        hw.knockout(model, made_up(model, weights=None), TASKS, k=1, draws=1, progress=False)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.knockout(model, made_up(model), TASKS, k=1, draws=1, progress=False)


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
    scores = made_up(model)

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
        match="task 'letters': log p.answer. is not a number for the prompt .*dtype=torch.float32, or choose a smaller factor",
    ):
        hw.amplify(model, made_up(model), tiny.task(), k=1, progress=False)


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
    copies: list[torch.Size] = []
    to_host = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda self: copies.append(self.shape) or to_host(self)
    )
    with Syncs() as syncs:
        landed = list(gated_forward.run(model, examples, gates))
    assert sum(syncs.found.values()) == 0, syncs.found
    assert len(copies) == len(landed) == 2  # those that share a prefix, and the one that does not


def test_the_model_is_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    module = tiny.build("llama").train()
    model = hw.load(module, tiny.tokenizer())
    before = {n: p.clone() for n, p in module.named_parameters()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    hw.knockout(model, made_up(model), TASKS, k=1, draws=1)
    assert all(torch.equal(p, before[n]) and p.requires_grad for n, p in module.named_parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        m.training and not m._forward_hooks and not m._forward_pre_hooks for m in module.modules()
    )
    assert "knockout · few-shot" in capfd.readouterr().err


# ---- how it shows ----


def test_what_is_shown_is_text_and_says_what_was_done() -> None:
    model = tiny.model("llama")
    task = hw.Task("<b>sums</b> $x_1$", tiny.task().examples)
    effect = hw.knockout(
        model, made_up(model, task.name), [task, FEW_SHOT], k=(1, 2), draws=2, progress=False
    )
    html = effect._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;sums" in html and "heads turned off" in html
    assert repr(effect).startswith("Effect(") and "beats_control" in repr(effect)
    assert (
        effect.meta["k"] == [1, 2]
        and effect.meta["seed"] == 0
        and effect.meta["weights"] == model.fingerprint()
    )


@pytest.mark.parametrize("measure", ["log_probability", "accuracy", "beats_foil"])
def test_the_plot_draws_the_frames_own_numbers(measure: str) -> None:
    model = tiny.model("llama")
    effect = hw.knockout(
        model,
        {"a": made_up(model), "b": made_up(model, "letters", seed=1)},
        TASKS,
        k=(1, 2),
        draws=3,
        progress=False,
    )
    figure = effect.plot(measure)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["letters · a", "few-shot · a", "letters · b"]
    before = effect.untouched.set_index("task")[measure]
    for axes, (method, task) in zip(shown, [("a", "letters"), ("a", "few-shot"), ("b", "letters")]):
        part = effect.frame[(effect.frame["method"] == method) & (effect.frame["heads_of"] == task)]
        own = part[part["task"] == task]
        lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
        np.testing.assert_allclose(
            lines["top heads"], [before[task], *own[own["kind"] == "top"][measure]]
        )
        control = own[own["kind"] == "control"].groupby("k")[measure]
        np.testing.assert_allclose(
            lines["random heads, same layers"], [before[task], *control.mean()]
        )
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == pytest.approx(
            (min(before[task], control.min().min()), max(before[task], control.max().max()))
        )
        elsewhere = part[(part["task"] != task) & (part["kind"] == "top")][measure]
        np.testing.assert_allclose(
            lines["top heads, other tasks"], [before.drop(task).mean(), *elsewhere]
        )
        assert [t.get_text() for t in axes.get_xticklabels()] == ["0", "1", "2"]


def test_a_plot_needs_no_pyplot() -> None:
    code = """
import sys
import pandas as pd
from headwidget.display.effect import Effect
rows = [{"method": "m", "heads_of": "t", "task": "t", "k": 1, "kind": kind, "accuracy": a} for kind, a in (("top", 0.1), ("control", 0.9))]
Effect(pd.DataFrame(rows), pd.DataFrame([{"task": "t", "accuracy": 1.0}]), 0.0).plot("accuracy").canvas.draw()
print([name for name in ("matplotlib.pyplot", "torch") if name in sys.modules])
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
