"""Ablation and slopes by plain loops that share no code with the engine.

One prompt at a time, unpadded, without a cache, all logits; a hook of the test's own behind
all others, so that z is what the output projection receives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import headwidget as hw
from headwidget.scoring.encode import Encoded, encode

Change = Callable[[torch.Tensor, Encoded], torch.Tensor]
"""Makes other heads' outputs, (1, seq, head, dim), of a prompt's."""


def log_p(model: hw.Model, example: Encoded, changes: dict[int, Change]) -> float:
    """log p(answer) with the heads of some layers changed."""
    handles = []
    for row, change in changes.items():
        layer, calls = model.layers[row], itertools.count()

        def before(
            _: Any, args: Any, change: Change = change, layer: Any = layer, calls: Any = calls
        ) -> Any:
            if next(calls) % layer.turns != layer.turn:  # layers that share their modules
                return None
            z = args[0].reshape(*args[0].shape[:-1], layer.heads, layer.head_dim)
            return (change(z, example).reshape(args[0].shape), *args[1:])

        handles.append(layer.projection.register_forward_pre_hook(before))
    try:
        inputs = {"input_ids": torch.tensor([example.ids])}
        if example.source:
            source = torch.tensor([example.source])
            inputs = {"input_ids": source, "decoder_input_ids": inputs["input_ids"]}
        if example.media is not None:
            fed = {} if model.classifier else inputs
            inputs = {**fed, **example.media.tensors}
            for name, numbers in example.media.by_token.items():
                more = torch.zeros(1, len(example.ids) - numbers.shape[1], dtype=torch.long)
                inputs[name] = torch.cat([numbers, more], 1)
        with torch.no_grad():
            logits = model.module(**inputs).logits[0].double()
            logits = logits[None] if model.classifier else logits  # it answers once
    finally:
        for handle in handles:
            handle.remove()
    at_answer = logits[list(example.at)].log_softmax(-1)
    return float(at_answer[range(len(example.answer)), list(example.answer)].sum())


def heads_outputs(model: hw.Model, example: Encoded) -> list[torch.Tensor]:
    """z of every layer, (1, seq, head, dim)."""
    outputs: dict[int, torch.Tensor] = {}

    def keep(row: int) -> Change:
        def change(z: torch.Tensor, _: Encoded) -> torch.Tensor:
            outputs[row] = z.clone()
            return z

        return change

    log_p(model, example, {row: keep(row) for row in range(len(model.layers))})
    return [outputs[row] for row in range(len(model.layers))]


def ablation_by_loop(
    model: hw.Model, task: hw.Task, *, where: str = "all", replace: str = "zero"
) -> np.ndarray:
    """One forward a head and a prompt, (prompt, layer, head)."""
    examples = encode(task, model).examples
    chosen: list[Any] = [list(e.at) if where == "last" else slice(None) for e in examples]
    fills = [torch.zeros(layer.heads, layer.head_dim) for layer in model.layers]
    if replace == "mean":
        outputs = [heads_outputs(model, example) for example in examples]
        for row in range(len(fills)):
            z = torch.cat([of[row][0, at].float() for of, at in zip(outputs, chosen)])
            fills[row] = z.mean(0)  # (head, dim)
    scores = np.zeros((len(examples), *model.shape))
    for i, example in enumerate(examples):
        base = log_p(model, example, {})
        for row, head in np.ndindex(model.shape):

            def off(z: torch.Tensor, e: Encoded, row: int = row, head: int = head) -> torch.Tensor:
                z = z.clone()
                z[:, chosen[examples.index(e)], head] = fills[row][head].to(z.dtype)
                return z

            scores[i, row, head] = base - log_p(model, example, {row: off})
    return scores


def slopes_by_steps(model: hw.Model, task: hw.Task, step: float = 1e-2) -> np.ndarray:
    """d log p / d gate by central differences, (prompt, layer, head)."""
    examples = encode(task, model).examples
    scores = np.zeros((len(examples), *model.shape))
    for i, example in enumerate(examples):
        for row, head in np.ndindex(model.shape):
            ends = []
            for gate in (1 + step, 1 - step):

                def gated(
                    z: torch.Tensor, _: Encoded, gate: float = gate, head: int = head
                ) -> torch.Tensor:
                    z = z.clone()
                    z[:, :, head] *= gate
                    return z

                ends.append(log_p(model, example, {row: gated}))
            scores[i, row, head] = (ends[0] - ends[1]) / (2 * step)
    return scores
