"""Gating by plain loops: fit by fit, prompt by prompt, with the draws that headwidget made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headwidget.methods import gate_fits
from headwidget.scoring.encode import Encoded
from tests.support.plain_loops import STEPS, Plain, log_probability, multiplied

CLAMP, NORM = 4.0, 1.0


@dataclass
class Draws:
    """The random starts of the fits, and which prompts each update gave to each fit."""

    start: list[Tensor] = field(default_factory=list)  # (fit, layer, head)
    updates: list[list[list[int]]] = field(default_factory=list)  # update, fit: prompts


@contextmanager
def recorded() -> Iterator[Draws]:
    """Note what headwidget draws while it fits gates."""
    draws = Draws()
    random, next_prompts = gate_fits.Fits.random, gate_fits.Prompts.next

    def noted_start(*args: Any, **kwargs: Any) -> gate_fits.Fits:
        fits = random(*args, **kwargs)
        with torch.inference_mode(False):  # also where the user calls in inference mode
            draws.start.append(fits.theta.detach().clone().double())
        return fits

    def noted_prompts(self: gate_fits.Prompts) -> Any:
        group, chosen, length = next_prompts(self)
        draws.updates.append([[group.batch.runs[i] for i in row] for row in chosen])
        return group, chosen, length

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_fits.Fits, "random", noted_start)
        patch.setattr(gate_fits.Prompts, "next", noted_prompts)
        yield draws


def gates(
    plain: Plain,
    examples: Sequence[Encoded],
    draws: Draws,
    updates: int,
    lr: float,
    strength: float,
) -> dict[str, np.ndarray]:
    """G of every stage, (fit, layer, head): free, then keep and drop from where free ends."""
    (start,) = draws.start
    fine = plain.held.grain in ("double", "single")
    exact = not fine or differentiable(plain, examples, start[0])
    ends: dict[str, list[Tensor]] = {"free": [], "keep": [], "drop": []}
    for fit, theta in enumerate(start):
        seen = [update[fit] for update in draws.updates]
        begin = theta
        for number, (stage, pressure) in enumerate(
            (("free", 0.0), ("keep", strength), ("drop", -strength))
        ):
            prompts = seen[number * updates : (number + 1) * updates]
            end = _stage(plain, examples, begin, prompts, lr, pressure, exact)
            ends[stage].append(end.sigmoid())
            if stage == "free":
                begin = end
    return {stage: torch.stack(values).numpy() for stage, values in ends.items()}


def _stage(
    plain: Plain,
    examples: Sequence[Encoded],
    theta: Tensor,
    prompts: Sequence[Sequence[int]],
    lr: float,
    pressure: float,
    exact: bool,
) -> Tensor:
    """Adam, written out, on one fit."""
    theta = theta.clamp(-CLAMP, CLAMP)
    mean, square = torch.zeros_like(theta), torch.zeros_like(theta)
    for number, chosen in enumerate(prompts, 1):
        slope = _slope(plain, [examples[i] for i in chosen], theta, exact)
        inside = (theta.abs() <= CLAMP).double()
        slope = slope - pressure * inside / theta.numel()
        slope = slope * min(1.0, NORM / (float(slope.norm()) + 1e-6))
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope.square()
        size = (square / (1 - 0.999**number)).sqrt() + 1e-8
        theta = theta - lr * mean / (1 - 0.9**number) / size
    return theta


def _slope(plain: Plain, examples: Sequence[Encoded], theta: Tensor, exact: bool) -> Tensor:
    """The slope of the mean NLL over the answers' tokens, one prompt at a time."""
    tokens = sum(len(example.answer) for example in examples)
    total = torch.zeros_like(theta)
    for example in examples:
        slope = _by_autograd(plain, example, theta) if exact else None
        total += _by_differences(plain, example, theta) if slope is None else slope
    return total / tokens


def _by_autograd(plain: Plain, example: Encoded, theta: Tensor) -> Tensor | None:
    """The slope of one prompt's NLL; None where torch cannot differentiate the model."""
    theta = theta.detach().requires_grad_(True)
    try:
        with without_backward_hooks(plain.held.module), torch.enable_grad():
            logits = plain.run(example.ids, multiplied(theta.sigmoid())).logits
            return torch.autograd.grad(-log_probability(logits, example), theta)[0]
    except RuntimeError:
        return None


def _by_differences(plain: Plain, example: Encoded, theta: Tensor) -> Tensor:
    """The same by central differences."""
    step = STEPS[plain.held.grain][-1]
    slope = torch.zeros_like(theta)
    for row, head in np.ndindex(*plain.shape):
        change = torch.zeros_like(theta)
        change[row, head] = step
        more, less = ((theta + sign * change).sigmoid().numpy() for sign in (1, -1))
        rise = plain.log_p(example, more) - plain.log_p(example, less)
        slope[row, head] = -rise / (2 * step)
    return slope


def differentiable(plain: Plain, examples: Sequence[Encoded], theta: Tensor) -> bool:
    """Does autograd see the whole slope? A part that runs without gradients hides some of it."""
    for example in examples:
        slope, expected = _by_autograd(plain, example, theta), None
        if slope is not None:
            expected = _by_differences(plain, example, theta)
        if slope is None or expected is None:
            return False
        if (slope - expected).abs().max() > 0.02 * expected.abs().max():
            return False
    return True


@contextmanager
def without_backward_hooks(outer: nn.Module) -> Iterator[None]:
    """A loss has one slope, whatever hooks make of gradients."""
    kept = []
    for module in outer.modules():
        for hooks in (module._backward_hooks, module._backward_pre_hooks):
            kept.append((hooks, dict(hooks)))
            hooks.clear()
    try:
        yield
    finally:
        for hooks, before in kept:
            hooks.update(before)
