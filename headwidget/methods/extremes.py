"""Is a token among the k largest, or smallest, entries of a head's output over the vocabulary? Ranks are counted, never sorted, and most never in full.

A target is among the k largest where fewer than k entries are strictly larger than its own; ties with it do not count against it.

A head's map has rank head_dim, so W_O is folded into the unembedding of a sample of the vocabulary, once a head: a target with k larger and k smaller
entries there (by more than rounding) has them in the whole vocabulary too, and is settled. What is left, a few in a hundred, is counted over all of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

SAMPLE = 8192
"""How many tokens settle most targets: fewer leave more to be counted in full."""
SLACK = 1e-4
"""What counts as rounding, as a share of the largest logit that a head could give."""


def extremes(
    x: Tensor, w_o: Tensor, u: Tensor, targets: Tensor, k: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    """For each head and pair, 1.0 where the target is among the ``k`` largest, and the same for the smallest, (head, pair); NaN where its logit is none.

    ``x`` is (head, pair, head_dim), ``w_o`` (head, head_dim, width), ``u`` (vocabulary, width), ``targets`` and ``k`` (pair,). No tensor of more
    than ``chunk`` numbers is made, where that has room for one row.
    """
    found = torch.zeros(2, *x.shape[:2], device=x.device)
    left = _open(x, w_o, u, targets, k, chunk).nonzero()  # (row, 2)
    for at in torch.split(left, max(1, chunk // len(u))) if len(left) else ():
        logits = _logits(at, x, w_o, u, chunk)  # (row, vocabulary)
        heads, pairs = at.T
        own = logits.gather(1, targets[pairs, None])  # (row, 1)
        beaten = torch.stack([_count(logits > own), _count(logits < own)]) < k[pairs]  # (2, row)
        found[:, heads, pairs] = torch.where(own.T.isnan(), torch.nan, beaten.float())
    return found[0], found[1]


def _open(x: Tensor, w_o: Tensor, u: Tensor, targets: Tensor, k: Tensor, chunk: int) -> Tensor:
    """(head, pair): True where a sample of the vocabulary does not settle it."""
    left = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    size = max(1, min(SAMPLE, chunk // max(u.shape[1], x.shape[1])))
    if len(u) <= 2 * size:
        return left
    sample, own = (
        u[:: -(-len(u) // size)].to(x.dtype),
        u[targets].to(x.dtype),
    )  # (token, width), (pair, width)
    for h in range(len(w_o)):
        out = w_o[h].to(x.dtype)
        folded, target = sample @ out.T, own @ out.T  # (token, head_dim), (pair, head_dim)
        for few in (
            folded[::32],
            folded[::4],
            folded,
        ):  # most are settled by a small part of the sample
            at = left[h].nonzero()[:, 0]
            left[h, at] = _unsettled(x[h, at], few, target[at], k[at])
    return left


def _unsettled(values: Tensor, folded: Tensor, target: Tensor, k: Tensor) -> Tensor:
    """(pair,): True where fewer than k of the folded tokens are larger than the target by more than rounding, or fewer than k smaller."""
    logit = (values * target).sum(1, keepdim=True)
    largest = torch.maximum(folded.norm(dim=1).max(), target.norm(dim=1, keepdim=True))
    slack = SLACK * values.norm(dim=1, keepdim=True) * largest  # (pair, 1)
    logits = values @ folded.T  # (pair, token)
    return (_count(logits > logit + slack) < k) | (_count(logits < logit - slack) < k)


def _logits(at: Tensor, x: Tensor, w_o: Tensor, u: Tensor, chunk: int) -> Tensor:
    """What the heads of ``at`` (row of head and pair, heads in order) write for those pairs, projected in full, (row, vocabulary)."""
    heads, counts = torch.unique_consecutive(at[:, 0], return_counts=True)
    written = torch.cat(
        [
            x[h, pairs] @ w_o[h].to(x.dtype)
            for h, pairs in zip(heads.tolist(), torch.split(at[:, 1], counts.tolist()))
        ]
    )  # (row, width)
    logits = x.new_empty(len(at), len(u))
    start = 0
    for tokens in torch.split(u, max(1, chunk // u.shape[1])):
        torch.mm(written, tokens.to(x.dtype).T, out=logits[:, start : start + len(tokens)])
        start += len(tokens)
    return logits


def _count(true: Tensor) -> Tensor:
    return true.sum(1, dtype=torch.int32)
