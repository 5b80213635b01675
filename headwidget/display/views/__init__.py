"""What each view shows, as numbers: panels of (layer, head) values, and the range of colours.

Twin of ``js/display/views``; ``tests/golden/views.json`` holds the two together. The widget
draws these pictures in the browser and :mod:`headwidget.display.figure` draws them with
matplotlib, so both show the same thing. A new view is a :class:`View` in a file of its own,
listed in :data:`VIEWS`; nothing else asks which view it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwidget.display.views.agreement import Agreement
from headwidget.display.views.categories import Categories
from headwidget.display.views.picture import Picture
from headwidget.display.views.tasks import Tasks
from headwidget.display.views.view import View

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores

VIEWS: dict[str, View] = {view.name: view for view in (Tasks(), Agreement(), Categories())}
"""Every view by its name, in the order that the widget offers them."""


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """What the view asked for shows."""
    return VIEWS[settings.view].picture(scores, settings)
