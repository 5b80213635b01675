"""Models whose tokenizer has every letter behind a space as a token; relations of letters."""

from __future__ import annotations

import functools
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

import headwidget as hw
from headwidget.methods.relations import Relations, encode
from tests.support import tiny

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
VOCABULARY = tiny.VOCABULARY + len(LETTERS)


@functools.cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, and every letter behind a space as a token of its own."""
    tokens = [*tiny.SPECIAL, *tiny.LETTERS, *(f"Ġ{letter}" for letter in LETTERS)]
    inner = Tokenizer(
        BPE({token: i for i, token in enumerate(tokens)}, [("Ġ", letter) for letter in LETTERS])
    )
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", mask_token="<mask>")


def made(family: str, **changes: Any) -> hw.Model:
    return hw.load(tiny.build(family, vocab_size=VOCABULARY, **changes), tokenizer())


def following() -> hw.Relation:
    return hw.Relation(
        "following", [(a, b) for a, b in zip(LETTERS, LETTERS[1:] + "a")], "Algorithmic"
    )


def ids(model: hw.Model, relation: hw.Task) -> list[tuple[int, int]]:
    (task,) = encode([relation], model, Relations(), 0)
    return [(e.ids[0], e.answer[0]) for e in task.examples]
