"""A tiny random model of every family that transformers can build, whichever version is installed.

Sizes are set by the names that configurations use for them, so a new family needs no word
here unless its configuration asks for more.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

from tests.support import tiny

LAYERS, HEADS, GROUPS, WIDTH = 4, 4, 2, 32
MOST_WEIGHTS = 5_000_000
"""A model with more was not made small: its configuration has sizes with other names."""
MAPPINGS = {
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "encoder-decoder": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
}
"""By what is predicted: the classes of transformers, by ``config.model_type``."""

_SIZES: dict[str, Any] = {
    "vocab_size": tiny.VOCABULARY,
    "src_vocab_size": tiny.VOCABULARY,
    "tgt_vocab_size": tiny.VOCABULARY,
    "pad_token_id": 0,
    "decoder_start_token_id": 2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "max_position_embeddings": 128,
    "sliding_window": 5,
    "attention_chunk_size": 64,
    **dict.fromkeys(
        "hidden_size d_model n_embd embedding_size emb_dim embedding_dim dim input_embedding_size "
        "output_embedding_size word_embed_proj_dim lru_width n_state attention_hidden_size".split(),
        WIDTH,
    ),
    **dict.fromkeys(
        "intermediate_size ffn_dim decoder_ffn_dim encoder_ffn_dim n_inner d_inner d_ff dff dim_ff "
        "ffn_hidden_size intermediate_size_mlp feed_forward_size dense_intermediate_size "
        "shared_intermediate_size shared_expert_intermediate_size hidden_dim".split(),
        48,
    ),
    **dict.fromkeys(
        "moe_intermediate_size expert_ffn_hidden_size moe_shared_expert_intermediate_size".split(),
        16,
    ),
    **dict.fromkeys(
        "num_hidden_layers n_layer num_layers n_layers decoder_layers num_decoder_layers "
        "encoder_layers num_encoder_layers num_blocks".split(),
        LAYERS,
    ),
    **dict.fromkeys(
        "num_attention_heads n_head num_heads n_heads attention_heads decoder_attention_heads "
        "encoder_attention_heads num_decoder_attention_heads num_encoder_attention_heads".split(),
        HEADS,
    ),
    **dict.fromkeys("num_key_value_heads num_kv_heads num_query_groups".split(), GROUPS),
    **dict.fromkeys("head_dim attention_head_dim d_head kv_channels d_kv".split(), 8),
    **dict.fromkeys("n_positions n_ctx context_length max_target_positions".split(), 128),
    **dict.fromkeys("num_experts num_local_experts n_routed_experts moe_num_experts".split(), 4),
    **dict.fromkeys("num_experts_per_tok num_experts_per_token moe_topk moe_k".split(), 2),
    **dict.fromkeys("n_group topk_group num_expert_group".split(), 1),
    **dict.fromkeys("n_shared_experts num_shared_experts moe_num_shared_experts".split(), 1),
    **dict.fromkeys("linear_num_key_heads linear_num_value_heads linear_num_heads".split(), 4),
    **dict.fromkeys("linear_key_head_dim linear_value_head_dim linear_head_dim".split(), 8),
    **dict.fromkeys("mamba_n_heads mamba_num_heads".split(), 8),
    **dict.fromkeys("mamba_d_head mamba_head_dim mamba_headdim".split(), 8),
    **dict.fromkeys("state_size mamba_d_state ssm_state_size".split(), 8),
    **dict.fromkeys("mamba_n_groups n_groups mamba_ngroups".split(), 1),
    "mamba_d_ssm": 64,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": tiny.VOCABULARY,
    "swa_num_attention_heads": HEADS,
    "swa_num_key_value_heads": GROUPS,
    "swa_head_dim": 8,
    "rotary_dim": 4,
    "laurel_rank": 4,
    "index_n_heads": 2,
    "index_head_dim": 8,
}
"""By name in a configuration; a configuration gets those that it has."""
_LATENT = {
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "qk_head_dim": 12,
    "v_head_dim": 8,
    "head_dim": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "num_key_value_heads": HEADS,
}
"""Attention with latent keys and values."""

_HYBRID = {"layer_types": ["linear_attention", "full_attention"] * 2}
_MORE: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_group_size": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "cohere_compass_text": {"layer_types": ["full_attention", "sliding_attention"] * 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 5},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2},
    "kimi_linear": _HYBRID,
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "nemotron_h": {"layers_block_type": ["mamba", "attention", "moe", "attention"]},
    "reformer": {"is_decoder": True, "attn_layers": ["local"] * 4, "axial_pos_embds": False},
    "roc_bert": {"pronunciation_vocab_size": 64, "shape_vocab_size": 64},
    "t5": {"feed_forward_proj": "gated-gelu"},  # slopes by differences need no kinks
    "xlm": {"causal": True},
    "xlstm": {"num_heads": 4},
    "zamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "attention_hidden_size": 64},
    "zamba2": {
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "n_mamba_heads": 8,
        "mamba_headdim": 8,
    },
    "zaya": {"num_experts_per_tok": 1},
    "gemma3n_text": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "activation_sparsity_pattern": [0.0] * 4,
    },
    "falcon": {"new_decoder_architecture": True},
    "qwen4_exp_text": _HYBRID,
}
"""What families need beside small sizes."""


class Unbuildable(Exception):
    """transformers does not build the family from a configuration made small this way."""


def config(family: str, kind_of_model: str) -> Any:
    """The family's configuration with sizes made small, nested ones too."""
    kind = transformers.AutoConfig.for_model
    try:
        usual = kind(family)
        nested = {name: _small(value) for name, value in vars(usual).items() if _is_config(value)}
        small = {**_small(usual), **nested, **_MORE.get(family, {})}
        if "is_decoder" in vars(usual) and kind_of_model == "causal":
            small["is_decoder"] = True
        return kind(family, **small)
    except Exception as error:
        raise Unbuildable(_first_line(error)) from error


