"""One's own model: gradients that stop, modules that are shared, training in other threads.

Each is scored equal to the definition by a plain loop, or refused with a sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headwidget as hw
from headwidget.models import hooks
from tests.support import tiny
from tests.support.own_model import PROMPTS, fresh, load, scored
from tests.support.plain import ablation_by_loop

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
