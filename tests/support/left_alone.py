"""What must be the same before and after headwidget ran a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
)
_GLOBAL_HOOKS = tuple(name for name in vars(global_hooks) if name.startswith("_global_"))


@dataclass(frozen=True, eq=False)
class _Identity:
    """Equal where it is the very same object, which is kept: a freed one's id is used again."""

    of: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def state(outer: nn.Module) -> dict[str, Any]:
    """All that must stay, by name, to be compared with :func:`changes`."""
    kept: dict[str, Any] = {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
    }
    for name in _GLOBAL_HOOKS:
        hooks = getattr(global_hooks, name)
        kept[f"global hooks {name}"] = dict(hooks) if isinstance(hooks, dict) else hooks
    config = getattr(outer, "config", None)
    if hasattr(config, "to_dict"):
        kept["config"] = {**config.to_dict(), "attention": config._attn_implementation}
    for path, module in outer.named_modules(remove_duplicate=False):
        where = path or "the model"
        kept[f"{where}: identity"] = _Identity(module)
        kept[f"{where}: training"] = module.training
        kept[f"{where}: forward"] = module.__dict__.get("forward")
        for name in _HOOKS:
            kept[f"{where}: {name}"] = dict(getattr(module, name))
    tensors = [
        *outer.named_parameters(remove_duplicate=False),
        *outer.named_buffers(remove_duplicate=False),
    ]
    for path, tensor in tensors:
        kept[f"{path}: requires_grad"] = tensor.requires_grad
        kept[f"{path}: grad"] = tensor.grad is None
        kept[f"{path}: identity"] = _Identity(tensor)
        kept[f"{path}: numbers"] = tuple(_copies(tensor))
    return kept


def _copies(tensor: Tensor) -> list[Tensor]:
    """The plain tensors that a parameter consists of, copied."""
    if hasattr(tensor, "__tensor_flatten__"):
        copies: list[Tensor] = []
        for name in tensor.__tensor_flatten__()[0]:
            copies += _copies(getattr(tensor, name))
        return copies
    if tensor.is_meta:
        return []
    with torch.inference_mode(False), torch.no_grad():
        return [tensor.detach().clone()]


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what is not as it was."""
    return [
        name
        for name in {**before, **after}
        if name not in before or name not in after or not _same(before[name], after[name])
    ]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(_same(x, y) for x, y in zip(a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(torch.equal(_bytes(a), _bytes(b)))
    return bool(a == b)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
