"""Patterns equal their definitions on every family, and known heads are found."""

from __future__ import annotations

import math
import random
import string
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.methods import patterns
from headwidget.methods.patterns import PATTERNS, Patterns, encode, repeats
from headwidget.models import attention, hooks
from headwidget.scoring import registry
from headwidget.scoring.contract import Chunk, Job
from headwidget.scoring.encode import Encoded
from headwidget.scoring.encode import encode as tokenised
from tests.support import make_induction, tiny
from tests.support.eager import eager, returned_weights
from tests.support.gpu import Syncs, copies_to_host, faked_copies_to_host, on_cuda

# ---- the scores ----


def by_definition(
    model: hw.Model, prompt: Encoded, given: list[torch.Tensor]
) -> dict[str, np.ndarray]:
    """Every pattern of a decoder's prompt, cell by cell, from each layer's (head, query, key)."""
    ids, n = prompt.ids, len(prompt.ids)
    found: dict[str, list[torch.Tensor]] = {name: [] for name in PATTERNS}
    for w in given:
        late = range(2, n)
        found["Previous token"].append(torch.stack([w[:, i, i - 1] for i in late]).mean(0))
        found["Current token"].append(torch.stack([w[:, i, i] for i in late]).mean(0))
        found["First token"].append(torch.stack([w[:, i, 0] for i in late]).mean(0))
        copies = [
            sum(w[:, i, j] for j in range(1, i) if ids[j] == ids[i])
            for i in range(n)
            if ids[i] in ids[1:i]
        ]
        found["Duplicate token"].append(
            torch.stack(copies).mean(0) if copies else torch.zeros(len(w))
        )
        found["Entropy"].append(
            torch.stack(
                [-torch.xlogy(w[:, i], w[:, i]).sum(-1) / math.log(i + 1) for i in late]
            ).mean(0)
        )
        many = len(prompt.answer)
        starts = [
            s for s in range(1, prompt.at[0] - many + 2) if ids[s : s + many] == prompt.answer
        ]
        held = [sum(w[:, at, s + i] for s in starts) for i, at in enumerate(prompt.at)]
        found["Retrieval"].append(torch.stack(held).mean(0) if starts else torch.zeros(len(w)))
        half = (n + 1) // 2
        found["Induction"].append(
            torch.stack([w[:, i, i - half + 1] for i in range(half, n)]).mean(0)
        )
    return {name: torch.stack(layers).numpy() for name, layers in found.items()}


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "bloom", "falcon"])
@pytest.mark.parametrize("size", [None, 2])
def test_scores_are_what_the_definitions_say(family: str, size: int | None) -> None:
    model = tiny.model(family)
    tasks = [
        tiny.task(),
        hw.Task(
            "found",
            [("it is mat, the other rug: it is", " mat"), ("xyz", "q"), ("a hat a hat", " hat")],
        ),
    ]
    scores = hw.score(
        model, tasks, "patterns", batch_size=size, progress=False, lengths=[5, 9], sequences=2
    )
    assert scores.tasks == PATTERNS and not scores.signed
    module = eager(family)
    for task in encode(tasks, model, Patterns(lengths=[5, 9], sequences=2), 0):
        assert list(scores.runs(task.name)) == [e.label for e in task.examples]
        for run, prompt in enumerate(task.examples):
            ids = torch.tensor([prompt.ids])
            given = [w[0] for w in returned_weights(module, ids, torch.ones_like(ids))]
            np.testing.assert_allclose(
                scores.values(task.name)[run],
                by_definition(model, prompt, given)[task.name],
                rtol=1e-4,
                atol=1e-5,
            )
    assert (
        len(scores.runs("Retrieval")) == 3
    )  # two of "found", and "one two three one two" whose answer begins a word it said
    assert len(scores.runs("Duplicate token")) == 5  # neither "abc" nor "xyz"


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_is_scored_between_0_and_1(family: str) -> None:
    scores = hw.score(
        tiny.model(family), tiny.task(), "patterns", progress=False, lengths=4, sequences=2
    )  # Mistral sees five tokens back
    assert {
        "Previous token",
        "Current token",
        "First token",
        "Duplicate token",
        "Induction",
        "Entropy",
    } <= set(scores.tasks)
    for name in scores.tasks:
        assert scores.values(name).min() >= 0 and scores.values(name).max() <= 1
    assert all(
        scores.values(name).min() > 0 for name in ("Previous token", "Current token", "Entropy")
    )


