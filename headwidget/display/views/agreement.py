"""The agreement view: a row a task with what it reaches Always and in Any run. Twin of ``js/display/views/agreement.ts``.

Between Always and Any stands the agreement asked for. Without a threshold the colour is that order statistic; with one it is
the fraction of runs that reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwidget.display.scales import Range, colour_range
from headwidget.display.views.picture import Panel, Picture, shown
from headwidget.scores import reduce
from headwidget.scores.threshold import either, run_cut

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Mask


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """All that the view draws."""
    panels: list[Panel] = []
    on: list[Mask | None] = []
    flip = scores.signed and settings.sign == "hurts"
    for name in shown(scores, settings):
        runs = len(scores.values(name))
        values = -scores.values(name) if flip else scores.values(name)
        counts = _reaching(scores, name, settings)
        for title, agreement in _columns(settings.agreement, runs):
            if counts is None:
                found = reduce.order_statistic(values, agreement)
                panels.append(Panel(f"{name} ({title})", -found if flip else found, None, name))
            else:
                fraction = (counts / runs).astype(np.float32)
                panels.append(
                    Panel(
                        f"{name} ({title})",
                        fraction,
                        counts >= reduce.runs_needed(agreement, runs),
                        name,
                    )
                )
        on.append(
            None if counts is None else counts >= reduce.runs_needed(settings.agreement, runs)
        )
    fractions = settings.threshold is not None
    ends = (
        []
        if fractions
        else [
            reduce.reduce(scores.values(name), how)
            for name in scores.tasks
            for how in ("always", "any")
        ]
    )
    columns = max(
        (
            len(_columns(settings.agreement, len(scores.values(name))))
            for name in shown(scores, settings)
        ),
        default=2,
    )
    return Picture(
        panels=tuple(panels),
        range=Range(0.0, 1.0, 0.25)
        if fractions
        else colour_range(ends, scores.signed, settings.cap),
        colours=settings.colormap
        or ("blue-orange" if scores.signed and not fractions else "turbo"),
        label="fraction of runs" if fractions else "score",
        layers_on=settings.orientation or "y",
        columns=columns,
        passing=either(on),
    )


def _columns(agreement: float, runs: int) -> list[tuple[str, float]]:
    """Always and Any, and between them the agreement asked for when it is neither.

    >>> _columns(1.0, 10), _columns(0.75, 10)
    ([('Always', 1.0), ('Any', 0.0)], [('Always', 1.0), ('≥ 8 of 10', 0.75), ('Any', 0.0)])
    """
    needed = reduce.runs_needed(agreement, runs)
    between = [] if needed in (1, runs) else [(f"≥ {needed} of {runs}", agreement)]
    return [("Always", 1.0), *between, ("Any", 0.0)]


def _reaching(scores: HeadScores, task: str, settings: Settings) -> np.ndarray | None:
    """(layer, head): how many runs reach the threshold; of either sign, in the direction that more of them do."""
    if settings.threshold is None:
        return None
    edge = run_cut(scores, task, settings)
    values = scores.values(task)
    counts = []
    if not scores.signed or settings.sign != "hurts":
        counts.append((values >= edge).sum(axis=0))
    if scores.signed and settings.sign != "helps":
        counts.append((-values >= edge).sum(axis=0))
    found: np.ndarray = np.max(counts, axis=0)
    return found
