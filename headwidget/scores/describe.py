"""One sentence about a head, from its scores over all methods at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwidget.scores import missing, provenance, rank, reduce
from headwidget.scores.head_scores import HeadScores

LEADING = 0.02
"""A head stands out on a task where it is in this leading share of all heads; in small models
among the first three."""
NOTHING = "nothing stands out"
NOT_MEASURED = "not measured"
MOST_TASKS = 4
"""How many tasks of a method are named."""


@dataclass(frozen=True)
class _Finding:
    """What a method says of a head on one task."""

    task: str
    place: int
    """The head's rank, or its rank from the bottom; 1 is the first at that end."""
    from_bottom: bool
    value: float
    interval: tuple[float, float] | None
    """None for a single run."""
    doubts: tuple[str, ...]
    stands_out: bool

    def place_text(self) -> str:
        if not self.from_bottom:
            return _ordinal(self.place)
        return "last" if self.place == 1 else f"{_ordinal(self.place)} from the bottom"

    def text(self, scores: HeadScores) -> str:
        by_size = " by size" if scores.signed and scores.ranked_by == "size" else ""
        direction = ""
        if scores.signed:
            direction = " (it hurts)" if self.value < 0 else " (it helps)"
        width = "one run, so no interval"
        if self.interval is not None:
            width = f"95% interval {self.interval[0]:.2g} to {self.interval[1]:.2g}"
        reliability = "; ".join([width, *self.doubts])
        place = f"{self.place_text()}{by_size} for {self.task}{direction}"
        return f"{place} with {self.value:.2g} ({reliability})"


def describe(
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
    layer: int | tuple[int, int],
    head: int | None = None,
) -> str:
    """What the scores say of one head, in a sentence.

    It names the tasks where the head stands out, with rank, mean and interval, and what
    speaks against it; or says that nothing stands out. ``scores`` are one HeadScores,
    several, or several by a name that the sentence then uses.

    A head stands out on a task where it is among the first 2% of all heads, its interval
    lies on one side of zero, and the mean is beyond what the method reaches by chance and
    the threshold that it starts with. Of signed scores that are ranked by their mean, a
    head with a negative mean is counted from the bottom: it stands out where it hurts most.
    Aspects (suppression, …) are named where the head stands out in them.

    >>> import headwidget as hw, numpy as np
    >>> noise = np.random.default_rng(0).normal(0, 0.01, (20, 4, 4))
    >>> strong = 0.9 * (np.arange(16).reshape(4, 4) == 9)
    >>> describe(hw.HeadScores.from_arrays({"copy": noise + strong}, method="mine"), 2, 1)
    'Head 2.1, of 16: mine: 1st for copy (it helps) with 0.9 (95% interval 0.9 to 0.91).'
    >>> describe(hw.HeadScores.from_arrays({"copy": noise - strong}, method="mine"), 2, 1)
    'Head 2.1, of 16: mine: last for copy (it hurts) with -0.9 (95% interval -0.9 to -0.89).'
    >>> describe(hw.HeadScores.from_arrays({"copy": noise + strong}, method="mine"), 0, 3)
    'Head 0.3, of 16: mine: nothing stands out (at best 6th, for copy; its interval holds zero).'
    """
    place = _layer_and_head(layer, head)
    scores_by_name = _by_name(scores)
    sentences = []
    for name, method_scores in scores_by_name.items():
        sentences.append(f"{name}: {_verdict(method_scores, *place)}")
        for aspect, aspect_scores in method_scores.aspects.items():
            verdict = _verdict(aspect_scores, *place)
            if not verdict.startswith((NOTHING, NOT_MEASURED)):
                sentences.append(f"{name} ({aspect}): {verdict}")
    sizes = {s.shape[0] * s.shape[1] for s in scores_by_name.values()}
    of = " or ".join(str(size) for size in sorted(sizes))
    first = next(iter(scores_by_name.values()))
    name = f"{place[0]}.{place[1]}"
    if provenance.sections(first):
        name += f" ({provenance.head_name(first, *place)})"
    return f"Head {name}, of {of}: {'; '.join(sentences)}."


