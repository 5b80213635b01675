"""Configurations of transformers with sizes made small, nested ones too.

Sizes are set by the names that configurations use for them, so a new family needs no word
here unless its configuration asks for more.
"""

from __future__ import annotations

from typing import Any

import transformers

from tests.support import tiny

LAYERS, HEADS, GROUPS, WIDTH = 4, 4, 2, 32
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
    "depth": 2,
    **dict.fromkeys(
        "out_hidden_size output_dim text_hidden_size projection_dim vision_output_dim out_dim "
        "projector_input_dim projector_output_dim decoder_hidden_size encoder_hidden_size "
        "image_token_embed_dim moe_hidden_size patch_embed_hidden_size".split(),
        WIDTH,
    ),
    **dict.fromkeys(
        "projector_hidden_size alignment_intermediate_size projection_intermediate_size mlp_dim "
        "downsample_hidden_size output_channels base_channels latent_channels "
        "post_conv_in_channels post_conv_mid_channels post_conv_out_channels".split(),
        32,
    ),
    **dict.fromkeys("num_embeddings codebook_size num_position_embeddings".split(), 64),
    "position_embedding_size": 64,
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


def _rotations(time: int, height: int, width: int) -> dict[str, Any]:
    """How many of a head's pairs of numbers turn with each coordinate of a token."""
    sections = [time, height, width]
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": sections}
    return {"rope_parameters": rope}


_TOWER = {
    "model_type": "siglip_vision_model",
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "model_args": {"embed_dim": WIDTH},
}
_MORE: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_group_size": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 5},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2},
    "kimi_linear": _HYBRID,
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "nemotron_h": {"layers_block_type": ["mamba", "attention", "moe", "attention"]},
    "reformer": {"attn_layers": ["local"] * 4, "axial_pos_embds": False},
    "reformer, causal": {"is_decoder": True},
    "roc_bert": {"pronunciation_vocab_size": 64, "shape_vocab_size": 64},
    "t5": {"feed_forward_proj": "gated-gelu"},  # slopes by differences need no kinks
    "xlm": {"causal": True},
    "xlstm": {"num_heads": 4},
    "zamba": {
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
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
    "qwen4_exp_text": {
        "layer_types": ["linear_attention", "indexed_attention"] * 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
    },
    "blt": {"encoder_hash_byte_group_vocab": 64},
    "blt_local_encoder": {"hidden_size_global": WIDTH},
    "blt_local_decoder": {"hidden_size_global": WIDTH},
    "dbrx": {"attn_config": {"kv_n_heads": GROUPS, "rope_theta": 1e4, "clip_qkv": 8.0}},
    "encoder-decoder": {"decoder": {"is_decoder": True, "add_cross_attention": True}},
    "esmc": {"num_key_value_heads": HEADS},
    "led": {"attention_window": 16},
    "luke": {"entity_vocab_size": 64, "entity_emb_size": 16},
    "neomme": {"head_dim": 16, "embedding_rank": 16},
    "pegasus_x": {"block_size": 16},
    "perceiver": {
        "num_latents": 8,
        "d_latents": WIDTH,
        "num_self_attends_per_block": 2,
        "num_blocks": 1,
        "num_self_attention_heads": HEADS,
        "num_cross_attention_heads": HEADS,
    },
    "gemma4_assistant": {
        "text_config": {
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0,
            "num_kv_shared_layers": LAYERS,
        }
    },
    "nemotron3_diarization": {"head_config": {"audio_hidden_size": WIDTH}},
    "nemotron3_5_transcribe_word_timestamp": {"blank_token_id": 5},
    "qwen3_asr": {"eos_token_id": [2]},
    "vibevoice_acoustic_tokenizer_encoder": {
        "num_filters": 4,
        "depths": [1] * 3,
        "downsampling_ratios": [2, 2],
    },
    # ---- image-text families ----
    "chameleon": {"vocabulary_map": {"<image>": 3}},
    "cosmos3_edge_text": _rotations(2, 1, 1),
    "emu3": {"vocabulary_map": {"<image>": 3}},
    "ernie4_5_vl_moe_text": {**_rotations(1, 1, 2), "moe_intermediate_size": [16, 16]},
    "florence_vision": {"embed_dim": [32] * 4, "num_groups": [4] * 4, "num_heads": [4] * 4},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 16},
    "deepseek_ocr2_text": {"num_experts_per_tok": 2, "mlp_layer_types": ["dense", "sparse"] * 2},
    "paddleocr_vl_text": _rotations(2, 1, 1),
    "qwen2_vl_text": _rotations(2, 1, 1),
    "qwen2_5_vl_text": _rotations(2, 1, 1),
    "qwen2_5_omni_text": _rotations(2, 1, 1),
    "hunyuan_vl_text": _rotations(2, 1, 1),
    "glm4v_text": _rotations(2, 1, 1),
    "glm4v_moe_text": _rotations(1, 1, 0),
    "glm_ocr_text": _rotations(2, 1, 1),
    "glm5_next_text": {"qk_rope_head_dim": 0, "head_dim": 0, "qk_head_dim": 8},
    "molmo2_adapter": {"vision_feature_layer": [3, 1]},
    "radio": {"video_temporal_patch_size": 2},
    "gemma3n_vision": {"hidden_size": 32},
    "gemma3n_audio": {
        "conf_num_attention_heads": 4,
        "conf_num_hidden_layers": 1,
        "sscp_conv_channel_size": [8, 8],
    },
    "granite4_vision": {
        "deepstack_layer_map": [[-1, 1]],
        "spatial_target_layers": [2],
        "downsample_rate": "1/2",
        "vision_config": {"hidden_size": 64},
    },
    "mistral4": {"head_dim": 8},
    "cohere_compass_text": {
        "rope_parameters": {
            kind: _rotations(2, 1, 1)["rope_parameters"]
            for kind in ("full_attention", "sliding_attention")
        },
        "layer_types": ["full_attention", "sliding_attention"] * 2,
    },
    "unlimited_ocr_sam_vision_model": {"downsample_channels": [32, 32]},
    "glmga_text": _rotations(1, 1, 0),
    # towers for images that need another package; they do not run
    "exaone4_5": {"image_token_id": 3},  # its own is a letter's here
    "fast_vlm": {"vision_config": _TOWER},
    "perception_lm": {"vision_config": _TOWER},
    "muse_spark_audio": {"hidden_sizes": [32] * 4, "patch_sizes": [4, 2, 2, 2]},
    "idefics_vision": {"embed_dim": 32},
    "kosmos_2_text_model": {"embed_dim": 32, "layers": 4},
    "qwen2_vl_vision": {"embed_dim": 32},
}
"""What families need beside small sizes, by ``model_type``, nested or not."""
_FIRST = {
    "gemma4_assistant": {
        "text_config": {
            "model_type": "gemma4_text",
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0,
            "num_hidden_layers": LAYERS,
            "num_kv_shared_layers": LAYERS,
        }
    }
}
"""What families need to have a usual configuration at all."""


