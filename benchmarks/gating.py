"""Gating beside nam-causal-head-gating: the same model, start, prompts, masks and updates;
updates a second, loss curve, and peak memory.

The peer would run in bfloat16 on a CPU, which is several times slower there; it runs in
float32 here, as we do. It clips the gradient of all fits as one, we that of each:
clipping is off on both sides, so that the curves can be compared. Adam's first steps go
by the sign of a slope, so where one is nearly zero the last digit decides; at the
published learning rate of 1, a gate moves all the way in a few such steps, and two runs
of anything part after some three updates. So our loss is compared at the peer's own
gates, update by update, and once more left to run, at a learning rate that does not
blow digits up.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch

import headwidget as hw
from benchmarks.memory import measured
from benchmarks.timing import Row, seconds
from benchmarks.workload import workloads
from headwidget.methods import gate_fits
from headwidget.methods.gate_fits import Fits, Prompts
from headwidget.scoring.encode import EncodedTask

PROMPTS, FITS, UPDATES, ROUNDS = 8, 4, 2, 4
PRESSURE, CLAMP = 0.1, 4.0
LR, SMALL_LR, FREE = 1.0, 0.02, 8


def rows() -> list[Row]:
    model = hw.load()
    table = []
    names = ("prompts share nothing", "few-shot prompts with a 40-token prefix")
    for what, work, least in zip(names, workloads(model), (1.2, 2.0)):
        ratios, apart = against_peer(model, work)
        table.append(
            Row(
                f"nam-causal-head-gating's time / ours, {PROMPTS} prompts x {FITS} fits, {what}",
                ratios,
                at_least=least,
            )
        )
        table.append(
            Row(
                "our loss apart from the peer's, "
                f"at the gates of its {ROUNDS * UPDATES} updates, at most",
                [apart],
                at_most=1e-3,
            )
        )
        how = f"both left to run for {FREE} updates at a learning rate of {SMALL_LR}"
        table.append(
            Row(
                f"our loss apart from the peer's, {how}, at most",
                [left_to_run(model, work)],
                at_most=1e-3,
            )
        )
    ours, theirs = (measured(call) for call in ("gating", "gating peer"))
    table.append(
        Row(
            f"gating: its peak memory above the loaded model ({ours:.0f} MB) "
            f"/ the peer's ({theirs:.0f} MB)",
            [ours / theirs],
        )
    )
    return table


def against_peer(model: hw.Model, work: EncodedTask) -> tuple[list[float], float]:
    """Both in turn, a few updates at a time; how many times as long the peer takes, and
    how far the losses are apart."""
    examples = work.examples[:PROMPTS]
    peer, gates = peer_of(model, examples)
    fits = ours(model, examples, gates())
    losses: list[float] = []
    passed: list[torch.Tensor] = []  # the gates of every update of the peer's

    def step() -> None:
        passed.append(gates())
        losses.append(peer())

    def follow() -> None:
        for at in passed[-UPDATES:]:
            with torch.no_grad():
                fits.theta.copy_(at)
            fits.update(LR)

    ratios = []
    for turn in range(ROUNDS):
        theirs = seconds(lambda: [step() for _ in range(UPDATES)])
        with mock.patch.object(gate_fits, "NORM", math.inf):
            taken = seconds(follow)
        if turn:  # the first round sets things up
            ratios.append(theirs / taken)
    return ratios, float(np.abs(np.array(losses) - np.array(fits.curve()["loss"])).max())


def left_to_run(model: hw.Model, work: EncodedTask) -> float:
    """How far the two loss curves are apart at most, from the same start, each by its own gates."""
    examples = work.examples[:PROMPTS]
    peer, gates = peer_of(model, examples, SMALL_LR)
    fits = ours(model, examples, gates())
    losses = [peer() for _ in range(FREE)]
    with mock.patch.object(gate_fits, "NORM", math.inf):
        for _ in range(FREE):
            fits.update(SMALL_LR)
    return float(np.abs(np.array(losses) - np.array(fits.curve()["loss"])).max())


def ours(model: hw.Model, examples: Any, start: torch.Tensor) -> Fits:
    seeds = [np.random.default_rng(i) for i in range(FITS)]
    fits = Fits(model, [Prompts(model, examples, PROMPTS, seeds, False)], start, CLAMP)
    fits.begin(PRESSURE)
    return fits


def peer_of(
    model: hw.Model, examples: Any, lr: float = LR
) -> tuple[Callable[[], float], Callable[[], torch.Tensor]]:
    """A function that does one update and gives its NLL, and one that gives its gates'
    logits, (fit, layer, head)."""
    from causal_head_gating import CHGTrainer, MaskedSequenceDataset

    ids = torch.tensor([[*e.ids, *e.answer] for e in examples])
    masks = torch.zeros_like(ids, dtype=torch.bool)
    masks[:, -1] = True
    model.module.requires_grad_(False)
    data = MaskedSequenceDataset(pad_token_id=-1, input_ids=ids, loss_masks=masks)
    trainer = CHGTrainer(
        model.module,
        data,
        num_masks=FITS,
        batch_size=PROMPTS,
        l1_weight=PRESSURE,
        l1_clamp=CLAMP,
        grad_norm=None,
        lr_reg=lr,
    )
    torch.manual_seed(0)
    with torch.no_grad():
        start = torch.rand(FITS, *model.shape).logit(1e-6).clamp(-CLAMP, CLAMP)
        trainer.mask_logits_pos.copy_(start)
    going = trainer.fit_stage("positive", 10_000, show_progress=False)
    real, seen = trainer._get_loss, []

    def loss(
        *args: Any,
    ) -> Any:  # what it reports after an update is 0: its sum is reset before it is read
        losses = real(*args)
        seen.append(float(losses[1]))
        return losses

    def update() -> float:
        with (
            mock.patch("torch.amp.autocast", lambda *_: contextlib.nullcontext()),
            mock.patch.object(trainer, "_get_loss", loss),
        ):
            next(going)
        return seen[-1]

    return update, lambda: trainer.mask_logits_pos.detach().clone()
