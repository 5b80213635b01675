"""Random compositions of what users do to their models, each written as one line of text.

``llama/4/p7/b2 dtype:float64 hook:forward:block.1:steer`` is a tiny Llama with four heads,
the prompts number 7, batches of 2, float64 weights, and a forward hook on block 1 that
steers the last position. The same line always builds the same model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

import headwidget as hw
from tests.support import places, user_hooks, user_wrappings

Grain = Literal["double", "single", "half", "stairs"]
"""How exactly the model computes: by its dtype, or in stairs where activations are rounded."""


@dataclass(eq=False)
class Held:
    """A model as its user holds it."""

    family: str
    heads: int
    base: Any
    """The transformers model inside."""
    module: Any
    """The object in the user's hands, which goes to ``hw.load``."""
    places: places.Places
    undo: ExitStack
    grain: Grain = "single"
    calling: list[Callable[[], AbstractContextManager[Any]]] = field(default_factory=list)
    """Contexts in which the user calls headwidget."""
    numbers: list[Callable[[], AbstractContextManager[Any]]] = field(default_factory=list)
    """Contexts in which the definitions are computed too: those that change numbers."""
    facts: set[str] = field(default_factory=set)

    @property
    def tokenizer(self) -> Any:
        return places.tokenizer(self.family)

    @property
    def encoder(self) -> bool:
        return self.family in places.ENCODERS

    def part(self, where: str) -> nn.Module:
        """A module by a name such as ``mlp.1``."""
        name, _, layer = where.partition(".")
        return places.module(self.module, self.base, self.places, name, int(layer or 0))

    @contextmanager
    def as_called(self) -> Iterator[None]:
        with ExitStack() as stack:
            for context in (*self.numbers, *self.calling):
                stack.enter_context(context())
            yield

    @contextmanager
    def as_computed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for context in self.numbers:
                stack.enter_context(context())
            if "compiled" in self.facts:  # compiled code does not see hooks that come later
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            yield


# ---- ingredients ----

Draw = Callable[[random.Random], tuple[str, ...]]


@dataclass(frozen=True)
class Ingredient:
    """One thing that users do: how its arguments are drawn, and how it is done."""

    draw: Draw
    apply: Callable[..., None]
    weight: int = 2
    often: bool = False
    """May it occur twice in a composition?"""


def _one(*choices: str) -> Draw:
    return lambda rng: (rng.choice(choices),)


def _none(rng: random.Random) -> tuple[str, ...]:
    return ()


def _place(rng: random.Random, names: tuple[str, ...] = tuple(places.NAMES)) -> str:
    return f"{rng.choice(names)}.{rng.randrange(2)}"


def _draw_hook(rng: random.Random) -> tuple[str, ...]:
    if rng.random() < 0.15:
        return rng.choice(user_hooks.BACKWARD_KINDS), _place(rng), rng.choice(("watch", "scale"))
    weights = [2 if name in ("watch", "steer") else 1 for name in user_hooks.EFFECTS]
    (effect,) = rng.choices(user_hooks.EFFECTS, weights)
    return rng.choice(user_hooks.KINDS), _place(rng), effect


def _hook(held: Held, kind: str, where: str, effect: str) -> None:
    module = held.part(where)
    if kind in user_hooks.BACKWARD_KINDS:
        user_hooks.backward_hook(module, kind, effect)
        return
    user_hooks.hook(module, kind, user_hooks.effect(effect, where), held.undo)


def _draw_carry(rng: random.Random) -> tuple[str, ...]:
    lower, upper = rng.choice(
        (("block.0", "block.1"), ("attention.0", "mlp.1"), ("mlp.0", "mlp.1"))
    )
    return lower, upper, rng.choice(("kept", "detached"))


def _carry(held: Held, lower: str, upper: str, how: str) -> None:
    user_hooks.carry(held.part(lower), held.part(upper), detach=how == "detached")


def _draw_forward(rng: random.Random) -> tuple[str, ...]:
    steady = [name for name in user_hooks.EFFECTS if name != "every_second"]
    return _place(rng), rng.choice(steady)


def _forward(held: Held, where: str, effect: str) -> None:
    user_hooks.replace_forward(held.part(where), user_hooks.effect(effect, where))


def _stop(held: Held, where: str, how: str) -> None:
    user_hooks.stop_gradient(held.part(where), how)


def _adapter(held: Held, *how: str) -> None:
    held.module = user_wrappings.adapted(held.base, held.places, *how)


def _draw_adapter(rng: random.Random) -> tuple[str, ...]:
    return (
        rng.choice(user_wrappings.ADAPTERS),
        rng.choice(("projection", "value", "mlp", "query")),
        rng.choice(("small", "large")),
        rng.choice(user_wrappings.HELD),
    )


def _prompt_learning(held: Held, kind: str) -> None:
    held.module = user_wrappings.prompt_learned(held.base, kind)
    held.facts.add("prompt learning")


