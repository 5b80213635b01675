"""Adapters and precision: every row of the table in docs/models.md, for both ways to find heads.

A family of the table (llama) and one whose heads are found by structure (olmo) are dressed as
users do. Each method equals its plain loop on the dressed model, or is refused in words, as
the row says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.scoring.encode import Encoded, encode
from tests.support import every_family, tiny, user_wrappings
from tests.support.places import PLACES
from tests.support.plain import ablation_by_loop, heads_outputs, log_p, slopes_by_steps

LLAMA = PLACES["llama"]  # olmo's modules have the same names
FAMILIES = ("llama", "olmo")
TASK = hw.Task("letters", [("the cat sat", " m"), ("abc", "de"), ("one two", " t")])
Dress = Callable[[Any, ExitStack], Any]


def _lora(held: str) -> Dress:
    return lambda base, _: user_wrappings.adapted(base, LLAMA, "lora", "projection", "large", held)


def _quantised(kind: str) -> Dress:
    def dress(base: Any, _: ExitStack) -> Any:
        user_wrappings.quantise(base, LLAMA, kind, "all", used=False)
        return base

    return dress


def _offloaded(how: str) -> Dress:
    def dress(base: Any, undo: ExitStack) -> Any:
        user_wrappings.offload(base, how, undo)
        return base

    return dress


def _checkpointed(base: Any, _: ExitStack) -> Any:
    base.gradient_checkpointing_enable()
    return base.train()


def _in_place(base: Any, _: ExitStack) -> Any:
    base.compile(backend="eager")
    return base


ROWS: dict[str, Dress] = {
    "float64": lambda base, _: base.double(),
    "bfloat16": lambda base, _: base.bfloat16(),
    "float16": lambda base, _: base.half(),
    "LoRA (peft), wrapped": _lora("peft"),
    "LoRA, the model inside": _lora("base"),
    "LoRA, merged and unloaded": _lora("unloaded"),
    "LoRA, switched off": _lora("disabled"),
    "torchao, 8-bit weights": _quantised("ao_weight"),
    "torchao, 8-bit weights and activations": _quantised("ao_dynamic"),
    "bitsandbytes, 4 bits (nf4)": _quantised("nf4"),
    "bitsandbytes, 8 bits": _quantised("int8"),
    "torch.compile(model)": lambda base, _: torch.compile(base, backend="eager"),
    "model.compile()": _in_place,
    "gradient checkpointing, training mode": _checkpointed,
    "training mode": lambda base, _: base.train(),
    "CPU offload (accelerate)": _offloaded("cpu"),
    "disk offload (accelerate)": _offloaded("disk"),
    "device_map": _offloaded("dispatch"),
}
ROUNDED = {  # how far scores may be off, relative to the largest, and slopes' correlation
    "bfloat16": (0.15, 0.9),
    "float16": (0.02, 0.97),
    "torchao, 8-bit weights and activations": (0.1, 0.9),
    "bitsandbytes, 4 bits (nf4)": (0.15, 0.9),
    "bitsandbytes, 8 bits": (0.1, 0.9),
}
PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()


def _table() -> dict[str, tuple[str, str, str]]:
    """What the page says of each row: ablation, gradient, attribution."""
    _, _, rest = PAGE.partition("## Adapters and precision")
    lines = [line for line in rest.split("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {name: (ablation, gradient, way) for name, ablation, gradient, way in cells}


def _built(family: str) -> Any:
    if family == "llama":
        return tiny.build("llama", attention_dropout=0.3)
    base = copy.deepcopy(every_family.build(family)).float()
    base.config.attention_dropout = 0.3
    for layer in base.model.layers:
        layer.self_attn.attention_dropout = 0.3
    return base


def _evaluating(model: hw.Model, definition: Callable[..., Any], **options: Any) -> Any:
    """A definition on the model in evaluation mode; then everything is as it was.

    Uncompiled, as compiled code runs no hooks of a loop's own. 4-bit layers would pack their
    weights in evaluation mode, and are the same in both.
    """
    parts = list(model.module.modules())
    modes = [(part.training, part._compiled_call_impl) for part in parts]
    for part in parts:
        part.training = type(part).__name__ == "Linear4bit"
        part._compiled_call_impl = None
    try:
        return definition(model, TASK, **options)
    finally:
        for part, (training, compiled) in zip(parts, modes):
            part.training, part._compiled_call_impl = training, compiled


@torch.no_grad()
def attribution_by_loop(model: hw.Model) -> np.ndarray:
    """What each head writes straight to the answer's logit, less the mean logit."""
    examples, base = encode(TASK, model).examples, model.module
    scores = np.zeros((len(examples), *model.shape))
    weight = base.lm_head.weight.double()  # (vocabulary, width)
    for i, example in enumerate(examples):
        outputs = _evaluating(model, lambda m, _, e=example: heads_outputs(m, e))
        stream = _evaluating(model, lambda m, _, e=example: _final_stream(m, e))
        for place, token in zip(example.at, example.answer):
            direction = weight[token] - weight.mean(0)
            for row, head in np.ndindex(model.shape):
                layer = model.layers[row]
                rows = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
                w_o = layer.projection.weight.double()[:, rows]
                write = w_o @ outputs[row][0, place, head].double()
                scores[i, row, head] += float(_normed(base, stream[place], write) @ direction)
    return scores


