"""What discovery found is proven on the live model, or the model is refused in words."""

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
from tests.support import every_family, family_table, left_alone, tiny
from tests.support.compositions import Composition
from tests.support.own_model import PROMPTS, by_structure, fresh, load, scored
from tests.support.plain import ablation_by_loop, slopes_by_steps


def test_heads_that_are_normed_together_are_refused() -> None:
    module = fresh()
    for block in module.model.layers:
        attention = block.self_attn
        attention.o_proj = nn.Sequential(nn.LayerNorm(32), attention.o_proj)
    with pytest.raises(ValueError, match=r"o_proj\.1 .* one head's output reaches other heads'"):
        by_structure(module)


@pytest.mark.parametrize(
    ("family", "kind", "how"),
    [
        ("bitnet", "causal", "all are mixed, as by a norm over them"),
        ("diffllama", "causal", "some are added to or subtracted from others"),
        ("convbert", "masked", "a part of it is no head's"),
    ],
)
def test_a_refusal_tells_how_heads_are_mixed(family: str, kind: str, how: str) -> None:
    with pytest.raises(ValueError, match=f"reaches other heads' slices of its input: {how}"):
        load(every_family.build(family, kind))


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


def test_a_model_that_cannot_run_on_text_alone_says_what_is_missing() -> None:
    said = r"VisionEncoderDecoderModel .* could not be looked for: .* specify pixel_values"
    with pytest.raises(ValueError, match=said):
        load(every_family.build("vision-encoder-decoder", "image-text"))


@pytest.mark.parametrize(
    ("family", "kind", "what"),
    [("musicgen", "causal", "ModuleList"), ("perceiver", "masked", "Pa")],
)
def test_a_model_that_reads_no_tokens_says_so(family: str, kind: str, what: str) -> None:
    with pytest.raises(ValueError, match=f"has no one embedding of tokens .it is a {what}"):
        load(every_family.build(family, kind))


def test_the_unembedding_of_a_language_model_inside_another_model_is_found() -> None:
    module = every_family.build("nemotron_h_omni", "image-text")
    assert module.get_output_embeddings() is None
    model = load(module)
    assert model.unembedding is module.language_model.lm_head
    module.language_model.lm_head = nn.Linear(32, tiny.VOCABULARY)
    with pytest.raises(ValueError, match="the unembedding of .* is not the module that it was"):
        model.check_in_place()
