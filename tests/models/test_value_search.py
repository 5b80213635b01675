"""Values and the first MLP found by structure: the table's, the model's own, or refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn

import headwidget as hw
from headwidget.methods.relations import Pairs, Relations
from headwidget.models import hooks, mlp_search, tracing, value_search, weights
from tests.support import every_family, left_alone, small_configs, tiny
from tests.support.own_model import fresh, load
from tests.support.words import VOCABULARY, following, ids, tokenizer

PAIRS = [(token, (7 * token) % 250) for token in range(70, 100)]
K = 20


def by_structure(module: Any) -> hw.Model:
    """The model, its family hidden from the table."""
    module.config.model_type = "zebra"
    return load(module)


def built(family: str, **settings: Any) -> Any:
    """A tiny model in float64, so that equal ranks are no matter of rounding."""
    if settings:
        kind = transformers.AutoConfig.for_model
        config = kind(family, **{**small_configs.small_sizes(kind(family)), **settings})
        torch.manual_seed(0)
        module = type(every_family.build(family))(config).eval()
        every_family._draw(module)
    else:
        module = copy.deepcopy(every_family.build(family))
    if hasattr(module, "set_experts_implementation"):
        module.set_experts_implementation("eager")  # the others have no float64
    return module.double()


# ---- as the table says ----


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        *((family, {}) for family in tiny.DECODERS if family != "gemma3"),
        ("falcon", {"new_decoder_architecture": False, "multi_query": True}),
        ("falcon", {"new_decoder_architecture": False, "multi_query": False, "num_kv_heads": 4}),
        ("stablelm", {"use_parallel_residual": True}),
        ("gpt_neox", {"use_parallel_residual": False}),
    ],
)
def test_structure_finds_the_values_and_the_mlp_of_the_table(
    family: str, changes: dict[str, Any]
) -> None:
    known, found = load(fresh(family, **changes)), by_structure(fresh(family, **changes))
    value_search.find(found)
    mlp_search.find(found)
    e = torch.randn(9, known.config.get_text_config().hidden_size)
    for layer, expected in zip(found.layers, known.layers, strict=True):
        ours, table = (weights.values(m, at) for m, at in ((found, layer), (known, expected)))
        assert ours.repeat == table.repeat
        torch.testing.assert_close(ours.weight, table.weight, rtol=0, atol=0)
        for bias in (True, False):
            torch.testing.assert_close(ours.of(e, bias=bias), table.of(e, bias=bias))
    with torch.no_grad():
        torch.testing.assert_close(
            weights.first_mlp(found, e), weights.first_mlp(known, e), rtol=0, atol=0
        )


def test_relations_and_salient_give_the_same_by_structure_as_by_the_table() -> None:
    modules = [tiny.build("qwen2", vocab_size=VOCABULARY) for _ in range(2)]
    modules[1].config.model_type = "zebra"
    known, found = (hw.load(module, tokenizer()) for module in modules)
    for options in ({}, {"mlp": False}, {"bias": False}):
        ours, table = (
            hw.score(model, following(), "relations", progress=False, **options)
            for model in (found, known)
        )
        np.testing.assert_array_equal(ours.values("following"), table.values("following"))
    assert found.layers[0].value_path is not None and known.layers[0].value_path is None
    again = hw.load(modules[1], tokenizer())
    assert hw.relations.warm(again)
    assert hw.salient(again, 1, 2).equals(hw.salient(known, 1, 2))


# ---- as the model's own modules say ----


def own_values(model: hw.Model, read: Tensor) -> list[Tensor]:
    """What every layer's heads give where all attention reads ``read``: (row, head, dim) each.

    Of one token, attention gives its value, times a positive factor where there is a sink.
    """
    z: list[Tensor] = []

    def replaced(_: nn.Module, args: Any, kwargs: Any) -> Any:
        if args:
            return (read[:, None], *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": read[:, None]}

    handles = [
        layer.attention.register_forward_pre_hook(replaced, with_kwargs=True)
        for layer in model.layers
    ]
    with torch.no_grad(), hooks.read(model, lambda row, now: z.append(now[:, 0])):
        model.module(torch.full((len(read), 1), 80), use_cache=False)
    for handle in handles:
        handle.remove()
    return z


def by_the_model(model: hw.Model, mlp: tuple[str, ...]) -> np.ndarray:
    """(pair, layer, head): relations by its definition, the values by the model's own modules."""
    source, target = (torch.tensor(column) for column in zip(*PAIRS))
    with torch.no_grad():
        e = above = model.module.get_input_embeddings()(source)
        for name in mlp:
            above = model.blocks[0].get_submodule(name)(above[None])
            above = (above[0] if isinstance(above, tuple) else above).reshape(len(e), -1)
        rows = own_values(model, e)[:1] + own_values(model, above)[1:]
        found = np.zeros((len(PAIRS), *model.shape))
        for row, (layer, z) in enumerate(zip(model.layers, rows)):
            written = torch.einsum("phd,hdw->phw", z, layer.w_o())
            logits = written @ model.unembedding.weight.T  # (pair, head, vocabulary)
            largest = logits.topk(K).indices
            found[:, row] = (largest == target[:, None, None]).any(-1)
    return found


