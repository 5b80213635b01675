"""The probe finds the heads that carry the label and no others, and says what that is worth."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.methods import probe as probe_module
from headwidget.methods.probe import Probe, read, splits
from headwidget.methods.probe_classifier import Features, Training, fit
from headwidget.models import hooks
from headwidget.scores import chance
from headwidget.scoring.batch import collate, forward
from headwidget.scoring.contract import Job
from headwidget.scoring.encode import encode
from headwidget.scoring.score import prepare
from tests.support import tiny
from tests.support.gpu import Syncs, copies_to_host, on_cuda
from tests.support.planted import labelled, letters

PLANTED = [(0, 1), (2, 3)]
SMALL = {"units": 4, "hidden": 16, "epochs": 3}


def words(count: int = 8, held_out: int = 0) -> list[hw.Task]:
    """Two tasks whose prompts and answers differ in length, some answers long."""
    answers = [" mat", " th", "d", " three four five"]
    pairs = [
        [(f"the cat {i} sat {'on ' * (i % 3)}the", answers[i % 4]) for i in range(count)],
        [(f"ab: {i}, cd", answers[-1 - i % 4]) for i in range(count)],
    ]
    return [
        hw.Task(name, own, held_out=range(held_out)) for name, own in zip(("one", "two"), pairs)
    ]


# ---- the planted label ----


@functools.cache
def found(seed: int, shuffled: bool = False) -> hw.HeadScores:
    return hw.score(
        labelled(PLANTED),
        letters(60, shuffled=shuffled, seed=seed, held_out=20),
        "probe",
        seed=seed,
        epochs=120,
        progress=False,
    )


def largest(share: np.ndarray, count: int) -> set[tuple[int, int]]:
    return {
        (int(i) // share.shape[1], int(i) % share.shape[1])
        for i in np.argsort(-share.ravel())[:count]
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_heads_that_carry_the_label_are_the_top_heads_in_every_seed(seed: int) -> None:
    scores = found(seed)
    assert scores.meta["probe"]["accuracy"] > 0.7 and scores.meta["probe"]["control_accuracy"] < 0.6
    for task, share in zip(scores.tasks, scores.share()):
        assert largest(share, 2) == set(PLANTED), task
        mean = np.abs(scores.values(task).mean(0))
        assert min(mean[head] for head in PLANTED) > 2 * scores.meta["floor"][task]
        assert (
            min(mean[head] for head in PLANTED) > 3 * mean[1].max()
        )  # a layer without a planted head; in the others the layer's mean lets it through
        warning = scores.meta["tasks"][task].get("warning", "")
        assert (
            "probe" not in warning and "chance" not in warning
        )  # of the model alone: it is random


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_nothing_to_tell_the_tasks_apart_no_head_stands_out_and_a_warning_says_so(
    seed: int,
) -> None:
    scores = found(seed, shuffled=True)
    known = scores.meta["probe"]
    assert chance.at_chance(round(known["accuracy"] * 60), 60, 1 / 3)
    for task in scores.tasks:
        mean = np.abs(scores.values(task).mean(0))
        assert mean.max() < 3 * scores.meta["floor"][task]
        assert mean.max() < 0.5 * np.abs(found(seed).values(task).mean(0)).max()
        warning = scores.meta["tasks"][task]["warning"]
        assert "right, no better than chance (33%): its head scores are noise." in warning


def test_a_head_that_moves_takes_its_score_along_and_a_twin_shares_it() -> None:
    moved = hw.score(
        labelled([(0, 2), (2, 0), (2, 1)]),
        letters(60, held_out=20),
        "probe",
        epochs=60,
        progress=False,
    )
    assert largest(moved.share().mean(0), 3) == {(0, 2), (2, 0), (2, 1)}


def test_sixteen_bits_find_the_same_heads() -> None:
    scores = hw.score(
        labelled(PLANTED, dtype=torch.bfloat16),
        letters(60, held_out=20),
        "probe",
        epochs=60,
        progress=False,
    )
    assert scores.values("x").dtype == np.float32
    assert largest(scores.share().mean(0), 2) == set(PLANTED)


# ---- features ----


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3", "gpt2", "falcon", "jamba", "bert"])
@pytest.mark.parametrize(("k", "at"), [(50, "predict"), (2, "predict"), (2, "answer")])
def test_features_are_the_mean_z_at_the_most_surprising_answer_tokens(
    family: str, k: int, at: Any
) -> None:
    model, tasks = tiny.model(family), [encode(task, tiny.model(family)) for task in words()]
    z, right = read(Job(model, tuple(tasks), 3, Probe(k=k, at=at)))
    assert z.shape == (16, *model.shape, model.head_dim) and right.shape == (2, 16)
    for i, example in enumerate(e for task in tasks for e in task.examples):
        shift = int(at == "answer" and not model.encoder)
        ids = [*example.ids, *example.answer[-1:]] if shift else [*example.ids]
        seen: list[torch.Tensor] = []
        with hooks.scoring(model), hooks.read(model, lambda _, value: seen.append(value[0])):
            logits = model.module(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
        surprisal = [
            -float(logits[place, token]) for place, token in zip(example.at, example.answer)
        ]
        chosen = [
            example.at[j] + shift
            for j in sorted(range(len(surprisal)), key=lambda j: -surprisal[j])[:k]
        ]
        expected = torch.stack([layer[chosen].mean(0) for layer in seen])
        torch.testing.assert_close(z[i], expected, rtol=1e-4, atol=1e-4)


def test_whole_sequences_are_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the hook keeps of a long prompt is as small as its answer."""
    model = tiny.model("llama")
    task = encode(hw.Task("long", [("word " * 20, " mat"), ("word " * 21, " th")]), model)
    kept: list[int] = []
    real = probe_module._average
    monkeypatch.setattr(
        probe_module,
        "_average",
        lambda here, weights: kept.append(here.shape[1]) or real(here, weights),
    )
    for k in (2, 9):
        read(Job(model, (task,), None, Probe(k=k)))
    assert kept == [4] * 6


