"""A BERT of the registry's package rxnfp (MIT): real weights that fill gaps in reactions.

The package holds three BERTs. The pretrained one is the one with a language-model head; the
other two end in a classifier of reactions, which is nothing that headwidget scores.
"""

from __future__ import annotations

import functools

import torch
from transformers import BertForMaskedLM

import headwidget as hw
from tests.support import rxnmapper, wheels

WHEEL = wheels.Wheel(
    "rxnfp",
    "0.1.0",
    "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf",
    "rxnfp/models/transformers/bert_pretrained",
)


@functools.cache
def model() -> hw.Model:
    """Loaded: 12 layers of 4 heads."""
    folder = WHEEL.folder()
    module = BertForMaskedLM.from_pretrained(folder).eval()
    pieces = rxnmapper.TOKENS.pattern
    return hw.load(module, wheels.tokenizer(folder / "vocab.txt", pieces, bert=True))


def ids(reaction: str) -> torch.Tensor:
    """A reaction's token ids between [CLS] and [SEP], (1, seq)."""
    numbers: list[int] = model().tokenizer(reaction)["input_ids"]
    return torch.tensor([numbers])
