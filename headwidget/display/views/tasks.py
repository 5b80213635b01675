"""The tasks view: a panel a task, the mean (or median, or share) over runs.

Twin of ``js/display/views/tasks.ts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwidget.display.scales import colour_range
from headwidget.display.views.picture import Panel, Picture
from headwidget.display.views.view import View, scale_for, whole
from headwidget.scores import provenance
from headwidget.scores.threshold import either, number

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores


class Tasks(View):
    """One map a task, all on one scale."""

    name = "tasks"
    title = "Tasks"
    uses = frozenset(
        {
            *("tasks", "task", "threshold", "rule", "sign", "reduction", "normalize"),
            *("colormap", "scale", "cap", "orientation", "columns"),
        }
    )

    def picture(self, scores: HeadScores, settings: Settings) -> Picture:
        """A panel a task shown."""
        # Every task counts, hidden ones too, so that no colour changes when a task is hidden.
        numbers = {task: number(scores, task, settings) for task in scores.tasks}
        drawn = self.tasks(scores, settings)
        signed = scores.signed and settings.normalize is None
        span = colour_range(list(numbers.values()), signed, settings.cap)
        panels = tuple(
            Panel(
                title=task,
                values=numbers[task],
                passes=self.passes(scores, task, settings),
                task=task,
                **scale_for([numbers[task]], span, signed, settings),
            )
            for task in drawn
        )
        floors = [_floor(scores, task, settings) for task in drawn if settings.scale == "shared"]
        return Picture(
            panels=panels,
            range=span,
            colours=settings.colormap or ("blue-orange" if signed else "viridis"),
            label=self.number_name(scores, settings),
            layers_on=settings.orientation or "y",
            columns=settings.columns,
            passing=either([panel.passes for panel in panels]),
            floor=max((floor for floor in floors if floor is not None), default=None),
        )


def _floor(scores: HeadScores, task: str, settings: Settings) -> float | None:
    """What a score of the task reaches by chance, on the scale of the numbers shown."""
    floor = provenance.floor(scores, task)
    if floor is None or settings.normalize is None:
        return floor
    total = whole(scores, task, settings)
    return floor / total if total > 0 else None
