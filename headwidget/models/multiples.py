"""Comparisons of tensors that are equal but for rounding and a positive factor."""

from __future__ import annotations

from torch import Tensor

ALLOWED = {8: 1e-6, 4: 1e-4, 2: 3e-2}
"""How far numbers may be off, relative to their size, by the bytes of a number.

Norms compute in float32 also where a model is in float64.
"""


def off(whole: Tensor, part: Tensor) -> float:
    """How far two tensors are apart, relative to the size of the first."""
    whole, part = whole.double(), part.double()
    return float((whole - part).norm() / whole.norm().clamp(min=1e-30))


def is_multiple(whole: Tensor, part: Tensor, allowed: float) -> bool:
    """Is it a tensor times a positive factor of each head and token?

    Both are (head, token, dim).
    """
    whole, part = whole.double(), part.double()
    size = part.square().sum(-1, keepdim=True)
    factor = (whole * part).sum(-1, keepdim=True) / size.clamp(min=1e-60)
    return bool((factor[size > 0] > 0).all()) and off(whole, factor * part) <= allowed


def is_constant_multiple(whole: Tensor, part: Tensor | None, allowed: float) -> bool:
    """Is it a tensor times one positive number?"""
    if part is None or part.numel() != whole.numel():
        return False
    whole, part = whole.double().flatten(), part.double().flatten()
    factor = float(whole @ part / part.square().sum().clamp(min=1e-60))
    return factor > 0 and off(whole, factor * part) <= allowed


def is_gated(whole: Tensor, part: Tensor) -> bool:
    """Is every number a share, between 0 and 1, of another's, and not all the same?"""
    ratio = whole.double() / part.double()
    ratio = ratio[part.abs() > 1e-6 * part.abs().max()]
    between = (ratio >= -1e-2) & (ratio <= 1 + 1e-2)
    return bool(between.all()) and float(ratio.std()) > 1e-2
