"""One's own model, as people have it: hooked, adapted, quantised, compiled, shared, in training.

Each is scored equal to the definition by a plain loop, or refused with a sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import peft
import pytest
import torch
from torch import nn

import headwidget as hw
from headwidget.models import hooks
from tests.support import tiny
from tests.support.plain import ablation_by_loop, slopes_by_steps

PROMPTS = hw.Task("letters", [("the cat sat on the", " mat"), ("abc", "d"), ("one two", " th")])
OTHERS = ("llama", "gpt2", "gemma2", "gpt_neox", "bert")


def scored(model: hw.Model, method: str, **options: Any) -> np.ndarray:
    return hw.score(model, PROMPTS, method, progress=False, **options).values("letters")


def fresh(family: str = "llama", **changes: Any) -> Any:
    return tiny.build(family, **changes)


def load(module: Any) -> hw.Model:
    return hw.load(module, tiny.tokenizer())


def steer(_: nn.Module, args: Any, output: Any) -> Any:
    """The commonest hook: add a vector at the last position."""
    hidden = output[0] if isinstance(output, tuple) else output
    hidden = hidden.clone()
    hidden[:, -1] += torch.linspace(-1, 1, hidden.shape[-1]).sin()
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


# ---- hooks of the user's ----


@pytest.mark.parametrize("family", OTHERS)
def test_a_hook_on_the_last_position_never_hits_padding(family: str) -> None:
    model = load(fresh(family))
    plain = scored(model, "ablation")
    model.blocks[1].register_forward_hook(steer)
    for method, definition in (("ablation", ablation_by_loop), ("gradient", slopes_by_steps)):
        expected = definition(model, PROMPTS)
        np.testing.assert_allclose(scored(model, method), expected, rtol=5e-3, atol=2e-3)
    assert np.abs(scored(model, "ablation") - plain).max() > 0.01, "the hook must matter"


@pytest.mark.parametrize("where", ["all", "last"])
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_a_hook_before_the_output_projection_runs_once(where: str, replace: str) -> None:
    model = load(fresh())
    model.layers[1].projection.register_forward_pre_hook(lambda _, args: (args[0] * 2 + 0.3,))
    expected = ablation_by_loop(model, PROMPTS, where=where, replace=replace)
    ours = scored(model, "ablation", where=where, replace=replace)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_hooks_that_pass_a_value_from_layer_to_layer_find_it_in_its_place() -> None:
    kept: list[torch.Tensor] = []
    model = load(fresh())

    def keep(_: nn.Module, args: Any, output: torch.Tensor) -> None:
        kept[:] = [output]

    model.blocks[0].register_forward_hook(keep)
    model.blocks[2].register_forward_hook(lambda _m, _a, output: output + 0.5 * kept[0])
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4
    )


def test_scores_name_the_hooked_modules_and_say_how_prompts_were_run() -> None:
    model = load(fresh())
    handle = model.blocks[1].register_forward_hook(lambda *_: None)
    scores = hw.score(model, PROMPTS, progress=False)
    assert scores.record.hooks == ("model.layers.1",) and scores.record.one_by_one
    from headwidget.scores.provenance import about

    card: dict[str, str] = dict(about(scores))
    assert card["hooks of the user's"] == "model.layers.1"
    assert card["prompts"] == "one at a time"
    handle.remove()
    after = hw.score(model, PROMPTS, progress=False)
    assert after.record.hooks == () and after.record.one_by_one is None
    with pytest.raises(ValueError, match=r"hooks is \['model.layers.1'\] here and None there"):
        scores + after
    with pytest.warns(UserWarning, match=r"made with hooks on model.layers.1, and .* nothing\."):
        hw.knockout(model, scores, PROMPTS, k=1, draws=1, progress=False)


def test_a_replaced_forward_and_hooks_on_all_modules_count_as_hooks() -> None:
    model = load(fresh())
    assert model.hooked == ()
    mlp = model.blocks[0].mlp
    mlp.forward = lambda x: x * 2
    assert model.hooked == ("model.layers.0.mlp",)
    del mlp.forward
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert model.hooked == ("every module",) and model.one_by_one
    finally:
        handle.remove()
    assert not model.one_by_one


def test_hooks_of_headwidget_accelerate_and_transformers_do_not_count() -> None:
    module = fresh()
    module.enable_input_require_grads()  # a hook of transformers
    model = load(module)
    with hooks.gate(model, torch.ones(model.shape)), hooks.stand_in(model.blocks[0], lambda: 0):
        assert model.hooked == ()


@pytest.mark.parametrize(
    "place", ["model", "model.layers.1", "model.layers.1.self_attn", "model.norm", "lm_head"]
)
def test_attribution_refuses_a_hook_between_a_head_and_the_logits(place: str) -> None:
    model = load(fresh())
    model.module.get_submodule(place).register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=f"but {place} carries a hook that is not headwidget's"):
        scored(model, "attribution")


def test_attribution_takes_a_hook_beside_that_way() -> None:
    model = load(fresh())
    before = scored(model, "attribution")
    model.blocks[1].mlp.register_forward_hook(lambda _m, _a, out: out)
    np.testing.assert_allclose(scored(model, "attribution"), before, rtol=1e-4, atol=1e-5)


def test_relations_refuses_a_hook_on_the_first_mlp() -> None:
    from tests.support.words import following, made

    model = load(made("llama").module)
    model.tokenizer = made("llama").tokenizer
    handle = model.blocks[0].mlp.register_forward_hook(steer)
    with pytest.raises(ValueError, match=r"model.layers.0.mlp of .* carries a hook that is not"):
        hw.score(model, following(), "relations", progress=False)
    hw.score(model, following(), "relations", progress=False, mlp=False)
    handle.remove()


def test_a_model_that_answers_at_random_is_refused() -> None:
    model = load(fresh())
    model.blocks[0].mlp.register_forward_hook(lambda _m, _a, out: out + torch.randn_like(out))
    sentence = r"two different answers .* hooks on model.layers.0.mlp"
    options = {"probe": {"folds": 2}}
    for method in ("ablation", "gradient", "attribution", "probe", "gating", "patterns"):
        with pytest.raises(RuntimeError, match=sentence):
            tasks = [tiny.task(), tiny.task("more")]
            hw.score(model, tasks, method, progress=False, **options.get(method, {}))


class Mixing(nn.Module):
    """An MLP that lets positions see each other, padding too."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.inner(x)
        return out + out.mean(1, keepdim=True)