def _is_nested(settings: Any, wanted: Any) -> bool:
    return type(settings.get_text_config()) is wanted


def _is_config(value: Any) -> bool:
    return isinstance(value, transformers.PretrainedConfig)


def _small(usual: Any) -> dict[str, Any]:
    """The sizes of a configuration, by name."""
    known = {*vars(usual), *usual.attribute_map}
    sizes = dict(_SIZES)
    if "kv_lora_rank" in known:
        sizes |= _LATENT
    small = {name: size for name, size in sizes.items() if name in known}
    for alias, name in usual.attribute_map.items():  # one name of a size is enough
        if alias in small and name in small:
            del small[alias]
    return small


@functools.cache
def build(family: str, kind: str = "causal") -> Any:
    """The family's model with random weights, in evaluation mode."""
    name = MAPPINGS[kind][family]
    name = name if isinstance(name, str) else name[0]
    settings = config(family, kind)
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        cls = getattr(transformers, name)
        if type(settings) is not cls.config_class and _is_nested(settings, cls.config_class):
            settings = settings.get_text_config()  # the text side of an image-text family
        with torch.device("meta"):
            weights = sum(p.numel() for p in cls(settings).parameters())
        if weights > MOST_WEIGHTS:
            raise Unbuildable(f"{weights:,} weights: not made small")
        torch.manual_seed(0)
        model = cls(settings).eval()
    except Unbuildable:
        raise
    except Exception as error:
        raise Unbuildable(_first_line(error)) from error
    finally:
        logging.disable(level)
    if getattr(settings, "is_encoder_decoder", False):
        settings.decoder_start_token_id = 2  # some have none by default
    if hasattr(model, "set_default_language"):
        model.set_default_language("en_XX")
    _draw(model)
    return model


@torch.no_grad()
def _draw(model: Any) -> None:
    """Weights wide enough that every head and every bias matters."""
    for name, parameter in model.named_parameters():
        special = any(word in name for word in ("conv", "A_log", "dt_", "time_", "decay"))
        if parameter.dim() >= 2 and not special:
            parameter.normal_(0, parameter.shape[-1] ** -0.5)
        elif "bias" in name or "norm" in name:
            parameter.add_(0.1 * torch.randn_like(parameter))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:160]}"
