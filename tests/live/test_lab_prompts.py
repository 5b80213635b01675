"""Prompts, heads and gates of the lab: each number against the model's own forward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from traitlets import TraitError

import headwidget as hw
from headwidget.live import gates as gating
from headwidget.live import reading
from headwidget.models import hooks
from tests.support import every_family, tiny
from tests.support.lab_tools import TASKS, fresh


def test_a_prompt_is_read_as_the_model_reads_it() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompt="abcab")
    assert lab.wait(60)
    ids = torch.tensor([model.tokenizer("abcab")["input_ids"]])
    with torch.no_grad():
        best = model.module(ids).logits[0, -1].softmax(-1).topk(10)
    read = lab._reading
    assert [one[0] for one in read["predictions"]] == best.indices.tolist()
    np.testing.assert_allclose([one[2] for one in read["predictions"]], best.values, rtol=1e-4)
    assert "".join(read["tokens"]) == "abcab"
    maps = np.frombuffer(lab._maps, "<f4").reshape(10, *model.shape)
    found = reading.read(model, "abcab").outputs
    assert found is not None
    np.testing.assert_allclose(
        maps, reading.towards(model, found, best.indices.tolist()), atol=1e-6
    )
    for letter in "cdx":  # a random model's likely tokens are half letters, which no task has
        expected = hw.score(
            model, hw.Task("t", [("abcab", letter)]), "attribution", progress=False
        ).values("t")[0]
        (mine,) = reading.towards(model, found, model.tokenizer(letter)["input_ids"])
        np.testing.assert_allclose(mine, expected, atol=1e-5)
    lab.prompt = "x" * 2000
    lab.wait(60)
    assert "Shorten it" in lab._reading["error"] and lab._maps == b""
    lab.prompt = ""
    lab.wait(60)
    assert lab._reading == {}


def test_gates_go_both_ways_and_change_what_comes_next() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompt="abcab")
    gates = np.ones(model.shape)
    gates[1, 2], gates[2, 0] = 0, 2.5
    lab.gates = gates
    assert lab._scaled == [[1, 2, 0.0], [2, 0, 2.5]] and lab.wait(60)
    ids = torch.tensor([model.tokenizer("abcab")["input_ids"]])
    with torch.no_grad(), hooks.gate(model, torch.tensor(gates, dtype=torch.float32)):
        best = model.module(ids).logits[0, -1].softmax(-1).topk(10)
    rows = lab._reading["predictions"] + lab._reading["risen"]
    after = {one[0]: one[3] for one in rows}
    assert set(best.indices.tolist()) <= set(after)
    np.testing.assert_allclose([after[i] for i in best.indices.tolist()], best.values, rtol=1e-4)
    with torch.no_grad():
        before = model.module(ids).logits[0, -1].softmax(-1)
    np.testing.assert_allclose(
        [one[2] for one in rows], before[[one[0] for one in rows]], rtol=1e-4
    )
    lab.set_state({"_scaled": [[0, 1, 3]]})
    assert lab.gates[0, 1] == 3 and lab.gates.sum() == gates.size + 2
    lab.gates = np.ones(model.shape)
    assert (
        lab._scaled == []
        and lab.wait(60)
        and lab._reading["risen"] == []
        and lab._reading["predictions"][0][3] is None
    )
    for wrong in (np.ones((2, 2)), np.full(model.shape, np.nan), "off", None):
        with pytest.raises(
            TraitError, match=r"gates is a \(layer, head\) array of 3 x 4 finite numbers"
        ):
            lab.gates = wrong
    with pytest.raises(ValueError, match="read-only"):
        lab.gates[0, 0] = 0


def test_a_factor_is_shown_and_copied_in_as_few_digits_as_it_takes() -> None:
    lab = hw.live(fresh(), TASKS)
    lab.set_state({"_scaled": [[0, 1, 0.15], [1, 2, -2.6]]})
    assert lab._scaled == [[0, 1, 0.15], [1, 2, -2.6]]
    gates = lab.gates.copy()
    gates[0, 1] = 0.15
    assert (gates == lab.gates).all()


def test_the_fewest_digits_are_the_same_gate() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 5000, np.uint32)
    ends = np.float32([1e-45, 1e30, np.finfo(np.float32).max, np.finfo(np.float32).min, 0, 0.1])
    every = np.concatenate([bits.view(np.float32), ends])
    gates = every[np.isfinite(every) & (every != 1)][:, None]  # (layer, head)
    layers = list(range(len(gates)))
    scaled = gating.to_scaled(gates, layers)
    assert (gating.from_scaled(scaled, layers, 1) == gates).all()
    assert gating.checked_scaled(layers, 1, scaled) == scaled
    digits = [str(factor).partition("e")[0].strip("-0.").replace(".", "") for *_, factor in scaled]
    assert sorted(map(len, digits))[-3] <= 9  # all but the largest and the least number of float32


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2", "olmo2"])
def test_what_a_head_promotes_is_what_it_writes_through_the_norms_to_the_logits(
    family: str,
) -> None:
    model = tiny.model(family)
    lab = hw.live(model, TASKS, prompt="abcab")
    lab.run(method="gradient").wait(60)
    lab.selected = [[1, 3]]
    assert lab.wait(60)
    found = lab._head
    assert found["head"] == [1, 3] and np.shape(found["pattern"]) == (5, 5)
    np.testing.assert_allclose(np.sum(found["pattern"], axis=1), 1, atol=5e-3)
    assert {(one["method"], one["task"]) for one in found["ranks"]} == {
        ("gradient", "one"),
        ("gradient", "two"),
    }
    # The whole vocabulary by the attribution method, whose numbers other tests hold.
    read = reading.read(model, "abcab")
    assert read.outputs is not None
    with hooks.scoring(model):
        every = reading.towards(model, read.outputs, range(tiny.VOCABULARY))[:, 1, 3]
    best = every.topk(6)
    assert [one[0] for one in found["promoted"]] == [
        model.tokenizer.decode([i]) for i in best.indices.tolist()
    ]
    np.testing.assert_allclose([one[1] for one in found["promoted"]], best.values, atol=1e-4)
    least = every.topk(6, largest=False)
    np.testing.assert_allclose([one[1] for one in found["suppressed"]], least.values, atol=1e-4)


def test_an_encoder_says_why_it_reads_no_prompt() -> None:
    lab = hw.live(tiny.model("bert"), [tiny.task("one")], "gradient", prompt="abc")
    lab.wait(60)
    assert "does not go on from a prompt" in lab._reading["error"]
    assert [
        one["why_not"] is None
        for one in lab._offer["methods"]
        if one["name"] in ("gradient", "attribution")
    ] == [True, False]


@pytest.mark.parametrize("family", ["olmo", "granite", "cohere", "deepseek_v3", "lfm2"])
def test_a_lab_reads_prompts_with_a_model_found_by_structure(family: str) -> None:
    model = hw.load(every_family.build(family).float(), tiny.tokenizer())
    assert not model.family.table
    lab = hw.live(model, TASKS, prompt="abcab")
    lab.selected = [(model.layers[-1].index, 1)]
    assert lab.wait(60) and lab._reading["why_not"] is None
    assert len(lab._head["promoted"]) == 6 and np.sum(lab._head["pattern"][-1]) > 0.9
    scores = hw.score(model, hw.Task("t", [("abcab", "c")]), "attribution", progress=False)
    outputs = reading.read(model, "abcab").outputs
    assert outputs is not None
    (token,) = model.tokenizer("c")["input_ids"]
    maps = reading.towards(model, outputs, [token])
    np.testing.assert_allclose(maps[0], scores.values("t")[0], atol=1e-5)
    lab.close()
