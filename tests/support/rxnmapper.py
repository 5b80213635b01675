"""The ALBERT of the registry's package rxnmapper (MIT): real weights whose layers share a block."""

from __future__ import annotations

import functools
import re

import torch
from transformers import AlbertForMaskedLM, BertTokenizer

import headwidget as hw
from tests.support import wheels

WHEEL = wheels.Wheel(
    "rxnmapper",
    "0.4.3",
    "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
    "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
)
TOKENS = re.compile(r">>|\[[^\]]+]|Br?|Cl?|[NOSPFIbcnosp]|[().=#+\\/:~@?*$-]|%[0-9]{2}|[0-9]")
"""The pieces of a reaction, of which each is a token."""


@functools.cache
def model() -> hw.Model:
    """Loaded: 12 layers of 8 heads, one block."""
    module = AlbertForMaskedLM.from_pretrained(WHEEL.folder())
    tokenizer = BertTokenizer(str(WHEEL.folder() / "vocab.txt"), do_lower_case=False)
    return hw.load(module.eval(), tokenizer)


def pieces(reaction: str) -> list[str]:
    """A reaction's tokens."""
    return TOKENS.findall(reaction)


def ids(reaction: str) -> torch.Tensor:
    """A reaction's token ids between [CLS] and [SEP], (1, seq)."""
    text = (WHEEL.folder() / "vocab.txt").read_text().splitlines()
    number = {token: i for i, token in enumerate(text)}
    return torch.tensor([[number[t] for t in ("[CLS]", *pieces(reaction), "[SEP]")]])
