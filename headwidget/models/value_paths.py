"""The way from what attention reads to a head's values, as one linear map.

Usually that is one linear map, or a part of it. Latent attention has two, with a norm between
them, and some models norm the values themselves. A norm multiplies a token's numbers by one
positive factor, which leaves the ranks of ``e W_V W_O U`` as they are, so the factor is left
out; its weight, and the mean that it takes off, are folded into the map.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwidget.models.norms import FrozenNorm
from headwidget.models.weights import Values, in_width, linear_weight, working


@dataclass(frozen=True, eq=False)
class Step:
    """A linear map or a norm, and the columns of its output that the next step takes."""

    name: str
    """The module's full name."""
    module: nn.Module
    columns: Tensor  # (column,)
    occurrence: int = 0
    """Which of the module's calls in a forward it is."""
    group: int | None = None
    """Of a norm: how many numbers it norms together."""


@dataclass(frozen=True, eq=False)
class ValuePath:
    """The steps from what attention reads to the values of a layer's heads, in order."""

    steps: tuple[Step, ...]
    heads: int
    """How many heads have values of their own."""
    repeat: int
    """How many query heads share them."""

    @property
    def scaled(self) -> bool:
        """Is there a norm, whose positive factor is left out?"""
        return any(step.group is not None for step in self.steps)

    @property
    def latent(self) -> bool:
        """Are there several linear maps?"""
        return sum(step.group is None for step in self.steps) > 1

    def values(self) -> Values:
        """W_V and its bias, from the live weights; a sentence where they cannot be read."""
        weight: Tensor | None = None  # (width, column)
        bias: Tensor | None = None  # (column,)
        scaled = False
        for step in self.steps:
            if step.group is None:
                weight, bias = _through_linear(step, weight, bias, scaled)
            else:
                assert weight is not None  # the first step is a linear map
                scaled = True
                weight = _through_norm(step, weight)
                bias = None if bias is None else _through_norm(step, bias[None])[0]
        assert weight is not None
        by_head = weight.reshape(len(weight), self.heads, -1).transpose(0, 1)  # (head, width, dim)
        biases = None if bias is None else bias.reshape(self.heads, -1)
        return Values(by_head, biases, self.repeat)


def _through_linear(
    step: Step, weight: Tensor | None, bias: Tensor | None, scaled: bool
) -> tuple[Tensor, Tensor | None]:
    """The map so far, followed by a linear map."""
    matrix = linear_weight(step.module)
    if matrix is None:
        raise TypeError(
            f"{step.name} is a {type(step.module).__name__} whose weight cannot be read as plain "
            "numbers (quantised, adapted, or offloaded to disk?); load the model whole, "
            "unquantised and merged."
        )
    columns = step.columns.to(matrix.device)
    matrix = matrix.detach()[:, columns]
    added: Tensor | None = getattr(step.module, "bias", None)
    added = None if added is None else added.detach()[columns]
    if weight is None:
        return matrix, added
    if scaled and added is not None and bool(added.any()):
        raise ValueError(
            f"{step.name} adds a bias behind a norm, so a head's values are no linear map of a "
            "word with one positive factor, and there is no W_V for relations to read; use "
            "method='ablation' or 'gradient'."
        )
    exact = working(matrix.dtype)
    weight, matrix = weight.to(matrix.device, exact), matrix.to(exact)
    if bias is not None:
        bias = bias.to(matrix) @ matrix
    if added is not None:
        bias = added.to(exact) if bias is None else bias + added.to(exact)
    return weight @ matrix, bias


def _through_norm(step: Step, rows: Tensor) -> Tensor:
    """Rows of numbers, (row, column), behind a norm without its factor."""
    group = step.group
    assert group is not None
    gain, centred = _read_norm(step, rows)
    by_group = rows.to(working(rows.dtype)).reshape(len(rows), -1, group)
    if centred:
        by_group = by_group - by_group.mean(-1, keepdim=True)
    normed: Tensor = (by_group * gain.to(by_group)).flatten(1)
    return normed[:, step.columns.to(rows.device)]


def _read_norm(step: Step, like: Tensor) -> tuple[Tensor, bool]:
    """A norm's weight, (group,), and whether it takes off the mean."""
    norm, group = step.module, step.group
    assert group is not None
    parameter = next(norm.parameters(), like)
    zeros = torch.zeros(group, dtype=parameter.dtype, device=parameter.device)
    frozen = FrozenNorm.of(norm, zeros)
    with torch.no_grad():
        shift = norm(zeros)
    if bool(shift.any()):
        raise ValueError(
            f"{step.name} ({type(norm).__name__}) adds a bias to what it norms, so a head's values "
            "are no linear map of a word with one positive factor, and there is no W_V for "
            "relations to read; use method='ablation' or 'gradient'."
        )
    exact = working(parameter.dtype)
    candidates = [torch.ones_like(zeros, dtype=exact)]
    weight = getattr(norm, "weight", None)
    if isinstance(weight, Tensor) and weight.shape == zeros.shape:
        candidates = [weight.detach().to(exact), 1 + weight.detach().to(exact)]  # Gemma: 1 + w
    # the probed gain is rounded as the norm rounds
    for candidate in candidates:
        if torch.allclose(candidate, frozen.gain.to(candidate), rtol=1e-2, atol=1e-3):
            return candidate, frozen.centred
    return frozen.gain, frozen.centred


def linear(module: nn.Module) -> bool:
    """Is it a linear map, whatever its class?"""
    return in_width(module) is not None