class Unbuildable(Exception):
    """transformers does not build the family from a configuration made small this way."""


def config(family: str, kind_of_model: str) -> Any:
    """The family's configuration with sizes made small, nested ones too."""
    kind = transformers.AutoConfig.for_model
    try:
        usual = kind(family, **_FIRST.get(family, {}))
        small = _merged(small_sizes(usual), _MORE.get(f"{family}, {kind_of_model}", {}))
        if "is_decoder" in vars(usual) and kind_of_model == "causal":
            small["is_decoder"] = True
        return kind(family, **small)
    except Exception as error:
        raise Unbuildable(first_line(error)) from error


def small_sizes(usual: Any) -> dict[str, Any]:
    """The sizes of a configuration, by name; of those nested in it too."""
    known = {*vars(usual), *usual.attribute_map}
    sizes = dict(_SIZES)
    if "kv_lora_rank" in known:
        sizes |= _LATENT
    small = {name: size for name, size in sizes.items() if name in known}
    for alias, name in usual.attribute_map.items():  # one name of a size is enough
        if alias != name and alias in small and name in small:
            del small[alias]
    for name, value in vars(usual).items():
        if isinstance(value, transformers.PretrainedConfig):
            small[name] = small_sizes(value)
            if value.model_type:
                small[name]["model_type"] = value.model_type
    return _merged(small, _MORE.get(usual.model_type, {}))


def _merged(settings: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Settings with others in their place, by name, also in nested dictionaries.

    One with a ``model_type`` stands in the place of a whole nested configuration.
    """
    merged = dict(settings)
    for name, value in more.items():
        here = settings.get(name)
        nested = isinstance(value, dict) and isinstance(here, dict) and "model_type" not in value
        merged[name] = _merged(settings[name], value) if nested else value
    return merged


def first_line(error: Exception) -> str:
    """An error in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:160]}"
