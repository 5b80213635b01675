"""Hooks on every family: ones change nothing, contributions sum to the output.

Zeroing a head is zeroing its rows of W_O.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

import headwidget as hw
from headwidget.models import hooks
from tests.support import tiny

IDS = torch.tensor([[5, 6, 7, 8, 9, 6, 7, 11], [30, 31, 32, 33, 34, 35, 36, 37]])


def logits(model: hw.Model) -> torch.Tensor:
    with torch.no_grad():
        return model.module(input_ids=IDS).logits


def hook_count(model: hw.Model) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.module.modules())


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_gates_of_one_are_bit_identical_to_no_hook(family: str) -> None:
    model = tiny.model(family)
    plain = logits(model)
    for shape in (model.shape, (2, *model.shape)):
        with hooks.gate(model, torch.ones(shape)):
            assert torch.equal(logits(model), plain)
    with hooks.gate(model, torch.zeros(model.shape)):
        assert not torch.allclose(logits(model), plain)  # the hook is really there
    assert torch.equal(logits(model), plain)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_contributions_and_bias_sum_to_the_projections_output(family: str) -> None:
    model = tiny.model(family)
    z: dict[int, torch.Tensor] = {}
    outputs: dict[int, torch.Tensor] = {}
    with hooks.read(model, lambda row, value: z.update({row: value})):
        watches = [
            layer.projection.register_forward_hook(
                lambda _m, _a, out, row=row: outputs.update({row: out})
            )
            for row, layer in enumerate(model.layers)
        ]
        logits(model)
        for watch in watches:
            watch.remove()
    for row, layer in enumerate(model.layers):
        assert z[row].shape == (2, 8, model.n_heads, model.head_dim)
        total = torch.einsum("bshd,hdw->bsw", z[row], layer.w_o())
        bias = getattr(layer.projection, "bias", None)
        torch.testing.assert_close(
            total + (0 if bias is None else bias), outputs[row], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_zeroing_a_head_equals_zeroing_its_rows_of_the_projection(family: str) -> None:
    model = hw.load(tiny.build(family), tiny.tokenizer())
    plain = logits(model)
    for row, head in ((0, 1), (len(model.layers) - 1, model.n_heads - 1)):
        gates = torch.ones(model.shape)
        gates[row, head] = 0
        with hooks.gate(model, gates):
            gated = logits(model)
        kept = model.layers[row].projection.weight.detach().clone()
        with torch.no_grad():
            model.layers[row].w_o()[head].zero_()
        torch.testing.assert_close(gated, logits(model), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            model.layers[row].projection.weight.copy_(kept)
        assert not torch.allclose(gated, plain)


def test_each_sample_has_its_own_gates() -> None:
    model = tiny.model("llama")
    gates = torch.ones(2, *model.shape)
    gates[1, 2, 3] = 0
    plain = logits(model)
    with hooks.gate(model, gates):
        gated = logits(model)
    assert torch.equal(gated[0], plain[0])
    assert not torch.allclose(gated[1], plain[1])


def test_what_a_gate_takes_away_is_filled() -> None:
    model = tiny.model("gpt2")
    z: dict[int, torch.Tensor] = {}
    fill = torch.randn(*model.shape, model.head_dim)
    gates = torch.ones(model.shape)
    gates[1, 2] = 0
    with (
        hooks.gate(model, gates, fill),
        hooks.read(model, lambda row, value: z.update({row: value})),
    ):
        logits(model)
    assert torch.allclose(z[1][:, :, 2], fill[1, 2].expand(2, 8, -1))
    assert not torch.allclose(z[1][:, :, 1], fill[1, 1].expand(2, 8, -1))


def test_hooks_are_gone_after_use_and_after_an_exception() -> None:
    model = tiny.model("llama")
    before = hook_count(model)
    with (
        pytest.raises(ZeroDivisionError),
        hooks.gate(model, torch.ones(model.shape)),
        hooks.read(model, lambda row, z: 1 / 0),
    ):  # type: ignore[arg-type, return-value]
        logits(model)
    with (
        pytest.raises(KeyError),
        hooks.watch(model.blocks[0], lambda *_: None),
        hooks.stand_in(model.blocks[0], lambda *a, **k: a[0]),
    ):
        raise KeyError
    assert hook_count(model) == before
    assert all("forward" not in m.__dict__ for m in model.module.modules())


def test_stand_in_gives_back_a_wrapper_that_was_there() -> None:
    module = nn.Linear(2, 2)
    wrapper = lambda x: x + 1  # as accelerate leaves one
    module.forward = wrapper
    with hooks.stand_in(module, lambda x: x * 0):
        assert module(torch.ones(1)) == 0
    assert module.forward is wrapper


def test_modes_are_given_back_and_parameters_are_not_touched() -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    model.module.train()
    model.layers[0].projection.eval()
    model.layers[1].projection.weight.requires_grad_(False)
    modes = [m.training for m in model.module.modules()]
    wants = [p.requires_grad for p in model.module.parameters()]
    for context in (hooks.scoring, hooks.differentiating):
        with context(model):
            assert not any(m.training for m in model.module.modules())
            assert wants == [p.requires_grad for p in model.module.parameters()]
            assert torch.is_grad_enabled() == (context is hooks.differentiating)
        assert modes == [m.training for m in model.module.modules()]


def test_logits_are_computed_where_they_are_asked_for() -> None:
    model = tiny.model("llama")
    at = torch.tensor([[2, 5], [7, 0]])
    with hooks.scoring(model):
        some = hooks.logits_at(model, {"input_ids": IDS}, at)
    assert hook_count(model) == 0
    torch.testing.assert_close(some, hooks.take_positions(logits(model), at), rtol=1e-5, atol=1e-5)


def test_attention_stays_as_the_user_set_it() -> None:
    for kind in ("sdpa", "eager"):
        module: Any = tiny.build("llama")
        module.set_attn_implementation(kind)
        hw.score(hw.load(module, tiny.tokenizer()), tiny.task(), "ablation", progress=False)
        assert module.config._attn_implementation == kind


def test_a_projection_that_never_runs_is_an_error() -> None:
    module = tiny.build(
        "bloom", slow_but_exact=True, pretraining_tp=2
    )  # uses dense.weight without calling dense
    model = hw.load(module, tiny.tokenizer())
    with (
        pytest.raises(
            RuntimeError, match=r"transformer\.h\.0\.self_attention\.dense was never called"
        ),
        hooks.read(model, lambda row, z: None),
    ):
        logits(model)
    for method in ("ablation", "gradient"):
        with pytest.raises(
            RuntimeError, match=r"transformer\.h\.0\.self_attention\.dense was never called"
        ):
            hw.score(model, tiny.task(), method, progress=False)


def test_gates_of_the_wrong_shape_are_refused() -> None:
    with (
        pytest.raises(
            ValueError, match=r"gates must end in \(layer, head\) = \(3, 4\); got \(4, 3\)"
        ),
        hooks.gate(tiny.model("llama"), torch.ones(4, 3)),
    ):
        pass


def test_a_backward_ends_at_the_next_layer_once_it_is_asked_to_stop() -> None:
    model, stop = tiny.model("llama"), threading.Event()
    gates = torch.ones(model.shape, requires_grad=True)
    with hooks.differentiating(model), hooks.stoppable(stop), hooks.gate(model, gates):
        loss = model.module(torch.tensor([[5, 6, 7]])).logits.sum()
        (slope,) = torch.autograd.grad(loss, gates, retain_graph=True)
        stop.set()
        with pytest.raises(hooks.Stopped):
            torch.autograd.grad(loss, gates)
    assert slope.shape == model.shape