# ---- what it asks for, and what it tells ----


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "k is a whole number, 1 or more; got 0"),
        ({"k": True}, "k is a whole number"),
        ({"at": "last"}, "at must be 'predict' or 'answer'; got 'last'"),
        ({"seeds": 0}, "seeds is a whole number, 1 or more"),
        ({"folds": 1}, "folds is a whole number, 2 or more; got 1"),
        ({"validation": 1.5}, "validation is a number between 0 and 1; got 1.5"),
        ({"validation": 0}, "validation is a number between 0 and 1; got 0"),
        ({"epochs": 0}, "epochs is a whole number, 1 or more"),
        ({"minibatch": 1.5}, "minibatch is a whole number"),
        ({"lr": "fast"}, "lr is a number between 0 and 1; got 'fast'"),
        ({"lr": float("nan")}, "lr is a number between 0 and 1"),
        ({"units": -1}, "units is a whole number"),
        ({"hidden": None}, "hidden is a whole number"),
        ({"published": 1}, "published must be True or False; got 1"),
        ({"standardise": "no"}, "standardise must be True or False"),
        (
            {"published": True, "validation": 0.1},
            "published=True trains for all its epochs, so it has no validation split",
        ),
        ({"depth": 3}, "method 'probe' has no option 'depth'; its options are k, at, seeds"),
        ({"tasks": tiny.task()}, r"it needs at least two; got 1 \('letters'\)"),
        (
            {"tasks": [tiny.task("a"), tiny.task("b")]},
            "task 'a' has 4 examples, too few to hold each out once in 5 folds",
        ),
        (
            {"tasks": words(8), "folds": 9},
            "task 'one' has 8 examples, too few to hold each out once in 9 folds",
        ),
        (
            {"tasks": words(8, held_out=7)},
            "task 'one' has 1 examples that are not held out; the probe needs 2 or more",
        ),
        (
            {"tasks": [*words(8), hw.Task("long", [("x" * 127, "ab")] * 8)], "at": "answer"},
            "reads 129 tokens, but .* reads at most 128; shorten",
        ),
    ],
)
def test_bad_input_is_a_sentence_before_any_forward(
    options: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model("gpt2")
    monkeypatch.setattr(type(model.module), "forward", lambda *a, **k: pytest.fail("a forward ran"))
    with pytest.raises(ValueError, match=sentence):
        hw.score(model, **{"tasks": words(), "method": "probe", "progress": False, **options})


def test_the_published_variant_and_what_it_leaves_out() -> None:
    scores = hw.score(
        tiny.model("llama"),
        words(),
        "probe",
        published=True,
        folds=2,
        units=4,
        hidden=16,
        progress=False,
    )
    asked = scores.meta["options"]
    assert (
        asked["epochs"],
        asked["minibatch"],
        asked["standardise"],
        asked["validation"],
        asked["lr"],
    ) == (100, 1, False, 0, 1e-4)
    assert scores.meta["probe"]["epochs"] == [100] * 2 and scores.meta["probe"]["validation"] == 0
    usual = Probe()
    assert (
        usual.units,
        usual.hidden,
        usual.k,
        usual.lr,
        usual.standardise,
        usual.training().dropout,
    ) == (64, 512, 5, 1e-4, True, 0.3)


def test_held_out_examples_are_the_runs_and_the_others_are_not_called_dropped() -> None:
    tasks = words(10, held_out=4)
    scores = hw.score(tiny.model("llama"), tasks, "probe", seeds=2, progress=False, **SMALL)
    assert scores.runs("two") == tuple(e.prompt + e.answer for e in tasks[1].examples[:4])
    known, own = scores.meta["probe"], scores.meta["tasks"]["two"]
    assert (own["prompts"], own["fitted_on"], own["dropped"], own["asked"]) == (4, 6, [], 10)
    assert (
        known["train"],
        known["validation"],
        known["held_out"],
        known["seeds"],
        known["folds"],
    ) == (10, 2, 8, 2, None)
    assert np.sum(known["confusion"]) == 16 and len(known["epochs"]) == 2
    assert (
        known["accuracy"] == np.trace(known["confusion"]) / 16
        and known["chance"] == 0.5
        and known["tasks"] == ["one", "two"]
    )
    assert scores.signed and scores.meta["display"] == {"normalize": "share"} and not scores.partial
    assert scores.meta["floor"].keys() == {"one", "two"} and all(
        value > 0 for value in scores.meta["floor"].values()
    )


def test_folds_hold_every_example_out_once() -> None:
    model = tiny.model("llama")
    tasks = [encode(task, model) for task in words(10, held_out=4)]
    planned = splits(tasks, Probe(folds=3), seed=0)
    assert sorted(i for split in planned for i in split.held_out) == list(range(20))
    for split in planned:
        train, validation = split.train_and_validation(0.2, 0)
        assert sorted([*train, *validation, *split.held_out]) == list(range(20)) and validation
    scores = hw.score(model, words(10, held_out=4), "probe", folds=3, progress=False, **SMALL)
    assert scores.runs("one") == tuple(e.prompt + e.answer for e in words(10)[0].examples)
    assert (
        scores.meta["probe"]["folds"] == 3
        and scores.meta["probe"]["held_out"] == 20
        and scores.meta["tasks"]["one"]["dropped"] == []
    )
    assert hw.score(model, words(10), "probe", progress=False, **SMALL).meta["probe"]["folds"] == 5


def test_the_same_seed_gives_the_same_scores_and_nothing_else_changes() -> None:
    module = tiny.build("llama").train()
    model = hw.load(module, tiny.tokenizer())
    torch.manual_seed(5)
    state = torch.get_rng_state()
    before = {n: p.clone() for n, p in module.named_parameters()}
    first = hw.score(model, words(), "probe", progress=False, **SMALL)
    with torch.inference_mode():
        again = hw.score(model, words(), "probe", progress=False, **SMALL)
    other = hw.score(model, words(), "probe", seed=1, progress=False, **SMALL)
    np.testing.assert_array_equal(first.values("one"), again.values("one"))
    assert not np.allclose(first.values("one"), other.values("one"))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        torch.equal(p, before[n]) and p.grad is None and p.requires_grad
        for n, p in module.named_parameters()
    )
    assert all(
        m.training and not m._forward_hooks and not m._forward_pre_hooks for m in module.modules()
    )