def test_a_model_whose_answer_depends_on_its_batch_runs_prompts_alone() -> None:
    module = fresh()
    module.model.layers[2].mlp = Mixing(module.model.layers[2].mlp)
    model = load(module)
    ours = scored(model, "ablation")
    assert model.batch_dependent
    np.testing.assert_allclose(ours, ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4)


def test_a_model_that_cannot_be_replayed_is_run_whole() -> None:
    """Prompts of one length do not disturb each other, but the last block needs all positions."""
    module = fresh()
    module.model.layers[2].mlp = Mixing(module.model.layers[2].mlp)
    model = load(module)
    task = hw.Task("letters", [("abcd", "e"), ("bcde", "f")])
    ours = hw.score(model, task, "ablation", progress=False).values("letters")
    assert not model.batch_dependent
    np.testing.assert_allclose(ours, ablation_by_loop(model, task), rtol=1e-4, atol=1e-4)


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


# ---- gradients that stop ----


class NoSlope(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.inner(x)


class HalfSlope(NoSlope):
    """Half of what it computes is detached: its output has a gradient, a wrong one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.detach()) + 0.1 * x


@pytest.mark.parametrize("method", ["gradient", "gating"])
def test_a_gradient_that_stops_is_named(method: str) -> None:
    module = fresh()
    module.model.layers[1].mlp = NoSlope(module.model.layers[1].mlp)
    model = load(module)
    sentence = r"stops at model.layers.1.mlp \(NoSlope\): .* Use method='ablation'"
    with pytest.raises(RuntimeError, match=sentence):
        scored(model, method)
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("method", ["gradient", "gating"])
def test_slopes_that_are_wrong_without_a_break_are_found_by_a_step(method: str) -> None:
    module = fresh()
    module.model.layers[1].mlp = HalfSlope(module.model.layers[1].mlp)
    sentence = r"not those of its answers.*cut or changed above the heads of model.layers.1.*abla"
    with pytest.raises(RuntimeError, match=sentence):
        scored(load(module), method)


def test_a_hook_that_changes_gradients_is_found_by_a_step() -> None:
    model = load(fresh())
    model.blocks[1].register_full_backward_hook(lambda _m, into, _out: (into[0] * 3, *into[1:]))
    with pytest.raises(RuntimeError, match=r"not those of its answers.*hooks on model.layers.1"):
        scored(model, "gradient")


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_true_slopes_pass_the_check_on_every_family(family: str) -> None:
    for seed in range(3):
        hw.score(tiny.model(family), tiny.task(), "gradient", seed=seed, progress=False)


def test_weights_made_in_inference_mode_work_the_first_time() -> None:
    with torch.inference_mode():
        module = fresh()
    model = load(module)
    plain = load(fresh())
    for method in ("ablation", "attribution", "patterns"):
        task = [PROMPTS]
        ours, theirs = (hw.score(m, task, method, progress=False) for m in (model, plain))
        for name in ours.tasks:
            np.testing.assert_allclose(ours.values(name), theirs.values(name), atol=1e-5)
    for method in ("gradient", "gating"):
        with pytest.raises(RuntimeError, match=r"made in torch.inference_mode\(\).*ablation"):
            scored(model, method)


def test_a_module_that_is_no_transformer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"has a config; got a Linear\."):
        load(nn.Linear(2, 2))


def test_numbers_that_are_not_finite_are_no_pattern() -> None:
    module = fresh()
    with torch.no_grad():
        module.model.layers[0].mlp.down_proj.weight[0, 0] = torch.nan
    with pytest.raises(FloatingPointError, match="not a number"):
        hw.score(load(module), PROMPTS, "patterns", progress=False)


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
    with pytest.raises(ValueError, match="hook on the LlamaForCausalLM inside"):
        scored(model, "gradient")
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


# ---- shared modules ----


def test_layers_that_are_one_module_are_refused() -> None:
    module = fresh()
    module.model.layers[2] = module.model.layers[0]
    with pytest.raises(ValueError, match=r"layers 0 and 2 share model.layers.0.self_attn.o_proj"):
        load(module)


def test_two_wrappers_of_one_trunk_never_run_at_the_same_time() -> None:
    first, second = fresh(attention_dropout=0.5), fresh()
    second.model = first.model  # two heads on one body
    first.train()  # who gives this back while another runs makes it random
    models = [load(first), load(second), load(torch.compile(first, backend="eager"))]
    expected = [scored(model, "gradient") for model in models]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(15):
            try:
                same = np.array_equal(scored(models[number], "gradient"), expected[number])
            except RuntimeError:
                same = False
            if not same:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i % 3,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- the model is left as it was ----


def test_parameters_and_modes_are_not_touched_where_they_need_not_be() -> None:
    model = load(fresh())
    seen: list[bool] = []
    embedding = model.module.get_input_embeddings()
    real = torch.nn.Embedding.forward

    def forward(self: Any, ids: torch.Tensor) -> torch.Tensor:
        if self is embedding:
            seen.append(all(p.requires_grad for p in model.module.parameters()))
        return real(self, ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Embedding, "forward", forward)
        for method in ("gradient", "ablation", "gating"):
            scored(model, method, **({"preset": "quick"} if method == "gating" else {}))
    assert seen and all(seen)


def in_another_thread(work: Callable[[], None]) -> Callable[[], None]:
    """Call ``work`` once, in a thread of its own, and wait for it."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    def call() -> None:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert errors == []

    return call


def test_training_in_another_thread_is_not_disturbed_and_is_told() -> None:
    """A training step amid a scoring: its gradients are those of a step alone."""
    module = fresh()
    ids = torch.tensor([[5, 6, 7, 8]])

    def gradients() -> list[torch.Tensor]:
        module.zero_grad()
        module(input_ids=ids, labels=ids).loss.backward()
        return [p.grad.clone() for p in module.parameters()]

    alone = gradients()
    model, amid = load(module), []
    step = in_another_thread(lambda: amid.extend(gradients()))
    real = hooks.by_head

    def during(flat: torch.Tensor, layer: Any) -> torch.Tensor:
        if not amid:
            step()
        return real(flat, layer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "by_head", during)
        scores = hw.score(model, PROMPTS, progress=False)
    assert len(amid) == len(alone)
    for ours, theirs in zip(amid, alone):
        assert torch.equal(ours, theirs)
    assert scores.record.task("letters").warning is None


def test_weights_that_change_meanwhile_are_told() -> None:
    module = fresh()
    model, real, calls = load(module), hooks.by_head, []

    def during(flat: torch.Tensor, layer: Any) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 2:
            with torch.no_grad():
                module.lm_head.weight.mul_(1.01)
        return real(flat, layer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "by_head", during)
        scores = hw.score(model, PROMPTS, "attribution", progress=False)
    assert "weights were changed while" in str(scores.record.task("letters").warning)


def test_a_forward_of_another_thread_in_training_mode_is_told() -> None:
    module = fresh()
    module.train()
    model, ran = load(module), []
    step = in_another_thread(lambda: ran.append(module(torch.tensor([[5, 6]]))))
    real = hooks.by_head

    def during(flat: torch.Tensor, layer: Any) -> torch.Tensor:
        if not ran:
            step()
        return real(flat, layer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "by_head", during)
        scores = hw.score(model, PROMPTS, "attribution", progress=False)
    assert "those forwards had no dropout" in str(scores.record.task("letters").warning)
    assert all(m.training for m in module.modules())


def test_training_mode_that_another_thread_switches_on_is_refused() -> None:
    module = fresh(attention_dropout=0.5)
    model, real = load(module), hooks.by_head

    def during(flat: torch.Tensor, layer: Any) -> torch.Tensor:
        module.train()
        return real(flat, layer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "by_head", during)
        with pytest.raises(RuntimeError, match="was switched to training mode while"):
            scored(model, "attribution")


@pytest.mark.parametrize("reentrant", [True, False])
def test_training_with_dropout_and_checkpointing_is_scored_in_evaluation_mode(
    reentrant: bool,
) -> None:
    expected = {m: scored(load(fresh()), m) for m in ("gradient", "ablation")}
    module = fresh(attention_dropout=0.5)
    module.gradient_checkpointing_enable({"use_reentrant": reentrant})
    module.train()
    for method, values in expected.items():
        np.testing.assert_allclose(scored(load(module), method), values, rtol=1e-5, atol=1e-6)
    assert module.training
