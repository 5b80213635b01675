"""Heads found by structure: the same as the table's, proven on the live model, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

import headwidget as hw
from headwidget.models import description, discovery, tracing
from headwidget.scoring.encode import encode
from tests.support import every_family, family_table, left_alone, tiny
from tests.support.compositions import Composition
from tests.support.own_model import PROMPTS, fresh, load, scored
from tests.support.plain import ablation_by_loop, heads_outputs, slopes_by_steps

# ---- discovery ----


def by_structure(module: Any) -> hw.Model:
    """The model, its family hidden from the table."""
    module.config.model_type = "zebra"
    return load(module)


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


def test_what_needs_the_table_says_so() -> None:
    model = by_structure(fresh())
    with pytest.raises(ValueError, match="is known for families in headwidget's table only"):
        hw.score(model, "relations", "relations", progress=False)


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
    assert "1 blocks without attention heads" in by_structure(fresh("jamba")).describe()


# ---- what cannot be proven ----


def test_heads_that_are_normed_together_are_refused() -> None:
    module = fresh()
    for block in module.model.layers:
        attention = block.self_attn
        attention.o_proj = nn.Sequential(nn.LayerNorm(32), attention.o_proj)
    with pytest.raises(ValueError, match=r"o_proj\.1 .* one head's output reaches other heads'"):
        by_structure(module)


class Swapped(nn.Linear):
    """Reads the heads' numbers in another order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.unflatten(-1, (4, 8)).transpose(-1, -2).flatten(-2))


def test_an_order_of_its_own_inside_the_projection_does_not_matter() -> None:
    module = fresh()
    for block in module.model.layers:
        weight = block.self_attn.o_proj.weight
        block.self_attn.o_proj = Swapped(32, 32, bias=False)
        block.self_attn.o_proj.weight = weight
    model = by_structure(module)  # a linear map all the same: heads are told apart before it
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), atol=1e-4
    )
    assert not model.layers[0].plain


