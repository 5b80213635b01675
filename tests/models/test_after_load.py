"""What is done to a model after it was loaded, or after it was checked, is noticed."""

from __future__ import annotations

import copy
import functools
import pickle
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import peft
import pytest
import torch
import transformers
from torch import nn

import headwidget as hw
from headwidget.models import hooks
from tests.support import tiny
from tests.support.plain import ablation_by_loop, log_p

PROMPTS = hw.Task("letters", [("the cat sat on the", " mat"), ("abc", "d"), ("one two", " th")])


def load(module: Any) -> hw.Model:
    return hw.load(module, tiny.tokenizer())


def ablated(model: hw.Model, task: hw.Task = PROMPTS) -> np.ndarray:
    return hw.score(model, task, "ablation", progress=False).values("letters")


@pytest.mark.parametrize("method", ["ablation", "gradient", "attribution", "patterns"])
def test_an_adapter_that_is_added_later_asks_for_a_new_load(method: str) -> None:
    model = load(tiny.build("llama"))
    config = peft.LoraConfig(target_modules=["o_proj"], r=2, init_lora_weights=False)
    peft.get_peft_model(model.module, config)
    with pytest.raises(ValueError, match=r"o_proj of .* load it again: hw.load\(model.module"):
        hw.score(model, PROMPTS, method, progress=False)
    again = hw.load(model.module, model.tokenizer)
    np.testing.assert_allclose(
        ablated(again), ablation_by_loop(again, PROMPTS), rtol=1e-4, atol=1e-4
    )


class Steered(type(tiny.build("llama").model.layers[0])):  # type: ignore[misc]
    """A block that steers its last position by its own code, which no hook shows."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        out = super().forward(*args, **kwargs).clone()
        out[:, -1] += torch.linspace(-2, 2, out.shape[-1]).sin()
        return out


def steered() -> Any:
    module = tiny.build("llama")
    module.model.layers[1].__class__ = Steered
    return module


@pytest.mark.parametrize("first", [[("abc", "d")], [("abcd", "e"), ("bcde", "f")]])
def test_a_task_without_padding_does_not_stand_for_the_next(first: list[Any]) -> None:
    model = load(steered())
    for task in (hw.Task("letters", first), PROMPTS):
        np.testing.assert_allclose(
            ablated(model, task), ablation_by_loop(model, task), rtol=1e-4, atol=1e-4
        )


def test_a_model_whose_code_changes_is_checked_again() -> None:
    model = load(tiny.build("llama"))
    ablated(model)
    model.module.model.layers[1].__class__ = Steered
    np.testing.assert_allclose(
        ablated(model), ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4
    )


class Forgetful(type(tiny.build("llama"))):  # type: ignore[misc]
    """A model that takes a cache and does not use it."""

    def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
        return super().forward(input_ids=input_ids, use_cache=False)


def test_a_prefix_is_not_shared_where_the_model_does_not_go_on_from_it() -> None:
    module = tiny.build("llama")
    module.__class__ = Forgetful
    model = load(module)
    prompts = [("the cat sat on the", " m"), ("the cat sat on the big", " h")]
    task = hw.Task("letters", prompts)
    scores = hw.score(model, task, progress=False)
    assert model.prefix_dependent and not model.can_share_prefix
    effect = hw.knockout(model, scores, task, k=1, draws=1, progress=False)
    from headwidget.scoring.encode import encode

    expected = np.mean([log_p(model, e, {}) for e in encode(task, model).examples])
    line = effect.frame.iloc[0]
    before = float(line["log_probability"]) - float(line["log_probability_change"])
    assert before == pytest.approx(expected, abs=1e-4)


def test_a_forward_that_passes_for_the_models_own_counts_as_a_hook() -> None:
    model = load(tiny.build("llama"))
    mlp = model.blocks[1].mlp
    real = mlp.forward

    @functools.wraps(real)
    def wrapped(x: torch.Tensor) -> torch.Tensor:
        return real(x) * 2

    mlp.forward = wrapped
    assert model.hooked == ("model.layers.1.mlp",)


def test_a_hook_of_the_users_own_that_accelerate_runs_counts() -> None:
    class Doubling(accelerate.hooks.ModelHook):
        def pre_forward(self, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return (args[0] * 2, *args[1:]), kwargs

    model = load(tiny.build("llama"))
    accelerate.hooks.add_hook_to_module(model.layers[1].projection, Doubling())
    assert model.hooked == ("model.layers.1.self_attn.o_proj",)
    with pytest.raises(TypeError, match=r"layers.1.self_attn.o_proj .* cannot be read as plain"):
        hw.score(model, PROMPTS, "attribution", progress=False)


def test_a_quantised_model_has_one_fingerprint() -> None:
    model = load(torch.ao.quantization.quantize_dynamic(tiny.build("llama"), {nn.Linear}))
    assert len({model.fingerprint() for _ in range(8)}) == 1


def test_weights_that_are_changed_behind_torchs_back_are_told() -> None:
    model = load(tiny.build("llama"))
    hw.score(model, PROMPTS, "attribution", progress=False)  # checked from here on

    def edit(row: int, z: torch.Tensor) -> None:
        model.blocks[1].mlp.up_proj.weight.data[0, 0] += 0.25  # no version counts this

    with hooks.read(model, edit):
        scores = hw.score(model, PROMPTS, "attribution", progress=False)
    assert "weights were changed" in str(scores.record.task(PROMPTS.name).warning)


def test_a_copy_and_a_pickle_of_a_model_are_loaded_anew() -> None:
    model = load(tiny.build("llama"))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.module is not model.module and twin.name == model.name
        with torch.no_grad():
            twin.layers[0].projection.weight.zero_()
        assert twin.fingerprint() != model.fingerprint()
        assert not np.array_equal(*(ablated(each) for each in (model, twin)))


def test_a_model_from_a_folder_is_named_after_it(tmp_path: Path) -> None:
    tiny.build("llama").save_pretrained(tmp_path / "mine")
    module = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "mine")
    assert hw.load(module, tiny.tokenizer()).name == "mine"
