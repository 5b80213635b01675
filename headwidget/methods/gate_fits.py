"""Gates fitted by Adam, several fits side by side in the batch dimension, weights frozen; a prefix that prompts share runs once a fit, gradients and all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring import gated_forward
from headwidget.scoring.batch import TOKENS, Batch, collate, plan, token_log_probability
from headwidget.scoring.encode import Encoded
from headwidget.scoring.replay import SHORTEST_PREFIX, belong_together, shared_prefix

NORM = 1.0
"""A fit's gradient is made no longer than this, as published."""


class Prompts:
    """A task's prompts as every fit sees them: in an order of its own, so many an update.

    The prompts of one update share a prefix where that can be: each update takes from one group of prompts, the larger groups more often.
    """

    def __init__(
        self,
        model: Model,
        examples: Sequence[Encoded],
        count: int,
        seeds: Sequence[np.random.Generator],
        bootstrap: bool,
    ) -> None:
        self.model, self.count, self.seeds = model, min(count, len(examples)), seeds
        self.groups = [
            gated_forward.Group(collate(runs, [examples[i] for i in runs], model), prefix)
            for runs, prefix in self._groups(examples)
        ]
        self.lengths = [
            np.array([len(examples[i].ids) for i in group.batch.runs]) for group in self.groups
        ]
        sizes = [len(group.batch.runs) for group in self.groups]
        self._own = [
            [rng.integers(size, size=size) if bootstrap else np.arange(size) for size in sizes]
            for rng in seeds
        ]  # fit, group: its prompts
        self._waiting: list[tuple[int, npt.NDArray[np.int64]]] = []

    def _groups(self, examples: Sequence[Encoded]) -> list[tuple[list[int], int]]:
        everything = list(range(len(examples)))
        longest = max(len(e.ids) for e in examples)
        if not self.model.can_share_prefix or self.model.switches_rope(longest):
            return [(everything, 0)]
        parts = plan(
            examples, self.model, len(examples), order=lambda e: e.ids, together=belong_together
        )
        if len(parts) > 1 and len(examples) < self.count * len(
            parts
        ):  # too small to fill an update each
            parts = [everything]
        prefixes = [
            shared_prefix([examples[i] for i in part]) if len(part) > 1 else 0 for part in parts
        ]
        return [
            (part, prefix if prefix >= SHORTEST_PREFIX else 0)
            for part, prefix in zip(parts, prefixes)
        ]

    def next(self) -> tuple[gated_forward.Group, npt.NDArray[np.int64], int]:
        """A group, which of its prompts each fit sees (fit, prompt), and how many tokens the longest of them has."""
        if not self._waiting:
            self._deal()
        at, chosen = self._waiting.pop()
        return self.groups[at], chosen, int(self.lengths[at][chosen].max())

    def _deal(self) -> None:
        """Every prompt once, group by group (some twice, to fill the last update), then all updates in a random order."""
        for at, group in enumerate(self.groups):
            rounds = -(-len(group.batch.runs) // self.count)
            orders = [
                np.resize(rng.permutation(own[at]), rounds * self.count)
                for rng, own in zip(self.seeds, self._own)
            ]
            self._waiting += [
                (at, part) for part in np.split(np.stack(orders), rounds, axis=1)
            ]  # (fit, prompt) each
        order = self.seeds[0].permutation(len(self._waiting))
        self._waiting = [self._waiting[i] for i in order]


@dataclass(eq=False)
class Fits:
    """Gate logits of all fits, (fit, layer, head), and how they are moved."""

    model: Model
    seen: Sequence[Prompts]
    """The task's prompts and, in contrastive gating, those of the task whose loss is subtracted."""
    theta: Tensor
    clamp: float
    _pressure: float = 0.0
    _adam: torch.optim.Optimizer | None = None
    _losses: list[Tensor] = field(
        default_factory=list
    )  # (2, fit) an update: NLL and regulariser, on the device

    @classmethod
    def random(
        cls,
        model: Model,
        seen: Sequence[Prompts],
        seeds: Sequence[np.random.Generator],
        clamp: float,
        low: float = 0.0,
        high: float = 1.0,
    ) -> Fits:
        """Gates that start anywhere between ``low`` and ``high``."""
        start = np.stack([rng.uniform(low, high, model.shape) for rng in seeds]).clip(
            1e-6, 1 - 1e-6
        )
        with torch.inference_mode(False):
            theta = torch.tensor(np.log(start / (1 - start)), dtype=torch.float32).to(model.device)
        return cls(model, seen, theta, clamp)

    def begin(self, pressure: float, start: Tensor | None = None) -> None:
        """A stage of its own: where it starts (None: where it stands), and how hard it pushes to keep (positive) or drop heads.

        It starts within the clamp. Beyond, no pressure is felt: an idle head that the stage before happened to leave there would stay on for ever
        and count as one that the task needs.
        """
        with torch.inference_mode(False):
            self.theta = (
                (self.theta if start is None else start)
                .detach()
                .clamp(-self.clamp, self.clamp)
                .requires_grad_(True)
            )
            self._adam = torch.optim.Adam(
                [self.theta], fused=self.theta.device.type in ("cpu", "cuda")
            )  # whose step the host does not wait for
        self._pressure, self._losses = pressure, []

    def update(self, lr: float) -> None:
        """One step of every fit; the host waits for nothing of it. A fit whose loss or slope is not a number goes on by its momentum alone."""
        assert self._adam is not None
        with hooks.frozen(self.model), torch.inference_mode(False), torch.enable_grad():
            grad = torch.zeros_like(self.theta)
            nll = torch.zeros(len(self.theta), device=self.theta.device)
            for sign, prompts in zip((1.0, -1.0), self.seen):
                lost, slope = self._walk(*prompts.next())
                nll, grad = nll + sign * lost, grad + sign * slope
            push = self.theta.clamp(-self.clamp, self.clamp).mean((1, 2))  # (fit,)
            (slope,) = torch.autograd.grad(push.sum(), self.theta)
            grad = grad - self._pressure * slope
            fine = (nll.isfinite() & grad.isfinite().all(-1).all(-1))[:, None, None]
            grad = torch.where(fine, grad, 0)
            length = grad.square().sum((1, 2), keepdim=True).sqrt()
            self.theta.grad = grad * (NORM / (length + 1e-6)).clamp(
                max=1
            )  # each fit its own, as if it were alone
            self._adam.param_groups[0]["lr"] = lr
            self._adam.step()
            self._losses.append(torch.stack([nll, -self._pressure * push.detach()]))

    def _walk(
        self, group: gated_forward.Group, chosen: npt.NDArray[np.int64], length: int
    ) -> tuple[Tensor, Tensor]:
        """The mean NLL of the answers' tokens, (fit,), and its slope, (fit, layer, head): as many fits, else prompts, at once as there is room for."""
        prompts, rest = chosen.shape[1], length - group.prefix
        fits = max(1, TOKENS // (group.prefix + prompts * rest))
        room = max(1, (TOKENS - group.prefix) // rest)  # prompts of one fit
        index = torch.from_numpy(chosen).to(self.theta.device)  # (fit, prompt)
        losses, slopes = [], []
        for start in range(0, len(chosen), fits):
            some = index[start : start + fits]
            theta = self.theta[start : start + fits].detach().requires_grad_(True)
            tokens = group.batch.counts[some].sum((1, 2))  # (fit,)
            loss, slope = torch.zeros(len(some), device=self.theta.device), torch.zeros_like(theta)
            for first in range(0, prompts, room):
                batch = pick(group.batch, some[:, first : first + room].flatten(), length)
                logits = gated_forward.predictions(self.model, batch, group.prefix, theta.sigmoid())
                lost = (
                    -token_log_probability(logits, batch)
                    .reshape(len(some), -1)
                    .sum(1)
                    .to(theta.device)
                    / tokens
                )  # (fit,)
                slope = slope + torch.autograd.grad(lost.sum(), theta)[0]
                loss = loss + lost.detach()
            losses.append(loss)
            slopes.append(slope)
        return torch.cat(losses), torch.cat(slopes)

    def gates(self) -> npt.NDArray[np.float32]:
        """The gates as they are, (fit, layer, head), on the host."""
        found: npt.NDArray[np.float32] = self.theta.detach().sigmoid().cpu().numpy()
        return found

    def curve(self) -> dict[str, list[float]]:
        """Loss and regulariser of every update of the stage, mean over the fits; updates in which no fit's loss was a number are left out."""
        if not self._losses:
            return {"loss": [], "regulariser": []}
        table = torch.stack(self._losses).cpu().numpy()  # (update, 2, fit)
        kept = [row for row in table if np.isfinite(row[0]).any()]
        return {
            name: [round(float(row[i][np.isfinite(row[0])].mean()), 6) for row in kept]
            for i, name in enumerate(("loss", "regulariser"))
        }


def pick(batch: Batch, rows: Tensor, length: int) -> Batch:
    """Some rows of a batch, one after the other, no longer than ``length`` tokens."""
    parts = {f.name: getattr(batch, f.name) for f in dataclasses.fields(batch)}
    cut: dict[str, Any] = {
        name: part[rows] if isinstance(part, Tensor) else part for name, part in parts.items()
    }
    cut |= {name: cut[name][:, :length] for name in ("ids", "mask") if cut[name] is not None}
    return Batch(**cut)
