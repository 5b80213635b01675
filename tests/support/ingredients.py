"""What users do to their models: the ingredients of compositions, and the model that results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

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
