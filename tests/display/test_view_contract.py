"""The contract of a view: it says what it reads, and nobody else asks which view it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwidget
from headwidget.display import scales
from headwidget.display.settings import CHOICES, NAMES, Settings, settings
from headwidget.display.views import VIEWS
from headwidget.scores import HeadScores

PACKAGE = Path(headwidget.__file__).parent
ASKS_FOR_A_VIEW = re.compile(r'\bview\b["\])]* *[!=]= |[!=]= "(agreement|categories)"')

OTHERS: dict[str, list[Any]] = {
    "tasks": [("recall", "math")],
    "task": ["recall"],
    "threshold": [None, 0.4],
    "rule": ["top", "percent"],
    "agreement": [0.5],
    "sign": ["helps", "hurts"],
    "reduction": ["median"],
    "normalize": ["share"],
    "colormap": ["magma"],
    "scale": ["own"],
    "cap": [0.05],
    "orientation": ["x", "y"],
    "columns": [2],
    "isolated": ["words"],
}
"""Values of every setting that differ from what it starts with."""


@pytest.fixture
def scores() -> HeadScores:
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(9, 6, 5)) for name in ("math", "recall", "syntax")}
    return HeadScores.from_arrays(
        values, method="mine", signed=True, categories={"recall": "words", "syntax": "words"}
    )


def drawn(scores: HeadScores, asked: Settings) -> list[Any]:
    """All that a picture says, in a form that can be compared."""
    picture = VIEWS[asked.view].picture(scores, asked)
    panels = [
        (
            panel.title,
            panel.range,
            panel.values.tolist(),
            None if panel.passes is None else panel.passes.tolist(),
        )
        for panel in picture.panels
    ]
    passing = None if picture.passing is None else picture.passing.tolist()
    return [panels, passing, replace(picture, panels=(), passing=None)]


def test_views_are_registered_by_name_and_are_what_settings_offer() -> None:
    assert [view.name for view in VIEWS.values()] == list(VIEWS) == list(CHOICES["view"])
    assert len({view.title for view in VIEWS.values()}) == len(VIEWS)
    for view in VIEWS.values():
        assert view.uses <= {*NAMES} - {"view"}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_view_depends_on_the_settings_that_it_says_it_uses(
    scores: HeadScores, view: str, name: str
) -> None:
    assert OTHERS.keys() == {*NAMES} - {"view"}
    starts = [
        settings(scores, view=view, threshold=0.2),
        settings(scores, view=view, threshold=None),
        settings(scores, view=view, threshold=0.05, normalize="share", sign="helps"),
    ]
    changes = 0
    for start in starts:
        for value in OTHERS[name]:
            changes += drawn(scores, start) != drawn(scores, replace(start, **{name: value}))
    assert bool(changes) == (name in VIEWS[view].uses)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("threshold", [None, 0.2])
def test_what_passes_in_a_picture_passes_in_one_of_its_tasks(
    scores: HeadScores, view: str, threshold: float | None
) -> None:
    asked = settings(
        scores, view=view, threshold=threshold, tasks=["syntax", "math"], agreement=0.6
    )
    this = VIEWS[view]
    assert this.tasks(scores, asked) == ["syntax", "math"]
    masks = [this.passes(scores, task, asked) for task in asked.tasks or ()]
    passing = this.picture(scores, asked).passing
    if passing is None:
        assert masks == [None, None]
    else:
        assert masks[0] is not None and masks[1] is not None
        np.testing.assert_array_equal(passing, masks[0] | masks[1])
        for task, mask in zip(("syntax", "math"), masks):
            cut = this.cut(scores, task, asked)
            assert cut is not None and mask is not None
            strengths = this.strength(scores, task, asked)
            np.testing.assert_array_equal(mask, strengths >= np.float32(cut))


def test_a_picture_carries_what_drawers_need(scores: HeadScores) -> None:
    pictures = {
        name: view.picture(scores, settings(scores, view=name, threshold=0.2, agreement=0.5))
        for name, view in VIEWS.items()
    }
    assert {name: picture.count_word for name, picture in pictures.items()} == {
        "tasks": "pass",
        "agreement": "on",
        "categories": None,
    }
    assert {name: picture.layer_ticks for name, picture in pictures.items()} == {
        "tasks": scales.SIXES,
        "agreement": scales.SIXES,
        "categories": scales.EIGHTS,
    }
    assert pictures["tasks"].slots is None and pictures["categories"].slots is None
    assert pictures["agreement"].slots == (
        *((0, 0), (0, 1), (0, 2)),
        *((1, 0), (1, 1), (1, 2)),
        *((2, 0), (2, 1), (2, 2)),
    )


def test_any_stands_under_any_where_a_task_has_one_run() -> None:
    scores = HeadScores.from_arrays(
        {"one": np.ones((1, 2, 2)), "many": np.ones((8, 2, 2))}, method="mine"
    )
    picture = VIEWS["agreement"].picture(scores, settings(scores, view="agreement", agreement=0.5))
    assert [panel.title for panel in picture.panels] == [
        *("one (Always)", "one (Any)"),
        *("many (Always)", "many (≥ 4 of 8)", "many (Any)"),
    ]
    assert picture.slots == ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))


@pytest.mark.parametrize(
    ("view", "normalize", "number", "strength"),
    [
        ("tasks", None, "mean", "|mean|"),
        ("tasks", "share", "share of mean", "|share of mean|"),
        ("agreement", None, "score", "score reached in every run, either sign"),
        ("agreement", "share", "share of mean", "share reached in every run, either sign"),
        ("categories", None, "mean", "|mean|"),
    ],
)
def test_numbers_have_names(
    scores: HeadScores, view: str, normalize: str | None, number: str, strength: str
) -> None:
    asked = settings(scores, view=view, normalize=normalize)
    assert VIEWS[view].number_name(scores, asked) == number
    assert VIEWS[view].strength_name(scores, asked) == strength


def test_nobody_else_asks_which_view_it_is() -> None:
    assert ASKS_FOR_A_VIEW.search('if settings.view == "x"')
    assert ASKS_FOR_A_VIEW.search('picture.colours != "categories"')
    asking = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if PACKAGE / "display" / "views" in path.parents:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if ASKS_FOR_A_VIEW.search(line):
                asking.append(f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}")
    assert asking == []


def test_scores_open_in_the_view_that_they_ask_for_where_there_is_one() -> None:
    for asks, opens in (
        ("categories", "categories"),
        ("of another version", "tasks"),
        (7, "tasks"),
    ):
        meta = {"display": {"view": asks}}
        scores = HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine", meta=meta)
        assert settings(scores).view == headwidget.explore(scores).view == opens
        assert settings(scores, view="tasks").view == "tasks"