@pytest.mark.parametrize("family", ["gpt2", "gemma3", "mixtral", "jamba", "bert"])
def test_other_architectures_are_probed(family: str) -> None:
    scores = hw.score(tiny.model(family), words(), "probe", folds=2, progress=False, **SMALL)
    assert (
        scores.values("one").shape == (8, *tiny.model(family).shape) and scores.values("one").any()
    )


def test_only_correct_keeps_the_held_out_examples_held_out() -> None:
    model = tiny.model("llama")
    prompts = [f"prompt {i}" for i in range(12)]
    examples = []
    for i, prompt in enumerate(prompts):  # every third answer is not the model's own
        (example,) = encode(hw.Task("t", [(prompt, "x")]), model).examples
        with hooks.scoring(model):
            best = int(
                forward(model, collate([0], [example], model))[0, 0, : tiny.VOCABULARY].argmax()
            )
        examples.append(
            (
                prompt,
                tiny.tokenizer().decode(
                    [best + 1 if i % 3 == 0 and best + 1 < tiny.VOCABULARY else best]
                ),
            )
        )
    ready = prepare(
        model,
        [hw.Task(name, examples, held_out=[1, 3, 5, 9, 10]) for name in "ab"],
        "probe",
        batch_size=None,
        seed=0,
    )
    labels = [e.label for e in ready.tasks[0].examples]
    ready.keep_correct()
    kept = ready.tasks[0]
    assert 5 < len(kept.examples) < 12
    expected = [
        labels[i] for i in (1, 3, 5, 9, 10) if labels[i] in {e.label for e in kept.examples}
    ]
    assert [kept.examples[i].label for i in kept.held_out] == expected
    assert ready.sources[0].held_out == kept.held_out and len(ready.sources[0]) == len(
        kept.examples
    )


