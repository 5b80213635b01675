"""The views: the golden pictures that js/tests reads too, and what holds for any scores."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headwidget.display import palette, scales, views
from headwidget.display.settings import CHOICES, START, Settings, settings
from headwidget.scores import HeadScores, threshold

GOLDEN = Path(__file__).parents[1] / "golden"
VIEWS = json.loads((GOLDEN / "views.json").read_text(encoding="utf-8"))
PALETTE = json.loads((GOLDEN / "palette.json").read_text(encoding="utf-8"))
PICTURES = [
    (case, asked, expected) for case in VIEWS["scores"] for asked, expected in case["pictures"]
]
NAMES = [
    f"{case['name']}: {' '.join(f'{k}={v}' for k, v in asked.items())}"
    for case, asked, _ in PICTURES
]


def bits(mask: np.ndarray | None) -> str | None:
    return None if mask is None else "".join(str(int(one)) for one in mask.ravel())


def spanned(span: scales.Range) -> dict[str, Any]:
    return {
        "low": span.low,
        "high": span.high,
        "step": span.step,
        "lowCapped": span.low_capped,
        "highCapped": span.high_capped,
    }


@pytest.mark.parametrize(("case", "asked", "expected"), PICTURES, ids=NAMES)
def test_pictures_are_the_golden_ones(
    case: dict[str, Any], asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    given = {name: case[name] for name in ("signed", "layers", "categories")}
    scores = HeadScores.from_arrays(case["values"], method="mine", **given)
    found = views.picture(scores, settings(scores, **{"threshold": None, **asked}))
    assert [(panel.title, bits(panel.passes)) for panel in found.panels] == [
        (title, passes) for title, _, passes in expected["panels"]
    ]
    for panel, (title, values, _) in zip(found.panels, expected["panels"]):
        golden = np.array(case["maps"][values], np.float32)  # None is NaN
        assert panel.values.dtype == np.float32 and panel.values.shape == scores.shape
        if (
            asked.get("normalize") == "share" and asked["view"] == "tasks"
        ):  # sums differ in their last digit by the order of adding
            np.testing.assert_allclose(panel.values.ravel(), golden, rtol=1.2e-7, err_msg=title)
        else:
            np.testing.assert_array_equal(panel.values.ravel(), golden, title)
    assert spanned(found.range) == expected["range"]
    assert [label for _, label in scales.bar_ticks(found.range)] == expected["bar"]
    own = [
        panel.range and [spanned(panel.range), scales.end_text(panel.range)]
        for panel in found.panels
    ]
    assert own == expected.get("ends", [None] * len(own))
    assert [panel.quiet for panel in found.panels] == pytest.approx(expected["quiet"], rel=2e-7)
    assert (found.colours, found.label, found.layers_on, found.columns, found.span) == tuple(
        expected[k] for k in ("colours", "label", "layersOn", "columns", "span")
    )
    assert bits(found.passing) == expected["passing"]
    assert [[entry.name, entry.count] for entry in found.legend] == expected["legend"]


def test_settings_have_the_golden_values() -> None:
    golden = VIEWS["settings"]
    assert dataclasses.asdict(Settings()) == golden["defaults"]
    assert {name: list(values) for name, values in CHOICES.items()} == golden["choices"]
    assert golden["start"] == START


def test_colours_are_the_golden_ones() -> None:
    assert (
        list(palette.MAPS)
        == list(PALETTE["maps"])
        == [name for name in CHOICES["colormap"] if name]
    )
    for name, golden in PALETTE["maps"].items():
        assert palette.stops(name) == [f"#{c}" for c in golden.split()]
    for count, golden in PALETTE["categories"].items():
        assert palette.category_colours(int(count)) == [f"#{c}" for c in golden.split()]


# ---- what holds for any scores ----

SCORE = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7]) | st.floats(0, 1, width=32)
SIGNED = SCORE | SCORE.map(lambda x: -x)


@st.composite
def any_scores(draw: st.DrawFn, signed: bool | None = None) -> HeadScores:
    """One to three tasks of up to six runs, with ties, some with a category."""
    is_signed = draw(st.booleans()) if signed is None else signed
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    values = {
        n: draw(
            arrays(
                np.float32,
                (draw(st.integers(1, 6)), *shape),
                elements=SIGNED if is_signed else SCORE,
            )
        )
        for n in names
    }
    categories = {n: draw(st.sampled_from(["x", "y"])) for n in names if draw(st.booleans())}
    return HeadScores.from_arrays(values, method="mine", signed=is_signed, categories=categories)


THRESHOLD = st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.7, 1.0, 2.0, 3.0, 50.0, 100.0]) | st.floats(
    0, 20
)
HOW = {
    "rule": st.sampled_from(CHOICES["rule"]),
    "sign": st.sampled_from(CHOICES["sign"]),
    "reduction": st.sampled_from(CHOICES["reduction"]),
    "normalize": st.sampled_from(CHOICES["normalize"]),
}


def asked(**fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {**HOW, "threshold": THRESHOLD, **{name: st.just(value) for name, value in fixed.items()}}
    )


def passing(scores: HeadScores, **given: Any) -> np.ndarray:
    found = views.picture(scores, settings(scores, **given)).passing
    assert found is not None
    return found


@given(any_scores(signed=False), asked(rule="top"), st.integers(1, 16))
def test_top_k_passes_k_heads_and_those_that_tie_with_the_last(
    scores: HeadScores, at: dict[str, Any], k: int
) -> None:
    wanted = settings(scores, **{**at, "threshold": k})
    for panel in views.picture(scores, wanted).panels:
        assert panel.passes is not None
        count, k_here = panel.passes.sum(), min(k, panel.values.size)
        assert count >= k_here
        strengths = np.sort(panel.values.ravel())[::-1]
        if k_here == len(strengths) or strengths[k_here - 1] > strengths[k_here]:
            assert count == k_here
        assert panel.values[panel.passes].min() >= panel.values[~panel.passes].max(initial=-1)


@given(any_scores(), asked(view="agreement"), st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_always_is_part_of_at_least_k_is_part_of_any(
    scores: HeadScores, at: dict[str, Any], agreements: list[float]
) -> None:
    fewer, more = (
        views.picture(scores, settings(scores, agreement=q, **at)) for q in sorted(agreements)
    )
    assert (
        fewer.passing is not None
        and more.passing is not None
        and (more.passing <= fewer.passing).all()
    )
    for name in scores.tasks:
        rows = [panel for panel in fewer.panels if panel.task == name]
        for stricter, looser in itertools.pairwise(rows):  # Always, at least k of n, Any
            assert (
                stricter.passes is not None
                and looser.passes is not None
                and (stricter.passes <= looser.passes).all()
            )
        off = [
            panel
            for panel in views.picture(
                scores, settings(scores, view="agreement", agreement=agreements[0])
            ).panels
            if panel.task == name
        ]
        for stricter, looser in itertools.pairwise(off):
            assert (stricter.values <= looser.values).all()


@given(any_scores(signed=True), asked(view="tasks", rule="value"))
def test_either_is_what_helps_and_what_hurts(scores: HeadScores, at: dict[str, Any]) -> None:
    assume(np.float32(at["threshold"]) > 0)
    helps, hurts, either = (
        passing(scores, **{**at, "sign": sign}) for sign in ("helps", "hurts", "either")
    )
    np.testing.assert_array_equal(either, helps | hurts)
    for name in scores.tasks:
        one = settings(scores, **{**at, "task": name})
        masks = [
            threshold.passing(scores, name, dataclasses.replace(one, sign=sign))
            for sign in ("helps", "hurts")
        ]
        assert masks[0] is not None and masks[1] is not None and not (masks[0] & masks[1]).any()


@given(any_scores(), st.sampled_from(CHOICES["view"]), asked(), THRESHOLD, st.floats(0, 1))
def test_asking_for_more_never_adds_a_head(
    scores: HeadScores, view: str, at: dict[str, Any], other: float, agreement: float
) -> None:
    low, high = sorted(
        [at["threshold"], other], reverse=at["rule"] in ("top", "percent")
    )  # top 3 asks for more than top 5
    looser, stricter = (
        passing(scores, **{**at, "view": view, "agreement": agreement, "threshold": t})
        for t in (low, high)
    )
    assert (stricter <= looser).all()


@given(any_scores(), asked(view="categories"), st.booleans(), st.data())
def test_classes_share_out_the_heads(
    scores: HeadScores, at: dict[str, Any], off: bool, data: st.DataObject
) -> None:
    tasks = data.draw(st.lists(st.sampled_from(scores.tasks), unique=True))
    found = views.picture(
        scores, settings(scores, **{**at, "tasks": tasks, **({"threshold": None} if off else {})})
    )
    assert sum(entry.count for entry in found.legend) == scores.shape[0] * scores.shape[1]
    every, *members = found.panels
    assert found.passing is not None
    np.testing.assert_array_equal(found.passing, every.values > 0)
    np.testing.assert_array_equal(
        found.passing,
        sum((panel.values > 0).astype(int) for panel in members) > 0
        if members
        else np.zeros(scores.shape, bool),
    )
    assert found.legend[0].count == (~found.passing).sum()
    assert len(palette.category_colours(len(threshold.categories_of(scores)))) == len(found.legend)


@given(
    any_scores(),
    st.sampled_from(["tasks", "agreement"]),
    asked(),
    st.booleans(),
    st.floats(0, 1),
    st.data(),
)
def test_hiding_a_task_changes_no_other_and_no_colour(
    scores: HeadScores,
    view: str,
    at: dict[str, Any],
    off: bool,
    agreement: float,
    data: st.DataObject,
) -> None:
    at = {**at, "view": view, "agreement": agreement, **({"threshold": None} if off else {})}
    tasks = data.draw(st.lists(st.sampled_from(scores.tasks), unique=True))
    everything, some = (
        views.picture(scores, settings(scores, **at)),
        views.picture(scores, settings(scores, tasks=tasks, **at)),
    )
    assert (some.range, some.colours, some.label) == (
        everything.range,
        everything.colours,
        everything.label,
    )
    by_title = {panel.title: panel for panel in everything.panels}
    assert len(by_title) == len(everything.panels)
    assert list(dict.fromkeys(panel.task for panel in some.panels)) == tasks
    for panel in some.panels:
        np.testing.assert_array_equal(panel.values, by_title[panel.title].values)
        assert bits(panel.passes) == bits(by_title[panel.title].passes)


@given(
    any_scores(),
    st.none() | st.floats(1e-9, 1e9) | st.integers(1, 100).map(lambda n: f"{n}%"),
    st.sampled_from(["tasks", "agreement"]),
)
def test_the_bar_holds_its_ends_and_says_when_scores_go_beyond(
    scores: HeadScores, cap: float | str | None, view: str
) -> None:
    found = views.picture(scores, settings(scores, cap=cap, view=view))
    places, labels = zip(*scales.bar_ticks(found.range))
    assert (places[0], places[-1]) == (found.range.low, found.range.high)
    assert list(places) == sorted(set(places)) and len(places) >= 2
    values = np.concatenate([panel.values.ravel() for panel in found.panels])
    assert (
        found.range.high_capped
        == (float(values.max()) > found.range.high * 1.000001)
        == labels[-1].endswith("+")
    )
    assert (
        found.range.low_capped
        == (min(float(values.min()), 0) < found.range.low * 1.000001)
        == labels[0].endswith("+")
    )


def test_the_noise_floor_is_the_largest_of_the_tasks_shown_on_the_scale_of_the_numbers() -> None:
    arrays = {"a": [[1.0, -3.0]], "b": [[2.0, 2.0]], "c": [[1.0, 1.0]]}
    scores = HeadScores.from_arrays(
        arrays, method="probe", meta={"floor": {"a": 0.5, "b": 0.25, "c": "much"}}
    )
    found = [
        views.picture(scores, settings(scores, **asked)).floor
        for asked in (
            {},
            {"tasks": ["b"]},
            {"normalize": "share"},
            {"tasks": ["c"]},
            {"view": "agreement"},
        )
    ]
    assert found == [0.5, 0.25, 0.125, None, None]
