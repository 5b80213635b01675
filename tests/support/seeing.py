"""Tiny random models that see and hear, with their processors, and images and sounds for them."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import torch
import transformers as hf
from PIL import Image

import headwidget as hw
from tests.support import tiny

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_SMALL = {**_SIZES, "image_size": 16, "patch_size": 8}
_TEXT = {**_SIZES, "vocab_size": 260, "num_key_value_heads": 2, "pad_token_id": 0}
_LABELS = {"id2label": {0: "cat", 1: "dog", 2: "cow", 3: "owl", 4: "yak"}}
SOUND = {"max_length": 40, "num_mel_bins": 16, "patch_size": 8}
RATE = 16000


def _vision_tower(name: str) -> Any:
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 30}
    return getattr(hf, f"{name}Config")(vision_config=_SMALL, text_config=text, **_LABELS)


SEEING: dict[str, Any] = {
    "vit": lambda: hf.ViTForImageClassification(hf.ViTConfig(**_SMALL, **_LABELS)),
    "deit": lambda: hf.DeiTForImageClassification(hf.DeiTConfig(**_SMALL, **_LABELS)),
    "dinov2": lambda: hf.Dinov2ForImageClassification(hf.Dinov2Config(**_SMALL, **_LABELS)),
    "clip": lambda: hf.CLIPForImageClassification(_vision_tower("CLIP")),
    "beit": lambda: hf.BeitForImageClassification(hf.BeitConfig(**_SMALL, **_LABELS)),
}
"""Classifiers of images."""
HEARING: dict[str, Any] = {
    "ast": lambda: hf.ASTForAudioClassification(hf.ASTConfig(**_SIZES, **SOUND, **_LABELS)),
    "wav2vec2": lambda: hf.Wav2Vec2ForSequenceClassification(
        hf.Wav2Vec2Config(
            **_SIZES,
            **_LABELS,
            conv_dim=(16,) * 7,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
        )
    ),
}
"""Classifiers of sounds."""


@functools.cache
def image_processor() -> Any:
    return hf.ViTImageProcessorPil(size={"height": 16, "width": 16})


@functools.cache
def listener(family: str) -> Any:
    if family == "ast":  # torchaudio's spectrogram, by numpy where torchaudio is not there
        sizes = {"num_mel_bins": SOUND["num_mel_bins"], "max_length": SOUND["max_length"]}
        return hf.ASTFeatureExtractor(**sizes)
    return hf.Wav2Vec2FeatureExtractor(return_attention_mask=False)


@functools.cache
def classifier(family: str) -> hw.Model:
    """A model with its processor, in float64."""
    build, processor = SEEING.get(family), image_processor()
    if build is None:
        build, processor = HEARING[family], listener(family)
    return hw.load(drawn(build()).double(), processor)


@functools.cache
def llava() -> hw.Model:
    """An image-text model of CLIP's tower and a Llama, with its processor, in float64."""
    tokenizer = copy.deepcopy(tiny.tokenizer())
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**_SMALL, projection_dim=16),
        text_config=hf.LlamaConfig(**_TEXT),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    processor = hf.LlavaProcessor(
        image_processor=hf.CLIPImageProcessorPil(
            size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    return hw.load(drawn(hf.LlavaForConditionalGeneration(config)).double(), processor)


VISION = ("<|image_pad|>", "<|vision_start|>", "<|vision_end|>")
PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
"""Where an image stands in a prompt for a Qwen-VL."""


class QwenProcessor(hf.ProcessorMixin):  # type: ignore[misc]
    """Qwen-VL's processor without its side for videos, which needs another package."""

    image_token = VISION[0]

    def __init__(self) -> None:
        self.tokenizer = copy.deepcopy(tiny.tokenizer())
        self.tokenizer.add_special_tokens({"additional_special_tokens": list(VISION)})
        self.image_processor = hf.Qwen2VLImageProcessorPil(
            patch_size=4, merge_size=2, temporal_patch_size=2, min_pixels=64, max_pixels=1024
        )

    def __call__(self, text: str, images: Any, return_tensors: str) -> dict[str, Any]:
        made = self.image_processor(images=images, return_tensors=return_tensors)
        for grid in made["image_grid_thw"]:
            text = text.replace(VISION[0], "<piece>" * (int(grid.prod()) // 4), 1)
        ids = self.tokenizer(text.replace("<piece>", VISION[0]), return_tensors=return_tensors)
        kinds = (ids["input_ids"] == self.tokenizer.convert_tokens_to_ids(VISION[0])).long()
        return {**ids, **made, "mm_token_type_ids": kinds}


@functools.cache
def qwen(name: str = "Qwen2VL") -> hw.Model:
    """A Qwen2-VL or Qwen3-VL with its processor, in float64."""
    processor = QwenProcessor()
    pad, start, end = (processor.tokenizer.convert_tokens_to_ids(token) for token in VISION)
    rope = {"rope_type": "default", "rope_theta": 100.0, "mrope_section": [1, 1, 2]}
    vision: dict[str, Any] = {"hidden_size": 32, "num_heads": 2, "patch_size": 4}
    if name == "Qwen2VL":
        vision |= {"depth": 2, "embed_dim": 32, "mlp_ratio": 2}
    else:
        rope["mrope_interleaved"] = True
        vision |= {"depth": 3, "out_hidden_size": 32, "intermediate_size": 48}
        vision |= {"num_position_embeddings": 16, "deepstack_visual_indexes": [0, 1]}
    text = {**_TEXT, "vocab_size": 264, "head_dim": 8, "rope_parameters": rope}
    config = getattr(hf, f"{name}Config")(
        text_config=text,
        vision_config={**vision, "spatial_merge_size": 2, "temporal_patch_size": 2},
        image_token_id=pad,
        vision_start_token_id=start,
        vision_end_token_id=end,
        video_token_id=263,
    )
    module = getattr(hf, f"{name}ForConditionalGeneration")(config)
    return hw.load(drawn(module).double(), processor)


@torch.no_grad()
def drawn(module: Any) -> Any:
    """Weights wide enough that every head matters, the same in every process."""
    torch.manual_seed(0)
    for name, parameter in module.named_parameters():
        if parameter.dim() >= 2 and "conv" not in name:
            parameter.normal_(0, parameter.shape[-1] ** -0.5)
        elif parameter.dim() == 1:
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module.eval()


def images(count: int = 3) -> list[Any]:
    """Images of noise, of several sizes."""
    rng = np.random.default_rng(0)
    sizes = [(20 + 4 * i, 24, 3) for i in range(count)]
    return [Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)) for size in sizes]


def sounds(count: int = 3) -> list[tuple[int, Any]]:
    """Sounds of noise, of one length."""
    rng = np.random.default_rng(0)
    return [(RATE, rng.uniform(-1, 1, 6400).astype(np.float32)) for _ in range(count)]


def task(family: str) -> hw.Task:
    """A task for a classifier."""
    examples: list[Any] = [("one", "dog", "cow"), ("two", "cat"), ("three", "yak", "owl")]
    if family in SEEING:
        return hw.Task("animals", examples, images=images())
    return hw.Task("animals", examples, audio=sounds())
