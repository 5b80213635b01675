"""Relations: all twenty on the embedded model's heads, against the loop that projects each
head's full-width output to the vocabulary and takes top-k.

The loop would take many minutes for all heads, so it is measured on one head of each of
a few layers, and scaled; our side on every head of the same layers. Both read the same
pairs in the same run, and their scores are compared.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import headwidget as hw
from benchmarks.timing import Row, seconds, timed
from headwidget.methods.relations import Pairs, Relations, encode, rule
from headwidget.models import Layer, Model, hooks, weights

LAYERS = (0, 11, 23, 29)
"""The layers that are measured: 23 is the one with the most hits, which costs our side most."""
HEAD = 4
ROUNDS = 2
AT_ONCE = 256
"""Pairs that the loop projects at a time; one by one it would be slower still."""


def rows() -> list[Row]:
    model, options = hw.load(), Relations()
    tasks = encode(hw.tasks.suite("relations"), model, options, 0)
    pairs = {task.name: [(e.ids[0], e.answer[0]) for e in task.examples] for task in tasks}
    with hooks.scoring(model):
        k = []
        for task_pairs in pairs.values():
            task_k = rule(options, len(weights.unembedding(model)), task_pairs)
            k += [task_k] * len(task_pairs)
        every = Pairs.of(model, list(itertools.chain(*pairs.values())), k, options)
        ratios, ours_took, loop_took, differ = _against_the_loop(model, every)
        heads, depth = model.n_heads, len(model.layers)
        print(
            f"{len(tasks)} relations, {len(k)} pairs: a head takes "
            f"{statistics.median(ours_took):.3f} s, "
            f"by the loop {statistics.median(loop_took):.2f} s; "
            f"all {heads * depth} heads {statistics.mean(ours_took) * heads * depth:.0f} s, "
            f"by the loop {statistics.mean(loop_took) * heads * depth:.0f} s "
            f"(scaled from {len(LAYERS)} layers, the loop from {len(LAYERS)} heads). "
            f"Scores that differ: {differ} of {2 * len(k) * len(LAYERS)}.\n"
        )
        _growth(model, every)
    return [
        Row(
            "relations: the full projection with top-k / ours, all 20 relations, a head",
            ratios,
            at_least=5.0,
        )
    ]


def _against_the_loop(
    model: Model, every: Pairs
) -> tuple[list[float], list[float], list[float], int]:
    ratios, ours_took, loop_took, differ = [], [], [], 0
    for _ in range(ROUNDS):
        ours, loop = [], []
        for row in LAYERS:
            layer = model.layers[row]
            took, hits = timed(partial(every.hits, layer))
            ours.append(took / layer.heads)
            took, looped = timed(partial(the_loop, model, every, row, HEAD))
            loop.append(took)
            differ += int((hits[..., HEAD] != looped).sum())
        ratios.append(sum(loop) / sum(ours))
        ours_took += ours
        loop_took += loop
    return ratios, ours_took, loop_took, differ // ROUNDS


def the_loop(model: Model, every: Pairs, row: int, head: int) -> Tensor:
    """Hits and suppressions of one head by the definition, (2, pair)."""
    layer = model.layers[row]
    e = every.above if row else every.at_first
    w_v, w_o, u = (
        weights.values(model, layer).weight[head // (layer.heads // model.n_kv_heads)],
        layer.w_o()[head],
        every.u,
    )
    hits = []
    for chosen in torch.split(torch.arange(len(every.source)), AT_ONCE):
        logits = e[every.source[chosen]] @ w_v @ w_o @ u.T  # (pair, vocabulary)
        most = int(every.k[chosen].max())
        hit = [
            _among(
                logits.topk(most, largest=largest).indices, every.target[chosen], every.k[chosen]
            )
            for largest in (True, False)
        ]
        hits.append(torch.stack(hit))
    return torch.cat(hits, dim=1)


def _among(top: Tensor, target: Tensor, k: Tensor) -> Tensor:
    return ((top == target[:, None]) & (torch.arange(top.shape[1]) < k[:, None])).any(1).float()


def _all_hits(pairs: Pairs, layers: list[Layer]) -> None:
    for layer in layers:
        pairs.hits(layer)


def _growth(model: Model, every: Pairs) -> None:
    """Seconds for more heads, and for more pairs."""
    layers = [model.layers[row] for row in (5, 10, 15, 20)]
    print("| layers of 9 heads | " + " | ".join(str(n) for n in (1, 2, 4)) + " |")
    print("|---|---|---|---|")
    took = [_best(partial(_all_hits, every, layers[:n])) for n in (1, 2, 4)]
    print("| seconds | " + " | ".join(f"{best:.2f}" for best in took) + " |\n")
    counts = [len(every.source) // 4, len(every.source) // 2, len(every.source)]
    order = torch.randperm(len(every.source), generator=torch.Generator().manual_seed(0))
    print("| pairs, 18 heads | " + " | ".join(str(n) for n in counts) + " |")
    print("|---|---|---|---|")
    took = [_best(partial(_all_hits, subset(every, order[:n]), layers[:2])) for n in counts]
    print("| seconds | " + " | ".join(f"{best:.2f}" for best in took) + " |\n")


def subset(every: Pairs, chosen: Tensor) -> Pairs:
    return Pairs(
        every.model,
        every.u,
        every.at_first,
        every.above,
        every.source[chosen],
        every.target[chosen],
        every.k[chosen],
        every.options,
    )


def _best(run: Callable[[], object]) -> float:
    return min(seconds(run) for _ in range(ROUNDS))