def ours(model: hw.Model, **options: Any) -> np.ndarray:
    pairs = Pairs.of(model, PAIRS, [K] * len(PAIRS), Relations(**options))
    with torch.no_grad():
        return np.stack([pairs.hits(layer)[0].numpy() for layer in model.layers], axis=1)


LLAMA = ("post_attention_layernorm", "mlp")
SHARED = {
    "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}
OWN: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("starcoder2", {"use_bias": True}, LLAMA),
    ("olmo3", {}, ("mlp",)),
    ("glm4", {}, LLAMA),
    ("gpt_bigcode", {}, ("ln_2", "mlp")),
    ("codegen", {}, ("ln_1", "mlp")),  # values in the middle of each of several blocks
    ("persimmon", {}, LLAMA),
    ("gpt_oss", {}, LLAMA),  # sinks, a mixture that returns its routing
    ("llama4_text", {}, ("post_attention_layernorm", "feed_forward")),
    ("biogpt", {}, ("final_layer_norm", "fc1", "activation_fn", "fc2")),
    ("deepseek_v2", {}, LLAMA),
    ("deepseek_v3", {"attention_bias": True}, LLAMA),
    ("minicpm3", {}, LLAMA),
    ("glm4_moe_lite", {}, LLAMA),
    ("youtu", {}, LLAMA),
    ("gemma3n_text", {}, ("pre_feedforward_layernorm", "mlp")),
    ("gemma4_text", {}, ("pre_feedforward_layernorm", "mlp")),  # values are normed
    ("gemma4_text", SHARED, ("pre_feedforward_layernorm", "mlp")),
]


@pytest.mark.parametrize(("family", "settings", "mlp"), OWN, ids=[family for family, *_ in OWN])
def test_scores_are_those_of_the_models_own_values(
    family: str, settings: dict[str, Any], mlp: tuple[str, ...]
) -> None:
    model = load(built(family, **settings))
    assert not model.family.table
    expected = by_the_model(model, mlp)
    np.testing.assert_array_equal(ours(model), expected)
    np.testing.assert_array_equal(ours(model, mlp=False), by_the_model(model, ()))
    assert 0.01 < expected.mean() < 0.3


def test_biases_and_norms_matter_in_these_models() -> None:
    """Else the comparison above could not fail: each is taken out once."""
    model = load(built("deepseek_v3", attention_bias=True))
    plain = ours(model, mlp=False)
    assert (ours(model, mlp=False, bias=False) != plain).any()
    for layer in model.layers:
        layer.attention.kv_a_layernorm.weight.data[:] = 1.0
    assert (ours(model, mlp=False) != plain).any(), "weights are read when they are used"


@pytest.mark.parametrize(("family", "settings"), [("gemma3n_text", {}), ("gemma4_text", SHARED)])
def test_shared_values_are_those_of_the_layer_that_makes_them(
    family: str, settings: dict[str, Any]
) -> None:
    model = load(built(family, **settings))
    value_search.find(model)
    names = [layer.value_path.steps[0].name for layer in model.layers]
    assert names[2:] == names[:2] and len(set(names)) == 2
    assert [step.group for step in model.layers[0].value_path.steps] == [None, 8]


