"""The probe's classifier, its training, and each head's part in a logit.

A map shared by all heads, then one hidden layer. In float32, with a random state of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, eq=False)
class Features:
    """What the probe reads: each head's z, and the mean over the heads of its layer.

    The mean is kept once a layer.
    """

    z: Tensor  # (example, layer, head, dim)
    mean: Tensor  # (example, layer, dim)

    @classmethod
    def of(cls, z: Tensor) -> Features:
        return cls(z, z.mean(2))

    def at(self, chosen: Tensor) -> Features:
        """Those of the chosen examples."""
        return Features(self.z[chosen], self.mean[chosen])

    def standardised(self, train: Tensor) -> Features:
        """Each number less its mean over the ``train`` examples, over its spread there.

        A number that is the same in all of them becomes 0.
        """
        return Features(_standardised(self.z, train), _standardised(self.mean, train))


def _standardised(x: Tensor, train: Tensor) -> Tensor:
    seen = x[train]
    mean, spread = seen.mean(0), seen.std(0, unbiased=False)
    varies = spread > 1e-6 * seen.abs().amax(0)  # what is left below is rounding
    return torch.where(varies, (x - mean) / torch.where(varies, spread, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class Classifier:
    """2 * dim -> units, the same map for every head; then -> hidden, ReLU, dropout -> tasks."""

    from_head: Tensor  # (units, dim): the part of the shared map that reads a head's z
    from_layer: Tensor  # (units, dim): the part that reads the mean of its layer
    offset: Tensor  # (units,)
    inner: Tensor  # (hidden, layer * head * units)
    inner_offset: Tensor  # (hidden,)
    outer: Tensor  # (task, hidden)
    outer_offset: Tensor  # (task,)

    @classmethod
    def drawn(
        cls,
        shape: tuple[int, int, int],
        units: int,
        hidden: int,
        tasks: int,
        random: torch.Generator,
        device: torch.device,
    ) -> Classifier:
        """Random weights, uniform within 1 / sqrt(inputs) as ``torch.nn.Linear`` draws them.

        ``shape`` is the heads' (layer, head, dim).
        """
        layers, heads, dim = shape

        def even(inputs: int, *size: int) -> Tensor:
            return ((torch.rand(size, generator=random) * 2 - 1) / math.sqrt(inputs)).to(device)

        both, wide = 2 * dim, layers * heads * units
        shared = even(both, units, dim), even(both, units, dim), even(both, units)
        return cls(
            *shared,
            even(wide, hidden, wide),
            even(wide, hidden),
            even(hidden, tasks, hidden),
            even(hidden, tasks),
        )

    def weights(self) -> list[Tensor]:
        return [
            self.from_head,
            self.from_layer,
            self.offset,
            self.inner,
            self.inner_offset,
            self.outer,
            self.outer_offset,
        ]

    def copy(self) -> Classifier:
        return Classifier(*(w.detach().clone() for w in self.weights()))

    def units(self, x: Features) -> Tensor:
        """What the shared map makes of every head, (example, layer * head * units)."""
        return (
            x.z @ self.from_head.T + (x.mean @ self.from_layer.T + self.offset)[:, :, None]
        ).flatten(1)

    def before_relu(self, units: Tensor) -> Tensor:
        """The hidden layer before its ReLU, (example, hidden)."""
        return F.linear(units, self.inner, self.inner_offset)

    def logits(self, x: Features, keep: Tensor | None = None) -> Tensor:
        """(example, task); ``keep`` (example, hidden) is the dropout of one training step."""
        hidden = torch.relu(self.before_relu(self.units(x)))
        return F.linear(hidden if keep is None else hidden * keep, self.outer, self.outer_offset)

    def importance(self, x: Features, task: Tensor) -> Tensor:
        """Each head's part in the logit of the example's ``task``, (example, layer, head).

        It is the mean over the head's units of slope * unit; ``task`` is (example,). The
        classifier is linear wherever the ReLU does not switch, so the slope is a product of
        weights. Summed over all units, slope * unit is the logit but for the offsets:
        ``logit_c - outer_offset_c - sum of outer_c * inner_offset over the units that are on``.
        """
        units = self.units(x)
        on = (self.before_relu(units) > 0).to(units.dtype)
        slope = (self.outer[task] * on) @ self.inner  # (example, layer * head * units)
        return (slope * units).reshape(*x.z.shape[:3], -1).mean(-1)


@dataclass(frozen=True)
class Training:
    """How a classifier is fitted."""

    units: int
    hidden: int
    lr: float
    epochs: int
    """At most; all of them where there is no validation split."""
    minibatch: int
    dropout: float = 0.3
    patience: int = 40
    """Stop once so many steps brought the validation loss no further down …"""
    better: float = 0.01
    """… by at least this share of it."""
    enough: float = 0.001
    """Stop once the validation loss is this low: more epochs only make all logits larger."""


def fit(
    x: Features,
    y: Tensor,
    train: Tensor,
    validation: Tensor,
    tasks: int,
    how: Training,
    seed: int,
    note: Callable[[int], None] = lambda epoch: None,
) -> tuple[Classifier, int]:
    """A classifier fitted on the ``train`` examples, and the epoch of its best validation loss.

    Without a validation split that is the last epoch. The same seed gives the same
    classifier; the caller's random state is left alone. The host waits for the device once an
    epoch.
    """
    device = y.device
    draw, drop = torch.Generator().manual_seed(seed), torch.Generator(device).manual_seed(seed)
    with torch.inference_mode(False), torch.enable_grad():
        classifier = Classifier.drawn((*x.z.shape[1:],), how.units, how.hidden, tasks, draw, device)
        for weight in classifier.weights():
            weight.requires_grad_(True)
        adam = torch.optim.AdamW(
            classifier.weights(), lr=how.lr, fused=device.type in ("cpu", "cuda")
        )
        seen = x.at(validation)
        best, best_loss, best_epoch = classifier, math.inf, how.epochs
        mark, steps = math.inf, 0  # the loss when it was last clearly lower, and the steps since
        for epoch in range(1, how.epochs + 1):
            order = train[torch.randperm(len(train), generator=draw).to(device)]
            for batch in torch.split(order, how.minibatch):
                drawn = torch.rand(len(batch), how.hidden, generator=drop, device=device)
                keep = (drawn >= how.dropout) / (1 - how.dropout)
                loss = F.cross_entropy(classifier.logits(x.at(batch), keep), y[batch])
                adam.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
                steps += 1
            note(epoch)
            if len(validation):
                with torch.no_grad():
                    now = float(F.cross_entropy(classifier.logits(seen), y[validation]).cpu())
                if now < best_loss:
                    best, best_loss, best_epoch = classifier.copy(), now, epoch
                if now < mark * (1 - how.better):
                    mark, steps = now, 0
                elif steps >= how.patience:
                    break
                if now < how.enough:
                    break
        return best.copy() if best is classifier else best, best_epoch
