"""The categories view: which categories a head belongs to.

Twin of ``js/display/views/categories.ts``. A head belongs to the categories that have a task
whose threshold it passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwidget.display.scales import EIGHTS, Range
from headwidget.display.views.picture import Entry, Panel, Picture
from headwidget.display.views.view import View
from headwidget.scores.threshold import categories_of, for_categories, members

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores
    from headwidget.scores.reduce import Array, Mask

ALL = "All Categories"
UNCLASSIFIED = "Unclassified"


class Categories(View):
    """One map of all categories, and one of each."""

    name = "categories"
    title = "Categories"
    uses = frozenset(
        {
            *("tasks", "threshold", "rule", "sign", "reduction", "normalize"),
            *("orientation", "columns", "isolated"),
        }
    )

    def picture(self, scores: HeadScores, settings: Settings) -> Picture:
        """All categories, then a panel each."""
        groups, masks = categories_of(scores), members(scores, settings)
        # A hidden category keeps its place, and with it its colour.
        place = {category: i for i, category in enumerate(groups, start=1)}
        count = np.sum([*masks.values(), np.zeros(scores.shape, bool)], axis=0)  # (layer, head)
        alone = np.sum([mask * place[name] for name, mask in masks.items()] or [count], axis=0)
        classes = np.where(count > 1, len(groups) + count - 1, alone)
        absent = {name: _unmeasured(scores, groups[name], settings) for name in masks}
        nowhere = np.logical_and.reduce([*absent.values()] or [np.zeros(scores.shape, bool)])
        several = [f"{number} categories" for number in range(2, len(groups) + 1)]
        names = [UNCLASSIFIED, *groups, *several]
        isolated = None
        if settings.isolated in names:
            isolated = classes == names.index(settings.isolated)
        panels = [Panel(ALL, _without(classes, nowhere), isolated)]
        for category, mask in masks.items():
            values = _without(np.where(mask, place[category], 0), absent[category])
            panels.append(Panel(category, values, None if isolated is None else isolated & mask))
        return Picture(
            panels=tuple(panels),
            range=Range(0.0, float(len(names) - 1), 1.0),
            colours="categories",
            label="categories",
            layers_on=settings.orientation or "x",
            columns=settings.columns,
            passing=count > 0,
            legend=tuple(
                Entry(name, int(((classes == i) & ~nowhere).sum())) for i, name in enumerate(names)
            ),
            layer_ticks=EIGHTS,
            count_word=None,
        )

    def effective(self, settings: Settings) -> Settings:
        """Without a threshold, heads are classified at each task's elbow."""
        return for_categories(settings)


def _unmeasured(scores: HeadScores, tasks: Sequence[str], settings: Settings) -> Mask:
    """(layer, head): heads that were measured in none of the tasks that are shown."""
    shown = [task for task in tasks if settings.tasks is None or task in settings.tasks]
    missing: Mask = np.logical_and.reduce([scores.measured(task) == 0 for task in shown])
    return missing


def _without(classes: npt.NDArray[np.integer], missing: Mask) -> Array:
    return np.where(missing, np.float32(np.nan), classes.astype(np.float32))