def test_branches_of_an_mlp_that_are_added_are_added() -> None:
    model = load(built("granitemoeshared"))
    mlp_search.find(model)
    block, e = model.blocks[0], torch.randn(5, 32, dtype=torch.float64)
    with torch.no_grad():
        normed = block.post_attention_layernorm(e[None])
        moe = block.block_sparse_moe(normed)
        moe = moe[0] if isinstance(moe, tuple) else moe
        expected = (moe + block.shared_mlp(normed))[0]
        torch.testing.assert_close(weights.first_mlp(model, e), expected)


def test_sixteen_bits_are_enough_to_find_values() -> None:
    model = load(copy.deepcopy(every_family.build("deepseek_v3")).bfloat16())
    value_search.find(model)
    assert model.layers[0].value_path.latent


def test_a_found_family_is_scored_from_the_outside() -> None:
    module = copy.deepcopy(every_family.build("minicpm3"))
    module.resize_token_embeddings(VOCABULARY)
    every_family._draw(module)
    model = hw.load(module, tokenizer())
    scores = hw.score(model, following(), "relations", progress=False, mlp=False)
    pairs = Pairs.of(model, ids(model, following()), [10] * 52, Relations(mlp=False))
    with torch.no_grad():
        expected = np.stack([pairs.hits(layer)[0].numpy() for layer in model.layers], axis=1)
    np.testing.assert_array_equal(scores.values("following"), expected)
    assert scores.values("following").any()


# ---- what is between two linear maps ----


def latent(norm: Any = None, bias: bool = False) -> Any:
    module = built("deepseek_v3")
    for block in module.model.layers:
        if norm is not None:
            block.self_attn.kv_a_layernorm = norm().double()
            nn.init.normal_(block.self_attn.kv_a_layernorm.weight)
        if bias:
            inner = block.self_attn.kv_b_proj
            block.self_attn.kv_b_proj = nn.Linear(16, inner.out_features).double()
    return module


def test_the_mean_that_a_norm_takes_off_is_folded_in() -> None:
    model = load(latent(lambda: nn.LayerNorm(16, bias=False)))
    np.testing.assert_array_equal(ours(model, mlp=False), by_the_model(model, ()))


class ShiftedNorm(nn.LayerNorm):
    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.normal_(self.bias)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (lambda: latent(lambda: ShiftedNorm(16)), r"kv_a_layernorm \(ShiftedNorm\) adds a bias"),
        (lambda: latent(bias=True), "kv_b_proj adds a bias behind a norm"),
    ],
)
def test_a_bias_behind_a_norm_is_refused(module: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ours(load(module()))


# ---- what is refused ----


def with_values(make: Any) -> Any:
    """A tiny Llama whose value projections are replaced."""
    module = fresh()
    for block in module.model.layers:
        block.self_attn.v_proj = make(block.self_attn.v_proj)
    return module


class Late(nn.Module):
    """Gives a token what it has for the one before it."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], x[:, :-1]], dim=1)


class Adapted(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def adapted(inner: Any) -> Any:
    inner.__class__ = Adapted
    return inner


def hooked(inner: Any) -> Any:
    inner.register_forward_hook(lambda module, args, out: 1.5 * out)
    return inner


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda v: nn.Sequential(v, nn.Tanh()), "no part of a linear map's output"),
        (lambda v: nn.Sequential(v, Late()), "no part of a linear map's output"),
        (lambda v: nn.Sequential(nn.Tanh(), v), "reads neither the residual stream nor its norm"),
        (lambda v: nn.Sequential(Late(), v), "reads neither the residual stream nor its norm"),
        (hooked, "has other values than the weights of .*v_proj give"),
        (adapted, "v_proj is a Adapted whose weight cannot be read as plain numbers"),
    ],
)
def test_values_that_are_not_the_weights_are_refused(make: Any, sentence: str) -> None:
    model = by_structure(with_values(make))
    for _ in range(2):  # the reason is kept
        with pytest.raises((ValueError, TypeError), match=sentence):
            hw.score(model, "relations", "relations", progress=False)


def test_a_hook_that_is_taken_off_refuses_no_longer() -> None:
    model = by_structure(fresh())
    handle = model.layers[1].attention.v_proj.register_forward_hook(lambda *call: 1.5 * call[2])
    with pytest.raises(ValueError, match="has other values than the weights"):
        value_search.find(model)
    handle.remove()
    value_search.find(model)
    assert model.layers[1].value_path is not None


class OneMatrix(nn.Module):
    """Reads a norm's output, row by row, and is no MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def test_one_linear_map_alone_is_no_mlp() -> None:
    module = fresh()
    module.model.layers[0].mlp = OneMatrix()
    with pytest.raises(ValueError, match="nothing in model.layers.0 reads .* mlp=False"):
        mlp_search.find(by_structure(module))


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (
            "qwen3_next",
            r"layers.3.self_attn.o_proj of .* takes its attention's output times a gate",
        ),
        ("zamba2", "v_proj, which reads 64 numbers, where heads write 32"),
        ("roberta", "more than a norm between the last block and the unembedding"),
    ],
)
def test_families_without_such_a_map_are_refused_by_name(family: str, sentence: str) -> None:
    model = load(copy.deepcopy(every_family.build(family)))
    with pytest.raises(ValueError, match=sentence) as error:
        hw.score(model, "relations", "relations", progress=False)
    assert "use method='ablation' or 'gradient'" in str(error.value)


