"""Relations and attention patterns by plain loops, from weights and one prompt at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwidget.scoring.encode import Encoded
from tests.support.places import attention_layers, submodule
from tests.support.plain_loops import Plain, as_matrix, offset, unhooked

# ---- relations ----


@torch.no_grad()
def hits(plain: Plain, pairs: Sequence[tuple[int, int]], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Is the target among the k largest entries of e W_V W_O U? (pair, layer, head), and where
    rounding could decide it."""
    held = plain.held
    embedding, unembedding = plain.part("embedding"), plain.part("unembedding")
    with unhooked(embedding):
        e = embedding(torch.tensor([source for source, _ in pairs]))
    width = e.shape[-1]
    u = as_matrix(unembedding, width)
    above = _first_mlp(plain, e).double()
    groups = getattr(held.base.config, "num_key_value_heads", None) or plain.heads
    hit = np.zeros((len(pairs), *plain.shape))
    unsure = np.zeros((len(pairs), *plain.shape), bool)
    for row, index in enumerate(attention_layers(held.base, held.places)):
        read = above if index else e.double()
        value = plain.part("value", row)
        w_v, bias = as_matrix(value, width), offset(value, width)
        out = as_matrix(plain.projections[row], plain.z_width())
        dim = out.shape[0] // plain.heads
        for pair, (_, target) in enumerate(pairs):
            values = _values(read[pair] @ w_v + bias, plain, groups, dim)  # (group, dim)
            for head in range(plain.heads):
                x = values[head // (plain.heads // groups)]
                logits = x @ out[head * dim : (head + 1) * dim] @ u
                slack = 1e-4 * float(logits.abs().max())
                larger = int((logits > logits[target]).sum())
                hit[pair, row, head] = larger < k
                surely = int((logits > logits[target] + slack).sum())
                perhaps = int((logits > logits[target] - slack).sum()) - 1
                unsure[pair, row, head] = (surely < k) != (perhaps < k)
    return hit, unsure


def _values(flat: Tensor, plain: Plain, groups: int, dim: int) -> Tensor:
    """The values (group, dim) among what the projection gives."""
    packed = plain.held.places.packed
    if packed == "blocks":  # all queries, all keys, all values
        return flat[(plain.heads + groups) * dim :].reshape(groups, dim)
    if packed == "groups":  # of each head: query, key, value
        return flat.reshape(groups, 3, dim)[:, 2]
    return flat.reshape(groups, dim)


def _first_mlp(plain: Plain, e: Tensor) -> Tensor:
    """Layer 0's MLP of layer 0's norm of e (row, width)."""
    held = plain.held
    block = submodule(held.base, f"{held.places.blocks}.0")
    names = [*([held.places.mlp_norm] if held.places.mlp_norm else []), *held.places.mlp]
    x: Any = e[None]
    with ExitStack() as stack:
        stack.enter_context(unhooked(block))
        for name in names:
            part = block.get_submodule(name)
            bloom = type(part).__name__ == "BloomMLP"  # adds the stream itself
            x = part(x, torch.zeros_like(x)) if bloom else part(x)
            x = x[0] if isinstance(x, tuple) else x
    rows: Tensor = x[0]
    return rows


# ---- patterns ----


@torch.no_grad()
def attention(plain: Plain, example: Encoded) -> list[Tensor]:
    """Attention weights of every layer, (head, query, key), as eager attention returns them."""
    weights: list[Tensor] = []

    def see(_: Any, args: Any, out: Any) -> None:
        weights.append(out[1][0].double())

    with ExitStack() as stack:
        stack.enter_context(_eager(plain.held.base))
        for row in range(plain.shape[0]):
            handle = plain.part("attention", row).register_forward_hook(see)
            stack.callback(handle.remove)
        plain.run(example.ids)
    return weights


@contextmanager
def _eager(base: Any) -> Iterator[None]:
    before = base.config._attn_implementation
    base.set_attn_implementation("eager")
    try:
        yield
    finally:
        base.set_attn_implementation(before)


def pattern(name: str, example: Encoded, weights: Tensor, encoder: bool) -> float:
    """One head's score on one prompt, from its weights (query, key)."""
    count = len(example.ids)
    if name == "Entropy":
        total = 0.0
        for query in range(2, count):
            p = weights[query] / weights[query].sum()
            entropy = -sum(float(x) * math.log(float(x)) for x in p if x > 0)
            total += entropy / math.log(count if encoder else query + 1)
        return total / (count - 2)
    cells = _cells(name, example, encoder)
    queries = {query for query, _ in cells}
    return sum(float(weights[query, key]) for query, key in cells) / len(queries)


def _cells(name: str, example: Encoded, encoder: bool) -> list[tuple[int, int]]:
    ids, count = example.ids, len(example.ids)
    cells: list[tuple[int, int]] = []
    for query in range(count):
        if query >= 2 and name in ("Previous token", "Current token", "First token"):
            key = {"Previous token": query - 1, "Current token": query, "First token": 0}[name]
            cells.append((query, key))
        for key in range(count):
            if name == "Duplicate token" and min(query, key) > 0 and query != key:
                masked = encoder and (query in example.at or key in example.at)
                if ids[query] == ids[key] and not masked and (encoder or key < query):
                    cells.append((query, key))
            earlier = [i for i in range(query) if ids[i] == ids[query]]
            if name == "Induction" and earlier and key == earlier[-1] + 1:
                cells.append((query, key))
    if name == "Retrieval":
        size, end = len(example.answer), count if encoder else example.at[0] + 1
        for start in range(1, end - size + 1):
            if ids[start : start + size] == example.answer:
                cells += [(at, start + i) for i, at in enumerate(example.at)]
    return cells
