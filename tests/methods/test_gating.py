"""Gating: the sign is right, fits are independent, prefixes change nothing, no score is NaN."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.methods import gating
from headwidget.methods.gate_fits import Fits, Prompts
from headwidget.methods.gating import Gating, fit
from headwidget.models import hooks
from headwidget.scores.provenance import known_prompts
from headwidget.scoring.batch import collate, forward, log_probability
from headwidget.scoring.contract import Chunk, Job, Report
from headwidget.scoring.encode import encode
from tests.support import tiny
from tests.support.gpu import Syncs, copies_to_host
from tests.support.planted import HARMS, HELPS, helped_and_harmed

SHORT: dict[str, Any] = {"updates": 12, "fits": 2, "batch_size": 3, "progress": False}


def seeds(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, i]) for i in range(count)]


def score(model: hw.Model, tasks: Any, **changes: Any) -> hw.HeadScores:
    return hw.score(model, tasks, "gating", **{**SHORT, **changes})


# ---- what it finds ----


@pytest.mark.parametrize("bootstrap", [False, True])
def test_each_aspect_picks_its_planted_head_in_every_fit(bootstrap: bool) -> None:
    model, task = helped_and_harmed()
    scores = score(model, task, updates=80, fits=4, batch_size=6, bootstrap=bootstrap)
    found = {"facilitation": scores, **scores.aspects}
    idle = np.ones(model.shape, bool)
    idle[HELPS] = idle[HARMS] = False
    expected = {
        "facilitation": np.zeros(model.shape, bool),
        "interference": np.zeros(model.shape, bool),
        "irrelevance": idle,
    }
    expected["facilitation"][HELPS] = expected["interference"][HARMS] = True
    for aspect, one in found.items():
        for run in one.values(task.name):
            np.testing.assert_array_equal(run > 0.5, expected[aspect], err_msg=aspect)
    assert scores.top(task.name, 1) == [HELPS] and scores.aspects["interference"].top(
        task.name, 1
    ) == [HARMS]
    assert not scores.signed and scores.on(0.5, 1.0).sum() == 1  # always on, and no other


def test_positive_pressure_keeps_heads_and_negative_drops_them() -> None:
    """A published re-implementation says it the other way round."""
    assert (
        Gating(strength=0.3).pressure("keep") == 0.3
        and Gating(strength=0.3).pressure("drop") == -0.3
    )
    model, task = helped_and_harmed()
    ends = {}
    for pressure in (0.1, -0.1):
        fits = Fits.random(
            model, [Prompts(model, encode(task, model).examples, 6, seeds(2), False)], seeds(2), 4.0
        )
        fits.begin(pressure)
        for _ in range(60):
            fits.update(1.0)
        ends[pressure] = fits.gates().mean()
    assert ends[0.1] > 0.85 and ends[-0.1] < 0.15


def test_contrast_leaves_out_what_both_tasks_need() -> None:
    model, task = helped_and_harmed()
    alike = hw.Task("the same", [(e.prompt, e.answer) for e in task.examples])
    alone, against = (
        score(model, task, updates=80, batch_size=12, contrast=other) for other in (None, alike)
    )
    assert alone.values(task.name)[(slice(None), *HELPS)].min() > 0.5
    assert (
        against.values(task.name)[(slice(None), *HELPS)].max() < 0.1
    )  # no loss is left to keep it on
    assert against.meta["options"]["contrast"] == "the same"
    known = known_prompts(against, "the same")
    assert all(known(e.prompt + e.answer) for e in alike.examples), (
        "fitted against, so no fresh prompts"
    )
    assert not known("something else")


# ---- the arithmetic ----


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_slope_is_that_of_the_definition_on_every_architecture(family: str) -> None:
    """Prompts and answers of unequal length, two with a shared beginning; each fit has its own."""
    model = tiny.model(family)
    examples = encode(tiny.task(), model).examples
    prompts = Prompts(model, examples, 2, seeds(3), False)
    fits = Fits.random(model, [prompts], seeds(3), 4.0)
    fits.begin(0.0)
    with hooks.differentiating(model):
        group, chosen, length = prompts.next()
        lost, slope = fits._loss_and_slope(group, chosen, length)
        for i, rows in enumerate(chosen):
            theta = fits.theta[i].detach().clone().requires_grad_(True)
            some = [examples[group.batch.runs[r]] for r in rows]
            total, tokens = torch.zeros(()), 0
            for example in some:  # one by one, unpadded, from the first token
                batch = collate([0], [example], model)
                with hooks.gate(model, theta.sigmoid()):
                    total = total - log_probability(forward(model, batch), batch).sum()
                tokens += len(example.answer)
            (expected,) = torch.autograd.grad(total / tokens, theta)
            torch.testing.assert_close(lost[i], (total / tokens).detach(), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(slope[i], expected, rtol=2e-3, atol=2e-6)


def few_shot(count: int = 9) -> hw.Task:
    return hw.Task(
        "few-shot",
        [
            (f"ab: ba, cd: dc, {c}{d}:", f" {d}{c}")
            for c, d in zip("abcdefghi"[:count], "mnopqrstu")
        ],
    )


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "gpt_neox", "falcon", "opt"])
def test_a_shared_prefix_runs_once_and_changes_nothing(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model(family)
    examples = encode(few_shot(), model).examples
    ends, tokens = [], []
    for shared in (True, False):
        if not shared:
            monkeypatch.setattr(hw.Model, "can_share_prefix", False)
        prompts = Prompts(model, examples, 3, seeds(2), False)
        assert [group.prefix for group in prompts.groups] == [16 if shared else 0]
        fits = Fits.random(model, [prompts], seeds(2), 4.0)
        fits.begin(-0.1)
        seen = 0

        def count(args: Any, kwargs: Any, output: Any) -> None:
            nonlocal seen
            seen += output.shape[0] * output.shape[1]

        with hooks.watch(model.module.get_input_embeddings(), count):
            for _ in range(5):
                fits.update(0.3)
        ends.append(fits.gates())
        tokens.append(seen)
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-4)
    length = len(examples[0].ids)
    assert tokens == [5 * 2 * (16 + 3 * (length - 16)), 5 * 2 * 3 * length]


def test_fits_side_by_side_are_what_each_is_alone() -> None:
    model = tiny.model("llama")
    examples = encode(few_shot(), model).examples

    def fitted(some: list[np.random.Generator]) -> np.ndarray:
        fits = Fits.random(model, [Prompts(model, examples, 9, some, False)], some, 4.0)
        fits.begin(0.1)
        for _ in range(6):
            fits.update(1.0)
        return fits.gates()

    both = fitted(seeds(2))
    np.testing.assert_allclose(both[0], fitted(seeds(1))[0], atol=1e-4)
    assert np.abs(both[0] - both[1]).max() > 0.1


@pytest.mark.parametrize("room", [1, 25, 60])
def test_as_many_fits_and_prompts_run_at_once_as_there_is_room_for(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwidget.methods import gate_fits

    model = tiny.model("llama")
    wide = score(model, few_shot(), updates=4)
    seen: list[int] = []
    real = gate_fits.rows_of
    monkeypatch.setattr(
        gate_fits,
        "rows_of",
        lambda batch, rows, length: seen.append(len(rows)) or real(batch, rows, length),
    )
    monkeypatch.setattr(gate_fits, "TOKENS", room)
    np.testing.assert_allclose(
        score(model, few_shot(), updates=4).values("few-shot"), wide.values("few-shot"), atol=1e-4
    )
    rest = len(encode(few_shot(), model).examples[0].ids) - 16
    assert (
        max(seen) == {1: 1, 25: min(3, 9 // rest), 60: 3}[room]
    )  # one fit of 3 prompts needs 16 + 3 * rest tokens


def test_with_bootstrap_every_fit_has_prompts_of_its_own() -> None:
    model = tiny.model("llama")
    examples = encode(few_shot(), model).examples
    for bootstrap in (False, True):
        prompts = Prompts(model, examples, 3, seeds(4), bootstrap)
        seen = [
            np.concatenate([prompts.next()[1] for _ in range(3)], axis=1) for _ in range(2)
        ]  # two rounds of all prompts, (fit, prompt)
        own = [sorted(set(row)) for row in seen[0]]
        assert [sorted(set(row)) for row in seen[1]] == own
        assert (own == [list(range(9))] * 4) is not bootstrap
        assert not np.array_equal(seen[0], seen[1])  # in another order


# ---- while it runs ----


def test_gates_stage_and_loss_stream_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "PATIENCE", math.inf)  # also on a busy machine
    model = tiny.model("llama")
    task = encode(few_shot(), model)
    yielded = list(gating.run(Job(model, (task,), 3, Gating(updates=25, fits=2))))
    chunks = [item for item in yielded if isinstance(item, Chunk)]
    reports = [item for item in yielded if isinstance(item, Report)]
    assert [(c.state["stage"], c.state["update"]) for c in chunks] == [
        (s, u) for s in ("free", "keep", "drop") for u in (10, 20, 25)
    ]
    assert all(
        np.isfinite(c.state["loss"]).all() and c.values.shape == (2, *model.shape) for c in chunks
    )
    free, keep, drop = chunks[2], chunks[5], chunks[8]
    np.testing.assert_array_equal(free.aspects["interference"], 1 - free.values)
    np.testing.assert_array_equal(
        keep.values, free.values
    )  # what pressure to drop leaves is not known yet
    np.testing.assert_allclose(
        drop.aspects["irrelevance"],
        (1 - drop.aspects["interference"]) * (1 - drop.values),
        atol=1e-6,
    )
    curves = reports[-1].tasks[task.name].record["gating"]
    assert [len(curves[stage]["loss"]) for stage in curves] == [25, 25, 25]
    assert not any(curves["free"]["regulariser"]) and any(curves["keep"]["regulariser"])


def test_whoever_watches_slow_updates_sees_each(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (task, options) = (
        tiny.model("llama"),
        (encode(few_shot(), tiny.model("llama")), Gating(updates=12, fits=2)),
    )

    def chunks() -> list[Chunk]:
        yielded = fit(Job(model, (task,), 3, options), task)
        return [item for item in yielded if isinstance(item, Chunk)]

    monkeypatch.setattr(gating, "PATIENCE", math.inf)
    fast = chunks()
    monkeypatch.setattr(gating, "PATIENCE", -1.0)
    slow = chunks()
    assert [c.state["update"] for c in fast] == [10, 12] * 3 and [
        c.state["update"] for c in slow
    ] == [*range(1, 13)] * 3
    np.testing.assert_array_equal(fast[-1].values, slow[-1].values)


def test_settled_gates_end_a_stage() -> None:
    model, task = helped_and_harmed()
    scores = score(model, task, updates=400, fits=2, batch_size=12, settle=0.01)
    curves = scores.meta["tasks"][task.name]["gating"]
    assert all(len(one["loss"]) < 200 for one in curves.values())
    assert scores.top(task.name, 1) == [HELPS]


@pytest.mark.parametrize("at", [1, 14, 29])
def test_ctrl_c_keeps_the_gates_as_they_are(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    real, count = Fits.update, 0
    kept: list[np.ndarray] = []

    def update(self: Fits, lr: float) -> None:
        nonlocal count
        count += 1
        if count == at:
            kept.append(self.gates())
            raise KeyboardInterrupt
        real(self, lr)

    monkeypatch.setattr(Fits, "update", update)
    scores = score(model, [few_shot(), tiny.task()], updates=12)
    assert (
        scores.partial
        and scores.tasks == ("few-shot",)
        and scores.runs("few-shot") == ("fit 0", "fit 1")
    )
    if at != 14:  # in the stage that keeps heads, facilitation is still where the free stage ended
        np.testing.assert_array_equal(scores.values("few-shot"), kept[0])
    else:
        np.testing.assert_array_equal(
            scores.aspects["interference"].values("few-shot"), 1 - kept[0]
        )
    hook_counts = [len(m._forward_pre_hooks) for m in model.module.modules()]
    assert not any(hook_counts)


def test_the_same_seed_gives_the_same_gates_and_a_file_keeps_all(tmp_path: Path) -> None:
    model = tiny.model("llama")
    one, same, other = (score(model, few_shot(), seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.values("few-shot"), same.values("few-shot"))
    assert not np.allclose(one.values("few-shot"), other.values("few-shot"))
    opened = hw.open(one.save(tmp_path / "gates.safetensors"))
    for aspect in ("interference", "irrelevance"):
        np.testing.assert_array_equal(
            opened.aspects[aspect].values("few-shot"), one.aspects[aspect].values("few-shot")
        )
    assert (
        opened.meta["options"]["updates"] == 12 and opened.meta["tasks"]["few-shot"]["prompts"] == 9
    )


def test_no_update_makes_the_host_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    fits = Fits.random(
        model,
        [Prompts(model, encode(few_shot(), model).examples, 3, seeds(2), False)],
        seeds(2),
        4.0,
    )
    fits.begin(0.1)
    fits.update(1.0)  # what the optimiser sets up on its first step
    copies = copies_to_host(monkeypatch)
    with Syncs() as syncs:
        for _ in range(4):
            fits.update(1.0)
    assert sum(syncs.counts.values()) == 0 and copies == [], syncs.counts


# ---- what goes wrong ----


def test_a_loss_that_is_not_a_number_never_reaches_the_gates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headwidget.methods import gate_fits

    model = tiny.model("llama")
    real, count = gate_fits.token_log_probability, 0

    def sometimes(logits: torch.Tensor, batch: Any) -> torch.Tensor:
        nonlocal count
        count += 1
        found = real(logits, batch)
        return (
            found * torch.where(torch.arange(len(found)) < 3, torch.nan, 1.0)[:, None]
            if count % 3 == 0
            else found
        )  # the first fit's

    monkeypatch.setattr(gate_fits, "token_log_probability", sometimes)
    scores = score(model, few_shot())
    assert np.isfinite(scores.values("few-shot")).all()
    monkeypatch.setattr(
        gate_fits, "token_log_probability", lambda logits, batch: real(logits, batch) * torch.nan
    )
    with pytest.raises(
        FloatingPointError,
        match="the loss of every update is not a number. Every weight of the model is a finite",
    ):
        score(model, few_shot())


def test_half_precision_is_fitted_in_float32() -> None:
    model = hw.load(tiny.build("llama").to(torch.bfloat16), tiny.tokenizer())
    values = score(model, few_shot()).values("few-shot")
    assert values.dtype == np.float32 and np.isfinite(values).all()
    whole = score(tiny.model("llama"), few_shot()).values("few-shot")
    assert np.abs(values - whole).mean() < 0.1


def test_one_prompt_and_a_task_never_right_are_scored_with_a_warning() -> None:
    model = tiny.model("llama")
    scores = score(
        model,
        [hw.Task("one", [("abc", "d")]), hw.Task("wrong", [(f"ab{c}", "Q") for c in "cdefg"])],
    )
    assert "Fitted on one prompt" in scores.meta["tasks"]["one"]["warning"]
    assert "none of the prompts right" in scores.meta["tasks"]["wrong"]["warning"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"preset": "slow"}, "preset must be 'published' or 'quick'"),
        ({"updates": 0}, "updates is a whole number, 1 or more"),
        ({"fits": True}, "fits is a whole number, 1 or more"),
        ({"strength": -0.1}, "strength is a number between 0 and inf"),
        ({"clamp": 0}, "clamp is a number between 0 and inf"),
        ({"lr": "fast"}, "lr is a number between"),
        ({"lr_end": 0}, "lr_end is a number between"),
        ({"settle": 2}, "settle is a number between 0 and 1"),
        ({"bootstrap": 1}, "bootstrap must be True or False"),
        ({"contrast": "Syntax"}, "contrast is a hw.Task"),
        ({"contrast": hw.Task("empty answer", [("a", "b")])}, None),
    ],
)
def test_bad_options_get_a_sentence(bad: dict[str, Any], said: str | None) -> None:
    if said is None:
        score(tiny.model("llama"), few_shot(), **bad, updates=1)
        return
    with pytest.raises(ValueError, match=said):
        score(tiny.model("llama"), few_shot(), **{**SHORT, **bad})


def test_presets_fill_in_what_is_not_given() -> None:
    published, quick = Gating(), Gating(preset="quick", fits=2)
    assert (
        published.updates,
        published.strength,
        published.clamp,
        published.lr,
        published.fits,
        published.settle,
    ) == (500, 0.1, 4.0, 1.0, 10, None)
    assert quick.updates is not None and quick.updates < 100 and quick.fits == 2


def test_the_progress_bar_counts_updates(capfd: pytest.CaptureFixture[str]) -> None:
    score(tiny.model("llama"), few_shot(), progress=True)
    shown = capfd.readouterr().err
    assert "36/36 updates" in shown and "few-shot, drop" in shown


# ---- a real model ----
