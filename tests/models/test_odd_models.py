"""Models that are written or used in odd ways: scored by definition, or refused in words."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import peft
import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    checkpoint_wrapper,
)
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask

import headwidget as hw
from headwidget.models import attention
from tests.support import left_alone, tiny
from tests.support.compositions import Composition
from tests.support.own_model import PROMPTS, fresh, load, scored
from tests.support.plain import ablation_by_loop, slopes_by_steps

# ---- attention of the user's own ----


def longer_is_sharper(module: Any, q: Any, k: Any, v: Any, mask: Any, **kwargs: Any) -> Any:
    kwargs["scaling"] *= max(1.0, math.log(k.shape[2]) / math.log(8))
    return sdpa_attention_forward(module, q, k, v, mask, **kwargs)


def test_longer_prompts_than_those_checked_are_checked_again() -> None:
    AttentionInterface.register("sharper", longer_is_sharper)
    AttentionMaskInterface.register("sharper", sdpa_mask)
    module = fresh()
    module.set_attn_implementation("sharper")
    model = load(module)
    short, long = hw.Task("short", [("abc", "d"), ("ab", "c")]), tiny.task("long")
    scores = hw.score(model, [short, long], "ablation", progress=False)
    np.testing.assert_allclose(scores.values("long"), ablation_by_loop(model, long), atol=1e-4)


def strongest_two(module: Any, q: Any, k: Any, v: Any, mask: Any, **kwargs: Any) -> Any:
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    logits = q @ k.transpose(2, 3) * kwargs["scaling"]
    weights = nn.functional.softmax(logits if mask is None else logits + mask, dim=-1)
    least = weights.topk(min(2, weights.shape[-1]), -1).values[..., -1:]
    weights = weights * (weights >= least)
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.matmul(weights, v).transpose(1, 2).contiguous(), weights


def test_attention_weights_are_those_that_values_are_multiplied_with() -> None:
    AttentionInterface.register("strongest", strongest_two)
    AttentionMaskInterface.register("strongest", eager_mask)
    module = fresh()
    module.set_attn_implementation("strongest")
    ids = torch.tensor([[5, 9, 17, 33, 65]])
    with torch.no_grad():
        expected = module(ids, output_attentions=True).attentions
    weights = attention.weights(load(module), ids, 1)
    assert int((weights[0, 0, -1] > 0).sum()) == 2
    torch.testing.assert_close(weights, expected[1].float())


# ---- what modules keep, and how they are called ----


class Keeping(nn.Module):
    """Makes a tensor in its first forward and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kept is None:
            self.kept = torch.full((x.shape[-1],), 1.5)
        return x * self.kept


def test_what_a_module_keeps_of_a_forward_can_be_trained_with() -> None:
    module = fresh()
    module.model.norm = nn.Sequential(module.model.norm, Keeping())
    model = load(module)
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), atol=1e-4
    )
    module(torch.tensor([[3, 4, 5]])).logits.sum().backward()
    assert np.isfinite(scored(model, "gradient")).all()


def test_checkpointed_blocks_are_differentiated() -> None:
    module = fresh()
    for number, block in enumerate(module.model.layers):
        module.model.layers[number] = checkpoint_wrapper(block, CheckpointImpl.NO_REENTRANT)
    module.config.model_type = "zebra"
    model = load(module)
    expected = slopes_by_steps(model, PROMPTS)
    np.testing.assert_allclose(scored(model, "gradient"), expected, rtol=5e-3, atol=2e-3)


def test_an_unembedding_that_is_called_by_keyword_is_refused() -> None:
    module = fresh()
    head = module.lm_head

    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = head

        def forward(self, hidden: torch.Tensor) -> Any:
            return self.inner(input=hidden)

    module.lm_head = Called()
    module.get_output_embeddings = lambda: head
    with pytest.raises(RuntimeError, match="the unembedding with keyword arguments only"):
        scored(load(module), "ablation")


def test_an_output_without_logits_is_refused() -> None:
    module = fresh("bert", return_dict=False)
    with pytest.raises(ValueError, match="gives a tuple without logits"):
        scored(load(module), "ablation")


