"""Shared prefixes: the leading tokens that prompts of a batch have in common and run once."""

from __future__ import annotations

from collections.abc import Sequence

from headwidget.models import Model
from headwidget.scoring.encode import Encoded

SHORTEST_PREFIX = 4
"""A shared prefix of fewer tokens is not worth a run of its own."""


def shared_prefix(examples: Sequence[Encoded]) -> int:
    """The number of leading tokens that all examples share.

    The position that predicts an answer is never part of it.
    """
    all_ids = [example.ids for example in examples]
    first, last = min(all_ids), max(all_ids)  # in sorted order these two differ the most
    most = min(example.at[0] for example in examples)
    for position, (token, other) in enumerate(zip(first[:most], last[:most])):
        if token != other:
            return position
    return most


def belong_together(batch: Sequence[Encoded], example: Encoded) -> bool:
    """Would one more example leave the batch at least half of the prefix that it shares?"""
    return 2 * shared_prefix([*batch, example]) >= shared_prefix(batch) or len(batch) == 1


def usable_prefix(model: Model, examples: Sequence[Encoded]) -> int:
    """How many leading tokens can run once for all examples; 0 where that is not worth it.

    The rotation of some models depends on the length of what they are fed, so the prefix
    of a long prompt cannot run alone. Prompts with images run whole: the same tokens may stand
    for other images.
    """
    if any(example.media is not None for example in examples):
        return 0
    longest = max(len(example.ids) for example in examples)
    if len(examples) == 1 or not model.can_share_prefix or model.switches_rope(longest):
        return 0
    prefix = shared_prefix(examples)
    return prefix if prefix >= SHORTEST_PREFIX else 0
