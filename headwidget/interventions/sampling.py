"""What an intervention draws at random: control heads, and the prompts that are measured."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from headwidget.scores import HeadScores
from headwidget.scores.provenance import known_prompts

Head = tuple[int, int]
"""(row, head); a row counts the layers with attention."""


@dataclass(frozen=True)
class _LayerDraw:
    """What a control draws from one layer: ``fresh`` of the others, ``again`` of the top heads."""

    row: int
    others: list[int]
    fresh: int
    top: list[int]
    again: int

    def possible(self) -> int:
        """How many different sets can be drawn."""
        return math.comb(len(self.others), self.fresh) * math.comb(len(self.top), self.again)

    def draw(self, rng: random.Random) -> list[Head]:
        heads = rng.sample(self.others, self.fresh) + rng.sample(self.top, self.again)
        return [(self.row, head) for head in sorted(heads)]


def controls(top: Sequence[Head], n_heads: int, draws: int, seed: int) -> list[tuple[Head, ...]]:
    """Random sets of heads with as many in each layer as ``top`` has, no two sets alike.

    A top head is drawn only where a layer has not enough others.

    >>> controls([(0, 1), (5, 2)], n_heads=2, draws=3, seed=0)
    [((0, 0), (5, 0)), ((0, 0), (5, 1))]
    """
    rng = random.Random(f"{seed} {sorted(top)}")
    top_by_row: dict[int, list[int]] = defaultdict(list)
    for row, head in sorted(top):
        top_by_row[row].append(head)
    layers = []
    for row, top_heads in top_by_row.items():
        others = [head for head in range(n_heads) if head not in top_heads]
        fresh = min(len(top_heads), len(others))
        layers.append(_LayerDraw(row, others, fresh, top_heads, len(top_heads) - fresh))
    possible = math.prod(layer.possible() for layer in layers)
    sets: dict[tuple[Head, ...], None] = {}
    while len(sets) < min(draws, possible):
        heads: list[Head] = []
        for layer in layers:
            heads += layer.draw(rng)
        sets[tuple(heads)] = None
    return list(sets)


@dataclass(frozen=True)
class PromptSample:
    """Prompts drawn from a task."""

    indices: tuple[int, ...]
    """Which of the task's prompts, in the order drawn."""
    scored_on: int
    """How many of them some scores were made from."""


def unseen_first(
    labels: Sequence[str],
    task: str,
    scores: Iterable[HeadScores],
    count: int,
    seed: int,
    held_out: Collection[int] = (),
) -> PromptSample:
    """Draw ``count`` of a task's prompts at random.

    Prompts that none of ``scores`` were made from come first, and among equals those held
    out. ``labels`` are the task's prompts with their answers.

    >>> unseen_first(["2+2=4", "3+3=6", "4+4=8"], "sums", [], count=2, seed=0)
    PromptSample(indices=(1, 0), scored_on=0)
    """
    seen = [False] * len(labels)
    for one_scores in scores:
        was_scored = known_prompts(one_scores, task)
        seen = [before or was_scored(label) for before, label in zip(seen, labels)]
    order = random.Random(seed).sample(range(len(labels)), len(labels))
    order.sort(key=lambda i: (seen[i], i not in held_out))  # stable: equals stay as drawn
    return PromptSample(tuple(order[:count]), sum(seen[i] for i in order[:count]))
