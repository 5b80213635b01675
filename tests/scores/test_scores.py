"""HeadScores: one labelled tensor, read-only, with its reductions over runs.

What is wrong is refused with its place.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headwidget as hw
from headwidget.display.settings import settings
from headwidget.scores import provenance, reduce

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(7, 3, 4)), RNG.normal(size=(2, 3, 4))


def example_scores(**more: Any) -> hw.HeadScores:
    meta = {"model": "m", "tasks": {"a": {"prompts": 7, "accuracy": 1.0}}}
    return hw.HeadScores.from_arrays({"a": A, "b": B}, **{"method": "mine", "meta": meta, **more})


def test_labels_and_shapes() -> None:
    s = example_scores(categories={"a": "Math"}, runs={"b": ["x", "y"]}, layers=[2, 5, 8])
    assert (s.tasks, s.shape, s.layers, s.method, s.signed) == (
        ("a", "b"),
        (3, 4),
        (2, 5, 8),
        "mine",
        True,
    )
    assert s.values("a").shape == (7, 3, 4) and s.values("a").dtype == np.float32
    assert s.runs("a")[:2] == ("run 0", "run 1") and s.runs("b") == ("x", "y")
    assert s.categories == {"a": "Math"}
    row, head = np.unravel_index(A.mean(0).argmax(), (3, 4))
    assert s.top("a", 1) == [((2, 5, 8)[row], head)]  # the model's own layer numbers


def test_scores_are_frozen() -> None:
    source = A.copy()
    s = hw.HeadScores.from_arrays({"a": source}, method="mine")
    source[:] = 9
    assert s.values("a").max() < 9
    with pytest.raises(ValueError, match="read-only"):
        s.values("a")[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.method = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        s.meta["model"] = "other"  # type: ignore[index]


def test_scores_can_be_pickled_and_copied() -> None:
    s = example_scores(layers=[2, 5, 8], categories={"a": "Math"})
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        np.testing.assert_array_equal(again.values("a"), s.values("a"))
        assert (again.layers, dict(again.meta), dict(again.categories)) == (
            s.layers,
            dict(s.meta),
            dict(s.categories),
        )


def test_reductions_are_the_definitions() -> None:
    s = example_scores()
    np.testing.assert_allclose(s.reduce("mean")[0], A.mean(0), rtol=1e-5)
    np.testing.assert_allclose(s.reduce("median")[0], np.median(A, 0), rtol=1e-5)
    np.testing.assert_array_equal(s.reduce("always")[0], A.min(0).astype(np.float32))
    np.testing.assert_array_equal(s.reduce("any")[1], B.max(0).astype(np.float32))
    half: Any = np.float32(0.5)
    np.testing.assert_array_equal(s.reduce(half), s.reduce(0.5))
    np.testing.assert_array_equal(
        s.reduce(0.5)[0], np.sort(A.astype(np.float32), 0)[7 - 4]
    )  # reached by 4 of 7
    np.testing.assert_allclose(s.share().sum((1, 2)), 1, rtol=1e-5)
    np.testing.assert_allclose(s.share()[0], np.abs(A.mean(0)) / np.abs(A.mean(0)).sum(), rtol=1e-4)


@settings_of_hypothesis(deadline=None)
@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 12), st.integers(1, 3), st.integers(1, 3)),
        elements=st.floats(-4, 4, width=16),
    ),
    st.floats(0, 1),
    st.floats(-4, 4, width=16),
)
def test_on_means_that_at_least_a_fraction_of_the_runs_reach_the_threshold(
    values: np.ndarray, agreement: float, threshold: float
) -> None:
    found = reduce.on(values, threshold, agreement)
    reached = (values >= np.float32(threshold)).sum(0)
    np.testing.assert_array_equal(found, reached >= max(1, np.ceil(agreement * len(values) - 1e-9)))


def test_the_interval_is_the_bootstraps() -> None:
    values = RNG.normal(1.0, 2.0, size=(200, 1, 2)).astype(np.float32)
    low, high = (
        end[0] for end in hw.HeadScores.from_arrays({"a": values}, method="mine").interval()
    )
    error = values.std(0) / np.sqrt(200)
    np.testing.assert_allclose(low, values.mean(0) - 1.96 * error, atol=0.05)
    np.testing.assert_allclose(high, values.mean(0) + 1.96 * error, atol=0.05)
    one = hw.HeadScores.from_arrays({"a": values[0]}, method="mine")
    np.testing.assert_array_equal(one.interval()[0], one.interval()[1])


def test_the_elbow_is_farthest_from_the_chord() -> None:
    scores = np.concatenate([np.linspace(10, 9, 5), np.linspace(1, 0, 95)]).reshape(10, 10)
    s = hw.HeadScores.from_arrays({"a": scores}, method="mine")
    assert s.elbow("a") == pytest.approx(1.0)
    assert hw.HeadScores.from_arrays({"a": -scores}, method="mine").elbow("a") == pytest.approx(1.0)
    assert hw.HeadScores.from_arrays({"a": np.ones((2, 2))}, method="mine").elbow("a") == 1.0


def test_select_keeps_only_what_is_asked_for() -> None:
    s = example_scores().select(["b"])
    assert s.tasks == ("b",) and s.meta["tasks"] == {}
    with pytest.raises(KeyError, match="no task 'c' in these scores; they have 'a', 'b'"):
        example_scores().select("c")


def test_merging_adds_runs_and_refuses_to_count_one_twice() -> None:
    first = hw.HeadScores.from_arrays(
        {"a": A[:3]},
        method="mine",
        runs={"a": ["p", "q", "r"]},
        meta={
            "model": "m",
            "tasks": {"a": {"prompts": 3, "asked": 5, "accuracy": 0.6, "dropped": []}},
        },
    )
    second = hw.HeadScores.from_arrays(
        {"a": A[3:], "b": B},
        method="mine",
        runs={"a": list("stuv")},
        meta={
            "model": "m",
            "tasks": {"a": {"prompts": 4, "asked": 4, "accuracy": 1.0, "dropped": []}},
        },
    )
    both = first + second
    np.testing.assert_array_equal(both.values("a"), A.astype(np.float32))
    assert both.runs("a") == ("p", "q", "r", "s", "t", "u", "v") and both.tasks == ("a", "b")
    assert (
        both.meta["tasks"]["a"]["accuracy"] == pytest.approx(7 / 9)
        and both.meta["tasks"]["a"]["asked"] == 9
        and both.meta["tasks"]["a"]["prompts"] == 7
    )
    with pytest.raises(ValueError, match="task 'a': 3 of the runs are in both scores"):
        both + first
    rounded = hw.HeadScores.from_arrays(
        {"a": A[:3] * (1 + 1e-6)}, method="mine", runs={"a": ["p", "q", "r"]}, meta={"model": "m"}
    )
    with pytest.raises(ValueError, match="3 of the runs are in both"):
        first + rounded
    for changed, what in (
        (dataclasses.replace(first, method="other"), "method"),
        (dataclasses.replace(first, meta={"model": "n"}), "model"),
    ):
        with pytest.raises(ValueError, match=f"same model and method can be merged; {what} is"):
            first + changed


def test_frames_and_datasets_hold_every_score() -> None:
    s = example_scores(layers=[2, 5, 8])
    frame = s.to_pandas()
    assert (
        list(frame.columns) == ["task", "category", "run", "label", "layer", "head", "score"]
        and len(frame) == 9 * 12
    )
    picked = frame.query("task == 'b' and run == 1 and layer == 5 and head == 3")
    assert picked.score.item() == pytest.approx(B[1, 1, 3])
    block = s.to_xarray()
    assert block.score.sel(task="b", layer=5, head=3)[1].item() == pytest.approx(B[1, 1, 3])
    assert int(block.score.sel(task="b").count()) == 2 * 12  # the rest is NaN, not zero


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({}, "no scores"),
        (
            {"a": np.zeros((2, 3)), "b": np.zeros((3, 2))},
            "same layers x heads; got 'a' 2 x 3, 'b' 3 x 2",
        ),
        (
            {"a": np.array([[[1.0, np.nan, -np.inf]]])},
            "task 'a': 1 scores are not finite; the first, at run 0, layer 0, head 2, is infinite",
        ),
        ({"a": np.array([[1.0], [np.inf]])}, "at run 0, layer 1, head 0, is infinite"),
        ({"a": [[1.0, None], [2.0, "3"]]}, "must be real numbers"),
        ({"a": np.array([[1e300]])}, "infinite in float32"),
        (
            {"a": np.zeros(3)},
            r"\(run, layer, head\) or \(layer, head\), none of them 0; got \(3,\)",
        ),
        ({"a": np.zeros((0, 2, 2))}, "none of them 0"),
        ({"a": np.array([["x"]])}, "must be real numbers"),
        ({"": np.zeros((2, 2))}, "a task's name must be text and not empty"),
    ],
)
def test_bad_arrays_are_refused_with_the_place(arrays: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        hw.HeadScores.from_arrays(arrays, method="mine")


def test_labels_that_do_not_fit_are_refused() -> None:
    for more, sentence in (
        ({"runs": {"a": [0] * 7}}, "run labels must be text; got 0"),
        ({"layers": [-1, 0, 1]}, "0 or more"),
        ({"categories": {"a": 3}}, "the category of task 'a' must be text"),
        ({"meta": {"x": float("nan")}}, "meta must be plain JSON"),
        ({"meta": {"tasks": "zzz"}}, "a dict for each task"),
        ({"meta": {"merged": 5}}, "a list of dicts"),
        ({"runs": {"a": ["x"]}}, "7 runs but 1 run labels"),
        ({"layers": [0, 0, 1]}, "a number of its own"),
        ({"categories": {"z": "c"}}, "no scores: 'z'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            example_scores(**more)
    for q in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 .any. to 1 .always."):
            example_scores().reduce(q)
    for call, sentence in (
        (
            lambda: example_scores().on("high"),  # type: ignore[arg-type]
            "threshold is a finite number",
        ),
        (
            lambda: example_scores().top("a", "5"),  # type: ignore[arg-type]
            "k is a number of heads",
        ),
        (lambda: example_scores().top("a", -2), "1 or more"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(TypeError, match="from_arrays takes a dict"):
        hw.HeadScores.from_arrays(np.zeros((2, 3)), method="mine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reduction 'max' is not known"):
        example_scores().reduce("max")  # type: ignore[arg-type]


def test_a_figure_has_a_panel_for_each_task_and_a_plus_where_capped() -> None:
    values = np.full((20, 20), 0.5)
    values[0, 0] = 40
    made_figure = hw.HeadScores.from_arrays({"a": values, "b": values}, method="mine").figure()
    made_figure.draw_without_rendering()
    titles = [axes.get_title() for axes in made_figure.axes]
    assert titles[:2] == ["a", "b"]
    assert made_figure.axes[-1].get_yticklabels()[-1].get_text().endswith("+")


def test_a_probes_scores_are_ranked_and_shown_by_size() -> None:
    meta = {"display": {"normalize": "share"}, "floor": {"a": 0.5, "b": 0.25}}
    scores = hw.HeadScores.from_arrays(
        {"a": [[1.0, -3.0]], "b": [[1.0, 1.0]]}, method="probe", meta=meta
    )
    assert (
        scores.by_size
        and scores.top("a", 1) == [(0, 1)]
        and scores.top("a", 1, by="mean") == [(0, 0)]
    )
    assert (
        settings(scores).normalize == "share" and settings(scores, normalize=None).normalize is None
    )
    assert scores.select("b").meta["floor"] == {"b": 0.25}
    plain = hw.HeadScores.from_arrays({"a": [[1.0, -3.0]]}, method="gradient")
    assert (
        not plain.by_size
        and plain.top("a", 1) == [(0, 0)]
        and plain.top("a", 1, by="size") == [(0, 1)]
        and settings(plain).normalize is None
    )
    with pytest.raises(ValueError, match="by is 'mean', 'size' or None"):
        plain.top("a", by="sum")  # type: ignore[arg-type]


def test_what_a_probe_rests_on_is_said_in_words() -> None:
    known = {
        "accuracy": 0.949,
        "chance": 0.125,
        "control_accuracy": 0.1,
        "surface": 1.0,
        "tasks": ["a", "b"],
        "confusion": [[5, 1], [3, 6]],
    }
    scores = hw.HeadScores.from_arrays(
        {"a": [[1.0]], "b": [[1.0]]}, method="probe", meta={"probe": known}
    )
    about = dict(provenance.about(scores))
    assert (
        about["probe"] == "94% of held-out examples right; chance 12%, shuffled labels 10%, "
        "words of the prompts alone 100%"
    )
    assert about["taken for another"] == "b for a 3, a for b 1"
    wrong_kinds = (
        {"confusion": [[1]]},
        {"confusion": "x"},
        {"accuracy": "x"},
        {"tasks": 3},
        {"surface": "x"},
    )
    for wrong in wrong_kinds:
        provenance.about(
            hw.HeadScores.from_arrays(
                {"a": [[1.0]]}, method="probe", meta={"probe": {**known, **wrong}}
            )
        )


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="half a letter"):
        hw.HeadScores.from_arrays({"a\ud800": [[1.0]]}, method="mine")


def aspects() -> hw.HeadScores:
    rng = np.random.default_rng(0)
    shapes = {"a": (4, 2, 3), "b": (1, 2, 3)}
    return hw.HeadScores.from_arrays(
        {n: rng.random(s) for n, s in shapes.items()},
        method="gating",
        categories={"a": "one"},
        meta={"seed": 1},
        aspects={
            "interference": {n: rng.random(s) for n, s in shapes.items()},
            "irrelevance": {n: rng.random(s) for n, s in shapes.items()},
        },
    )


def test_what_an_aspect_means_is_said_of_the_aspect() -> None:
    meta = {"meaning": "How open.", "aspects": {"interference": "How closed."}, "seed": 1}
    scores = dataclasses.replace(aspects(), meta=meta)
    assert scores.record.meaning == "How open."
    assert scores.aspects["interference"].record.meaning == "How closed."
    assert scores.aspects["irrelevance"].record.meaning is None
    other = aspects().select("b")
    both = scores.select("a").merge(dataclasses.replace(other, meta={**meta, "seed": 2}))
    of_sources = both.aspects["interference"].record.sources
    assert [record.meaning for record in of_sources] == ["How closed."] * len(of_sources)


def test_aspects_are_scores_of_the_same_runs() -> None:
    scores = aspects()
    other = scores.aspects["interference"]
    assert list(scores.aspects) == ["interference", "irrelevance"]
    assert (other.method, other.tasks, other.runs("a"), other.meta, dict(other.categories)) == (
        "gating (interference)", scores.tasks, scores.runs("a"), scores.meta, {"a": "one"},
    )  # fmt: skip
    assert not np.array_equal(other.values("a"), scores.values("a"))
    assert scores.aspects["irrelevance"].top("b", 1) and not other.aspects


def test_aspects_are_saved_selected_merged_and_pickled(tmp_path: Path) -> None:
    scores = aspects()
    opened = hw.open(scores.save(tmp_path / "s.safetensors"))
    for same in (opened, pickle.loads(pickle.dumps(scores))):
        for name, of in scores.aspects.items():
            assert np.array_equal(
                same.aspects[name].values("a"), of.values("a")
            ) and np.array_equal(same.aspects[name].values("b"), of.values("b"))
    one = scores.select("b")
    assert one.aspects["interference"].tasks == ("b",)
    both = scores.select("a") + one
    assert np.array_equal(
        both.aspects["irrelevance"].values("b"), scores.aspects["irrelevance"].values("b")
    )
    opened.aspects["interference"].save(tmp_path / "i.safetensors")
    assert hw.open(tmp_path / "i.safetensors").method == "gating (interference)"


def test_aspects_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="aspect 'x' must have the tasks, runs, layers and heads"):
        hw.HeadScores.from_arrays(
            {"a": np.zeros((2, 2, 2))}, method="m", aspects={"x": {"a": np.zeros((1, 2, 2))}}
        )
    with pytest.raises(ValueError, match="aspect 'x' must have"):
        hw.HeadScores.from_arrays(
            {"a": np.zeros((2, 2, 2))}, method="m", aspects={"x": {"b": np.zeros((2, 2, 2))}}
        )
