"""What people wrap a model in: torch.compile, peft. Taken off, or refused by name.

The module inside a wrapper is the same object, adapters included, so scoring it is scoring
the wrapped model, as long as the wrapper adds nothing of its own.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from headwidget.models.foreign import has_foreign_forward, has_global_hooks, has_hooks

_AROUND = ("xlora", "adaption prompt", "cpt", "poly")
"""Kinds of adapters that peft runs around the model's layers, or that need more than its input."""


def unwrapped(module: Any) -> Any:
    """The model inside a wrapper; a sentence where the wrapper itself changes what is computed.

    A compiled model runs uncompiled: compiled code takes no notice of hooks.
    """
    while True:
        if _is_compiled(module):
            module = module._orig_mod
        elif _is_peft(module):
            module = _without_peft(module)
        else:
            break
    for name, part in module.named_modules():
        if _is_compiled(part):
            raise ValueError(
                f"{name} is compiled by itself (torch.compile), and compiled code takes no notice "
                "of hooks; put its original back (its attribute _orig_mod), or compile the whole "
                "model, which is scored uncompiled."
            )
    return module


def around(outer: nn.Module, inner: nn.Module) -> tuple[nn.Module, ...]:
    """The wrappers that :func:`unwrapped` took off."""
    inside = {id(part) for part in inner.modules()}
    return tuple(part for part in outer.modules() if id(part) not in inside)


def check_unhooked(wrappers: tuple[nn.Module, ...], inner: nn.Module) -> None:
    """Refuse hooks, and replaced forwards, on the wrappers around ``inner``.

    They do not run when it is scored.
    """
    if wrappers and has_global_hooks():
        raise ValueError(
            f"a hook on all modules is on, also on the {type(wrappers[0]).__name__} around the "
            "model, and the model is scored without that wrapper; put the hook on "
            f"modules of the {type(inner).__name__} inside."
        )
    for wrapper in wrappers:
        if _is_peft(wrapper):
            _check_adapters(wrapper)  # another one may have been switched on
        replaced = has_foreign_forward(wrapper) and not _is_compiled(wrapper)
        if replaced or has_hooks(wrapper):
            what = "a forward" if replaced else "a hook"
            raise ValueError(
                f"{what} that is not headwidget's is on the {type(wrapper).__name__} around the "
                f"model, which is scored without that wrapper; put it on the "
                f"{type(inner).__name__} inside."
            )


def _is_compiled(module: Any) -> bool:
    """Is it torch.compile's wrapper? Its class is not looked up: that imports the compiler."""
    return type(module).__name__ == "OptimizedModule" and hasattr(module, "_orig_mod")


def _without_peft(module: Any) -> nn.Module:
    """The model inside a PeftModel, its adapters in place."""
    _check_adapters(module)
    inside: nn.Module = module.get_base_model()
    return inside


def _is_peft(module: Any) -> bool:
    return hasattr(module, "peft_config") and hasattr(module, "get_base_model")


def _check_adapters(module: Any) -> None:
    """Refuse active adapters that do more than the layers inside show."""
    configs = {name: module.peft_config[name] for name in _active(module)}
    for name, config in configs.items():
        kind = str(getattr(config.peft_type, "value", config.peft_type)).replace("_", " ").lower()
        if getattr(config, "is_prompt_learning", False):
            raise ValueError(
                f"the adapter {name!r} is {kind}: it puts {config.num_virtual_tokens} virtual "
                "tokens before every prompt, so headwidget does not know at which position the "
                "answer is predicted. Score the model without it: "
                "hw.load(model.get_base_model(), tokenizer)."
            )
        by_prompt = getattr(config, "alora_invocation_tokens", None)  # peft looks at each prompt
        if getattr(config, "is_adaption_prompt", False) or kind in _AROUND or by_prompt:
            raise ValueError(
                f"the adapter {name!r} is {kind}, which acts around the model's own layers, so "
                "headwidget cannot score it. Score the model as it was before peft: "
                "hw.load(model.unload(), tokenizer)."
            )


def _active(module: Any) -> list[str]:
    active = module.active_adapters if hasattr(module, "active_adapters") else module.active_adapter
    names = [active] if isinstance(active, str) else list(active)
    return [name for name in names if name in module.peft_config]
