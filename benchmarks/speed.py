"""Speed against a plain forward, against one forward per head, and beside TransformerLens."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import torch

import headwidget as hw
from benchmarks.timing import Row, against, seconds
from benchmarks.workload import batch_of, forward_without, plain_forward, workloads
from headwidget.models import Model, embedded, hooks
from headwidget.scoring import registry
from headwidget.scoring.contract import Job
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.replay import Replay

ROUNDS = 3


def rows() -> list[Row]:
    model = hw.load()
    alone, few_shot = workloads(model)
    return [*one_pass(model, alone), *ablation(model, alone, few_shot), *lens(model, alone)]


def one_pass(model: Model, work: EncodedTask) -> list[Row]:
    """What costs about a forward."""
    ids = batch_of(model, work).ids

    def read() -> None:
        with hooks.read(model, lambda row, z: None):
            plain_forward(model, ids)

    def score(name: str) -> None:
        method = registry.find(name)
        list(method.run(Job(model, (work,), len(work.examples), method.options())))

    calls = {
        "read": read,
        "attribution": lambda: score("attribution"),
        "gradient": lambda: score("gradient"),
    }
    ratios = against(lambda: plain_forward(model, ids), calls)
    return [
        Row("hooks that read every head / plain forward, 32 x 32 tokens", ratios["read"]),
        Row("attribution / plain forward", ratios["attribution"], at_most=1.15),
        Row("gradient / plain forward", ratios["gradient"], at_most=2.0),
    ]


def ablation(model: Model, alone: EncodedTask, few_shot: EncodedTask) -> list[Row]:
    """All heads of all layers against one forward per head.

    A round does every third layer, and plain steps at as many depths.
    """
    plain: list[float] = []
    ours: list[float] = []
    shared: list[float] = []
    for work, ratios in ((alone, ours), (few_shot, shared)):
        ids = batch_of(model, work).ids
        plain_forward(model, ids)
        for turn in range(ROUNDS):
            steps = [
                (row, (row + turn) % model.n_heads) for row in range(turn, len(model.layers), 3)
            ]
            took = [seconds(partial(forward_without, model, ids, *step)) for step in steps]
            loop = float(np.mean(took)) * model.shape[0] * model.shape[1]
            one_forward = float(
                np.median([seconds(partial(plain_forward, model, ids)) for _ in range(3)])
            )
            # the walk is paid in every round
            taken = seconds(partial(every_third, model, work, turn)) * ROUNDS
            ratios.append(loop / taken)
            if work is alone:
                plain.append(loop / one_forward)
    return [
        Row("one forward per head, all 270 heads / plain forward", plain),
        Row("one forward per head / ablation, prompts share nothing", ours, at_least=2.3),
        Row(
            "one forward per head / ablation, few-shot prompts with a 40-token prefix",
            shared,
            at_least=6,
        ),
    ]


def every_third(model: Model, work: EncodedTask, turn: int) -> None:
    replay = Replay(model, range(len(work.examples)), work.examples)
    with hooks.scoring(model):
        for row in range(len(model.layers)):
            layer = replay.step()
            if row % ROUNDS == turn:
                replay.without(range(layer.heads))


def lens(model: Model, work: EncodedTask) -> list[Row]:
    """TransformerLens on the same weights and prompts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformer_lens.model_bridge import TransformerBridge

        peer: Any = TransformerBridge.boot_transformers(str(embedded.folder()), device="cpu")
    ids = batch_of(model, work).ids

    def off(value: torch.Tensor, hook: object) -> torch.Tensor:
        value = value.clone()
        value.view(*ids.shape, model.n_heads, model.head_dim)[:, :, 0] = 0
        return value

    @torch.inference_mode()
    def cached(names: Any = None) -> None:
        peer.run_with_cache(ids, names_filter=names)

    @torch.inference_mode()
    def without() -> None:
        peer.run_with_hooks(ids, fwd_hooks=[("blocks.3.attn.hook_z", off)])

    calls = {
        "z": lambda: cached(lambda name: name.endswith("hook_z")),
        "all": cached,
        "hooks": without,
    }
    ratios = against(lambda: plain_forward(model, ids), calls, rounds=ROUNDS)
    heads = model.shape[0] * model.shape[1]
    return [
        Row("TransformerLens, cache of every head's z / plain forward", ratios["z"]),
        Row("TransformerLens, cache of everything / plain forward", ratios["all"]),
        Row(
            "TransformerLens, run_with_hooks for all 270 heads / plain forward",
            [r * heads for r in ratios["hooks"]],
        ),
    ]
