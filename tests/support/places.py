"""Where the parts of tiny models are, for tests that share nothing with headwidget's own table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

import headwidget as hw
from tests.support import tiny, words


@dataclass(frozen=True)
class Places:
    """Paths inside a transformers model; all but the first two start at a block."""

    blocks: str = "model.layers"
    final_norm: str | None = "model.norm"
    attention: str = "self_attn"
    projection: str = "self_attn.o_proj"
    query: str = "self_attn.q_proj"
    value: str = "self_attn.v_proj"
    packed: Literal["blocks", "groups"] | None = None
    """How queries, keys and values lie in ``value``, where it makes all three."""
    mlp: tuple[str, ...] = ("mlp",)
    norm: str = "input_layernorm"
    mlp_norm: str | None = "post_attention_layernorm"
    post_norm: str | None = None
    """A norm between the output projection and the residual stream."""


EMBEDDED = "smollm2"
"""The embedded model, cut to its first two layers and tokens."""
FIRST_TOKENS, LETTERS = 2048, "abcdefghjklmnoprstuvwxyz"
"""The letters that are among these tokens behind a space: all but i and q."""
_LIKE_LLAMA = Places()
_QKV = "self_attention.query_key_value"

PLACES: dict[str, Places] = {
    EMBEDDED: _LIKE_LLAMA,
    "llama": _LIKE_LLAMA,
    "mixtral": _LIKE_LLAMA,
    "qwen3": _LIKE_LLAMA,
    "gemma2": Places(
        post_norm="post_attention_layernorm",
        mlp_norm="pre_feedforward_layernorm",
    ),
    "olmo2": Places(
        norm="post_feedforward_layernorm", mlp_norm=None, post_norm="post_attention_layernorm"
    ),
    "phi3": Places(
        query="self_attn.qkv_proj",
        value="self_attn.qkv_proj",
        packed="blocks",
    ),
    "jamba": Places(
        final_norm="model.final_layernorm", mlp=("feed_forward",), mlp_norm="pre_ff_layernorm"
    ),
    "gpt2": Places(
        "transformer.h",
        "transformer.ln_f",
        "attn",
        "attn.c_proj",
        "attn.c_attn",
        "attn.c_attn",
        "blocks",
        norm="ln_1",
        mlp_norm="ln_2",
    ),
    "gptj": Places(
        "transformer.h",
        "transformer.ln_f",
        "attn",
        "attn.out_proj",
        "attn.q_proj",
        "attn.v_proj",
        norm="ln_1",
        mlp_norm="ln_1",
    ),
    "gpt_neox": Places(
        "gpt_neox.layers",
        "gpt_neox.final_layer_norm",
        "attention",
        "attention.dense",
        "attention.query_key_value",
        "attention.query_key_value",
        "groups",
    ),
    "bloom": Places(
        "transformer.h",
        "transformer.ln_f",
        "self_attention",
        "self_attention.dense",
        _QKV,
        _QKV,
        "groups",
    ),
    "opt": Places(
        "model.decoder.layers",
        "model.decoder.final_layer_norm",
        projection="self_attn.out_proj",
        mlp=("fc1", "activation_fn", "fc2"),
        norm="self_attn_layer_norm",
        mlp_norm="final_layer_norm",
    ),
    "bert": Places(
        "bert.encoder.layer",
        None,
        "attention.self",
        "attention.output.dense",
        "attention.self.query",
        "attention.self.value",
        mlp=("intermediate",),
        norm="attention.output.LayerNorm",
    ),
}
TINY = tuple(name for name in PLACES if name != EMBEDDED)
ENCODERS = ("bert",)
NAMES = (
    "embedding block attention projection query value mlp norm final_norm unembedding model wrapper"
).split()
"""Names of modules that a user may hook, as :func:`module` takes them."""


def build(family: str, heads: int, **changes: Any) -> Any:
    """A model of two layers with attention; ``heads`` is 2 or 4, in groups where it can.

    The embedded model has its own nine.
    """
    if family == EMBEDDED:
        return _cut(**changes)
    settings = tiny.FAMILIES[family][2]
    layers = 3 if family == "jamba" else 2  # the layer between has no attention
    sizes: dict[str, Any] = {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": words.VOCABULARY,
    }
    if "n_layer" in settings:  # the same two by older names
        sizes |= {"n_layer": layers, "n_head": heads}
    if "num_key_value_heads" in settings:
        sizes["num_key_value_heads"] = heads // 2
    if family == "opt":
        sizes["activation_function"] = "gelu"  # a slope by differences needs no kinks
    if "layer_types" in settings:
        sizes["layer_types"] = ["sliding_attention", "full_attention"]
    return tiny.build(family, **{**sizes, **changes})


def _cut(**changes: Any) -> Any:
    """The embedded model's first two layers and tokens, as a model of its own."""
    whole = hw.load().module
    sizes = {"num_hidden_layers": 2, "vocab_size": FIRST_TOKENS}
    cut = type(whole)(type(whole.config)(**{**whole.config.to_dict(), **sizes, **changes})).eval()
    weights = whole.state_dict()
    with torch.no_grad():
        for name, weight in cut.state_dict().items():
            weight.copy_(weights[name][: len(weight)])
    return cut


def tokenizer(family: str) -> Any:
    """The tokenizer of a model that :func:`build` gives."""
    return hw.load().tokenizer if family == EMBEDDED else words.tokenizer()


def attention_layers(base: Any, places: Places) -> list[int]:
    """The numbers of the blocks that have attention."""
    blocks = base.get_submodule(places.blocks)
    first = places.attention.split(".")[0]
    return [i for i, block in enumerate(blocks) if hasattr(block, first)]


def module(wrapper: Any, base: Any, places: Places, name: str, layer: int) -> nn.Module:
    """A module by its name in ``NAMES``; ``layer`` counts the layers with attention."""
    if name == "wrapper":
        outermost: nn.Module = wrapper
        return outermost
    if name == "model":
        whole: nn.Module = base
        return whole
    if name == "embedding":
        embedding: nn.Module = base.get_input_embeddings()
        return embedding
    if name == "unembedding":
        unembedding: nn.Module = base.get_output_embeddings()
        return unembedding
    if name == "final_norm":
        return submodule(base, places.final_norm or "cls.predictions.transform.LayerNorm")
    index = attention_layers(base, places)[layer]
    if name == "block":
        return submodule(base, f"{places.blocks}.{index}")
    path = places.mlp[0] if name == "mlp" else getattr(places, name)
    return submodule(base, f"{places.blocks}.{index}.{path}")


def submodule(base: Any, path: str) -> nn.Module:
    """The module at a path, also behind a compiled block."""
    found: nn.Module = base.get_submodule(path)
    return found
