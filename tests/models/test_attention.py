"""Attention weights are the model's own on every family, a layer at a time, without a trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

import headwidget as hw
from headwidget.models import attention, families, hooks
from headwidget.scoring.batch import Batch, collate
from headwidget.scoring.encode import encode as tokenised
from tests.support import tiny
from tests.support.eager import eager, returned_weights

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon, one key head": ("falcon", {"new_decoder_architecture": False, "multi_query": True}),
    # with ALiBi, transformers' Falcon adds it twice in eager attention and once in sdpa:
    # eager is compared with eager here, sdpa below with torch's own
    "falcon, ALiBi": (
        "falcon",
        {
            "new_decoder_architecture": False,
            "multi_query": False,
            "num_kv_heads": 4,
            "alibi": True,
            "attn_implementation": "eager",
        },
    ),
    "gpt2, scaled by layer": ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
    "gpt2, upcast": ("gpt2", {"reorder_and_upcast_attn": True, "attn_implementation": "eager"}),
    "gemma2, low softcap": ("gemma2", {"attn_logit_softcapping": 0.5}),
    "llama, scaled rotation": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}},
    ),
    "opt, norms behind": ("opt", {"do_layer_norm_before": False}),
}


def batch_of(model: hw.Model, side: Any = "right") -> Batch:
    examples = tokenised(tiny.task(), model).examples  # of four lengths
    return collate(range(len(examples)), examples, model, side)


def lengths(model: hw.Model) -> list[int]:
    return [len(e.ids) for e in tokenised(tiny.task(), model).examples]


@pytest.mark.parametrize("name", [*tiny.FAMILIES, *VARIANTS])
def test_weights_are_those_that_eager_attention_gives_away(name: str) -> None:
    family, changes = VARIANTS.get(name, (name, {}))
    model = hw.load(tiny.build(family, **changes), tiny.tokenizer())
    how = model.config.get_text_config()._attn_implementation
    batch, long = batch_of(model), lengths(model)
    real = torch.arange(max(long)) < torch.tensor(long)[:, None]  # (batch, seq)
    expected = returned_weights(
        eager(family, **{k: v for k, v in changes.items() if k != "attn_implementation"}),
        batch.ids,
        real.long(),
    )
    assert len(expected) == len(model.layers)
    for row, theirs in enumerate(expected):
        ours = attention.weights(model, batch.inputs(model), row)
        assert (
            ours.shape == theirs.shape == (4, model.n_heads, max(long), max(long))
            and ours.dtype == torch.float32
        )
        for b, n in enumerate(long):
            torch.testing.assert_close(
                ours[b, :, :n, :n], theirs[b, :, :n, :n], rtol=1e-4, atol=1e-5
            )
            torch.testing.assert_close(
                ours[b, :, :n, :n].sum(-1), torch.ones(model.n_heads, n), rtol=0, atol=1e-5
            )
    assert model.config.get_text_config()._attn_implementation == how


@pytest.mark.parametrize(
    "how",
    [
        "plain",
        "causal",
        "seen or not",
        "a bias for each head",
        "shared keys",
        "one key head",
        "scaled",
    ],
)
def test_weights_computed_again_are_those_of_torchs_own_attention(how: str) -> None:
    torch.manual_seed(0)
    query, key = (
        torch.randn(2, 4, 6, 8),
        torch.randn(2, {"shared keys": 2, "one key head": 1}.get(how, 4), 6, 8),
    )
    value = torch.eye(6).expand(
        2, key.shape[1], 6, 6
    )  # what is moved is then the weights themselves
    given: dict[str, Any] = {
        "causal": {"is_causal": True},
        "seen or not": {
            "attn_mask": (torch.rand(2, 1, 6, 6) > 0.5) | torch.eye(6, dtype=torch.bool)
        },
        "a bias for each head": {"attn_mask": torch.randn(2, 4, 6, 6)},
        "shared keys": {"is_causal": True, "enable_gqa": True},
        "scaled": {"scale": 0.7},
    }.get(how, {})
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, **given)
    ((heads, found),) = attention._again(query, key, value, **given)
    assert heads == slice(0, 4)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "falcon", "gpt2", "bloom"])
def test_padding_on_the_left_is_never_looked_at(family: str) -> None:
    model = tiny.model(family)
    for b, n in enumerate(lengths(model)):
        example = tokenised(tiny.task(), model).examples[b]
        alone = attention.weights(model, example.ids, 1)
        padded = attention.weights(model, batch_of(model, "left").inputs(model), 1)
        torch.testing.assert_close(padded[b, :, -n:, -n:], alone[0], rtol=1e-4, atol=1e-5)
        assert torch.isfinite(padded).all()


def test_half_precision_gives_weights_in_float32() -> None:
    model = hw.load(tiny.build("llama").to(torch.bfloat16), tiny.tokenizer())
    found, exact = (
        attention.weights(m, [5, 6, 7, 8, 9, 6], 0) for m in (model, tiny.model("llama"))
    )
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("family", "together"), [("llama", 2), ("mistral", 1), ("falcon", 1)]
)  # without a mask, two query heads share a key head
def test_heads_in_slices_are_the_same_heads(
    family: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model(family)
    whole = attention.weights(model, batch_of(model).inputs(model), 1)
    monkeypatch.setattr(attention, "ENTRIES", 1)
    slices: list[slice] = []
    with (
        hooks.scoring(model),
        attention.read(model, lambda row, heads, w: slices.append(heads), [1]),
    ):
        model.module(input_ids=batch_of(model).ids)
    assert slices == [slice(i, i + together) for i in range(0, 4, together)]
    torch.testing.assert_close(
        attention.weights(model, batch_of(model).inputs(model), 1), whole, rtol=0, atol=1e-6
    )


def test_a_sink_outside_the_tokens_takes_its_part() -> None:
    hw.register(hw.Family("gpt_oss", blocks="model.layers"))
    try:
        torch.manual_seed(0)
        sizes = {
            **tiny._COMMON,
            **tiny._GQA,
            "head_dim": 8,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "layer_types": tiny._SLIDING,
        }
        config = transformers.GptOssConfig(**sizes, sliding_window=4)
        module = transformers.GptOssForCausalLM(config).eval()
        model = hw.load(module, tiny.tokenizer())
        ids = torch.tensor([[5, 6, 7, 8, 9, 6]])
        for row, theirs in enumerate(returned_weights(module, ids, torch.ones_like(ids))):
            ours = attention.weights(model, ids, row)
            torch.testing.assert_close(ours, theirs[..., :6], rtol=1e-4, atol=1e-5)
            assert (ours.sum(-1) < 0.99).all()
        scores = hw.score(model, tiny.task(), "patterns", progress=False)
        assert all(
            scores.values(name).min() >= 0 and scores.values(name).max() <= 1
            for name in scores.tasks
        )
    finally:
        del families.FAMILIES["gpt_oss"]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_model_is_the_same_while_it_is_watched_and_after(family: str) -> None:
    model = tiny.model(family)
    ids = torch.tensor([[5, 6, 7, 8, 9, 6, 7, 11]])
    with hooks.scoring(model):
        plain = model.module(input_ids=ids).logits
        with attention.read(model, lambda row, heads, w: None):
            watched = model.module(input_ids=ids).logits
    assert torch.equal(plain, watched)
    assert all("forward" not in m.__dict__ for m in model.module.modules())
    with (
        pytest.raises(ZeroDivisionError),
        hooks.scoring(model),
        attention.read(model, lambda row, heads, w: 1 / 0),
    ):  # type: ignore[arg-type, return-value]
        model.module(input_ids=ids)
    assert all("forward" not in m.__dict__ for m in model.module.modules())
    assert torch._C._len_torch_function_stack() == 0


def test_only_one_layers_weights_are_there_at_a_time() -> None:
    import weakref

    model, alive, most = tiny.model("llama"), [], 0

    def take(row: int, heads: slice, weights: torch.Tensor) -> None:
        nonlocal most
        alive.append(weakref.ref(weights))
        most = max(most, sum(ref() is not None for ref in alive))

    with hooks.scoring(model), attention.read(model, take):
        model.module(input_ids=torch.arange(2, 40)[None])
    assert len(alive) == 3 and most == 1


def test_what_cannot_be_read_is_said() -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    model.config._attn_implementation_internal = "flash_attention_2"
    with pytest.raises(
        ValueError,
        match=r"by 'flash_attention_2', a kernel that does not return its .*='sdpa' or 'eager'",
    ):
        hw.score(model, tiny.task(), "patterns", progress=False)
    with pytest.raises(IndexError, match=r"0 to 2; got 3"):
        attention.weights(tiny.model("llama"), [5, 6], 3)
    model = hw.load(tiny.build("llama"), tiny.tokenizer())

    def own_kernel(hidden_states: torch.Tensor, **_: Any) -> tuple[torch.Tensor, None]:
        return hidden_states, None

    with (
        hooks.stand_in(model.layers[1].attention, own_kernel),
        pytest.raises(
            RuntimeError, match=r"model\.layers\.1\.self_attn \(LlamaAttention.*none were seen"
        ),
    ):
        attention.weights(model, [5, 6, 7], 1)