def _draw_quantiser(rng: random.Random) -> tuple[str, ...]:
    which = rng.choice(("projection", "last", "all"))
    return rng.choice(user_wrappings.QUANTISERS), which, rng.choice(("fresh", "used"))


def _quantise(held: Held, kind: str, where: str, when: str) -> None:
    user_wrappings.quantise(held.base, held.places, kind, where, used=when == "used")
    if kind in user_wrappings.ROUND_ACTIVATIONS:
        held.grain = "stairs"
    elif kind == "nf4":  # multiplied in bfloat16 on the CPU
        held.grain = "half"


def _offload(held: Held, how: str) -> None:
    user_wrappings.offload(held.base, how, held.undo)
    held.facts.add("offloaded")


def _draw_compiler(rng: random.Random) -> tuple[str, ...]:
    backend = rng.choice(("eager", "eager", "aot_eager"))
    return rng.choice(user_wrappings.COMPILED), backend, rng.choice(("fresh", "fresh", "used"))


def _compile(held: Held, what: str, backend: str, when: str) -> None:
    inner = held.module if what == "wrapper" else held.base
    out = user_wrappings.compiled(inner, held.places, what, backend, used=when == "used")
    held.module = out if what == "wrapper" else held.module
    held.facts.add("compiled")
    held.undo.callback(torch.compiler.reset)


def _call(held: Held, how: str) -> None:
    if how == "autocast":
        held.numbers.append(lambda: torch.autocast("cpu", torch.bfloat16))
        held.grain = "half" if held.grain != "stairs" else "stairs"
    else:
        held.calling.append({"inference": torch.inference_mode, "no_grad": torch.no_grad}[how])


def _dtype(held: Held, name: str) -> None:
    held.base.to(getattr(torch, name))
    held.grain = "double" if name == "float64" else "half"


def _train(held: Held, which: str) -> None:
    held.base.train()
    if which == "half":
        for number, module in enumerate(held.base.modules()):
            module.training = number % 2 == 0


def _checkpoint(held: Held, how: str) -> None:
    kwargs = {"use_reentrant": how == "reentrant"}
    held.base.gradient_checkpointing_enable(gradient_checkpointing_kwargs=kwargs)
    held.base.train()


def _share(held: Held, what: str) -> None:
    blocks = held.base.get_submodule(held.places.blocks)
    if what == "block":
        blocks[-1] = blocks[0]
        held.facts.add("shared block")
    else:  # another model with the same trunk, which outlives this test no longer than it
        other = places.build(held.family, held.heads)
        name = held.places.blocks.split(".")[0]
        setattr(other, name, getattr(held.base, name))
        held.undo.callback(lambda: other)


def _config(held: Held, *_: str) -> None:
    """What is set in the configuration is there since the model was built."""


def _input_grads(held: Held) -> None:
    held.base.enable_input_require_grads()


# In the order in which they are applied.
INGREDIENTS: dict[str, Ingredient] = {
    "tied": Ingredient(_one("yes", "no"), _config, 1),
    "dropout": Ingredient(_none, _config, 1),
    "attention": Ingredient(_one("eager", "sdpa"), _config),
    "dtype": Ingredient(_one("bfloat16", "float16", "float64", "float64"), _dtype, 3),
    "inference_weights": Ingredient(
        _none, lambda held: user_wrappings.made_in_inference_mode(held.base), 1
    ),
    "parametrise": Ingredient(
        lambda rng: (
            _place(rng, ("projection", "value", "projection")),
            rng.choice(user_wrappings.PARAMETRISED),
        ),
        lambda held, where, how: user_wrappings.parametrise(held.part(where), how),
    ),
    "share": Ingredient(_one("block", "trunk"), _share, 1),
    "quantise": Ingredient(_draw_quantiser, _quantise, 3),
    "adapter": Ingredient(_draw_adapter, _adapter, 5),
    "prompt_learning": Ingredient(_one(*user_wrappings.PROMPT_LEARNING), _prompt_learning, 1),
    "freeze": Ingredient(
        _one("all", "half"), lambda held, which: user_wrappings.freeze(held.base, which)
    ),
    "offload": Ingredient(_one(*user_wrappings.OFFLOADS), _offload),
    "input_grads": Ingredient(_none, _input_grads, 1),
    "hook": Ingredient(_draw_hook, _hook, 14, often=True),
    "carry": Ingredient(_draw_carry, _carry),
    "forward": Ingredient(_draw_forward, _forward, 4, often=True),
    "stop": Ingredient(
        lambda rng: (
            _place(rng, ("mlp", "attention", "block", "norm")),
            rng.choice(("no_grad", "detach")),
        ),
        _stop,
    ),
    "train": Ingredient(_one("all", "half"), _train),
    "checkpoint": Ingredient(_one("reentrant", "not_reentrant"), _checkpoint, 1),
    "compile": Ingredient(_draw_compiler, _compile, 1),
    "call": Ingredient(_one("autocast", "inference", "no_grad"), _call, 3),
}
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
