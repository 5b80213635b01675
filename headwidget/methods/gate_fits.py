"""Gates fitted by Adam, several fits side by side in the batch dimension, weights frozen.

A prefix that prompts share runs once a fit, and gradients flow through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headwidget.models import Model, hooks
from headwidget.scoring import gated_forward
from headwidget.scoring.batch import TOKENS, collate, plan, rows_of, token_log_probability
from headwidget.scoring.contract import check_shapes
from headwidget.scoring.encode import Encoded
from headwidget.scoring.prefix import belong_together, usable_prefix

NORM = 1.0
"""A fit's gradient is made no longer than this, as in Nam et al. (2025)."""


class Prompts:
    """A task's prompts as every fit sees them: each in its own order, so many an update.

    Each update takes its prompts from one group, the larger groups more often, so that they
    share a prefix where they can.
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
        self._drawn = [_drawn(rng, sizes, bootstrap) for rng in seeds]  # fit, group: its prompts
        self._waiting: list[tuple[int, npt.NDArray[np.int64]]] = []

    def _groups(self, examples: Sequence[Encoded]) -> list[tuple[list[int], int]]:
        """Which prompts run together, and how many leading tokens they share."""
        everything = list(range(len(examples)))
        longest = max(len(e.ids) for e in examples)
        if not self.model.can_share_prefix or self.model.switches_rope(longest):
            return [(everything, 0)]
        planned = plan(
            examples, self.model, len(examples), order=lambda e: e.ids, together=belong_together
        )
        if len(planned) > 1 and len(examples) < self.count * len(planned):
            planned = [everything]  # the groups are too small to fill an update each
        return [(runs, usable_prefix(self.model, [examples[i] for i in runs])) for runs in planned]

    def next(self) -> tuple[gated_forward.Group, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The next update: a group, and which of its prompts each fit sees, (fit, prompt).

        With it the numbers of tokens of these prompts.
        """
        if not self._waiting:
            self._deal()
        at, chosen = self._waiting.pop()
        return self.groups[at], chosen, self.lengths[at][chosen]

    @property
    def waiting(self) -> tuple[list[int], npt.NDArray[np.int64]]:
        """The updates that are planned: the group of each, and (update, fit, prompt)."""
        groups, chosen = [at for at, _ in self._waiting], [chosen for _, chosen in self._waiting]
        empty = np.empty((0, len(self.seeds), self.count), np.int64)
        return groups, np.stack(chosen) if chosen else empty

    @waiting.setter
    def waiting(self, planned: tuple[Sequence[int], npt.NDArray[np.int64]]) -> None:
        self._waiting = list(zip(*planned))

    def _deal(self) -> None:
        """Plan updates that see every prompt once, in a random order.

        Some prompts are seen twice, to fill the last update of a group.
        """
        for at, group in enumerate(self.groups):
            rounds = -(-len(group.batch.runs) // self.count)
            orders = [
                np.resize(rng.permutation(drawn[at]), rounds * self.count)
                for rng, drawn in zip(self.seeds, self._drawn)
            ]
            updates = np.split(np.stack(orders), rounds, axis=1)  # (fit, prompt) each
            self._waiting += [(at, chosen) for chosen in updates]
        order = self.seeds[0].permutation(len(self._waiting))
        self._waiting = [self._waiting[i] for i in order]


def _drawn(
    rng: np.random.Generator, sizes: Sequence[int], bootstrap: bool
) -> list[npt.NDArray[np.int64]]:
    """The prompts of each group that one fit is trained on: all, or a resample of them."""
    return [rng.integers(size, size=size) if bootstrap else np.arange(size) for size in sizes]


@dataclass(eq=False)
class Fits:
    """Gate logits of all fits, (fit, layer, head), and how they are moved."""

    model: Model
    seen: Sequence[Prompts]
    """The task's prompts and, in contrastive gating, those whose loss is subtracted."""
    theta: Tensor
    clamp: float
    _pressure: float = 0.0
    _adam: torch.optim.Optimizer | None = None
    _losses: list[Tensor] = field(default_factory=list)
    """(2, fit) an update: NLL and regulariser, on the device."""

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
        drawn = np.stack([rng.uniform(low, high, model.shape) for rng in seeds])
        start = drawn.clip(1e-6, 1 - 1e-6)
        with torch.inference_mode(False):
            theta = torch.tensor(np.log(start / (1 - start)), dtype=torch.float32).to(model.device)
        return cls(model, seen, theta, clamp)

    def begin(self, pressure: float, start: Tensor | None = None) -> None:
        """Begin a stage from ``start`` (None: from where the gates stand).

        Positive ``pressure`` keeps heads, negative drops them. The stage starts within the
        clamp: beyond it there is no pressure, so a head that the stage before left there by
        chance would stay on and count as one that the task needs.
        """
        with torch.inference_mode(False):
            theta = (self.theta if start is None else start).detach()
            self.theta = theta.clamp(-self.clamp, self.clamp).requires_grad_(True)
            # the host does not wait for a fused step
            fused = self.theta.device.type in ("cpu", "cuda")
            self._adam = torch.optim.Adam([self.theta], fused=fused)
        self._pressure, self._losses = pressure, []

    def update(self, lr: float) -> None:
        """One step of every fit; the host does not wait for it.

        A fit whose loss or slope is not a number goes on by its momentum alone.
        """
        assert self._adam is not None
        with hooks.differentiating(self.model):
            grad = torch.zeros_like(self.theta)
            nll = torch.zeros(len(self.theta), dtype=torch.float32, device=self.theta.device)
            for sign, prompts in zip((1.0, -1.0), self.seen):
                lost, slope = self._loss_and_slope(*prompts.next())
                nll, grad = nll + sign * lost, grad + sign * slope
            push = self.theta.clamp(-self.clamp, self.clamp).mean((1, 2))  # (fit,)
            (slope,) = torch.autograd.grad(push.sum(), self.theta)
            grad = grad - self._pressure * slope
            fine = (nll.isfinite() & grad.isfinite().all(-1).all(-1))[:, None, None]
            grad = torch.where(fine, grad, 0)
            length = grad.square().sum((1, 2), keepdim=True).sqrt()
            # each fit's gradient is clipped alone
            self.theta.grad = grad * (NORM / (length + 1e-6)).clamp(max=1)
            self._adam.param_groups[0]["lr"] = lr
            self._adam.step()
            self._losses.append(torch.stack([nll, -self._pressure * push.detach()]))

    def _loss_and_slope(
        self,
        group: gated_forward.Group,
        chosen: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
    ) -> tuple[Tensor, Tensor]:
        """The mean NLL of the answers' tokens, (fit,), and its slope, (fit, layer, head).

        As many fits, else prompts, run at once as there is room for.
        """
        prompts, rest = chosen.shape[1], int(lengths.max()) - group.prefix
        fits_at_once = max(1, TOKENS // (group.prefix + prompts * rest))
        prompts_at_once = max(1, (TOKENS - group.prefix) // rest)  # of one fit
        if self.model.one_by_one:
            fits_at_once = prompts_at_once = 1
        index = torch.from_numpy(chosen).to(self.theta.device)  # (fit, prompt)
        losses, slopes = [], []
        for start in range(0, len(chosen), fits_at_once):
            rows = index[start : start + fits_at_once]
            theta = self.theta[start : start + fits_at_once].detach().requires_grad_(True)
            tokens = group.batch.counts[rows].sum((1, 2))  # (fit,)
            loss = torch.zeros(len(rows), dtype=torch.float32, device=self.theta.device)
            slope = torch.zeros_like(theta)
            for first in range(0, prompts, prompts_at_once):
                here = rows[:, first : first + prompts_at_once].flatten()
                longest = lengths[start : start + fits_at_once, first : first + prompts_at_once]
                batch = rows_of(group.batch, here, int(longest.max()))
                logits = gated_forward.predictions(self.model, batch, group.prefix, theta.sigmoid())
                log_p = token_log_probability(logits, batch).reshape(len(rows), -1).sum(1)
                nll = -log_p.to(theta.device) / tokens  # (fit,)
                slope = slope + torch.autograd.grad(nll.sum(), theta)[0]
                loss = loss + nll.detach()
            losses.append(loss)
            slopes.append(slope)
        return torch.cat(losses), torch.cat(slopes)

    def kept(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """All that the next updates depend on, as JSON and as arrays."""
        assert self._adam is not None
        adam = self._adam.state[self.theta]
        tensors = {"theta": self.theta.detach(), **adam, "losses": torch.stack(self._losses)}
        arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        waiting = []
        for number, prompts in enumerate(self.seen):
            groups, chosen = prompts.waiting
            waiting.append(groups)
            arrays[f"waiting {number}"] = chosen
        seeds = [rng.bit_generator.state for rng in self.seen[0].seeds]
        return {"seeds": seeds, "waiting": waiting}, arrays

    def go_on(self, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on in a stage that has begun, from what :meth:`kept` gave."""
        assert self._adam is not None
        self._check_kept(facts, arrays)
        with torch.inference_mode(False), torch.no_grad():
            self.theta.copy_(torch.from_numpy(arrays["theta"]))
            for name in ("step", "exp_avg", "exp_avg_sq"):
                state = torch.from_numpy(arrays[name])
                # Adam keeps its step where it was made
                self._adam.state[self.theta][name] = state.to(self.theta.device).clone()
            losses = torch.from_numpy(arrays["losses"]).to(self.theta.device)
        self._losses = list(losses)
        for number, prompts in enumerate(self.seen):
            prompts.waiting = facts["waiting"][number], arrays[f"waiting {number}"]
        for rng, state in zip(self.seen[0].seeds, facts["seeds"]):
            rng.bit_generator.state = state

    def _check_kept(self, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """``ValueError`` where what was kept is of other fits."""
        fits = len(self.theta)
        shapes = dict.fromkeys(("theta", "exp_avg", "exp_avg_sq"), tuple(self.theta.shape))
        shapes |= {"step": (), "losses": (len(arrays["losses"]), 2, fits)}
        for number, prompts in enumerate(self.seen):
            groups, chosen = facts["waiting"][number], arrays[f"waiting {number}"]
            shapes[f"waiting {number}"] = (len(groups), fits, prompts.count)
            for at, rows in zip(groups, chosen):
                if min(at, rows.min()) < 0 or rows.max() >= len(prompts.groups[at].batch.runs):
                    raise ValueError("an update of prompts that are not there")
        check_shapes(arrays, shapes)
        if len(facts["seeds"]) != fits:
            raise ValueError(f"{len(facts['seeds'])} generators of random numbers")

    def gates(self) -> npt.NDArray[np.float32]:
        """The gates as they are, (fit, layer, head), on the host."""
        gates: npt.NDArray[np.float32] = self.theta.detach().sigmoid().cpu().numpy()
        return gates

    def curve(self) -> dict[str, list[float]]:
        """Loss and regulariser of every update of the stage, mean over the fits.

        Updates in which no fit's loss was a number are left out.
        """
        curve: dict[str, list[float]] = {"loss": [], "regulariser": []}
        if not self._losses:
            return curve
        for row in torch.stack(self._losses).cpu().numpy():  # (2, fit)
            finite = np.isfinite(row[0])
            if finite.any():
                for name, losses in zip(curve, row):
                    curve[name].append(round(float(losses[finite].mean()), 6))
        return curve
