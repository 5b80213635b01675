"""scores.categories: a read-only mapping, and by a threshold each head's categories.

They are those that the golden pictures of the view have.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwidget.scores import HeadScores, threshold

VIEWS = json.loads(
    (Path(__file__).parents[1] / "golden" / "views.json").read_text(encoding="utf-8")
)
PICTURES = [
    (case, asked, found)
    for case in VIEWS["scores"]
    for asked, found in case["pictures"]
    if asked["view"] == "categories" and "task" not in asked
]
NAMES = [
    f"{case['name']}: {' '.join(f'{k}={v}' for k, v in asked.items())}"
    for case, asked, _ in PICTURES
]


def example_scores() -> HeadScores:
    values = {"copy": [[0.1, 0.9]], "name": [[0.0, 0.2]], "alone": [[0.15, 0.0]]}
    return HeadScores.from_arrays(
        values, method="mine", layers=[5], categories={"copy": "Algorithmic", "name": "Names"}
    )


@pytest.mark.parametrize(("case", "asked", "expected"), PICTURES, ids=NAMES)
def test_each_heads_categories_are_those_of_the_golden_pictures(
    case: dict[str, Any], asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    scores = HeadScores.from_arrays(
        case["values"],
        method="mine",
        **{name: case[name] for name in ("signed", "layers", "categories")},
    )
    given = {name: value for name, value in asked.items() if name in threshold.NAMES}
    panels = [
        (title, np.nan_to_num(np.array(case["maps"][values], float)).reshape(scores.shape))
        for title, values, _ in expected["panels"][1:]
    ]
    found = scores.categories(given.pop("threshold", None), **given)
    counted = asked.get("tasks") or scores.tasks
    measured = np.any([scores.measured(task) > 0 for task in counted], axis=0)
    assert list(found) == [(scores.layers[row], head) for row, head in np.argwhere(measured)]
    for (layer, head), categories in found.items():
        assert categories == {
            title for title, values in panels if values[scores.layers.index(layer), head]
        }
    legend = dict(expected["legend"])
    assert sum(not categories for categories in found.values()) == legend["Unclassified"]


def test_the_edge_of_a_threshold_is_inside() -> None:
    assert example_scores().categories(0.15) == {
        (5, 0): {"alone"},
        (5, 1): {"Algorithmic", "Names"},
    }
    assert example_scores().categories(0.15, tasks=["name"]) == {
        (5, 0): frozenset(),
        (5, 1): {"Names"},
    }
    assert example_scores().categories(1, rule="top") == {
        (5, 0): {"alone"},
        (5, 1): {"Algorithmic", "Names"},
    }
    with_start = HeadScores.from_arrays(
        {"copy": [[0.1, 0.9, 0.2]]}, method="mine", meta={"display": {"threshold": 0.15}}
    )
    assert [len(c) for c in with_start.categories().values()] == [0, 1, 1]
    assert [len(c) for c in with_start.categories(rule="top").values()] == [
        1,
        1,
        1,
    ]  # the rule's own start, ten heads


def test_it_is_a_mapping_that_cannot_be_changed() -> None:
    scores = example_scores()
    categories = scores.categories
    assert (
        isinstance(categories, Mapping)
        and categories == {"copy": "Algorithmic", "name": "Names"} == categories
    )
    assert (
        categories != {"copy": "Algorithmic"}
        and categories.get("alone") is None
        and {**categories}["name"] == "Names"
        and "copy" in categories
    )
    with pytest.raises(TypeError):
        categories["alone"] = "x"  # type: ignore[index]
    with pytest.raises(AttributeError):
        categories.more = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        scores.categories = {}  # type: ignore[misc, assignment]
    dict(categories)["copy"] = "changed"
    assert scores.categories["copy"] == "Algorithmic"


def test_it_survives_pickle_and_copy() -> None:
    for again in (
        pickle.loads(pickle.dumps(example_scores())).categories,
        pickle.loads(pickle.dumps(example_scores().categories)),
        copy.deepcopy(example_scores().categories),
    ):
        assert again == example_scores().categories and again(0.15) == example_scores().categories(
            0.15
        )


def test_wrong_settings_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="threshold is a finite number"):
        example_scores().categories("high")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="there is no setting 'treshold'"):
        example_scores().categories(treshold=0.1)
    with pytest.raises(TypeError, match="categories\\(threshold\\) is the categories view"):
        example_scores().categories(0.1, view="tasks")


def test_published_scores_of_a_large_model_are_drawn_as_sharply_as_ours() -> None:
    """An 80 x 64 x 20 array from elsewhere: every head is a cell in the figure's five maps."""
    rng = np.random.default_rng(0)
    kinds = ["Algorithmic"] * 5 + ["Knowledge"] * 5 + ["Linguistic"] * 8 + ["Translation"] * 2
    scores = HeadScores.from_arrays(
        {f"relation {i}": rng.beta(0.1, 2, (80, 64)) for i in range(20)},
        method="elsewhere",
        categories={f"relation {i}": kind for i, kind in enumerate(kinds)},
    )
    figure = scores.figure("categories", threshold=0.15)
    maps = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert [np.asarray(m).shape[:2] for m in maps] == [(64, 80)] * 5
    assert {axes.images[0].get_interpolation() for axes in figure.axes if axes.images} == {
        "nearest"
    }
    found = scores.categories(0.15)
    counts = {n: sum(len(c) == n for c in found.values()) for n in range(5)}
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    several = [f"{n} categories ({counts[n]})" for n in (4, 3, 2)]
    assert [*legend[:3], legend[-1]] == [*several, f"Unclassified ({counts[0]})"] and min(
        counts.values()
    ) > 0
