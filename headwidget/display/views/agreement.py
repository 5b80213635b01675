"""The agreement view: a task's maps side by side, what a head reaches Always and in Any run.

Twin of ``js/display/views/agreement.ts``. Between Always and Any stands the agreement asked
for. Without a threshold the colour is that order statistic; with one it is the fraction of
runs that reach it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwidget.display.scales import Range, colour_range
from headwidget.display.views.picture import Panel, Picture
from headwidget.display.views.view import View, mean_name, scale_for, whole
from headwidget.scores import reduce
from headwidget.scores.threshold import either, run_cut

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array, Mask


class Agreement(View):
    """How many runs agree: Always, Any, and between."""

    name = "agreement"
    title = "Agreement"
    uses = frozenset(
        {
            *("tasks", "task", "threshold", "rule", "agreement", "sign", "reduction", "normalize"),
            *("colormap", "scale", "cap", "orientation", "columns"),
        }
    )

    def picture(self, scores: HeadScores, settings: Settings) -> Picture:
        """The maps of every task shown."""
        drawn = self.tasks(scores, settings)
        fractions = settings.threshold is not None
        shared = Range(0.0, 1.0, 0.25) if fractions else _range(scores, settings)
        rows = [_row(scores, task, settings, shared) for task in drawn]
        span = max((len(row) for row in rows), default=2)
        return Picture(
            panels=tuple(itertools.chain.from_iterable(rows)),
            range=shared,
            colours=settings.colormap
            or ("blue-orange" if scores.signed and not fractions else "turbo"),
            label="fraction of runs" if fractions else "score",
            layers_on=settings.orientation or "y",
            columns=settings.columns,
            span=span,
            passing=either([self.passes(scores, task, settings) for task in drawn]),
            slots=_slots([len(row) for row in rows], span),
            count_word="on",
        )

    def strength(self, scores: HeadScores, task: str, settings: Settings) -> Array:
        """(layer, head): what enough of the runs reach, in the direction that counts."""
        reached = [
            reduce.order_statistic(values, settings.agreement)
            for values in _directions(scores, task, settings)
        ]
        strongest: Array = np.max(reached, axis=0)
        divisor = _divisor(scores, task, settings)
        return strongest / np.float32(divisor) if divisor > 0 else np.zeros_like(strongest)

    def cut(
        self, scores: HeadScores, task: str, settings: Settings, strengths: Array | None = None
    ) -> float | None:
        """The strength that a head must reach; None without a threshold."""
        if settings.threshold is None or settings.rule == "value":
            return settings.threshold
        return float(run_cut(scores, task, settings)) / (_divisor(scores, task, settings) or 1.0)

    def passes(
        self, scores: HeadScores, task: str, settings: Settings, strengths: Array | None = None
    ) -> Mask | None:
        """(layer, head): which heads reach the threshold in as many runs as are asked for."""
        counts = _counts(scores, task, settings)
        if counts is None:
            return None
        return counts >= reduce.runs_needed_of(settings.agreement, scores.measured(task))

    def number_name(self, scores: HeadScores, settings: Settings) -> str:
        """What the number is called that the threshold is compared with: that of a run."""
        return "score" if settings.normalize is None else mean_name(scores, settings)

    def strength_name(self, scores: HeadScores, settings: Settings) -> str:
        """What a strength is called on an axis."""
        often = {0.0: "in any run", 1.0: "in every run"}.get(
            settings.agreement, f"in {settings.agreement:.0%} of runs"
        )
        name = f"{'share' if settings.normalize else 'score'} reached {often}"
        if not scores.signed:
            return name
        return f"{name}, {'either sign' if settings.sign == 'either' else settings.sign}"


def _row(scores: HeadScores, task: str, settings: Settings, shared: Range) -> list[Panel]:
    """The panels of a task, Always to Any, all on one scale."""
    flip = scores.signed and settings.sign == "hurts"
    values = -scores.values(task) if flip else scores.values(task)  # (run, layer, head)
    runs, measured = len(values), scores.measured(task)
    counts = _counts(scores, task, settings)
    scale = {}
    if counts is None:
        scale = scale_for(_extremes(scores, task), shared, scores.signed, settings)
    panels = []
    for title, agreement in _columns(settings.agreement, runs):
        if counts is None:
            reached = reduce.order_statistic(values, agreement)
            reached = -reached if flip else reached
            panels.append(Panel(f"{task} ({title})", reached, None, task, **scale))
        else:
            with np.errstate(invalid="ignore"):  # 0 of 0 runs is no fraction
                fraction = (counts / measured).astype(np.float32)
            on = counts >= reduce.runs_needed_of(agreement, measured)
            panels.append(Panel(f"{task} ({title})", fraction, on, task))
    return panels


def _columns(agreement: float, runs: int) -> list[tuple[str, float]]:
    """Always and Any, and between them the agreement asked for when it is neither.

    >>> _columns(1.0, 10)
    [('Always', 1.0), ('Any', 0.0)]
    >>> _columns(0.75, 10)
    [('Always', 1.0), ('≥ 8 of 10', 0.75), ('Any', 0.0)]
    """
    needed = reduce.runs_needed(agreement, runs)
    between = [] if needed in (1, runs) else [(f"≥ {needed} of {runs}", agreement)]
    return [("Always", 1.0), *between, ("Any", 0.0)]


def _slots(lengths: Sequence[int], span: int) -> tuple[tuple[int, int], ...]:
    """The task and the place in it of every panel, for tasks of so many panels.

    A task with one run has no map between: its Any stands where the others have theirs.

    >>> _slots([3, 2], 3)
    ((0, 0), (0, 1), (0, 2), (1, 0), (1, 2))
    """
    slots: list[tuple[int, int]] = []
    for task, length in enumerate(lengths):
        slots += [(task, place) for place in range(length - 1)]
        slots.append((task, span - 1))
    return tuple(slots)


def _range(scores: HeadScores, settings: Settings) -> Range:
    """The range of colours without a threshold: from the worst to the best run of any head."""
    ends = [values for task in scores.tasks for values in _extremes(scores, task)]
    return colour_range(ends, scores.signed, settings.cap)


def _extremes(scores: HeadScores, task: str) -> list[Array]:
    """(layer, head): the worst and the best run."""
    values = scores.values(task)
    return [reduce.reduce(values, "always"), reduce.reduce(values, "any")]


def _directions(scores: HeadScores, task: str, settings: Settings) -> list[Array]:
    """The scores (run, layer, head) in each direction that the threshold counts."""
    values = scores.values(task)
    if not scores.signed:
        return [values]
    directions = {"helps": [values], "hurts": [-values], "either": [values, -values]}
    return directions[settings.sign]


def _counts(scores: HeadScores, task: str, settings: Settings) -> np.ndarray | None:
    """(layer, head): how many runs reach the threshold; None without one.

    Of either sign, in the direction that more of them do.
    """
    if settings.threshold is None:
        return None
    edge = run_cut(scores, task, settings)
    counts = [(values >= edge).sum(axis=0) for values in _directions(scores, task, settings)]
    most: np.ndarray = np.max(counts, axis=0)
    return most


def _divisor(scores: HeadScores, task: str, settings: Settings) -> float:
    """What a share of the task is a share of; 1 where scores are shown as they are."""
    if settings.normalize is None:
        return 1.0
    return whole(scores, task, settings)
