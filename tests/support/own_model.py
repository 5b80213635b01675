"""A tiny model and three prompts, as tests of users' own models need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

import headwidget as hw
from tests.support import tiny

PROMPTS = hw.Task("letters", [("the cat sat on the", " mat"), ("abc", "d"), ("one two", " th")])
OTHERS = ("llama", "gpt2", "gemma2", "gpt_neox", "bert")


def scored(model: hw.Model, method: str, **options: Any) -> np.ndarray:
    return hw.score(model, PROMPTS, method, progress=False, **options).values("letters")


def fresh(family: str = "llama", **changes: Any) -> Any:
    return tiny.build(family, **changes)


def load(module: Any) -> hw.Model:
    return hw.load(module, tiny.tokenizer())


def steer(_: nn.Module, args: Any, output: Any) -> Any:
    """The commonest hook: add a vector at the last position."""
    hidden = output[0] if isinstance(output, tuple) else output
    hidden = hidden.clone()
    hidden[:, -1] += torch.linspace(-1, 1, hidden.shape[-1]).sin()
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


def by_structure(module: Any) -> hw.Model:
    """The model, its family hidden from the table."""
    module.config.model_type = "zebra"
    return load(module)
