"""What others put on a model: hooks, and forwards replaced on a module.

They may do anything at any position, so a model that has some runs one prompt at a time,
unpadded and whole. Hooks of headwidget itself do not count, nor those with which accelerate
moves weights and transformers and peft read outputs: they change no number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

HARMLESS = ("headwidget.", "accelerate.", "transformers.", "peft.")
"""Packages whose hooks and forwards do not count."""
_EVERYWHERE = "every module"
_ON_A_MODULE = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_ON_ALL_MODULES = tuple(f"_global{name}" for name in _ON_A_MODULE)


def hooked_modules(module: nn.Module) -> tuple[str, ...]:
    """The names of the modules with a hook or a forward that is not their own.

    >>> layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> handle = layers[0].register_forward_hook(print)
    >>> hooked_modules(layers)
    ('0',)
    """
    names = [_EVERYWHERE] if has_global_hooks() else []
    if any(_is_hooked(part) for part in module.modules()):
        # names take ten times as long as the look, so they come second
        names += [name or "the model" for name, part in module.named_modules() if _is_hooked(part)]
    return tuple(names)


def has_foreign_hooks(module: nn.Module) -> bool:
    """Has the module, or a part of it, a hook or a forward that is not its own?"""
    return has_global_hooks() or any(_is_hooked(part) for part in module.modules())


def is_hooked_itself(module: nn.Module) -> bool:
    """The same of the module alone, its parts not looked at."""
    return has_global_hooks() or _is_hooked(module)


def has_hooks(module: nn.Module) -> bool:
    """Is a hook of others registered on the module alone?"""
    for name in _ON_A_MODULE:
        if (hooks := module.__dict__.get(name)) and any(map(_counts, _values(hooks))):
            return True
    return False


def has_foreign_forward(module: nn.Module) -> bool:
    """Was the forward of the module itself replaced by others?"""
    forward = module.__dict__.get("forward")
    return forward is not None and _counts(forward)


def gradient_hook(module: nn.Module) -> str | None:
    """The name of a module with a hook of others on its gradients; None where there is none."""
    names = _ON_A_MODULE[2:]
    if any(any(map(_counts, _values(getattr(torch_module, f"_global{n}", {})))) for n in names):
        return _EVERYWHERE
    for path, part in module.named_modules():
        if any(any(map(_counts, _values(part.__dict__.get(name) or {}))) for name in names):
            return path or "the model"
    return None


def _is_hooked(module: nn.Module) -> bool:
    moved = module.__dict__.get("_hf_hook")
    if moved is not None and any(map(_counts, map(type, _of_accelerate(moved)))):
        return True
    return has_hooks(module) or has_foreign_forward(module)


def _of_accelerate(hook: Any) -> list[Any]:
    """A hook of accelerate's kind, or those that it holds; users may write their own."""
    return list(getattr(hook, "hooks", None) or [hook])


def has_global_hooks() -> bool:
    """Has somebody registered a hook on all modules at once?"""
    for name in _ON_ALL_MODULES:
        if any(map(_counts, _values(getattr(torch_module, name, {})))):
            return True
    return False


def _values(hooks: Any) -> Iterator[Any]:
    return iter(list(hooks.values()))  # another thread may remove one meanwhile


def _counts(function: Any) -> bool:
    """Is it other people's code? Wrappers are looked through."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    # where it was defined; __module__ is copied by functools.wraps
    names: dict[str, Any] = getattr(function, "__globals__", {})
    package = names.get("__name__") or getattr(function, "__module__", "") or ""
    return not package.startswith(HARMLESS)
