"""Charts beside the heatmaps show what the explorer shows, settle, and let go of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pandas as pd
import pytest
from traitlets import TraitError

import headwidget as hw
from headwidget import charts
from headwidget.charts import scatter_chart
from headwidget.display import scales, views, wire
from headwidget.display.effect import Effect
from headwidget.scores import threshold as rules
from tests.support import made_up


@pytest.fixture
def scores() -> hw.HeadScores:
    return made_up.scores(6, 8, tasks=3, runs=7, signed=True)


@pytest.fixture
def explorer(scores: hw.HeadScores) -> hw.Explorer:
    return hw.explore(scores, preview=None)


def effect(
    ks: tuple[int, ...] = (1, 4, 16), methods: tuple[str, ...] = ("mine",), foils: bool = False
) -> Effect:
    """What hw.knockout gives for two tasks, from made-up numbers.

    The top heads of "math" matter, those of "syntax" do not.
    """
    rng, rows = np.random.default_rng(0), []
    for method, heads_of, task, k, draw in itertools.product(
        methods, ("math", "syntax"), ("math", "syntax"), ks, range(4)
    ):
        change = (
            -0.1 * k
            if heads_of == task == "math" and draw == 0
            else -0.01 * k * rng.random() * (draw > 0)
        )
        row = {
            "method": method,
            "heads_of": heads_of,
            "task": task,
            "k": k,
            "kind": "control" if draw else "top",
            "draw": draw,
            "in_top": 0,
            "heads": (),
        }
        for name, before in (
            ("accuracy", 0.9),
            ("beats_foil", 0.95 if foils else np.nan),
            ("log_probability", -0.5),
        ):
            row |= {name: before + change, f"{name}_change": before + change - before}
        rows.append(row)
    plain = [
        {
            "task": t,
            "accuracy": 0.9,
            "beats_foil": 0.95 if foils else np.nan,
            "log_probability": -0.5,
            "prompts": 20,
        }
        for t in ("math", "syntax")
    ]
    return Effect(pd.DataFrame(rows), pd.DataFrame(plain), 0.0)


def observers(explorer: hw.Explorer) -> int:
    return sum(
        len(found) for kinds in explorer._trait_notifiers.values() for found in kinds.values()
    )


def brush(chart: Any, low: float | None, high: float | None = None, *, held: bool = False) -> None:
    """What the page says while a brush is dragged (held) and when it is let go."""
    chart.brush.set_state({"brushing": held, "selected": None if low is None else [low, high]})


def counted(explorer: hw.Explorer) -> str:
    """What the explorer's own views count."""
    passing, heads = (
        views.picture(explorer.scores, explorer._drawn()[1]).passing,
        int(np.prod(explorer.scores.shape)),
    )
    return f"{heads} heads" if passing is None else f"{int(passing.sum())} of {heads} heads pass"


# ---- imports ----


