"""A fingerprint of a model's weights: tells a fine-tuned or edited model from its base.

Every bit of every weight counts. The bits are read as whole numbers and added up along rows
and along columns; whole numbers that wrap around have the same sum in any order, so the
fingerprint is the same on every device. It takes two passes over the weights, which is
little beside one forward of a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from headwidget.models.weights import packs_its_weight
from headwidget.scores.record import FINGERPRINT_MARK, UNKNOWN_WEIGHTS

_WIDTHS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def fingerprint(module: nn.Module) -> str:
    """A short text that differs between models whose weights, or active adapters, differ.

    "unknown" where some weights are not there to read: offloaded, or in a form of their own.
    """
    with torch.inference_mode(False), torch.no_grad():  # quantised weights refuse the former
        return _fingerprint(module)


def _fingerprint(module: nn.Module) -> str:
    digest = hashlib.sha256()
    seen: dict[tuple[int, torch.Size], int] = {}
    try:
        # a list: a tensor that is gone may leave its address to the next
        for number, tensor in enumerate(list(_tensors(_state(module)))):
            place = tensor.data_ptr(), tensor.shape
            if place in seen:  # tied weights are read once
                digest.update(f"tied {seen[place]} ".encode())
            elif tensor.numel():
                seen[place] = number
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
                digest.update(_sums(tensor).cpu().numpy().tobytes())
    except _Unreadable:
        return UNKNOWN_WEIGHTS
    digest.update(repr(_adapters(module)).encode())
    return FINGERPRINT_MARK + digest.hexdigest()[:16] if seen else UNKNOWN_WEIGHTS


def _adapters(module: nn.Module) -> list[Any]:
    """Which adapters are on, and how much they count: peft keeps that beside the weights."""
    on = []
    for name, part in module.named_modules():
        off: Any = getattr(part, "disable_adapters", None)
        if isinstance(off, bool):  # an adapted layer; on a whole model it is a method
            active: Any = part.active_adapters
            scaling: Any = getattr(part, "scaling", None)
            factors = scaling if isinstance(scaling, dict) else {}
            on.append((name, off, [(adapter, factors.get(adapter)) for adapter in active]))
    return on


def _state(module: nn.Module) -> list[Any]:
    """All that is saved of a module.

    Where bitsandbytes has packed a 4-bit weight, its ``state_dict`` unpacks it in place; the
    packed form is put back.
    """
    weights: list[Any] = [part.weight for part in module.modules() if packs_its_weight(part)]
    packed = [(weight, weight.data, weight.quant_state) for weight in weights]
    settings = [dict(vars(state)) for _, _, state in packed if state is not None]
    try:
        return list(module.state_dict().values())
    finally:
        for weight, data, state in packed:
            weight.data, weight.quant_state = data, state
            if state is not None:
                vars(state).update(settings.pop(0))


class _Unreadable(Exception):
    """A part of the model's state is not there, or cannot be read as numbers."""


def _tensors(state: Any) -> Iterator[Tensor]:
    """The plain tensors that a module's state consists of."""
    if isinstance(state, (list, tuple)):
        for part in state:
            yield from _tensors(part)
    elif isinstance(state, Tensor):
        yield from _plain(state)
    elif not isinstance(state, (type(None), bool, int, float, str, torch.dtype)):
        raise _Unreadable


def _plain(tensor: Tensor) -> Iterator[Tensor]:
    if hasattr(tensor, "__tensor_flatten__"):  # quantised by torchao: several tensors in one
        names, _ = tensor.__tensor_flatten__()
        yield from _tensors([getattr(tensor, name) for name in names])
    elif tensor.is_meta or tensor.layout is not torch.strided:
        raise _Unreadable
    elif tensor.is_quantized:
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            scales = torch.tensor([tensor.q_scale(), tensor.q_zero_point()])
        else:
            scales = torch.cat([tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()])
        yield from (tensor.int_repr(), scales)
    else:
        yield tensor.detach()


def _sums(tensor: Tensor) -> Tensor:
    """The sums of the tensor's bits along its rows and along its columns, as int64."""
    rows = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1).contiguous()
    size = rows.shape[1] * rows.element_size()
    bits = rows.view(next(width for width in _WIDTHS if size % width.itemsize == 0))
    return torch.cat([bits.sum(1, dtype=torch.int64), bits.sum(0, dtype=torch.int64)])