def _final_stream(model: hw.Model, example: Encoded) -> torch.Tensor:
    """What the final norm is fed, (seq, width)."""
    fed: list[torch.Tensor] = []
    handle = model.module.model.norm.register_forward_pre_hook(
        lambda _, args: fed.append(args[0][0].double())
    )
    with handle:
        log_p(model, example, {})
    return fed[0]


def _normed(base: Any, stream: torch.Tensor, write: torch.Tensor) -> torch.Tensor:
    """The write behind the final norm, its scale frozen: olmo's is a LayerNorm without weights."""
    norm = base.model.norm
    if hasattr(norm, "variance_epsilon"):
        scale = (stream.square().mean() + norm.variance_epsilon).rsqrt()
        return norm.weight.double() * write * scale
    return (write - write.mean()) * (stream.var(unbiased=False) + 1e-5).rsqrt()


def test_the_page_has_a_row_for_each() -> None:
    assert list(_table()) == list(ROWS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("row", ROWS)
def test_a_dressed_model_is_scored_as_its_row_says(row: str, family: str) -> None:
    ablation, gradient, attribution = _table()[row]
    furthest, correlation = ROUNDED.get(row, (1e-3, 0.999))
    with ExitStack() as undo:
        dressed = ROWS[row](_built(family), undo)
        model = hw.load(dressed, tiny.tokenizer())
        assert model.family.table == (family == "llama")
        assert ablation == "equal"
        ours = _scored(model, "ablation")
        expected = _evaluating(model, ablation_by_loop)
        assert np.abs(ours - expected).max() <= furthest * np.abs(expected).max()
        if gradient == "equal":
            step = 0.1 if row in ROUNDED else 1e-2
            slopes = _evaluating(model, slopes_by_steps, step=step)
            ours = _scored(model, "gradient")
            assert np.corrcoef(ours.ravel(), slopes.ravel())[0, 1] >= correlation
        else:
            _refused(model, "gradient")
        if attribution == "equal":
            ours, expected = _scored(model, "attribution"), attribution_by_loop(model)
            off = np.abs(ours - expected).max() / np.abs(expected).max()
            assert off <= max(furthest, 2e-3)
        else:
            _refused(model, "attribution")


def _scored(model: hw.Model, method: str) -> np.ndarray:
    return hw.score(model, TASK, method, progress=False).values("letters")


def _refused(model: hw.Model, method: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"ablation.*\.$"):
        _scored(model, method)