def test_an_encoder_sees_copies_on_both_sides_and_all_its_tokens() -> None:
    model = tiny.model("bert")
    task = hw.Task("t", [("ab <mask> cb", "q")])
    scores = hw.score(model, task, "patterns", progress=False, lengths=6, sequences=1)
    (prompt,) = tokenised(task, model).examples
    w = torch.cat(
        [attention.weights(model, prompt.ids, row) for row in range(3)]
    ).numpy()  # (layer, head, query, key)
    ids, n = prompt.ids, len(prompt.ids)
    pairs = [(i, j) for i in range(n) for j in range(1, n) if i != j and ids[i] == ids[j] and i > 0]
    assert len(pairs) == 4 and any(j > i for i, j in pairs)  # b and b, two spaces
    np.testing.assert_allclose(
        scores.values("Duplicate token")[0],
        np.mean([w[:, :, i, j] for i, j in pairs], 0),
        rtol=1e-4,
    )
    np.testing.assert_allclose(
        scores.values("Entropy")[0],
        -(w * np.log(w)).sum(-1)[:, :, 2:].mean(-1) / math.log(n),
        rtol=1e-4,
    )
    assert "Retrieval" not in scores.tasks and scores.meta["left_out"] == {
        "Retrieval": "no prompt holds its answer behind its first token"
    }


def test_even_attention_has_entropy_1_and_a_prompt_runs_once() -> None:
    module = tiny.build("llama")
    for block in module.model.layers:
        block.self_attn.q_proj.weight.data.zero_()
    model = hw.load(module, tiny.tokenizer())
    ran: list[int] = []
    with hooks.watch(model.blocks[0], lambda args, kwargs, out: ran.append(len(args[0]))):
        scores = hw.score(model, tiny.task(), "patterns", progress=False, lengths=6, sequences=3)
    np.testing.assert_allclose(scores.values("Entropy"), 1, atol=1e-5)
    assert scores.values("Entropy").max() <= 1
    assert ran[-1] == 4 + 3, "prompts, and random tokens, behind what is checked first"


# ---- known heads ----


def test_a_planted_previous_token_head_is_found() -> None:
    width, dim, (row, head) = 128, 32, (1, 3)
    module = tiny.build("gpt2", n_embd=width, hidden_size=width, n_positions=dim)
    module.transformer.wte.weight.data[:, :dim] = 0
    positions = module.transformer.wpe.weight.data
    positions.zero_()
    positions[:, :dim] = 20 * torch.eye(dim)
    for block in module.transformer.h:  # the stream keeps what was embedded
        block.attn.c_proj.weight.data *= 1e-3
        block.mlp.c_proj.weight.data *= 1e-3
    made = module.transformer.h[
        row
    ].attn.c_attn.weight.data  # (width, queries, keys and values side by side)
    for start, shift in ((head * dim, -1), (width + head * dim, 0)):
        made[:, start : start + dim] = 0
        made[:dim, start : start + dim] = 2 * torch.eye(dim).roll(
            shift, 1
        )  # a query looks for the position before its own
    scores = hw.score(
        hw.load(module, tiny.tokenizer()),
        tiny.task(),
        "patterns",
        progress=False,
        lengths=8,
        sequences=1,
    )
    found = scores.values("Previous token").mean(0)
    assert scores.top("Previous token", 1) == [(row, head)]
    assert found[row, head] > 0.95 and np.sort(found.ravel())[-2] < 0.6


def test_the_induction_heads_of_a_trained_model_are_found_and_the_previous_token_head_below() -> (
    None
):
    model = hw.load(make_induction.module(), tiny.tokenizer())
    rng = random.Random(0)
    words = ["".join(rng.sample(string.ascii_letters, 14)) for _ in range(12)]
    task = hw.Task("twice", [(word + word[:-1], word[-1]) for word in words])
    scores = hw.score(model, task, "patterns", progress=False, lengths=[12, 20], sequences=6)
    assert scores.meta["tasks"]["Induction"]["accuracy"] == 1
    for name in ("Induction", "Retrieval"):  # the answer was said before, so the same heads find it
        found = scores.values(name)  # (run, layer, head)
        assert found[:, 0].max() < 0.1 and found[:, 1].mean(0).min() > 0.6
    ((row, head),) = scores.top("Previous token", 1)
    previous = scores.values("Previous token").mean(0)
    assert row == 0 and previous[row, head] > 0.8 and np.sort(previous.ravel())[-2] < 0.4
    causal = hw.score(model, task, "ablation", progress=False).values("twice").mean(0)
    assert (
        causal[0].argmax() == head and causal[0, head] > 2 * np.delete(causal[0], head).max()
    )  # it is what the heads above work with


# ---- prompts ----


def test_random_tokens_are_said_twice_and_the_seed_chooses_them() -> None:
    model = tiny.model("llama")
    made = repeats(model, Patterns(lengths=[7, 10], sequences=3), 5)
    assert [len(e.ids) for e in made] == [13] * 3 + [19] * 3
    for e, n in zip(made, [7] * 3 + [10] * 3):
        assert (*e.ids, *e.answer) == e.ids[:n] * 2 and len(set(e.ids)) == n
        assert not {0, 1} & set(e.ids)  # <pad>, <mask>
    assert len({e.ids for e in made}) == 6
    assert (
        made
        == repeats(model, Patterns(lengths=[7, 10], sequences=3), 5)
        != repeats(model, Patterns(lengths=[7, 10], sequences=3), 6)
    )
    for e in repeats(tiny.model("gemma3"), Patterns(lengths=[200], sequences=2), 0):
        assert not {250, 251, 252} & set(e.ids)  # its image tokens


