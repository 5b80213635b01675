"""Is a token among the k largest, or smallest, entries of a head's output over the vocabulary?

A target is among the k largest where fewer than k entries are strictly larger than its own;
ties do not count against it. Ranks are counted, never sorted.

A head's map has rank head_dim, so W_O is folded into the unembedding of a sample of the
vocabulary, once a head. A target with k larger and k smaller entries in the sample (by more
than rounding) has them in the whole vocabulary too, and is settled. What is left, a few in a
hundred, is counted over the whole vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

SAMPLE = 8192
"""Tokens in the sample: fewer would leave more targets to be counted in full."""
SLACK = 1e-4
"""What counts as rounding, as a share of the largest logit that a head could give."""


def extremes(
    x: Tensor, w_o: Tensor, u: Tensor, targets: Tensor, k: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    """Whether each target is among the ``k`` largest, and among the smallest, (head, pair).

    1.0 where it is, NaN where its logit is NaN. ``x`` is (head, pair, head_dim), ``w_o``
    (head, head_dim, width), ``u`` (vocabulary, width), ``targets`` and ``k`` (pair,). No
    tensor has more than ``chunk`` numbers, where that has room for one row.
    """
    with torch.autocast(x.device.type, enabled=False):  # these are weights, not the model's run
        return _extremes(x, w_o, u, targets, k, chunk)


def _extremes(
    x: Tensor, w_o: Tensor, u: Tensor, targets: Tensor, k: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    among = torch.zeros(2, *x.shape[:2], dtype=torch.float32, device=x.device)
    unsettled = _open(x, w_o, u, targets, k, chunk).nonzero()  # (row, 2)
    for at in torch.split(unsettled, max(1, chunk // len(u))) if len(unsettled) else ():
        logits = _logits(at, x, w_o, u, chunk)  # (row, vocabulary)
        heads, pairs = at.T
        target = logits.gather(1, targets[pairs, None])  # (row, 1)
        beyond = torch.stack([_count(logits > target), _count(logits < target)])  # (2, row)
        is_among = (beyond < k[pairs]).float()
        among[:, heads, pairs] = torch.where(target.T.isnan(), torch.nan, is_among)
    return among[0], among[1]


def _open(x: Tensor, w_o: Tensor, u: Tensor, targets: Tensor, k: Tensor, chunk: int) -> Tensor:
    """(head, pair): True where a sample of the vocabulary does not settle it."""
    left = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    size = max(1, min(SAMPLE, chunk // max(u.shape[1], x.shape[1])))
    if len(u) <= 2 * size:
        return left
    sample = u[:: -(-len(u) // size)].to(x.dtype)  # (token, width)
    target_columns = u[targets].to(x.dtype)  # (pair, width)
    for h in range(len(w_o)):
        out = w_o[h].to(x.dtype)
        folded, target = sample @ out.T, target_columns @ out.T  # (token or pair, head_dim)
        for tokens in (folded[::32], folded[::4], folded):  # a small part settles most
            at = left[h].nonzero()[:, 0]
            left[h, at] = _unsettled(x[h, at], tokens, target[at], k[at])
    return left


def _unsettled(values: Tensor, folded: Tensor, target: Tensor, k: Tensor) -> Tensor:
    """(pair,): True where fewer than k of the folded tokens are larger, or smaller.

    Larger and smaller than the target by more than rounding.
    """
    logit = (values * target).sum(1, keepdim=True)
    largest = torch.maximum(folded.norm(dim=1).max(), target.norm(dim=1, keepdim=True))
    slack = SLACK * values.norm(dim=1, keepdim=True) * largest  # (pair, 1)
    logits = values @ folded.T  # (pair, token)
    return (_count(logits > logit + slack) < k) | (_count(logits < logit - slack) < k)


def _logits(at: Tensor, x: Tensor, w_o: Tensor, u: Tensor, chunk: int) -> Tensor:
    """What the heads write for their pairs, over the whole vocabulary, (row, vocabulary).

    ``at`` has a row of head and pair for each, heads in order.
    """
    heads, counts = torch.unique_consecutive(at[:, 0], return_counts=True)
    pairs_of = torch.split(at[:, 1], counts.tolist())
    written = torch.cat(
        [x[h, pairs] @ w_o[h].to(x.dtype) for h, pairs in zip(heads.tolist(), pairs_of)]
    )  # (row, width)
    logits = x.new_empty(len(at), len(u))
    start = 0
    for tokens in torch.split(u, max(1, chunk // u.shape[1])):
        torch.mm(written, tokens.to(x.dtype).T, out=logits[:, start : start + len(tokens)])
        start += len(tokens)
    return logits


def _count(true: Tensor) -> Tensor:
    return true.sum(1, dtype=torch.int32)
