"""Hooks and forwards that users put on their models: ingredients of the compositions.

An effect takes a tensor (batch, seq, width) and gives the tensor in its place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

Effect = Callable[[Tensor], Tensor]

EFFECTS = (
    "watch steer steer_in_place add scale zero_slice first_row batch_mean longer_than "
    "noise every_second"
).split()
KINDS = "pre pre_kwargs forward forward_kwargs global_pre global_forward".split()
BACKWARD_KINDS = ("backward", "backward_pre")


def vector(text: str, like: Tensor) -> Tensor:
    """A fixed direction, about half as large as a residual stream, drawn from ``text``."""
    random = torch.Generator().manual_seed(zlib.crc32(text.encode()))
    drawn = torch.randn(like.shape[-1], generator=random, dtype=torch.float64)
    return (0.5 * drawn).to(like.device, like.dtype)


def effect(name: str, text: str) -> Effect:
    """The effect with this name; ``text`` seeds what it adds."""
    calls = 0

    def steer(x: Tensor) -> Tensor:
        changed = x.clone()
        changed[:, -1] += vector(text, x)
        return changed

    def steer_in_place(x: Tensor) -> Tensor:
        x[:, -1] += vector(text, x)
        return x

    def zero_slice(x: Tensor) -> Tensor:
        changed = x.clone()
        changed[..., : x.shape[-1] // 4] = 0
        return changed

    def first_row(x: Tensor) -> Tensor:
        changed = x.clone()
        changed[0] += vector(text, x)
        return changed

    def longer_than(x: Tensor) -> Tensor:
        """Act on sequences of five tokens or more: padding makes others as long."""
        return x + vector(text, x) if x.shape[1] >= 5 else x

    def every_second(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return x + vector(text, x) if calls % 2 else x

    effects: dict[str, Effect] = {
        "watch": lambda x: x,
        "steer": steer,
        "steer_in_place": steer_in_place,
        "add": lambda x: x + vector(text, x),
        "scale": lambda x: x * 1.5,
        "zero_slice": zero_slice,
        "first_row": first_row,
        "batch_mean": lambda x: x - 0.5 * x.mean(0, keepdim=True),
        "longer_than": longer_than,
        "noise": lambda x: x + 0.5 * torch.randn_like(x),
        "every_second": every_second,
    }
    return effects[name]


# ---- where the tensor is in what a module takes and gives ----


def in_output(out: Any, change: Effect) -> Any:
    """A module's output with its first tensor changed."""
    if isinstance(out, Tensor):
        return change(out) if out.is_floating_point() else out
    if isinstance(out, tuple):
        return (in_output(out[0], change), *out[1:])
    if getattr(out, "logits", None) is not None:
        out.logits = change(out.logits)
    return out


def in_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], change: Effect
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A module's arguments with its hidden states changed, where it takes some."""
    if args and isinstance(args[0], Tensor) and args[0].is_floating_point():
        return (change(args[0]), *args[1:]), kwargs
    if isinstance(kwargs.get("hidden_states"), Tensor):
        return args, {**kwargs, "hidden_states": change(kwargs["hidden_states"])}
    return args, kwargs


# ---- hooks ----


def hook(module: nn.Module, kind: str, change: Effect, undo: ExitStack) -> None:
    """Register a hook of one of ``KINDS`` on a module; a global one acts on that module alone."""
    if kind == "pre":
        module.register_forward_pre_hook(lambda _, args: in_arguments(args, {}, change)[0])
    elif kind == "pre_kwargs":
        module.register_forward_pre_hook(
            lambda _, args, kwargs: in_arguments(args, kwargs, change), with_kwargs=True
        )
    elif kind == "forward":
        module.register_forward_hook(lambda _, args, out: in_output(out, change))
    elif kind == "forward_kwargs":
        module.register_forward_hook(
            lambda _, args, kwargs, out: in_output(out, change), with_kwargs=True
        )
    elif kind == "global_pre":
        before: Any = lambda m, args: in_arguments(args, {}, change)[0] if m is module else None
        handle = global_hooks.register_module_forward_pre_hook(before)
        undo.callback(handle.remove)
    else:
        handle = global_hooks.register_module_forward_hook(
            lambda m, args, out: in_output(out, change) if m is module else None
        )
        undo.callback(handle.remove)


def backward_hook(module: nn.Module, kind: str, change: str) -> None:
    """A full backward hook that watches, or makes the gradient half as large again."""
    factor = 1.5 if change == "scale" else 1.0

    def scaled(grads: Any) -> Any:
        if factor == 1.0:
            return None
        return tuple(None if grad is None else grad * factor for grad in grads)

    if kind == "backward":
        module.register_full_backward_hook(lambda _, grad_input, grad_output: scaled(grad_input))
    else:
        module.register_full_backward_pre_hook(lambda _, grad_output: scaled(grad_output))


def carry(lower: nn.Module, upper: nn.Module, *, detach: bool) -> None:
    """What a lower module gives is stored, and added to what an upper one gives."""
    kept: dict[str, Tensor] = {}

    def store(_: nn.Module, args: Any, out: Any) -> None:
        x = out[0] if isinstance(out, tuple) else out
        kept["x"] = x.detach() if detach else x

    lower.register_forward_hook(store)
    upper.register_forward_hook(lambda _, args, out: in_output(out, lambda x: x + 0.5 * kept["x"]))


# ---- forwards ----


def replace_forward(module: nn.Module, change: Effect) -> None:
    """Put a forward of the user's own on the instance, which calls the one that was there."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return in_output(original(*args, **kwargs), change)

    module.forward = forward


def stop_gradient(module: nn.Module, how: str) -> None:
    """Let no gradient pass through a module: it runs without one, or its output is detached."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if how == "detach":
            return in_output(original(*args, **kwargs), lambda x: x.detach())
        with torch.no_grad():
            return original(*args, **kwargs)

    module.forward = forward
