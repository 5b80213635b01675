"""Tiny random models of every supported family, and a byte-level tokenizer that they share."""

from __future__ import annotations

import functools
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

import headwidget as hw

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
SPECIAL = ["<pad>", "<mask>"]
VOCABULARY = len(SPECIAL) + len(LETTERS)  # 258

_GQA = {"num_attention_heads": 4, "num_key_value_heads": 2}
_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}
_SLIDING = ["sliding_attention", "full_attention", "sliding_attention"]

# family -> (config class, model class, what differs from _COMMON)
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", _GQA),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**_GQA, "sliding_window": 5}),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {**_GQA, "num_local_experts": 2}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _GQA),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**_GQA, "head_dim": 12}),  # 4 x 12 is not 32
    "qwen3_moe": (
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        {
            **_GQA,
            "head_dim": 12,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 16,
        },
    ),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**_GQA, "head_dim": 8}),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {**_GQA, "head_dim": 12, "layer_types": _SLIDING, "sliding_window": 5},
    ),
    "gemma3_text": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        {**_GQA, "head_dim": 12, "layer_types": _SLIDING, "sliding_window": 5},
    ),
    "gemma3": (
        "Gemma3Config",
        "Gemma3ForConditionalGeneration",
        {**_GQA, "head_dim": 12, "layer_types": _SLIDING, "sliding_window": 5},
    ),
    "phi": ("PhiConfig", "PhiForCausalLM", {"partial_rotary_factor": 0.5}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", _GQA),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", _GQA),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", _GQA),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", _GQA),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128},
    ),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {}),
    "gptj": (
        "GPTJConfig",
        "GPTJForCausalLM",
        {"n_embd": 32, "n_layer": 3, "n_head": 4, "rotary_dim": 4, "n_positions": 128},
    ),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {"ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 128},
    ),
    "falcon": (
        "FalconConfig",
        "FalconForCausalLM",
        {"new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"n_layer": 3, "n_head": 4}),
    "jamba": (
        "JambaConfig",
        "JambaForCausalLM",
        {
            **_GQA,
            "attn_layer_period": 2,
            "attn_layer_offset": 0,
            "num_experts": 1,
            "expert_layer_period": 4,
            "expert_layer_offset": 1,
        },
    ),
    "bert": ("BertConfig", "BertForMaskedLM", {"max_position_embeddings": 128}),
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", {"max_position_embeddings": 130}),
}
ENCODERS = ("bert", "roberta")
DECODERS = tuple(name for name in FAMILIES if name not in ENCODERS)


@functools.cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Every byte a token; no special token is added to a text."""
    inner = Tokenizer(BPE({token: i for i, token in enumerate([*SPECIAL, *LETTERS])}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", mask_token="<mask>")


def build(family: str, **changes: Any) -> Any:
    """A random model, its weights wide enough that every head and every bias matters."""
    config_name, model_name, family_settings = FAMILIES[family]
    settings = {**_COMMON, **family_settings, **changes}
    kind = getattr(transformers, config_name)
    if family == "gemma3":
        vision = {
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "image_size": 28,
            "patch_size": 14,
        }
        config = kind(
            text_config=settings,
            vision_config=vision,
            mm_tokens_per_image=4,
            image_token_index=250,
            boi_token_index=251,
            eoi_token_index=252,
        )
    else:
        config = kind(**settings)
    torch.manual_seed(0)
    model = getattr(transformers, model_name)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2 and "conv1d" not in name and "A_log" not in name:
                parameter.normal_(0, parameter.shape[-1] ** -0.5)
            elif "bias" in name or "norm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@functools.cache
def model(family: str) -> hw.Model:
    """The tiny model of a family, loaded as a user would load their own."""
    return hw.load(build(family), tokenizer())


def task(name: str = "letters", foil: bool = True) -> hw.Task:
    """Prompts and answers of unequal length, two of which share a beginning."""
    rows = [
        ("the cat sat on the", " mat", " rug"),
        ("the cat sat on a", " hat", " box"),
        ("abc", "d", "e"),
        ("one two three one two", " th", " fo"),
    ]
    return hw.Task(name, [(p, a, f if foil else None) for p, a, f in rows])