# ---- Ctrl-C, progress ----


def interrupt(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a classifier is trained, after so many are done."""
    real = probe_module.fit

    def stopped(*args: Any, **kwargs: Any) -> Any:
        nonlocal after
        if not after:
            raise KeyboardInterrupt
        after -= 1
        return real(*args, **kwargs)

    monkeypatch.setattr(probe_module, "fit", stopped)


def test_ctrl_c_before_the_first_fold_says_that_there_is_nothing_to_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupt(1, monkeypatch)
    with pytest.raises(
        KeyboardInterrupt, match="before it was trained: there are no scores to keep"
    ):
        hw.score(tiny.model("llama"), words(), "probe", progress=False, **SMALL)


def test_ctrl_c_keeps_the_folds_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hw.score(tiny.model("llama"), words(10), "probe", progress=False, **SMALL)
    interrupt(5, monkeypatch)  # two folds, each with its control, and one more
    scores = hw.score(tiny.model("llama"), words(10), "probe", progress=False, **SMALL)
    assert scores.partial and len(scores.runs("one")) == len(scores.runs("two")) == 4
    at = [whole.runs("one").index(label) for label in scores.runs("one")]
    np.testing.assert_array_equal(scores.values("one"), whole.values("one")[at])
    assert scores.meta["tasks"]["one"]["dropped"] == [
        {"why": "scoring was stopped before it", "count": 6}
    ]
    assert scores.meta["probe"]["held_out"] == 8 and len(scores.meta["probe"]["epochs"]) == 2


def test_the_progress_bar_says_what_is_done(capfd: pytest.CaptureFixture[str]) -> None:
    hw.score(tiny.model("llama"), words(), "probe", **SMALL)
    shown = capfd.readouterr().err
    assert "16/16 prompts" in shown
    assert (
        "training on labels, probe 5 of 5, epoch 3" in shown
        and "training on shuffled labels, control 5 of 5" in shown
    )


# ---- the device ----


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "falcon", "bert"])
@pytest.mark.parametrize(("k", "at"), [(5, "predict"), (1, "answer")])
def test_features_are_read_on_fake_cuda_without_a_look_at_them(
    fake_cuda: None, family: str, k: int, at: Any
) -> None:
    model = on_cuda(family)
    tasks = tuple(encode(task, model) for task in words())
    z, right = read(Job(model, tasks, 3, Probe(k=k, at=at)))
    assert (
        z.device.type == right.device.type == "cuda"
        and z.dtype == torch.float32
        and z.shape == (16, *model.shape, model.head_dim)
    )


def test_neither_reading_nor_a_step_of_training_makes_the_host_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    tasks = [encode(task, model) for task in words()]
    copies = copies_to_host(monkeypatch)
    with Syncs() as syncs:
        z, _ = read(Job(model, tuple(tasks), 3, Probe(k=2)))
    assert sum(syncs.counts.values()) == 0 and copies == []
    y, some = torch.arange(16) // 8, torch.arange(12)
    x = Features.of(z).standardised(some)
    fit(
        x, y, some, some[:0], 2, Training(4, 16, 1e-4, 1, 4), 0
    )  # what the optimiser sets up on its first step
    with Syncs() as syncs:
        fit(x, y, some, some[:0], 2, Training(4, 16, 1e-4, 5, 4), 0)
    assert sum(syncs.counts.values()) == 0 and copies == [], syncs.counts
    fit(x, y, some, torch.arange(12, 16), 2, Training(4, 16, 1e-4, 5, 4), 0)
    assert copies == [()] * 5  # once an epoch, to know when to stop


# ---- chance ----


def test_a_model_at_chance_is_called_so_for_every_method() -> None:
    model = tiny.model("llama")
    examples = []
    for i in range(
        20
    ):  # the answer is what the model prefers of two letters in just half the prompts
        (example,) = encode(hw.Task("t", [(f"prompt {i}", "q", "r")]), model).examples
        with hooks.scoring(model):
            logits = forward(model, collate([0], [example], model))[0, 0]
        first, second = (
            ("q", "r") if logits[example.answer[0]] > logits[example.foil] else ("r", "q")
        )
        examples.append((f"prompt {i}", *((first, second) if i % 2 else (second, first))))
    coin = hw.Task("coin", examples)
    sure = hw.Task(
        "sure", [(p, *((a, f) if i % 2 else (f, a))) for i, (p, a, f) in enumerate(examples)]
    )
    for method in ("gradient", "attribution"):
        known = hw.score(model, [coin, sure], method, progress=False).meta["tasks"]
        assert known["coin"]["warning"].startswith(
            "The model beats the foil on 50% of 20 prompts, no better than chance: "
            "these head scores are noise."
        )
        assert "chance" not in known["sure"].get("warning", "")
    known = hw.score(model, [coin, sure], "probe", progress=False, folds=2, **SMALL).meta["tasks"]
    assert (
        "no better than chance: heads that tell this task from others do not solve it."
        in known["coin"]["warning"]
    )


def test_chance_is_the_binomial_tail() -> None:
    for asked, guess in ((5, 0.5), (60, 0.125), (37, 0.4)):
        draws = np.random.default_rng(0).binomial(asked, guess, 200_000)
        for right in range(asked + 1):
            assert chance.tail(right, asked, guess) == pytest.approx(
                (draws >= right).mean(), abs=0.005
            )
    assert (
        chance.foil_warning(1.0, 4) is None
    )  # four of four is still chance, but so few could never be more
    assert (
        chance.foil_warning(0.8, 5)
        == "The model beats the foil on 80% of 5 prompts, which so few cannot tell from chance."
    )
    assert chance.foil_warning(1.0, 5) is None
