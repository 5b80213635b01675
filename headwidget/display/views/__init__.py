"""What each view shows, as numbers: panels of (layer, head) values, which heads pass, and the range of colours.

Twin of ``js/display/views``; ``tests/golden/views.json`` holds the two together. The widget draws these pictures in the
browser and :mod:`headwidget.display.figure` draws them with matplotlib, so both show the same thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headwidget.display.views import agreement, categories, tasks
from headwidget.display.views.picture import Picture

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores


class View(Protocol):
    """A view: a module that says what is drawn of some scores."""

    def picture(self, scores: HeadScores, settings: Settings) -> Picture:
        """All that the view draws."""


VIEWS: dict[str, View] = {"tasks": tasks, "agreement": agreement, "categories": categories}
"""Every view by its name."""


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """What the view asked for shows."""
    return VIEWS[settings.view].picture(scores, settings)
