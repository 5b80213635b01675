"""A model that is adapted, quantised or compiled.

Each is scored equal to the definition by a plain loop, or refused with a sentence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import peft
import pytest
import torch
from torch import nn

import headwidget as hw
from tests.support import left_alone
from tests.support.compositions import Composition
from tests.support.own_model import PROMPTS, fresh, load, scored
from tests.support.plain import ablation_by_loop, slopes_by_steps

# ---- virtual tokens ----


@pytest.mark.parametrize(
    "config",
    [
        peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
        peft.PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
        peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    ],
    ids=lambda config: str(config.peft_type.value),
)
def test_virtual_tokens_are_refused_by_name(config: Any) -> None:
    wrapped = peft.get_peft_model(fresh(), config)
    with pytest.raises(ValueError, match=r"3 virtual tokens .* hw.load\(model.get_base_model\(\)"):
        load(wrapped)
    scored(load(wrapped.get_base_model()), "gradient")


class Lengthening(nn.Module):
    """Puts two embeddings of its own before the prompt, as prompt tuning does."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.config = inner, inner.config
        self.model, self.lm_head = inner.model, inner.lm_head

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()

    def get_output_embeddings(self) -> Any:
        return self.inner.get_output_embeddings()

    def forward(self, input_ids: torch.Tensor, **kwargs: Any) -> Any:
        embeddings = self.inner.get_input_embeddings()(input_ids)
        longer = torch.cat([embeddings[:, :1] * 0 + 0.1] * 2 + [embeddings], dim=1)
        return self.inner(inputs_embeds=longer, **kwargs)


@pytest.mark.parametrize("method", ["gradient", "ablation", "attribution", "patterns"])
def test_a_model_that_lengthens_its_input_is_refused(method: str) -> None:
    model = load(Lengthening(fresh()))
    with pytest.raises(ValueError, match=r"was fed \d+ tokens and answers at \d+ positions"):
        scored(model, method)


# ---- adapters ----


def test_adapters_that_are_on_are_part_of_the_fingerprint() -> None:
    config = peft.LoraConfig(target_modules=["o_proj"], r=2, init_lora_weights=False)
    wrapped = peft.get_peft_model(fresh(), config)
    wrapped.add_adapter("other", config)
    model = load(wrapped)
    prints = [model.fingerprint()]
    with wrapped.disable_adapter():
        prints.append(model.fingerprint())
    wrapped.set_adapter("other")
    prints.append(model.fingerprint())
    for part in wrapped.modules():
        if isinstance(getattr(part, "scaling", None), dict):
            part.scaling["other"] *= 3
    prints.append(model.fingerprint())
    wrapped.set_adapter("default")
    assert len(set(prints)) == 4 and model.fingerprint() == prints[0]


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("scale", [1e-4, 1.0])
def test_lora_is_part_of_what_heads_write(scale: float, wrapped: bool) -> None:
    config = peft.LoraConfig(target_modules=["o_proj", "v_proj"], r=2, init_lora_weights=False)
    module = peft.get_peft_model(fresh(), config)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "lora_B" in name:
                parameter.mul_(scale)
    model = load(module if wrapped else module.get_base_model())
    for method, definition in (("ablation", ablation_by_loop), ("gradient", slopes_by_steps)):
        expected = definition(model, PROMPTS)
        np.testing.assert_allclose(scored(model, method), expected, rtol=5e-3, atol=2e-3)
    with pytest.raises(TypeError, match=r"o_proj is a Linear whose weight cannot be read"):
        scored(model, "attribution")  # however small the adapter is


@pytest.mark.parametrize("place", ["", "base_model"])
def test_a_hook_on_a_wrapper_is_refused_as_it_would_not_run(place: str) -> None:
    config = peft.LoraConfig(target_modules=["o_proj"], r=2)
    wrapped = peft.get_peft_model(fresh(), config)
    model = load(wrapped)
    scored(model, "gradient")
    wrapped.get_submodule(place).register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="a hook .* put it on the LlamaForCausalLM inside"):
        scored(model, "gradient")
    wrapped = peft.get_peft_model(fresh(), config)
    wrapped.get_submodule(place).forward = lambda *args, **kwargs: None
    with pytest.raises(ValueError, match="a forward .* put it on the LlamaForCausalLM inside"):
        scored(load(wrapped), "gradient")
    compiled = torch.compile(fresh(), backend="eager")
    compiled.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="hook that is not headwidget's is on the OptimizedModule"):
        scored(load(compiled), "ablation")


def test_lora_on_the_unembedding_is_not_left_out_of_attribution() -> None:
    config = peft.LoraConfig(target_modules=["lm_head"], r=2, init_lora_weights=False)
    with pytest.raises(TypeError, match="the unembedding of .* cannot be read as plain numbers"):
        scored(load(peft.get_peft_model(fresh(), config)), "attribution")


# ---- precision ----


def test_autocast_is_in_the_record() -> None:
    model = load(fresh())
    with torch.autocast("cpu", torch.bfloat16):
        scores = hw.score(model, PROMPTS, "ablation", progress=False)
        expected = ablation_by_loop(model, PROMPTS)
    assert scores.record.dtype == "float32, autocast to bfloat16"
    np.testing.assert_allclose(scores.values("letters"), expected, atol=0.1)
    assert hw.score(model, PROMPTS, progress=False).record.dtype == "float32"


def test_dynamic_quantisation_scales_by_the_batch_so_prompts_run_alone() -> None:
    module = torch.ao.quantization.quantize_dynamic(fresh(), {nn.Linear}, torch.qint8)
    model = load(module)
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(RuntimeError, match=r"stops at .*Use method='ablation'"):
        scored(model, "gradient")


# ---- compiled ----


def test_a_compiled_model_is_scored_uncompiled_and_stays_compiled() -> None:
    module = fresh()
    expected = scored(load(module), "ablation")
    compiled = torch.compile(module, backend="eager")
    np.testing.assert_array_equal(scored(load(compiled), "ablation"), expected)
    in_place = fresh()
    in_place.compile(backend="eager")
    call = in_place._compiled_call_impl
    for method in ("ablation", "gradient"):
        np.testing.assert_array_equal(scored(load(in_place), method), scored(load(module), method))
    assert in_place._compiled_call_impl is call


def test_a_block_that_is_compiled_by_itself_is_refused() -> None:
    module = fresh()
    module.model.layers[1] = torch.compile(module.model.layers[1], backend="eager")
    with pytest.raises(ValueError, match=r"model.layers.1 is compiled by itself"):
        load(module)


# ---- 4 bits ----


@pytest.mark.parametrize("training", [True, False])
def test_four_bit_weights_are_not_packed_and_have_gradients(training: bool) -> None:
    with Composition.parse("llama/2/p0/b0 quantise:nf4:all:fresh").built() as own:
        own.base.train(training)
        model, before = load(own.base), left_alone.state(own.base)
        scored(model, "ablation")  # runs without gradients, where bitsandbytes would pack
        ours = scored(model, "gradient")
        assert left_alone.changes(before, left_alone.state(own.base)) == []
        expected = slopes_by_steps(model, PROMPTS, step=0.1)  # multiplied in bfloat16
        assert np.corrcoef(ours.ravel(), expected.ravel())[0, 1] > 0.9