def _layer_and_head(layer: Any, head: Any) -> tuple[Any, Any]:
    """A head as two numbers or as one pair, such as ``scores.top`` gives."""
    if head is None:
        try:
            layer, head = layer
        except (TypeError, ValueError):
            raise TypeError(
                "describe takes a layer and a head, or both as a pair: describe(scores, 13, 4) "
                f"or describe(scores, (13, 4)); got {layer!r}."
            ) from None
    return layer, head


def _by_name(
    scores: HeadScores | Iterable[HeadScores] | Mapping[str, HeadScores],
) -> dict[str, HeadScores]:
    """Several scores by name: their method's, numbered where two have the same."""
    if isinstance(scores, HeadScores):
        return {scores.method: scores}
    if isinstance(scores, Mapping):
        by_name = {str(name): value for name, value in scores.items()}
    else:
        several = isinstance(scores, Iterable) and not isinstance(scores, str)
        listed = list(scores) if several else [scores]
        methods = [getattr(value, "method", "") for value in listed]
        by_name = {}
        for number, (method, value) in enumerate(zip(methods, listed), 1):
            name = method if methods.count(method) == 1 else f"{method} ({number})"
            by_name[name] = value
    wrong = [value for value in by_name.values() if not isinstance(value, HeadScores)]
    if wrong or not by_name:
        got = f"a {type(wrong[0]).__name__}" if wrong else "none"
        raise TypeError(
            f"describe takes HeadScores, a list of them or a dict of them by name; got {got}."
        )
    return by_name


def _verdict(scores: HeadScores, layer: int, head: int) -> str:
    """Where a head stands out in one method's scores, or that it does not."""
    if layer not in scores.layers or type(head) is not int or not 0 <= head < scores.shape[1]:
        have = f"layers {scores.layers[0]} to {scores.layers[-1]}, heads 0 to {scores.shape[1] - 1}"
        raise ValueError(
            f"there is no head {head!r} in layer {layer!r} of the {scores.method} scores: "
            f"they have {have}."
        )
    row = scores.layers.index(layer)
    measured = [task for task in scores.tasks if missing.measured(scores.values(task))[row, head]]
    if not measured:
        return NOT_MEASURED
    findings = [_finding(scores, task, row, head) for task in measured]
    findings.sort(key=lambda finding: (finding.place, -abs(finding.value)))
    outstanding = [finding for finding in findings if finding.stands_out]
    if not outstanding:
        best = findings[0]
        reasons = "; ".join([f"at best {best.place_text()}, for {best.task}", *best.doubts])
        return f"{NOTHING} ({reasons})"
    more = len(outstanding) - MOST_TASKS
    texts = ", ".join(finding.text(scores) for finding in outstanding[:MOST_TASKS])
    return f"{texts} and {more} more" if more > 0 else texts


def _finding(scores: HeadScores, task: str, row: int, head: int) -> _Finding:
    values = scores.values(task)
    value = float(reduce.mean(values)[row, head])
    from_bottom = scores.signed and scores.ranked_by == "mean" and value < 0
    ranks = (rank.ranks_from_bottom if from_bottom else rank.ranks)(scores, task)
    place, heads = int(ranks[row, head]), int(np.count_nonzero(ranks))
    runs = missing.known(values[:, row, head])[:, None, None]  # those in which it was measured
    interval = None
    if len(runs) > 1:
        low, high = reduce.interval(runs)
        interval = float(low[0, 0]), float(high[0, 0])
    doubts = _doubts(scores, task, value, interval)
    leading = place <= max(LEADING * heads, min(3, heads - 1))
    stands_out = leading and not doubts and value != 0
    if warning := provenance.warning(scores, task):
        doubts.append(warning.rstrip(".")[0].lower() + warning.rstrip(".")[1:])
    return _Finding(task, place, from_bottom, value, interval, tuple(doubts), stands_out)


def _doubts(
    scores: HeadScores, task: str, value: float, interval: tuple[float, float] | None
) -> list[str]:
    """Why a mean may be nothing: its interval, the method's chance level, its threshold."""
    doubts = []
    if interval is not None and interval[0] <= 0 and not (scores.signed and interval[1] < 0):
        doubts.append("its interval holds zero")
    floor = provenance.floor(scores, task)
    if floor is not None and abs(value) <= floor:
        doubts.append("no more than chance gives")
    threshold = provenance.display(scores).get("threshold", 0.0)
    if abs(value) < threshold:
        doubts.append(f"below the threshold of {threshold:g}")
    return doubts


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
