"""A fingerprint sees every head of every layer, is the same everywhere, and says when it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import pytest
import torch
from torch import nn

import headwidget as hw
from headwidget.models.fingerprint import fingerprint
from headwidget.scores.record import tells_weights
from tests.support import tiny


def load(module: Any) -> hw.Model:
    return hw.load(module, tiny.tokenizer())


@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox", "bert"])
def test_a_change_of_any_head_of_any_layer_is_seen(family: str) -> None:
    module = tiny.build(family)
    model = load(module)
    before = model.fingerprint()
    assert tells_weights(before) and before == load(tiny.build(family)).fingerprint()
    seen = {before}
    for layer in model.layers:
        for head in range(layer.heads):
            with torch.no_grad():
                rows = layer.w_o()[head]
                kept = rows.clone()
                rows.zero_()
                seen.add(model.fingerprint())
                rows.copy_(kept)
    layers, heads = model.shape
    assert len(seen) == 1 + layers * heads and model.fingerprint() == before


def test_a_single_bit_and_two_heads_swapped_are_seen() -> None:
    module = tiny.build("llama")
    before = fingerprint(module)
    weight = module.model.layers[2].self_attn.o_proj.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[3, 5] = torch.nextafter(weight[3, 5], torch.tensor(9.0))
        assert fingerprint(module) != before
        weight.copy_(kept)
        weight[:, :16] = kept[:, torch.tensor([*range(8, 16), *range(8)])]
        assert fingerprint(module) != before


def test_tied_views_and_odd_shapes_are_read() -> None:
    odd = nn.Module()
    odd.small = nn.Parameter(torch.ones(3, 5, dtype=torch.float16))
    odd.scalar = nn.Parameter(torch.tensor(2.0))
    odd.turned = nn.Parameter(torch.randn(4, 6).T)
    odd.empty = nn.Parameter(torch.empty(0, 3))
    odd.again = odd.small
    before = fingerprint(odd)
    assert tells_weights(before)
    with torch.no_grad():
        odd.scalar += 1
    assert fingerprint(odd) != before


def test_quantised_weights_are_read() -> None:
    modules = []
    for changed in (False, True):
        module = tiny.build("llama")
        if changed:
            with torch.no_grad():
                module.model.layers[0].self_attn.o_proj.weight[:, :8] = 0
        modules.append(
            torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
        )
    prints = [fingerprint(module) for module in modules]
    assert all(map(tells_weights, prints)) and prints[0] != prints[1]


def test_offloaded_weights_are_unknown_and_not_merged_without_a_word(tmp_path: Path) -> None:
    module = accelerate.disk_offload(tiny.build("llama"), str(tmp_path), torch.device("cpu"))
    model = load(module)
    assert model.fingerprint() == "unknown"
    tasks = [hw.Task("a", [("abc", "d")]), hw.Task("b", [("bcd", "e")])]
    first, second = (hw.score(model, task, "ablation", progress=False) for task in tasks)
    assert first.record.weights == "unknown"
    with pytest.raises(ValueError, match=r"weights is 'unknown' here .*a.merge\(b, trust=True\)"):
        first + second
    assert first.merge(second, trust=True).tasks == ("a", "b")
    with pytest.warns(UserWarning, match=r"cannot be held against .*'s weights"):
        hw.knockout(model, first, tasks[0], k=1, draws=1, progress=False)


def test_scores_of_other_weights_are_neither_merged_nor_knocked_out() -> None:
    module = tiny.build("llama")
    task = hw.Task("a", [("abc", "d")])
    scores = hw.score(load(module), task, progress=False)
    with torch.no_grad():
        module.model.layers[1].self_attn.o_proj.weight[:, 8:] = 0
    changed = load(module)
    others = hw.score(changed, hw.Task("b", [("abc", "d")]), progress=False)
    for trust in (False, True):
        with pytest.raises(ValueError, match=r"weights is 'w3-.*' here and 'w3-"):
            scores.merge(others, trust=trust)
    with pytest.raises(ValueError, match="are of other weights"):
        hw.knockout(changed, scores, task, k=1, draws=1, progress=False)


def test_fingerprints_of_before_tell_nothing() -> None:
    values = {"a": np.ones((1, 1, 1))}
    old = [
        hw.HeadScores.from_arrays(
            {name: values["a"]}, method="mine", meta={"weights": "0123456789abcdef"}
        )
        for name in ("a", "b")
    ]
    with pytest.raises(ValueError, match="is not known"):
        old[0] + old[1]
    assert old[0].merge(old[1], trust=True).tasks == ("a", "b")
    with pytest.raises(TypeError, match=r"merged with scores of hw.score or hw.open; got int\."):
        old[0].merge(3)
