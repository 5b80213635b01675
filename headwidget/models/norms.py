"""Norms with their scale held, which makes them linear."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class FrozenNorm:
    """A LayerNorm or RMSNorm with its scale held: ``x -> gain * (x [- mean x]) * scale``."""

    gain: Tensor  # (width,)
    eps: float
    centred: bool

    @classmethod
    def of(cls, norm: nn.Module, like: Tensor | None = None) -> FrozenNorm:
        """Read off the live module, whatever its class, and checked against it.

        ``like`` is a vector of the width that it takes, needed where it has no weight.
        """
        weight = next(norm.parameters(), like)
        if weight is None:
            raise ValueError(_unknown(norm))
        width = weight.shape[-1]
        eps = float(getattr(norm, "eps", None) or getattr(norm, "variance_epsilon", None) or 0.0)
        probe = torch.linspace(-1.0, 2.0, width, device=weight.device, dtype=weight.dtype)
        signs = 1 - 2 * (torch.arange(width, device=weight.device) % 2)  # of mean 0 and size 1
        with torch.no_grad():
            bias = norm(torch.zeros_like(probe)).float()
            gain = (norm(signs.to(weight.dtype)).float() - bias) * signs * math.sqrt(1 + eps)
            real = norm(probe).float()
            for centred in (True, False):
                frozen = cls(gain, eps, centred)
                x = probe.float()
                foretold = (x - x.mean() if centred else x) * gain * frozen.scale(x) + bias
                if torch.allclose(real, foretold, rtol=2e-2, atol=2e-2):
                    return frozen
        raise ValueError(_unknown(norm))

    def scale(self, x: Tensor) -> Tensor:
        """1 / the size that the norm divides ``x`` by, (…, 1)."""
        x = x.float()
        if self.centred:
            size = x.var(-1, keepdim=True, unbiased=False)
        else:
            size = x.pow(2).mean(-1, keepdim=True)
        return (size + self.eps).rsqrt()

    def ahead(self, part: Tensor, x: Tensor) -> Tensor:
        """What the norm makes of a ``part`` of ``x``, its scale held at ``x``."""
        centred = part - part.mean(-1, keepdim=True) if self.centred else part
        return centred * self.gain.to(part.device) * self.scale(x).to(part.device)

    def back(self, direction: Tensor, x: Tensor) -> Tensor:
        """The direction before the norm that reads what ``direction`` reads behind it.

        The scale is held at ``x``.
        """
        before = direction * self.gain.to(direction.device) * self.scale(x).to(direction.device)
        return before - before.mean(-1, keepdim=True) if self.centred else before


def _unknown(norm: nn.Module) -> str:
    return (
        f"{type(norm).__name__} is neither a LayerNorm nor an RMSNorm, so attribution cannot hold "
        "its scale; use gradient or ablation."
    )