def test_charts_of_a_saved_file_need_no_torch_and_headwidget_alone_needs_no_bqplot(
    scores: hw.HeadScores, tmp_path: Path
) -> None:
    path = scores.save(tmp_path / "s.safetensors")
    code = f"""
import sys, headwidget as hw
assert "bqplot" not in sys.modules and "ipywidgets" not in sys.modules
explorer = hw.explore({str(path)!r}, preview=None)
assert "bqplot" not in sys.modules
print(hw.dashboard(explorer).charts[0].title)
assert "bqplot" in sys.modules
assert not {{"torch", "transformers", "matplotlib", "marimo"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (
        0,
        "Knowledge Recall, Retrieval, Logical Reasoning · 48 heads",
    ), done.stderr


# ---- the histogram ----


@pytest.mark.parametrize("view", ["tasks", "agreement", "categories"])
@pytest.mark.parametrize("signed", [True, False])
def test_the_histogram_counts_what_the_explorer_counts(view: str, signed: bool) -> None:
    explorer = hw.explore(
        made_up.scores(6, 8, tasks=3, runs=7, signed=signed), preview=None, view=view
    )
    chart = hw.charts.histogram(explorer)
    every = itertools.product(
        (("value", 0.004), ("value", None), ("top", 5), ("percent", 20), ("elbow", 1)),
        ("either", "helps", "hurts"),
        ("mean", "median"),
        (None, "share"),
        (0.0, 0.6, 1.0),
    )
    seen = set()
    for (rule, threshold), sign, reduction, normalize, agreement in every:
        with explorer.hold_trait_notifications():
            (
                explorer.rule,
                explorer.sign,
                explorer.reduction,
                explorer.normalize,
                explorer.agreement,
            ) = rule, sign, reduction, normalize, agreement
        explorer.threshold = threshold
        assert chart.title.endswith(f" · {counted(explorer)}"), (
            rule,
            sign,
            reduction,
            normalize,
            agreement,
        )
        on, all_ = (
            (np.where(mark.y > 0.5, mark.y, 0)).sum() for mark in (chart.passing, chart.heads)
        )
        assert all_ == 3 * 48
        now = charts.shown.shown(explorer)  # type: ignore[attr-defined]
        assert on == sum(
            0 if (found := now.passes(task)) is None else found.sum() for task in now.tasks
        )
        for task in now.tasks:  # what stands right of the line is what passes
            if (cut := now.cut(task)) is not None and np.isfinite(cut):
                assert (
                    (now.strength(task) >= np.float32(cut) * (1 - 1e-6)) >= now.passes(task)
                ).all()
                assert (
                    (now.strength(task) >= np.float32(cut) * (1 + 1e-6)) <= now.passes(task)
                ).all()
        seen.add(chart.title)
    assert len(seen) > 5
    explorer.tasks = explorer.tasks[:1]
    assert chart.title == f"Knowledge Recall · {counted(explorer)}"
    explorer.tasks = []
    assert chart.title.startswith("no task · 48 heads") or view == "categories"


def test_a_threshold_moves_the_brush_and_the_brush_the_threshold(explorer: hw.Explorer) -> None:
    chart = hw.charts.histogram(explorer)
    assert chart.brush.selected is None
    explorer.threshold = 0.004
    end = chart.figure.axes[0].scale.max
    assert chart.brush.selected.tolist() == [0.004, end]
    heard: list[Any] = []
    explorer.observe(lambda change: heard.append(change["new"]), "threshold")
    brush(chart, 0.0061234, 0.008, held=True)
    assert chart.brush.selected.tolist() == [0.0061234, 0.008], "a brush that is held is left alone"
    brush(chart, 0.0071234, 0.009)
    step = scales.nice_step(end / 1000)
    assert heard == [pytest.approx(0.0061234, abs=step), pytest.approx(0.0071234, abs=step)], (
        "one change each: it settles"
    )
    assert len(f"{heard[1]:.10f}".rstrip("0")) <= 8, "no digits that nobody meant"
    assert chart.brush.selected.tolist() == [explorer.threshold, end], (
        "let go, it reaches from the threshold to the end"
    )
    assert chart.title.endswith(counted(explorer))
    brush(chart, None)
    assert (explorer.threshold, heard[2:]) == (None, [None])
    explorer.threshold = 99.0
    assert chart.brush.selected.tolist() == [end, end]
    assert explorer.threshold == 99.0, "beyond the axis the threshold stays what it is"
    assert chart.title.endswith(" · 0 of 48 heads pass")


@pytest.mark.parametrize("sign", ["either", "helps", "hurts"])
def test_the_brush_begins_where_heads_count_in_the_direction_asked_for(
    explorer: hw.Explorer, sign: str
) -> None:
    explorer.sign = sign
    explorer.task = "Retrieval"
    chart = hw.charts.histogram(explorer)
    brush(chart, 0.0012, 0.002)
    mean = explorer.scores.reduce("mean")[1]
    strength = {"either": np.abs(mean), "helps": mean, "hurts": -mean}[sign]
    assert explorer.threshold == pytest.approx(0.0012, abs=1e-4)
    assert (
        chart.title
        == f"Retrieval · {(strength >= np.float32(explorer.threshold)).sum()} of 48 heads pass"
    )
    axis = chart.figure.axes[0]
    assert (
        axis.label
        == {
            "either": "made up · |mean|",
            "helps": "made up · mean, helps",
            "hurts": "made up · mean, hurts",
        }[sign]
    )
    assert (axis.scale.min, axis.scale.max) == (
        pytest.approx(min(strength.min(), 0)),
        pytest.approx(strength.max()),
    )


@pytest.mark.parametrize(("rule", "threshold"), [("top", 5.0), ("percent", 10.0), ("elbow", 1.0)])
def test_another_rule_has_a_line_a_task_and_brushing_makes_it_a_value(
    explorer: hw.Explorer, rule: str, threshold: float
) -> None:
    explorer.tasks = explorer.tasks[:2]
    chart = hw.charts.histogram(explorer)
    explorer.rule = rule
    assert explorer.threshold == {"top": 10, "percent": 5, "elbow": 1}[rule]
    explorer.threshold = threshold
    assert chart.brush.selected is None
    settings = explorer._drawn()[1]
    cuts = [
        float(rules.cut(rules.strength(explorer.scores, t, settings), settings, True))
        for t in explorer.tasks
    ]  # type: ignore[arg-type]
    assert sorted(chart.cuts.x[:, 0]) == pytest.approx(sorted(cuts))
    brush(chart, 1.0 * chart.figure.axes[0].scale.max, chart.figure.axes[0].scale.max)
    assert explorer.rule == "value"
    assert explorer.threshold == pytest.approx(chart.figure.axes[0].scale.max, rel=0.01)
    assert chart.cuts.x.size == 0


def test_brushing_where_another_rules_number_stood_keeps_it() -> None:
    explorer = hw.explore(
        hw.HeadScores.from_arrays({"a": [[0.0, 1.0], [2.0, 4.0]]}, method="mine"),
        preview=None,
        rule="elbow",
    )
    chart = hw.charts.histogram(explorer)
    brush(chart, 1.0, 2.0)
    assert (explorer.rule, explorer.threshold) == ("value", 1.0)


# ---- the layer profile ----


def test_the_layer_profile_follows_tasks_reduction_and_threshold(
    explorer: hw.Explorer, scores: hw.HeadScores
) -> None:
    chart = hw.charts.layer_profile(explorer)
    solid = chart.lines[0]
    assert np.allclose(solid.y, scores.reduce("mean").mean(axis=2))
    assert solid.x.tolist() == list(scores.layers)
    colours = solid.colors
    explorer.reduction = "median"
    assert np.allclose(solid.y, scores.reduce("median").mean(axis=2))
    explorer.tasks = ["Logical Reasoning", "Retrieval"]
    assert np.allclose(solid.y, scores.reduce("median").mean(axis=2)[[2, 1]])
    assert solid.colors == [colours[2], colours[1]], "a task keeps its colour"
    assert chart.title == "Logical Reasoning, Retrieval · mean over heads of each layer"
    assert chart.note == "Logical Reasoning, Retrieval"
    chart.of.value = "passing"
    assert "set a threshold first" in chart.title
    explorer.threshold = 0.002
    counts = [
        rules.passing(scores, task, explorer._drawn()[1]).sum(axis=1) for task in explorer.tasks
    ]  # type: ignore[union-attr]
    assert solid.y.tolist() == np.array(counts, float).tolist()
    assert solid.y.sum() > 0
    chart.of.value = "max"
    mean = scores.reduce("median")[2]
    assert np.abs(solid.y[0]).tolist() == np.abs(mean).max(axis=1).tolist()
    assert (solid.y[0] < 0).any() == bool((mean.max(axis=1) < -mean.min(axis=1)).any()), (
        "the strongest head keeps its sign"
    )
    explorer.tasks = []
    assert all(line.y.size == 0 for line in chart.lines)


def test_twenty_tasks_have_twenty_looks() -> None:
    chart = hw.charts.layer_profile(hw.explore(made_up.relations(4, 4, runs=3), preview=None))
    looks = [(line.line_style, colour) for line in chart.lines for colour in line.colors]
    assert len(set(looks)) == len(looks) == 20
    assert [len(line.y) for line in chart.lines] == [8, 8, 4]


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_every_chart_shows_a_single_layer_and_a_single_head(
    shape: tuple[int, int], tasks: int
) -> None:
    """bqplot squeezes (1, 1) into (), and (2, 1) into what it reads as one line."""
    scores = made_up.scores(*shape, tasks=tasks, runs=3)
    explorer = hw.explore(scores, preview=None, threshold=0.002)
    board = hw.dashboard(explorer)
    profile = board.charts[1]
    for of in ("max", "passing", "mean"):
        profile.of.value = of
    lines = np.atleast_2d(profile.lines[0].y)  # (task, layer)
    means = scores.reduce("mean").mean(axis=2)
    assert lines.shape == (tasks, max(2, shape[0])) == (tasks, len(profile.lines[0].x))
    assert np.allclose(lines, means)
    explorer.rule = "elbow"
    explorer.selected = [[0, 0]]
    explorer.task = explorer.tasks[0]
    assert profile.note == explorer.task
    scatter = board.charts[2] if tasks == 2 else hw.charts.scatter(explorer, scores)
    assert len(scatter.dots.x) == shape[0] * shape[1] and len(scatter.chosen.x) == 1


# ---- the scatter ----


def lasso(chart: Any, *heads: int) -> list[Any]:
    """What the page says when a lasso is drawn round some dots; gives what becomes of the lasso."""
    layers: list[Any] = []
    chart.figure.observe(lambda change: layers.append(change["new"]), "interaction")
    chart.dots.set_state({"selected": list(heads)})
    chart.figure.unobserve_all("interaction")
    return layers


def test_a_lasso_selects_and_a_selection_shows(
    explorer: hw.Explorer, scores: hw.HeadScores
) -> None:
    layered = hw.explore(
        hw.HeadScores.from_arrays(
            {t: scores.values(t) for t in scores.tasks}, method="mine", layers=[1, 3, 5, 7, 9, 11]
        ),
        preview=None,
    )
    chart = hw.charts.scatter(layered)
    heard: list[Any] = []
    layered.observe(lambda change: heard.append(change["new"]), "selected")
    assert lasso(chart, 0, 9, 47) == [None, chart.lasso], (
        "the lasso goes when its heads are selected"
    )
    assert layered.selected == [[1, 0], [3, 1], [11, 7]]
    assert heard == [layered.selected]
    mean = layered.scores.reduce("mean")
    assert chart.chosen.x.tolist() == mean[0].ravel()[[0, 9, 47]].tolist()
    assert chart.chosen.y.tolist() == mean[1].ravel()[[0, 9, 47]].tolist()
    assert chart.note == "3 selected: L1 H0, L3 H1, L11 H7"
    layered.selected = [(5, 2)]
    assert chart.chosen.x.tolist() == [mean[0, 2, 2]]
    assert lasso(chart, 0, 9, 47), "the same lasso again"
    assert len(layered.selected) == 3
    lasso(chart)
    assert layered.selected == []
    assert chart.chosen.x.size == 0


def test_a_scatter_draws_the_tasks_asked_for_and_their_rank_correlation(
    explorer: hw.Explorer, scores: hw.HeadScores
) -> None:
    chart = hw.charts.scatter(explorer, x="Retrieval", y="Logical Reasoning")
    mean = scores.reduce("mean")
    assert chart.dots.x.tolist() == mean[1].ravel().tolist()
    assert chart.dots.y.tolist() == mean[2].ravel().tolist()
    rho = (
        pd.DataFrame({"a": mean[1].ravel(), "b": mean[2].ravel()})
        .corr(method="spearman")
        .iloc[0, 1]
    )
    assert (
        chart.title
        == f"Retrieval against Logical Reasoning · rank correlation {rho:.2f} (48 heads)".replace(
            "-", "−"
        )
    )
    explorer.normalize = "share"
    assert chart.dots.x.sum() == pytest.approx(1)


def test_rank_correlation_is_right_with_ties_and_with_numbers_missing() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 6, 40).astype(float), rng.normal(size=40)
        a[rng.random(40) < 0.2], b[rng.random(40) < 0.2] = np.nan, np.nan
        rho, n = scatter_chart.spearman(a, b)
        assert rho == pytest.approx(
            pd.DataFrame({"a": a, "b": b}).corr(method="spearman").iloc[0, 1]
        )
        assert n == (np.isfinite(a) & np.isfinite(b)).sum()
    assert (
        scatter_chart.correlation(np.ones(3), np.arange(3.0))
        == "rank correlation not defined (3 heads)"
    )
    assert (
        scatter_chart.correlation(np.array([np.nan]), np.array([1.0]))
        == "rank correlation not defined (0 heads)"
    )


def test_one_task_in_two_methods(explorer: hw.Explorer, scores: hw.HeadScores) -> None:
    other = hw.HeadScores.from_arrays(
        {t: -scores.values(t) for t in scores.tasks}, method="upside down"
    )
    chart = hw.charts.scatter(explorer, other)
    assert (
        chart.title
        == "Knowledge Recall: made up against upside down · rank correlation −1.00 (48 heads)"
    )
    beside = hw.explore(other, preview=None)
    linked = hw.charts.scatter(explorer, beside, x="Retrieval")
    beside.reduction = "median"
    assert linked.dots.y.tolist() == other.reduce("median")[1].ravel().tolist()
    assert linked.dots.x.tolist() == scores.reduce("mean")[1].ravel().tolist()
    linked.close()
    assert observers(beside) == observers(hw.explore(other, preview=None))


# ---- the knock-out curve ----


def test_a_knockout_curve_shows_top_heads_beside_their_controls() -> None:
    found = effect()
    chart = hw.charts.knockout_curve(found)
    assert chart.title == "math · mine: top heads beyond every control at 3 of 3 k"
    rows = found.summary()
    rows = rows[rows["heads_of"] == "math"]
    assert chart.top.x.tolist() == [1, 4, 16]
    assert chart.top.y.tolist() == rows["top"].tolist()
    assert chart.control.y.tolist() == rows["control"].tolist()
    assert chart.range.y.tolist() == rows[["control_low", "control_high"]].to_numpy().tolist()
    assert type(chart.figure.axes[0].scale).__name__ == "LogScale"
    assert list(chart.measure.options) == ["log-probability", "accuracy"], (
        "no foils, no line for them"
    )
    chart.measure.value = "accuracy"
    assert chart.top.y.tolist() == found.summary("accuracy")["top"].tolist()[:3]
    assert chart.figure.axes[1].label == "change in accuracy (fraction)"
    assert "beats its foil" in hw.charts.knockout_curve(effect(foils=True)).measure.options


def test_a_frame_and_a_summary_draw_the_same_curve() -> None:
    found = effect()
    curves = [hw.charts.knockout_curve(part) for part in (found, found.frame, found.summary())]
    for curve in curves[1:]:
        assert curve.title == curves[0].title
        for one, two in (
            (curve.top, curves[0].top),
            (curve.control, curves[0].control),
            (curve.range, curves[0].range),
        ):
            assert np.allclose(one.y, two.y)


def test_a_curve_of_one_k_or_of_near_ones_has_a_plain_axis() -> None:
    for ks in ((4,), (2, 3, 4)):
        chart = hw.charts.knockout_curve(effect(ks))
        scale = chart.figure.axes[0].scale
        assert type(scale).__name__ == "LinearScale"
        assert scale.min < min(ks) <= max(ks) < scale.max
        assert chart.range.y.size == 2 * len(ks)


def test_a_knockout_curve_goes_to_the_task_the_explorer_shows() -> None:
    scores = hw.HeadScores.from_arrays(
        {"math": np.eye(3), "syntax": np.eye(3), "other": np.eye(3)}, method="second"
    )
    explorer = hw.explore(scores, preview=None)
    chart = hw.charts.knockout_curve(effect(methods=("first", "second")), explorer)
    assert chart.pair.value == ("first", "math")
    explorer.task = "syntax"
    assert chart.pair.value == ("second", "syntax"), "by the explorer's method"
    assert chart.title.startswith("syntax · second")
    explorer.task = "other"
    assert chart.pair.value == ("second", "syntax"), "no heads of this task were turned off"
    explorer.task = None
    explorer.tasks = ["math"]
    assert chart.pair.value == ("second", "math")


# ---- following, settling, letting go ----

MAKE: dict[str, Any] = {
    "histogram": hw.charts.histogram,
    "layer_profile": hw.charts.layer_profile,
    "scatter": hw.charts.scatter,
    "knockout_curve": lambda explorer: hw.charts.knockout_curve(effect(), explorer),
    "dashboard": hw.dashboard,
}


@pytest.mark.parametrize("name", MAKE)
def test_a_closed_chart_lets_go_of_its_explorer(explorer: hw.Explorer, name: str) -> None:
    before = observers(explorer)
    chart = MAKE[name](explorer)
    assert observers(explorer) > before
    chart.close()
    assert observers(explorer) == before
    explorer.threshold = 0.5
    assert chart.comm is None
    chart.close()


@pytest.mark.parametrize("name", [n for n in MAKE if n != "dashboard"])
def test_a_closed_explorer_is_let_go(explorer: hw.Explorer, name: str) -> None:
    before = observers(explorer)
    chart = MAKE[name](explorer)
    title = chart.title
    explorer.close()
    assert observers(explorer) == before
    explorer.threshold = 0.001
    assert chart.title == title
    chart.close()


@pytest.mark.parametrize("name", ["histogram", "layer_profile", "scatter"])
def test_new_scores_are_followed(explorer: hw.Explorer, name: str) -> None:
    """A live explorer exchanges its scores as they land, then the bytes for the browser."""
    chart = MAKE[name](explorer)
    explorer.threshold = 0.002
    new = made_up.scores(6, 8, tasks=3, runs=9, signed=True, seed=5)
    explorer._shown = new
    header, buffer = wire.encode(new)
    explorer.set_trait("_header", header)
    explorer.set_trait("_buffer", buffer)
    fresh = MAKE[name](explorer)
    assert chart.title == fresh.title
    for mine, other in zip(chart.figure.marks, fresh.figure.marks):
        assert np.array_equal(mine.x, other.x)
        assert np.array_equal(mine.y, other.y)


@pytest.mark.parametrize("task", [None, "Retrieval", "Logical Reasoning"])
def test_scores_of_another_shape_or_other_tasks_raise_nothing_on_the_way(
    explorer: hw.Explorer, task: str | None
) -> None:
    chart, board = hw.charts.scatter(explorer), hw.dashboard(explorer)
    explorer.selected, explorer.task = [(5, 7)], task
    new = hw.HeadScores.from_arrays(
        {"Retrieval": np.ones((3, 2, 4)), "new": np.ones((3, 2, 4))}, method="mine"
    )
    explorer._shown = new
    explorer.set_trait("_header", wire.encode(new)[0])
    assert chart.title.startswith(
        "Knowledge Recall against Retrieval · no task 'Knowledge Recall' in these scores"
    )
    assert board.charts[0].title == "Retrieval · 8 heads"


def test_a_scatter_without_its_task_is_empty_until_the_task_is_back(
    explorer: hw.Explorer, scores: hw.HeadScores
) -> None:
    chart = hw.charts.scatter(explorer)
    axes = chart.figure.axes
    labels, ticks = [axis.label for axis in axes], [axis.tick_values.tolist() for axis in axes]
    explorer.selected = [(5, 7)]

    def show(shown: hw.HeadScores) -> None:
        explorer._shown = shown
        explorer.set_trait("_header", wire.encode(shown)[0])

    show(hw.HeadScores.from_arrays({"Retrieval": np.ones((3, 6, 8))}, method="mine"))
    assert "no task 'Knowledge Recall'" in chart.title
    for dots in (chart.dots, chart.chosen):
        assert dots.x.size == dots.y.size == 0
    assert [axis.label for axis in axes] == ["", ""]
    assert all(axis.tick_values.size == 0 for axis in axes)
    assert chart.figure.interaction is None
    chart.dots.set_state({"selected": [0, 1]})  # a lasso that the page sent just before
    assert explorer.selected == [[5, 7]] and chart.dots.selected is None

    show(scores)
    assert chart.dots.x.size == 48 and chart.chosen.x.size == 1
    assert [axis.label for axis in axes] == labels
    assert [axis.tick_values.tolist() for axis in axes] == ticks
    assert chart.figure.interaction is chart.lasso


# ---- the dashboard ----


def test_a_dashboard_is_an_app_layout_of_the_explorer_and_charts(explorer: hw.Explorer) -> None:
    curve = hw.charts.knockout_curve(effect())
    board = hw.dashboard(explorer, ["histogram", curve, ipywidgets.Label("mine")])
    assert isinstance(board, ipywidgets.AppLayout)
    assert board.center.children == (explorer,)
    assert [type(chart).__name__ for chart in board.charts] == [
        "Histogram",
        "KnockoutCurve",
        "Label",
    ]
    board.close()
    assert board.charts[0].comm is None
    assert curve.comm is not None, "a chart that was given stays"
    assert explorer.comm is not None
    one = hw.explore(hw.HeadScores.from_arrays({"a": np.eye(3)}, method="mine"), preview=None)
    assert [type(chart).__name__ for chart in hw.dashboard(one).charts] == [
        "Histogram",
        "LayerProfile",
    ]
    assert hw.dashboard(one, []).charts == ()


# ---- sentences ----


def test_what_goes_wrong_is_a_sentence(explorer: hw.Explorer, scores: hw.HeadScores) -> None:
    small = hw.HeadScores.from_arrays({"Retrieval": np.eye(3)}, method="small")
    one = hw.explore(small, preview=None)
    wrong: list[tuple[type[Exception], str, Any]] = [
        (
            TypeError,
            "histogram takes an explorer, which it follows; got a HeadScores: "
            "hw.explore(scores) makes one.",
            lambda: hw.charts.histogram(scores),
        ),  # type: ignore[arg-type]
        (
            TypeError,
            "dashboard takes an explorer",
            lambda: hw.dashboard(3),  # type: ignore[arg-type]
        ),
        (
            ValueError,
            "of is 'mean', 'max' or 'passing'; got 'min'.",
            lambda: hw.charts.layer_profile(explorer, of="min"),
        ),  # type: ignore[arg-type]
        (
            ValueError,
            "no task 'nope' in these scores; they have 'Knowledge Recall', 'Retrieval'",
            lambda: hw.charts.scatter(explorer, x="nope"),
        ),
        (
            ValueError,
            "no task 'nope' in these scores",
            lambda: hw.charts.scatter(explorer, y="nope"),
        ),
        (
            ValueError,
            "these scores have one task, 'Retrieval'; give scatter other scores",
            lambda: hw.charts.scatter(one),
        ),
        (
            ValueError,
            "the same layers and heads, and have 6 layers (0 to 5) of 8 heads and "
            "3 layers (0 to 2) of 3 heads",
            lambda: hw.charts.scatter(explorer, small, x="Retrieval"),
        ),
        (
            ValueError,
            "the other scores have no task 'Retrieval'; say which of",
            lambda: hw.charts.scatter(one, made_up.fits(3, 3)),
        ),
        (
            TypeError,
            "other is an explorer or HeadScores; got a str.",
            lambda: hw.charts.scatter(explorer, "other"),
        ),  # type: ignore[arg-type]
        (
            TypeError,
            "knockout_curve takes what hw.knockout gives, its .frame or its .summary(); got a int.",
            lambda: hw.charts.knockout_curve(3),
        ),  # type: ignore[arg-type]
        (
            ValueError,
            "this frame lacks accuracy, accuracy_change",
            lambda: hw.charts.knockout_curve(pd.DataFrame({"k": [1]})),
        ),
        (
            ValueError,
            "measure is 'log_probability', 'accuracy', 'beats_foil'; got 'loss'.",
            lambda: hw.charts.knockout_curve(effect(), measure="loss"),
        ),  # type: ignore[arg-type]
        (
            ValueError,
            "there is no beats its foil to draw",
            lambda: hw.charts.knockout_curve(effect(), measure="beats_foil"),
        ),
        (
            TypeError,
            "knockout_curve takes an explorer",
            lambda: hw.charts.knockout_curve(effect(), scores),
        ),  # type: ignore[arg-type]
        (ValueError, "no chart 'pie'; by name there are", lambda: hw.dashboard(explorer, ["pie"])),
        (
            TypeError,
            "charts is a list of names and charts",
            lambda: hw.dashboard(explorer, "histogram"),
        ),
        (TypeError, "charts are names or widgets; got a int.", lambda: hw.dashboard(explorer, [3])),
    ]
    before = observers(explorer)
    for kind, sentence, call in wrong:
        with pytest.raises(kind) as error:
            call()
        assert sentence in str(error.value)
    assert observers(explorer) == before
    with pytest.raises(TraitError, match="finite number"):
        explorer.threshold = float("nan")


def test_names_stay_text() -> None:
    name = '<img src=x onerror="alert(1)"> $a$'
    explorer = hw.explore(
        hw.HeadScores.from_arrays({name: np.eye(3), "b": np.eye(3)}, method="<b>"), preview=None
    )
    for chart in hw.dashboard(explorer).charts:
        for part in (chart._title, chart._note):
            assert "<img" not in part.value
            assert "$a$" not in part.value
        assert "&lt;img" in chart._title.value
