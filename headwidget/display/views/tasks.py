"""The tasks view: one panel a task, the mean (or median, or share) over runs. Twin of ``js/display/views/tasks.ts``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwidget.display.scales import colour_range
from headwidget.display.views.picture import Panel, Picture, number_name, shown
from headwidget.scores import provenance, reduce
from headwidget.scores.threshold import either, number, passing

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """All that the view draws."""
    panels = tuple(
        Panel(name, number(scores, name, settings), passing(scores, name, settings), name)
        for name in shown(scores, settings)
    )
    signed = scores.signed and settings.normalize is None
    # Every task counts, hidden ones too, so that no colour changes when a task is hidden.
    span = colour_range(
        [number(scores, name, settings) for name in scores.tasks], signed, settings.cap
    )
    return Picture(
        panels=panels,
        range=span,
        colours=settings.colormap or ("blue-orange" if signed else "viridis"),
        label=number_name(scores, settings),
        layers_on=settings.orientation or "y",
        columns=settings.columns,
        passing=either([panel.passes for panel in panels]),
        floor=max(
            (
                f
                for name in shown(scores, settings)
                if (f := _floor(scores, name, settings)) is not None
            ),
            default=None,
        ),
    )


def _floor(scores: HeadScores, task: str, settings: Settings) -> float | None:
    found = provenance.floor(scores, task)
    if found is None or settings.normalize is None:
        return found
    total = reduce.whole(number(scores, task, replace(settings, normalize=None)))
    return found / total if total > 0 else None
