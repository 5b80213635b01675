"""Heads found by structure: the same as the table's, proven on the live model, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.models import description, discovery, tracing
from headwidget.scoring.encode import encode
from tests.support import every_family, left_alone, tiny
from tests.support.own_model import by_structure, fresh, load, scored
from tests.support.plain import heads_outputs

# ---- discovery ----


@pytest.mark.parametrize("family", [f for f in tiny.FAMILIES if f != "gemma3"])
def test_discovery_finds_what_the_table_says(family: str) -> None:
    known = tiny.model(family)
    module = fresh(family)
    found = discovery.find(module, module.config.get_text_config())
    for layer, expected in zip(found.layers, known.layers, strict=True):
        assert (layer.name, layer.index) == (expected.name, expected.index)
        assert (layer.heads, layer.head_dim) == (expected.heads, expected.head_dim)
        assert type(layer.attention) is type(expected.attention)
        # BLOOM's attention adds the residual stream itself: ablation then runs whole forwards
        assert layer.inside == (expected.inside and family != "bloom")
    assert found.family.blocks == known.family.blocks
    assert found.family.head == known.family.head


@pytest.mark.parametrize("method", ["gradient", "ablation", "gating", "probe", "patterns"])
def test_every_method_gives_the_same_by_structure_as_by_the_table(method: str) -> None:
    tasks = [tiny.task("a"), tiny.task("b", foil=False)]
    options = {"gating": {"fits": 1, "updates": 2}, "probe": {"folds": 2}}.get(method, {})
    known, found = load(fresh("qwen3")), by_structure(fresh("qwen3"))
    ours, table = (
        hw.score(model, tasks, method, progress=False, **options) for model in (found, known)
    )
    for task in table.tasks:
        np.testing.assert_array_equal(ours.values(task), table.values(task))
    assert ours.record.heads_found == description.STRUCTURE
    assert table.record.heads_found == description.TABLE


def test_discovery_leaves_the_model_as_it_was() -> None:
    module = fresh(attention_dropout=0.2)
    module.train()
    module.config.model_type = "zebra"
    before = left_alone.state(module)
    load(module)
    assert left_alone.changes(before, left_alone.state(module)) == []


def test_discovery_and_proof_take_a_handful_of_short_forwards() -> None:
    module, tokens = fresh(), []
    module.model.register_forward_pre_hook(
        lambda _, args, kwargs: tokens.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    by_structure(module)
    assert len(tokens) == 5 and sum(tokens) <= 20 * tracing.TOKENS


def test_a_model_in_words() -> None:
    text = by_structure(fresh("gemma2")).describe()
    assert "zebra, found by structure, proven on load" in text
    assert "3 layers with attention x 4 heads of 12, 2 key-value heads" in text
    assert "sliding attention in 2, full attention in 1 layers" in text
    assert "1 blocks without self-attention heads" in by_structure(fresh("jamba")).describe()


# ---- the straight way to the logits ----

STRAIGHT = [
    family
    for family in tiny.DECODERS
    if family not in ("gemma3", "opt")  # one is no text model; the other flattens its positions
]


@pytest.mark.parametrize("family", STRAIGHT)
def test_attribution_by_structure_is_that_of_the_table(family: str) -> None:
    expected, ours = (
        scored(model, "attribution") for model in (load(fresh(family)), by_structure(fresh(family)))
    )
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def direct(model: hw.Model, norm: Any, factor: float) -> np.ndarray:
    """Attribution by its definition: one token of an answer, one of a foil, an RMSNorm."""
    values = []
    for example in encode(LETTERS, model).examples:
        seen: list[torch.Tensor] = []
        handle = norm.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        heads = heads_outputs(model, example)
        handle.remove()
        at, stream = example.at[0], seen[0][0]
        scale = (stream[at].square().mean() + model.config.rms_norm_eps).rsqrt()
        u = model.unembedding.weight
        towards = (u[example.answer[0]] - u[example.foil]) * norm.weight * scale * factor
        values.append(
            [
                [float(z[0, at, h] @ layer.w_o()[h] @ towards) for h in range(layer.heads)]
                for z, layer in zip(heads, model.layers)
            ]
        )
    return np.array(values)


LETTERS = hw.Task("letters", [("abc", "d", "e"), ("ab", "c", "x")])


def granite() -> Any:
    module = every_family.build("granite")
    for block in module.model.layers:
        block.residual_multiplier = 0.3
    module.config.logits_scaling = 4.0
    return module, 0.3 / 4.0


def minicpm() -> Any:
    module = every_family.build("minicpm3")
    text = module.config
    depth = text.scale_depth / text.num_hidden_layers**0.5
    return module, depth * text.dim_model_base / text.hidden_size


@pytest.mark.parametrize("build", [granite, minicpm])
def test_factors_on_the_way_to_the_logits_are_part_of_attribution(build: Any) -> None:
    module, factor = build()
    model = load(module)
    with torch.no_grad():
        expected = direct(model, module.model.norm, factor)
    ours = hw.score(model, LETTERS, "attribution", progress=False).values("letters")
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-5)
    assert abs(factor - 1) > 0.1


def test_a_family_without_a_straight_way_says_so() -> None:
    with pytest.raises(ValueError, match="so there is no such straight way that headwidget can"):
        scored(load(every_family.build("roberta-prelayernorm")), "attribution")


@pytest.mark.parametrize("family", ["camembert", "xlm-roberta", "bert"])
def test_positions_that_count_padding_shorten_the_context(family: str) -> None:
    model = hw.load(every_family.build(family, "masked"), tiny.tokenizer())
    fits = model.context
    assert fits == 128 - (0 if family == "bert" else 1)  # the padding id is 0
    model.module(input_ids=torch.full((1, fits), 9))
    with pytest.raises((IndexError, RuntimeError)):
        model.module(input_ids=torch.full((1, fits + 1), 9))
