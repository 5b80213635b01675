"""Random compositions of what users do to their models, each written as one line of text.

``llama/4/p7/b2 dtype:float64 hook:forward:block.1:steer`` is a tiny Llama with four heads,
the prompts number 7, batches of 2, float64 weights, and a forward hook on block 1 that
steers the last position. The same line always builds the same model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

import headwidget as hw
from tests.support import places
from tests.support.ingredients import INGREDIENTS, Held

_NAMES = list(INGREDIENTS)

_APART = [
    {"dtype", "quantise"},
    {"dtype", "inference_weights"},
    {"inference_weights", "quantise", "adapter", "offload", "train", "freeze", "parametrise"},
    {"parametrise", "quantise"},
    {"parametrise", "adapter", "offload"},
    {"adapter", "prompt_learning"},
    {"offload", "prompt_learning"},
    {"share", "offload", "adapter", "compile"},
    {"quantise", "offload", "compile"},
    {"offload", "compile"},
]
"""Sets of which a composition has at most one: the libraries do not allow them together."""


# ---- compositions ----

EMBEDDED_EVERY = 200
"""One composition in so many is of the embedded model, which is much larger."""


@dataclass(frozen=True)
class Composition:
    """A model as a user holds it, and what is asked of it, written as one line of text."""

    family: str
    heads: int
    prompts: int
    batch_size: int | None
    ingredients: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.family}/{self.heads}/p{self.prompts}/b{self.batch_size or 0}"
        return " ".join([head, *self.ingredients])

    @classmethod
    def parse(cls, text: str) -> Composition:
        head, *ingredients = text.split()
        family, heads, prompts, batch = head.split("/")
        batch_size = int(batch[1:]) or None
        return cls(family, int(heads), int(prompts[1:]), batch_size, tuple(ingredients))

    @classmethod
    def draw(cls, seed: int) -> Composition:
        """The composition with this number: 0 to 4 ingredients."""
        rng = random.Random(f"composition {seed}")
        family = "llama" if rng.random() < 0.35 else rng.choice(places.TINY)
        heads = rng.choice((2, 4))
        if seed % EMBEDDED_EVERY == EMBEDDED_EVERY - 1:
            family, heads = places.EMBEDDED, 9
        head = (family, heads, rng.randrange(8), rng.choice((None, None, 1, 2)))
        drawn: list[str] = []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))):
            free = [name for name in _NAMES if _fits(name, drawn, family)]
            (name,) = rng.choices(free, [INGREDIENTS[name].weight for name in free])
            drawn.append(":".join([name, *INGREDIENTS[name].draw(rng)]))
        drawn.sort(key=lambda text: _NAMES.index(_name(text)))
        return cls(*head, tuple(drawn))

    def smaller(self) -> Iterator[Composition]:
        """The same with an ingredient less, or in the simplest surroundings."""
        for i in range(len(self.ingredients)):
            rest = (*self.ingredients[:i], *self.ingredients[i + 1 :])
            yield Composition(self.family, self.heads, self.prompts, self.batch_size, rest)
        simplest = Composition("llama", 2, 0, None, self.ingredients)
        if self.family == places.EMBEDDED:
            yield simplest
            return
        for field_name in ("family", "batch_size", "prompts", "heads"):
            if getattr(self, field_name) != getattr(simplest, field_name):
                fields = {**vars(self), field_name: getattr(simplest, field_name)}
                yield Composition(**fields)

    @contextmanager
    def built(self) -> Iterator[Held]:
        """The model; what it changed outside of itself is undone at the end."""
        with ExitStack() as undo:
            torch.manual_seed(0)
            changes: dict[str, Any] = {}
            for text in self.ingredients:
                changes |= _changes(self.family, *text.split(":"))
            try:
                base = places.build(self.family, self.heads, **changes)
            except Exception as error:
                raise Unbuildable.by(error, "the model") from error
            where = places.PLACES[self.family]
            held = Held(self.family, self.heads, base, base, where, undo)
            for text in self.ingredients:
                name, *arguments = text.split(":")
                try:
                    INGREDIENTS[name].apply(held, *arguments)
                except Exception as error:
                    raise Unbuildable.by(error, text) from error
            yield held


class Unbuildable(Exception):
    """The libraries that wrap the model do not allow this composition."""

    @classmethod
    def by(cls, error: Exception, what: str) -> Unbuildable:
        """Said from the error that a library, or the model itself, raised."""
        lines = str(error).splitlines() or [""]
        return cls(f"{what}: {type(error).__name__}: {lines[0][:120]}")


def _name(text: str) -> str:
    return text.split(":", maxsplit=1)[0]


def _fits(name: str, drawn: list[str], family: str) -> bool:
    """May the ingredient be added to those drawn before?"""
    before = {_name(text) for text in drawn}
    if name in before and not INGREDIENTS[name].often:
        return False
    if name == "prompt_learning" and family not in ("llama", "gpt2", "opt"):
        return False
    if name == "quantise" and family in ("gpt2", "mixtral"):  # no linear maps to quantise
        return False
    if name == "share" and family == "jamba":
        return False
    if name == "attention" and family in ("bloom", "gemma2", "gptj"):  # they have no sdpa
        return False
    return not any(name in apart and before & (apart - {name}) for apart in _APART)


def _changes(family: str, name: str, *arguments: str) -> dict[str, Any]:
    """What an ingredient changes in the model's configuration."""
    if name == "tied":
        return {"tie_word_embeddings": arguments[0] == "yes"}
    if name == "attention":
        return {"attn_implementation": arguments[0]}
    if name == "quantise" and arguments[0] == "nf4" and family != places.EMBEDDED:
        # packed in blocks of 64
        sizes = {"hidden_size": 64, "intermediate_size": 128}
        if family == "opt":
            sizes |= {"ffn_dim": 128, "word_embed_proj_dim": 64}
        return {**sizes, "n_embd": 64} if family == "gptj" else sizes
    if name in ("dropout", "train", "checkpoint"):
        rates = "attention_dropout hidden_dropout resid_pdrop attn_pdrop embd_pdrop dropout"
        return dict.fromkeys([*rates.split(), "hidden_dropout_prob"], 0.3)
    return {}


# ---- what is asked ----


def tasks(number: int) -> list[hw.Task]:
    """Two tasks of prompts of unequal lengths; some answers have several tokens and a foil.

    Two prompts share a beginning, and one holds its answer.
    """
    rng = random.Random(f"prompts {number}")
    letters = rng.sample(places.LETTERS, 14)

    def text(count: int, start: int = 0) -> str:
        return "".join(f" {letter}" for letter in letters[start : start + count])

    first: list[Any] = [
        (text(5), text(1, 6), text(1, 7)),
        (text(4) + text(2, 8), text(2, 10), text(1, 10) + text(1, 12)),
        (text(2) + text(1), text(1, 1)),
    ]
    second: list[Any] = [
        (text(2, 5), text(1, 9), text(1, 2)),
        (text(4, 9) + text(1, 10), text(2, 3)),
    ]
    rng.shuffle(first)
    return [hw.Task("first", first), hw.Task("second", second)]


def relation() -> hw.Task:
    """Pairs of letters."""
    return hw.Relation("following", list(zip("abcdef", "bcdefg")))