class Squared(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 0.5 * super().forward(x).square()


def test_a_projection_that_is_not_linear_is_refused() -> None:
    module = fresh()
    for block in module.model.layers:
        block.self_attn.o_proj = Squared(32, 32)
    with pytest.raises(ValueError, match="what the heads write does not add up to its output"):
        by_structure(module)


def test_a_projection_that_some_layers_share_is_refused() -> None:
    module = fresh()
    module.model.layers[1].self_attn = module.model.layers[0].self_attn
    with pytest.raises(ValueError, match="runs 2 times in a forward, others less often"):
        by_structure(module)


@pytest.mark.parametrize("method", ["ablation", "gradient", "patterns"])
def test_layers_that_share_all_modules_are_told_apart_by_their_calls(method: str) -> None:
    model = load(every_family.build("albert", "masked"))
    assert model.shape == (4, 4) and len(model.blocks) == 1
    assert "layers share their modules" in model.describe()
    task = family_table.MASKED
    ours = hw.score(model, task, method, progress=False)
    if method == "patterns":
        name = ours.tasks[0]
        assert np.ptp(ours.values(name).mean(0), axis=0).max() > 1e-3, "layers must differ"
        return
    definition = {"ablation": ablation_by_loop, "gradient": slopes_by_steps}[method]
    np.testing.assert_allclose(
        ours.values("letters"), definition(model, task), rtol=5e-3, atol=2e-3
    )


def test_a_causal_model_that_sees_later_tokens_is_refused() -> None:
    module = fresh()
    for block in module.model.layers:
        block.self_attn.is_causal = False
    module.config.is_causal = False
    forward = module.model.forward

    def all_seen(*args: Any, **kwargs: Any) -> Any:
        ids = kwargs["input_ids"]
        mask = torch.zeros(len(ids), 1, ids.shape[1], ids.shape[1])
        return forward(*args, **{**kwargs, "attention_mask": mask})

    module.model.forward = all_seen
    with pytest.raises(ValueError, match="depend on the tokens behind them"):
        by_structure(module)


@pytest.mark.parametrize("size", [1e-7, 1e-2])
def test_rounding_of_float32_inside_a_float64_model_is_no_look_ahead(size: float) -> None:
    """Norms and routers compute in float32; how it rounds differs by machine and by batch."""
    module = fresh().double()

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = type(module).__mro__[1].forward(self, *args, **kwargs)
        out.logits = out.logits * (1 + size * torch.sin(kwargs["input_ids"][:, -1:, None]))
        return out

    module.__class__ = type("Rounds", (type(module),), {"forward": forward})
    if size < 1e-6:
        assert by_structure(module).unembeds
    else:
        with pytest.raises(ValueError, match="depend on the tokens behind them"):
            by_structure(module)


def test_a_masked_model_whose_tokens_hardly_notice_each_other_is_one_in_any_precision() -> None:
    module = every_family.build.__wrapped__("roc_bert", "masked")
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "attention.output.dense" in name:
                parameter.mul_(0.03)
    assert load(module.float()).encoder
    assert load(module.to(torch.bfloat16)).encoder


def test_a_masked_model_whose_tokens_do_not_see_those_behind_them_is_refused() -> None:
    module = every_family.build.__wrapped__("camembert", "masked")
    forward = module.roberta.forward

    def only_before(input_ids: Any, **kwargs: Any) -> Any:
        length = input_ids.shape[1]
        mask = torch.ones(len(input_ids), 1, length, length, dtype=torch.bool).tril()
        return forward(input_ids=input_ids, **{**kwargs, "attention_mask": mask})

    module.roberta.forward = only_before
    with pytest.raises(ValueError, match="do not depend on the tokens behind them"):
        load(module)


def test_a_model_without_attention_has_no_heads() -> None:
    with pytest.raises(ValueError, match="MambaForCausalLM has no attention heads to score"):
        load(every_family.build("mamba"))


def test_layers_with_unequal_numbers_of_heads_are_refused() -> None:
    module = fresh()
    other = fresh(num_attention_heads=8, num_key_value_heads=2, head_dim=4)
    module.model.layers[1] = other.model.layers[1]
    module.model.rotary_emb = other.model.rotary_emb
    with pytest.raises(ValueError, match=r"has \d heads and|failed"):
        by_structure(module)


class Counting(nn.Module):
    """Keeps the largest number that it saw, as observers of quantisers do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.peak.copy_(torch.maximum(self.peak, x.abs().max()))
        return x


def test_marks_do_not_stay_in_buffers() -> None:
    module = fresh()
    module.model.layers[1].self_attn.o_proj = nn.Sequential(
        Counting(), module.model.layers[1].self_attn.o_proj
    )
    by_structure(module)
    assert float(module.model.layers[1].self_attn.o_proj[0].peak) == 0


@pytest.mark.parametrize("training", [True, False])
def test_four_bit_weights_are_not_packed_by_loading(training: bool) -> None:
    with Composition.parse("llama/2/p0/b0 quantise:nf4:all:fresh").built() as own:
        own.base.train(training)
        own.base.config.model_type = "zebra"
        before = left_alone.state(own.base)
        load(own.base)
        assert left_alone.changes(before, left_alone.state(own.base)) == []


def head_by_head(module: Any, q: Any, k: Any, v: Any, mask: Any, **kwargs: Any) -> Any:
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    heads = [
        nn.functional.scaled_dot_product_attention(
            q[:, h : h + 1], k[:, h : h + 1], v[:, h : h + 1], is_causal=True
        )
        for h in range(q.shape[1])
    ]
    return torch.cat(heads, 1).transpose(1, 2).contiguous(), None


def test_heads_that_are_computed_one_by_one_are_not_taken_for_one() -> None:
    AttentionInterface.register("head_by_head", head_by_head)
    AttentionMaskInterface.register("head_by_head", sdpa_mask)
    module = fresh()
    module.set_attn_implementation("head_by_head")
    with pytest.raises(ValueError, match="computes attention for 1 heads at a time"):
        by_structure(module)


def test_a_head_that_goes_past_the_projection_is_refused() -> None:
    module = fresh(num_key_value_heads=4)
    attention = module.model.layers[-1].self_attn

    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.other = attention.o_proj, nn.Linear(32, 32, bias=False)

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return self.inner(z) + self.other(z)

    attention.o_proj = Beside()
    with pytest.raises(ValueError, match="goes past it, to the answers|reaches other"):
        by_structure(module)


def test_mixing_of_positions_behind_the_unembedding_is_seen() -> None:
    module = fresh()
    forward = module.forward

    def mixed(*args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        steps = torch.arange(1, out.logits.shape[1] + 1)[:, None]
        out.logits = out.logits.cumsum(1) / steps
        return out

    module.__class__ = type(
        "Mixed", (type(module),), {"forward": lambda _, *a, **k: mixed(*a, **k)}
    )
    model = by_structure(module)
    assert not model.unembeds
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), atol=1e-4
    )


@pytest.mark.parametrize("ruled_out", [-3e38, -1e4, float("-inf")])
def test_tokens_that_are_ruled_out_hide_nothing_from_the_proof(ruled_out: float) -> None:
    """Beside numbers that large, every difference of logits would look like rounding."""
    shift = 3 * torch.randn(64, tiny.VOCABULARY, generator=torch.Generator().manual_seed(1))

    def ruling_out(module: Any, behind: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = type(module).__mro__[1].forward(self, *args, **kwargs)
            out.logits = behind(out.logits)
            out.logits[..., 2:20] = ruled_out  # signs that no prompt has
            return out

        module.__class__ = type("RulesOut", (type(module),), {"forward": forward})
        return module

    by_position = ruling_out(fresh(), lambda logits: logits + shift[: logits.shape[1]])
    model = by_structure(by_position)
    assert not model.unembeds
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), atol=1e-4
    )
    looks_ahead = ruling_out(fresh(), lambda logits: logits.flip(1).cumsum(1).flip(1))
    with pytest.raises(ValueError, match="depend on the tokens behind them"):
        by_structure(looks_ahead)


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
