"""The GPT-2 of the registry's package iglm: real weights that complete antibodies.

© 2022 The Johns Hopkins University. Its licence (JHU Academic Software License Agreement,
unpacked beside the weights) allows use by non-profit academic or research institutions for
non-commercial purposes alone. Therefore it is strictly a test's download: nothing of it is
in headwidget's repository or wheel, and nothing but tests/models/test_iglm.py may use it.
"""

from __future__ import annotations

import functools

import torch
from transformers import GPT2LMHeadModel

import headwidget as hw
from tests.support import wheels

WHEEL = wheels.Wheel(
    "iglm",
    "0.1.0",
    "6bb7b65c531583b10d3723dbfbc06e95b2cb30e3cc8cbf2fbc7eb22945e1c2be",
    "iglm/trained_models",
)
PIECES = r"\[[A-Z]+]|[A-Z]"
"""A residue, or the chain or species in brackets."""


@functools.cache
def model() -> hw.Model:
    """Loaded: 4 layers of 8 heads."""
    folder = WHEEL.folder()
    module = GPT2LMHeadModel.from_pretrained(folder / "IgLM").eval()
    return hw.load(module, wheels.tokenizer(folder / "vocab.txt", PIECES, bert=False))


def ids(chain: str) -> torch.Tensor:
    """A chain's token ids, (1, seq)."""
    numbers: list[int] = model().tokenizer(chain)["input_ids"]
    return torch.tensor([numbers])