@pytest.mark.parametrize("seed", [0, 1])
def test_the_suite_shows_every_pattern(seed: int) -> None:
    tasks = hw.tasks.suite("patterns", seed=seed)
    text, repeated, needles = tasks
    assert [t.name for t in tasks] == [
        "Text",
        "Repeated words",
        "Needles",
    ] and tasks == hw.tasks.suite("patterns", seed=seed)
    assert tasks[1:] != hw.tasks.suite("patterns", seed=seed + 1)[1:]
    thirds = []
    for e in text:
        assert e.answer.startswith(" ") and e.answer.strip() not in e.prompt.split()
    for e in (*repeated, *needles):
        assert e.prompt.count(e.answer) == 1
    for e in needles:
        sentences = e.prompt.split(". ")[:-1]
        assert len(sentences) == 9 and e.foil is not None and e.foil in e.prompt
        thirds.append(next(i for i, s in enumerate(sentences) if e.answer in s) // 3)
        assert (
            sentences[3 * thirds[-1] : 3 * thirds[-1] + 3].count(
                next(s for s in sentences if s.endswith(e.answer))
            )
            == 1
        )
    assert thirds == [0, 1, 2] * 8
    scores = hw.score(
        tiny.model("llama"), "patterns", "patterns", seed=seed, progress=False, sequences=1
    )
    assert {name: len(scores.runs(name)) for name in PATTERNS} == {
        **dict.fromkeys(PATTERNS, 72),
        "Induction": 2,
        "Retrieval": 48,
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lengths": []}, "lengths is a list of whole numbers"),
        ({"lengths": "16"}, "lengths is a list of whole numbers"),
        ({"lengths": [3]}, "each of lengths is a whole number, 4 or more; got 3"),
        ({"lengths": [8, 8]}, "names a length twice"),
        ({"sequences": 0}, "sequences is a whole number, 1 or more"),
        ({"lengths": 300}, "needs 300 different tokens"),
        ({"length": 8}, "has no option 'length'; its options are lengths, sequences"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        hw.score(tiny.model("llama"), tiny.task(), "patterns", progress=False, **options)


def test_prompts_are_not_left_out_by_their_answers() -> None:
    model = hw.load(make_induction.module(), tiny.tokenizer())
    task = hw.Task(
        "twice", [("axyzcdefaxyzcde", "f"), ("ghijklmnghijklm", "q")]
    )  # the model gets one of them right
    with pytest.raises(ValueError, match="'patterns' asks the model no questions"):
        hw.score(model, task, "patterns", progress=False, lengths=8, only_correct=True)


def test_a_model_too_short_for_the_random_tokens_says_so() -> None:
    with pytest.raises(
        ValueError, match=r"70 random tokens twice are 139 tokens, but .* reads at most 128"
    ):
        hw.score(tiny.model("gpt2"), tiny.task(), "patterns", progress=False, lengths=70)


# ---- the device ----


@pytest.mark.parametrize(
    "family", ["llama", "mistral", "gemma2", "gpt2", "falcon", "bloom", "bert"]
)
def test_patterns_run_on_fake_cuda(
    fake_cuda: None, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = faked_copies_to_host(monkeypatch)
    model = on_cuda(family)
    options = Patterns(lengths=[6], sequences=2)
    tasks = tuple(encode([tiny.task()], model, options, 0))
    chunks = [c for c in patterns.run(Job(model, tasks, None, options)) if isinstance(c, Chunk)]
    assert {chunk.task for chunk in chunks} >= {
        "Previous token",
        "Induction",
        "Entropy",
    } and devices == ["cuda"]


@pytest.mark.parametrize(
    "family", ["llama", "gemma2", "gpt_neox", "gpt2", "opt", "falcon", "mixtral"]
)
def test_the_host_waits_once_a_batch(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = hw.load(tiny.build(family), tiny.tokenizer())
    model.config.pad_token_id = (
        None  # with one, GPT-2's own forward looks for padding in its input, and the host waits
    )
    method = registry.find("patterns")
    options = registry.options(method, {"lengths": [6], "sequences": 2})
    tasks = encode([tiny.task()], model, options, 0)
    copies = copies_to_host(monkeypatch)
    with Syncs() as syncs:
        chunks = list(patterns.run(Job(model, tuple(tasks), 3, options)))
    assert sum(syncs.counts.values()) == 0, syncs.counts
    assert len(copies) == 2 and len(chunks) > 6  # six prompts, three at a time
