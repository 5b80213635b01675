"""W_V and the first MLP, as they are read, against the running model of every family."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headwidget as hw
from headwidget.models import hooks, weights
from tests.support import tiny
from tests.support.words import following, made


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_values_are_what_the_heads_give_for_one_token(family: str) -> None:
    """Attention over one token is that token's value: z is e W_V + b_V there."""
    model = made(family)
    fed: list[Tensor] = []
    z: list[Tensor] = []
    with torch.no_grad(), hooks.read(model, lambda row, now: z.append(now[:, 0])):
        handles = [
            hooks.watch(
                layer.block.get_submodule(model.family.value),
                lambda args, kwargs, out: fed.append(args[0]),
            )
            for layer in model.layers
        ]
        for handle in handles:
            handle.__enter__()
        model.module(torch.arange(5, 35)[:, None])
        for handle in handles:
            handle.__exit__(None, None, None)
    for layer, h, expected in zip(model.layers, fed, z):
        got = weights.values(model, layer).of(
            h.reshape(len(expected), -1), bias=True
        )  # (head, row, head_dim)
        torch.testing.assert_close(got.transpose(0, 1), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        *((family, {}) for family in tiny.DECODERS),
        ("falcon", {"new_decoder_architecture": False, "multi_query": True, "parallel_attn": True}),
        (
            "falcon",
            {
                "new_decoder_architecture": False,
                "multi_query": False,
                "num_kv_heads": 4,
                "parallel_attn": False,
            },
        ),
        ("stablelm", {"use_parallel_residual": True}),
        ("gpt_neox", {"use_parallel_residual": False}),
    ],
)
def test_the_first_mlp_is_the_one_the_model_runs(family: str, changes: dict[str, Any]) -> None:
    model = made(family, **changes)
    block = model.blocks[0]
    names = [name for name in model.family.mlp_norm if getattr(block, name, None) is not None][:1]
    first, last = (names or model.family.mlp)[0], model.family.mlp[-1]
    seen: dict[str, Tensor] = {}

    def after(args: Any, kwargs: Any, out: Any) -> None:
        out = out[0] if isinstance(out, tuple) else out
        seen["out"] = (
            out - args[1] if family == "bloom" else out
        ).clone()  # its MLP adds the stream; Falcon adds to the output in place

    with (
        torch.no_grad(),
        hooks.watch(
            block.get_submodule(first), lambda args, kwargs, out: seen.update({"in": args[0]})
        ),
    ):
        with hooks.watch(block.get_submodule(last), after):
            model.module(torch.arange(5, 35)[:, None])
        got = weights.first_mlp(model, seen["in"].reshape(30, -1))
    torch.testing.assert_close(got, seen["out"].reshape(30, -1), rtol=1e-4, atol=1e-4)


def test_weights_that_cannot_be_read_are_named() -> None:
    class Adapted(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    model = made("llama")
    model.layers[1].attention.v_proj.__class__ = Adapted
    with pytest.raises(
        TypeError, match=r"model.layers.1.self_attn.v_proj is a Adapted whose weight cannot be read"
    ):
        hw.score(model, following(), "relations", progress=False)
    model = made("llama")
    model.layers[2].attention.v_proj.to(
        "meta"
    )  # as accelerate leaves weights that it keeps on disk
    with pytest.raises(
        TypeError,
        match=r"model.layers.2.self_attn.v_proj is a Linear whose weight cannot be read as plain",
    ):
        hw.score(model, following(), "relations", progress=False)
    hw.register(hw.Family("llama", "model.layers", value="self_attn.elsewhere"))
    try:
        with pytest.raises(
            ValueError, match="no value projection 'model.layers.0.self_attn.elsewhere'"
        ):
            hw.score(made("llama"), following(), "relations", progress=False)
    finally:
        hw.register(hw.Family("llama", "model.layers"))
    model = made("llama")
    model.layers[0].attention.v_proj = nn.Linear(32, 24)
    with pytest.raises(ValueError, match="gives 24 numbers, not 2 heads x 8 = 16"):
        hw.score(model, following(), "relations", progress=False)
