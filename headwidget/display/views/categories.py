"""The categories view: which categories a head belongs to. Twin of ``js/display/views/categories.ts``.

A head belongs to the categories that have a task whose threshold it passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwidget.display.scales import Range
from headwidget.display.views.picture import Entry, Panel, Picture
from headwidget.scores.threshold import categories_of, members

if TYPE_CHECKING:
    from headwidget.display.settings import Settings
    from headwidget.scores.head_scores import HeadScores

ALL = "All Categories"
UNCLASSIFIED = "Unclassified"


def picture(scores: HeadScores, settings: Settings) -> Picture:
    """All that the view draws."""
    groups, found = categories_of(scores), members(scores, settings)
    place = {
        category: i for i, category in enumerate(groups, start=1)
    }  # a hidden category keeps its colour
    count = np.sum([*found.values(), np.zeros(scores.shape, bool)], axis=0)
    classes = np.where(
        count > 1,
        len(groups) + count - 1,
        np.sum([mask * place[c] for c, mask in found.items()] or [count], axis=0),
    )
    names = [UNCLASSIFIED, *groups, *(f"{n} categories" for n in range(2, len(groups) + 1))]
    legend = tuple(Entry(name, int((classes == i).sum())) for i, name in enumerate(names))
    keep = None if settings.isolated not in names else classes == names.index(settings.isolated)
    panels = [Panel(ALL, classes.astype(np.float32), keep)]
    for category, mask in found.items():
        panels.append(
            Panel(
                category,
                np.where(mask, place[category], 0).astype(np.float32),
                None if keep is None else keep & mask,
            )
        )
    return Picture(
        panels=tuple(panels),
        range=Range(0.0, float(len(names) - 1), 1.0),
        colours="categories",
        label="categories",
        layers_on=settings.orientation or "x",
        columns=settings.columns,
        passing=count > 0,
        legend=legend,
    )
