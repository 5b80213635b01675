"""Families: a table from model family to where its attention heads are.

What it says is checked against the live model on load (``model.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Prediction = Literal[
    "causal", "masked", "image-text", "encoder-decoder", "image-class", "audio-class"
]
"""What a model predicts: the next token, a masked token, the next token behind an
image-and-text wrapper, a decoder's next token for a source that an encoder read, or the class
of an image or a sound."""


@dataclass(frozen=True)
class Family:
    """Where a model family keeps its attention heads.

    Paths are dotted; ``blocks`` and ``final_norm`` start at the model, the others at a
    block. ``attention`` is the module that computes attention and ``projection`` the output
    projection W_O, whose input, sliced by head, is z. A block without ``attention`` is a
    layer without attention heads (hybrid models): it is run, and not scored.
    """

    name: str
    """``config.model_type``."""
    blocks: str
    """The list of layers, seen from the model."""
    attention: str = "self_attn"
    projection: str = "self_attn.o_proj"
    post_norm: str | None = None
    """A norm between W_O and the residual stream, where the family has one."""
    final_norm: str | None = "model.norm"
    """The norm before the unembedding; None where the residual stream does not reach the
    logits linearly."""
    head: Prediction = "causal"
    """What the model predicts."""
    value: str = "self_attn.v_proj"
    """The value projection W_V, or one that makes queries, keys and values at once."""
    packed: Literal["blocks", "groups"] | None = None
    """How queries, keys and values lie in it: all queries, then all keys, then all values; or
    for each group of heads its queries, its key, its value."""
    mlp: tuple[str, ...] = ("mlp",)
    """The MLP, or its parts one after the other."""
    mlp_norm: tuple[str, ...] = ("post_attention_layernorm",)
    """Names of the norm before the MLP, of which the first that a block has is used; empty
    where there is none."""
    table: bool = True
    """Is the family described by hand? Else it was found in the live model."""


_LLAMA = Family("llama", "model.layers")
_LIKE_LLAMA = "llama mistral mixtral qwen2 qwen3 qwen3_moe gemma smollm3".split()
# The second where MLP and attention share their norm.
_PARALLEL = ("post_attention_layernorm", "input_layernorm")
_GEMMA = replace(
    _LLAMA, post_norm="post_attention_layernorm", mlp_norm=("pre_feedforward_layernorm",)
)
_BERT = Family(
    "bert",
    "bert.encoder.layer",
    "attention.self",
    "attention.output.dense",
    final_norm=None,
    head="masked",
)
_BLOOM = Family(
    "bloom",
    "transformer.h",
    "self_attention",
    "self_attention.dense",
    None,
    "transformer.ln_f",
    value="self_attention.query_key_value",
    packed="groups",
)

_TABLE = (
    *(replace(_LLAMA, name=name) for name in _LIKE_LLAMA),
    *(replace(_GEMMA, name=name) for name in ("gemma2", "gemma3_text")),
    replace(
        _GEMMA,
        name="gemma3",
        blocks="model.language_model.layers",
        final_norm="model.language_model.norm",
        head="image-text",
    ),
    replace(_GEMMA, name="olmo2", mlp_norm=()),
    replace(_LLAMA, name="stablelm", mlp_norm=_PARALLEL),
    replace(
        _LLAMA,
        name="jamba",
        final_norm="model.final_layernorm",
        mlp=("feed_forward",),
        mlp_norm=("pre_ff_layernorm",),
    ),
    replace(
        _LLAMA,
        name="phi",
        projection="self_attn.dense",
        final_norm="model.final_layernorm",
        mlp_norm=("input_layernorm",),
    ),
    replace(_LLAMA, name="phi3", value="self_attn.qkv_proj", packed="blocks"),
    Family(
        "gpt2",
        "transformer.h",
        "attn",
        "attn.c_proj",
        final_norm="transformer.ln_f",
        value="attn.c_attn",
        packed="blocks",
        mlp_norm=("ln_2",),
    ),
    Family(
        "gptj",
        "transformer.h",
        "attn",
        "attn.out_proj",
        final_norm="transformer.ln_f",
        value="attn.v_proj",
        mlp_norm=("ln_1",),
    ),
    replace(
        _BLOOM,
        name="gpt_neox",
        blocks="gpt_neox.layers",
        attention="attention",
        projection="attention.dense",
        final_norm="gpt_neox.final_layer_norm",
        value="attention.query_key_value",
    ),
    replace(
        _LLAMA,
        name="opt",
        blocks="model.decoder.layers",
        projection="self_attn.out_proj",
        final_norm="model.decoder.final_layer_norm",
        mlp=("fc1", "activation_fn", "fc2"),
        mlp_norm=("final_layer_norm",),
    ),
    _BLOOM,
    replace(_BLOOM, name="falcon", mlp_norm=("ln_mlp", *_PARALLEL)),
    _BERT,
    replace(_BERT, name="roberta", blocks="roberta.encoder.layer"),
)

FAMILIES: dict[str, Family] = {family.name: family for family in _TABLE}
"""The families headwidget knows, by ``config.model_type``."""


def register(family: Family) -> None:
    """Add a family to headwidget's table, or replace one.

    >>> import headwidget as hw
    >>> hw.register(hw.Family("my_llama", blocks="model.layers"))
    """
    if not isinstance(family, Family):
        raise TypeError(
            "hw.register takes a family: hw.register(hw.Family('name', blocks='model.layers')); "
            f"got a {type(family).__name__}."
        )
    FAMILIES[family.name] = family