def test_encoders_are_refused() -> None:
    with pytest.raises(ValueError, match="predicts masked ones"):
        hw.score(by_structure(fresh("bert")), "relations", "relations", progress=False)


def test_a_first_layer_without_an_mlp_is_told_with_what_to_do() -> None:
    model = load(built("nemotron_h"))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"layers.0.mixer cannot be proven .* mlp=False"):
            ours(model)
    assert ours(model, mlp=False).any()


# ---- when and how it is looked for ----


def test_nothing_is_looked_for_at_load_and_once_afterwards() -> None:
    module, ran = fresh(), []
    module.config.model_type = "zebra"
    module.model.register_forward_pre_hook(lambda *_: ran.append(1))
    model = load(module)
    at_load = len(ran)
    assert model.layers[0].value_path is None and at_load == 5
    value_search.find(model)
    assert len(ran) - at_load <= 5
    before = len(ran)
    value_search.find(model)
    assert len(ran) == before


def test_looking_leaves_the_model_as_it_was() -> None:
    module = fresh(attention_dropout=0.2)
    module.train()
    module.config.model_type = "zebra"
    model = load(module)
    before = left_alone.state(module)
    value_search.find(model)
    mlp_search.find(model)
    model.describe()
    assert left_alone.changes(before, left_alone.state(module)) == []


def test_columns_are_found_whatever_zeros_are_among_them() -> None:
    output = torch.randn(tracing.TOKENS, 12)
    output[:, [3, 5, 6, 9]] = 0.0
    wanted = output[:, [4, 5, 6, 7]] * 1.0
    assert value_search._columns(wanted, output).tolist() == [4, 5, 6, 7]
    assert value_search._columns(wanted + 1e-6, output) is None


@pytest.mark.parametrize(
    ("family", "line"),
    [
        ("gpt_oss", "attention sinks (a place to attend to that is no token) in 4 of 4 layers"),
        ("qwen3_next", "gated output (the gate is part of the head) in 1 of 1 layers"),
        ("kimi_linear", "latent attention (values are made in two steps) in 2 of 2 layers"),
        ("gemma3n_text", "values of another layer (shared key-values) in 2 of 4 layers"),
    ],
)
def test_a_model_in_words_names_the_kinds_of_heads(family: str, line: str) -> None:
    lines = load(copy.deepcopy(every_family.build(family))).describe().splitlines()
    assert line in lines
    kinds = ("attention sinks", "gated output", "latent attention", "values of another")
    assert sum(text.startswith(kinds) for text in lines) == 1