def test_weights_that_are_not_loaded_are_told() -> None:
    with torch.device("meta"):
        module = tiny.build("llama")
    with pytest.raises(ValueError, match="weights of .* are not loaded"):
        scored(load(module), "ablation")


def test_attribution_takes_a_norm_without_weights() -> None:
    module, plain = fresh(), fresh()
    module.model.norm = nn.RMSNorm(32, elementwise_affine=False, eps=plain.config.rms_norm_eps)
    with torch.no_grad():
        plain.model.norm.weight.fill_(1.0)
    ours, expected = (scored(load(each), "attribution") for each in (module, plain))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


# ---- torch's defaults ----


@pytest.fixture
def sixteen_bits_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.bfloat16)
    yield
    torch.set_default_dtype(torch.float32)


def test_numbers_do_not_depend_on_the_default_dtype(sixteen_bits_by_default: None) -> None:
    torch.set_default_dtype(torch.float32)
    model = load(fresh())
    expected = {name: scored(model, "ablation", replace=name) for name in ("zero", "mean")}
    slopes = scored(model, "gradient")
    torch.set_default_dtype(torch.bfloat16)
    for name, values in expected.items():
        np.testing.assert_array_equal(scored(model, "ablation", replace=name), values)
    np.testing.assert_array_equal(scored(model, "gradient"), slopes)


# ---- adapters, copies, ties ----


def test_an_adapter_that_acts_by_prompt_is_refused_once_it_is_switched_on() -> None:
    plain = peft.LoraConfig(target_modules=["o_proj"], r=2, task_type="CAUSAL_LM")
    wrapped = peft.get_peft_model(fresh(), plain)
    model = load(wrapped)
    scored(model, "ablation")
    by_prompt = peft.LoraConfig(
        target_modules=["o_proj"], r=2, task_type="CAUSAL_LM", alora_invocation_tokens=[5]
    )
    wrapped.add_adapter("later", by_prompt)
    wrapped.set_adapter("later")
    with pytest.raises(ValueError, match="the adapter 'later'|load it again"):
        scored(model, "ablation")


def test_a_copy_keeps_its_wrapper() -> None:
    wrapped = peft.get_peft_model(fresh(), peft.LoraConfig(target_modules=["o_proj"], r=2))
    model = load(wrapped)
    wrapped.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="around the model, which is scored without"):
        scored(copy.copy(model), "ablation")


def test_fingerprints_tell_which_weights_are_tied() -> None:
    texts = set()
    for source in ("o_proj", "q_proj"):
        module = fresh(num_key_value_heads=4)
        first, second = (module.model.layers[i].self_attn for i in (0, 1))
        second.o_proj.weight = getattr(first, source).weight
        texts.add(load(module).fingerprint())
    assert len(texts) == 2


def test_four_bit_weights_that_are_packed_stay_packed() -> None:
    with Composition.parse("llama/2/p0/b0 quantise:nf4:all:used").built() as own:
        before = left_alone.state(own.base)
        model = load(own.base)
        ours = scored(model, "ablation")
        assert left_alone.changes(before, left_alone.state(own.base)) == []
        np.testing.assert_allclose(ours, ablation_by_loop(model, PROMPTS), atol=0.02)


# ---- special tokens ----


def test_a_prompt_that_is_a_special_token_itself_takes_none_from_the_others() -> None:
    tokenizer = copy.deepcopy(tiny.tokenizer())
    tokenizer.add_special_tokens({"bos_token": "<pad>"})

    class Beginning:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def __call__(self, text: Any, add_special_tokens: bool = True) -> Any:
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            if not add_special_tokens:
                return {"input_ids": ids}
            return {"input_ids": [0, *ids]}

    model = hw.load(fresh(), Beginning())
    from headwidget.scoring.encode import encode

    task = hw.Task("begin", [("<pad>", "a"), ("abc", "d")])
    assert [example.ids[0] for example in encode(task, model).examples] == [0, 0]
    assert [len(example.ids) for example in encode(task, model).examples] == [2, 4]
