"""The Explorer's Python side: traits that are checked before they are sent, and no torch."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from traitlets import TraitError

import headwidget as hw
from headwidget.display import assets, settings, wire
from headwidget.display import explorer as explorers


@pytest.fixture
def scores() -> hw.HeadScores:
    values = np.random.default_rng(0).normal(size=(4, 3, 5))
    return hw.HeadScores.from_arrays(
        {"math": values, "syntax": -values}, method="mine", layers=[2, 5, 8], meta={"model": "tiny"}
    )


def test_an_explorer_starts_with_every_task_and_nothing_else(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    assert explorer.page_state() == {
        "view": "tasks",
        "tasks": ["math", "syntax"],
        "task": None,
        "threshold": None,
        "rule": "value",
        "agreement": 1.0,
        "sign": "either",
        "reduction": "mean",
        "normalize": None,
        "colormap": None,
        "scale": "shared",
        "cap": None,
        "orientation": None,
        "columns": None,
        "isolated": None,
        "selected": [],
    }
    assert explorer.hover is None
    np.testing.assert_array_equal(
        wire.decode(explorer._header, explorer._buffer)[1]["mean"], scores.reduce("mean")[1]
    )


def test_a_page_gets_every_setting_as_it_is_now(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores, view="categories", rule="percent", selected=[(5, 0)], cap="99%")
    explorer.orientation, explorer.isolated, explorer.task = "y", "2 categories", "syntax"
    state = explorer.page_state()
    assert state.keys() == {*settings.NAMES, "selected"}
    assert (state["view"], state["rule"], state["threshold"], state["cap"]) == (
        "categories",
        "percent",
        5.0,
        "99%",
    )
    assert (state["orientation"], state["isolated"], state["task"], state["selected"]) == (
        "y",
        "2 categories",
        "syntax",
        [[5, 0]],
    )
    json.dumps(state, allow_nan=False)


def test_traits_take_what_scores_and_numpy_give(scores: hw.HeadScores) -> None:
    explorer = hw.explore(
        scores,
        tasks=("syntax",),
        threshold=np.float32(0.5),
        selected=[(5, np.int64(4)), [5, 4], (2, 0)],
    )
    assert explorer.tasks == ["syntax"]
    assert explorer.threshold == 0.5 and type(explorer.threshold) is float
    assert explorer.selected == [[5, 4], [2, 0]]
    explorer.selected = scores.top("math", 2)
    explorer.threshold = scores.elbow("math")
    assert [tuple(head) for head in explorer.selected] == scores.top("math", 2)
    explorer.selected = np.argwhere(np.eye(3, 5)) * [3, 1] + [
        2,
        0,
    ]  # rows 0, 1, 2 are layers 2, 5, 8
    assert explorer.selected == [[2, 0], [5, 1], [8, 2]]
    assert all(type(n) is int for head in explorer.selected for n in head)
    explorer.selected = {(8, 1)}
    assert explorer.selected == [[8, 1]]
    explorer.agreement, explorer.columns, explorer.cap, explorer.hover = (
        np.float32(0.5),
        np.int32(2),
        np.float64(0.25),
        np.array([5, 1]),
    )
    assert (explorer.agreement, explorer.columns, explorer.cap, explorer.hover) == (
        0.5,
        2,
        0.25,
        [5, 1],
    )
    assert [type(explorer.agreement), type(explorer.columns), type(explorer.cap)] == [
        float,
        int,
        float,
    ]
    explorer.cap = " 97.50 % "
    assert explorer.cap == "97.50%"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "selected",
            [[1, 0]],
            r"no head \[1, 0\] in these scores: they have 3 layers \(2 to 8\) of 5 heads",
        ),
        ("selected", [[2, 5]], r"no head \[2, 5\]"),
        ("selected", [[2, -1]], r"no head \[2, -1\]"),
        ("selected", [[2]], r"a list of \[layer, head\]"),
        ("selected", [7], r"a list of \[layer, head\]"),
        ("selected", "L2 H1", r"a list of \[layer, head\]; got 'L2 H1'"),
        ("selected", None, r"a list of \[layer, head\]; got None"),
        ("selected", [[2.5, 1]], r"two whole numbers"),
        ("selected", np.array([[2.0, 1.0]]), r"two whole numbers"),
        ("threshold", float("nan"), "a finite number, or None"),
        ("threshold", float("inf"), "a finite number, or None"),
        ("threshold", "0.5", "a finite number, or None"),
        ("threshold", True, "a finite number, or None"),
        ("tasks", ["recall"], "no task 'recall' in these scores; they have 'math', 'syntax'"),
        ("tasks", ["math", "math"], "twice"),
        ("tasks", [3], "no task 3"),
        ("tasks", "math", "tasks is a list of task names; got 'math'"),
        ("task", "recall", "no task 'recall' in these scores; they have 'math', 'syntax'"),
        ("task", ["math"], r"no task \['math'\]"),
        (
            "view",
            "agreements",
            "view 'agreements' is not known; use 'tasks' or 'agreement' or 'categories'",
        ),
        ("view", ["tasks"], "is not known"),
        ("view", None, "view None is not known"),
        ("rule", "topk", "rule 'topk' is not known; use 'value' or 'top' or 'percent' or 'elbow'"),
        ("sign", "plus", "sign 'plus' is not known; use 'either' or 'helps' or 'hurts'"),
        ("reduction", "max", "reduction 'max' is not known; use 'mean' or 'median'"),
        ("normalize", True, "normalize True is not known; use None or 'share'"),
        ("colormap", "jet", "colormap 'jet' is not known; use None or 'viridis'"),
        ("orientation", "z", "orientation 'z' is not known; use None or 'y' or 'x'"),
        ("agreement", 1.5, r"a fraction of the runs, from 0 \(any\) to 1 \(always\); got 1.5"),
        ("agreement", -0.1, "a fraction of the runs"),
        ("agreement", None, "a fraction of the runs"),
        ("agreement", float("nan"), "a fraction of the runs"),
        ("cap", 0, "cap is a number above 0, a percentile such as '99%', or None"),
        ("cap", "101%", "a percentile such as '99%'"),
        ("cap", "0.5", "a percentile such as '99%'"),
        ("cap", True, "cap is a number above 0"),
        ("columns", 0, "columns is a whole number, 1 or more, or None"),
        ("columns", 2.0, "columns is a whole number"),
        ("columns", True, "columns is a whole number"),
        ("isolated", 3, "isolated is the name of an entry of the legend, or None; got 3"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence_and_changes_nothing(
    scores: hw.HeadScores, name: str, value: Any, sentence: str
) -> None:
    explorer = hw.explore(scores, threshold=0.1, selected=[[2, 1]])
    before = explorer.page_state()
    with pytest.raises(TraitError, match=sentence):
        setattr(explorer, name, value)
    assert explorer.page_state() == before
    with pytest.raises(TraitError, match=sentence):
        hw.explore(scores, **{name: value})


def test_hover_takes_a_head_or_none(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    explorer.hover = (8, np.int64(4))
    assert explorer.hover == [8, 4]
    for value, sentence in (
        ([3, 0], r"no head \[3, 0\] in these scores"),
        (7, r"hover is \[layer, head\] or None, two whole numbers each; got 7"),
    ):
        with pytest.raises(TraitError, match=sentence):
            explorer.hover = value
        assert explorer.hover == [8, 4]
    explorer.hover = None
    assert explorer.hover is None


@pytest.mark.parametrize(
    ("rule", "start"), [("top", 10.0), ("percent", 5.0), ("elbow", 1.0), ("value", None)]
)
def test_a_rule_brings_the_threshold_it_starts_with_unless_one_is_given(
    scores: hw.HeadScores, rule: str, start: float | None
) -> None:
    explorer = hw.explore(scores, rule="elbow" if rule == "value" else "value", threshold=0.3)
    assert explorer.threshold == 0.3
    explorer.rule = rule
    assert explorer.threshold == start
    assert hw.explore(scores, rule=rule).threshold == start
    assert hw.explore(scores, threshold=3, rule=rule).threshold == 3
    assert hw.explore(scores, rule=rule, threshold=None).threshold is None
    explorer.threshold = 2
    explorer.rule = rule  # no change, so nothing starts anew
    assert explorer.threshold == 2


@pytest.mark.parametrize("order", [("rule", "threshold"), ("threshold", "rule")])
def test_rule_and_threshold_from_the_page_are_taken_together(
    scores: hw.HeadScores, order: tuple[str, str]
) -> None:
    explorer = hw.explore(scores)
    sent = {"rule": "top", "threshold": 3}
    explorer.set_state({name: sent[name] for name in order})
    assert (explorer.rule, explorer.threshold) == ("top", 3.0)
    explorer.set_state({"rule": "percent"})
    assert (explorer.rule, explorer.threshold) == ("percent", 5.0)
    explorer.rule = "elbow"  # what the page said before no longer counts
    assert explorer.threshold == 1.0


def test_a_misspelt_trait_is_refused_with_the_name_that_was_meant(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    for wrong, near in (
        ("treshold", "threshold"),
        ("selection", "selected"),
        ("colourmap", "colormap"),
        ("hoover", "hover"),
    ):
        with pytest.raises(
            AttributeError, match=f"an explorer has no '{wrong}'. Did you mean '{near}'\\?$"
        ):
            setattr(explorer, wrong, 1)
        assert not hasattr(explorer, wrong)
    with pytest.raises(AttributeError, match="an explorer has no 'zzz'.$"):
        explorer.zzz = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"has no 'veiw'\. Did you mean 'view'\? It has selected"):
        hw.explore(scores, veiw="agreement")
    with pytest.raises(TypeError, match=r"an explorer has no 'zzz'\. It has selected, view, "):
        hw.explore(scores, zzz=1)
    explorer.layout.width = "50%"
    explorer.preview = None
    assert (explorer.layout.width, explorer.preview) == ("50%", None)


def test_hover_is_sent_only_while_it_is_observed_by_name(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)

    def hear(change: Any) -> None:
        del change

    def hear_too(change: Any) -> None:
        del change

    assert not explorer._hover_heard
    explorer.observe(hear)
    explorer.observe(hear, "selected")
    assert not explorer._hover_heard, (
        "observing everything is not asking for every move of the pointer"
    )
    explorer.observe(hear, ["threshold", "hover"])
    explorer.observe(hear_too, names="hover")
    assert explorer._hover_heard
    explorer.unobserve(hear, "hover")
    assert explorer._hover_heard, "somebody still listens"
    explorer.unobserve(hear_too, "hover")
    assert not explorer._hover_heard
    explorer.observe(hear, "hover")
    explorer.unobserve_all("hover")
    assert not explorer._hover_heard


def test_unknown_keywords_and_foreign_scores_are_refused_with_a_sentence(
    scores: hw.HeadScores,
) -> None:
    with pytest.raises(
        TypeError, match=r"no 'treshold'\..* It has selected, view, tasks, task, threshold"
    ):
        hw.explore(scores, treshold=1)
    with pytest.raises(TypeError, match="HeadScores or the path of a saved file; got ndarray"):
        hw.explore(np.zeros((3, 4)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="preview 'jpg' is not known; use 'png', 'svg' or None"):
        hw.explore(scores, preview="jpg")


def test_a_saved_file_is_explored_by_its_path(scores: hw.HeadScores, tmp_path: Path) -> None:
    path = scores.save(tmp_path / "s.safetensors")
    assert hw.explore(path)._buffer == hw.explore(str(path))._buffer == hw.explore(scores)._buffer


def test_every_public_trait_is_documented() -> None:
    source = Path(explorers.__file__).read_text(encoding="utf-8").splitlines()
    ours = set(explorers.ExplorerBase.class_own_traits(sync=True))
    assert {name for name in ours if not name.startswith("_")} == {
        *settings.NAMES,
        "selected",
        "hover",
    }
    for name in sorted(ours - {"_esm", "_css"}):
        line = next(
            i for i, text in enumerate(source) if text.startswith((f"    {name} =", f"    {name}:"))
        )
        after = next(
            text for text in source[line + 1 :] if text.startswith("    ") and text[4] not in " )"
        )
        assert after.startswith('    """'), name
        assert name.startswith("_") or explorers.ExplorerBase.class_traits()[name].help, name


def test_a_front_end_that_is_not_built_gives_the_command(
    scores: hw.HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    with pytest.raises(FileNotFoundError, match="npm run build"):
        hw.explore(scores)


def test_a_package_that_is_not_built_is_imported_and_says_what_to_do(tmp_path: Path) -> None:
    package = Path(hw.__file__).parent
    shutil.copytree(
        package, tmp_path / "headwidget", ignore=shutil.ignore_patterns("static", "__pycache__")
    )
    code = (
        "import headwidget as hw\n"
        "from headwidget.display import explorer\n"
        "print(hw.__file__)\n"
        "hw.explore(hw.HeadScores.from_arrays({'a': [[1.0]]}, method='m'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.stdout.strip() == str(tmp_path / "headwidget" / "__init__.py"), done.stderr
    assert "front end is not built (widget.js is missing): run `make build`" in done.stderr


def test_script_and_style_are_files_that_open_widgets_follow(scores: hw.HeadScores) -> None:
    """anywidget watches the files where ANYWIDGET_HMR is set; here nothing watches them."""
    files = {"_esm": "widget.js", "_css": "widget.css"}
    explorer, other = hw.explore(scores), hw.explore(scores)
    for name, file in files.items():
        watched = getattr(explorers.ExplorerBase, name)
        assert getattr(explorer, name) == (assets.STATIC / file).read_text(encoding="utf-8")
        assert name in explorer.get_state() and str(watched) == getattr(explorer, name)
        watched.changed.emit(f"new {file}")
        assert getattr(explorer, name) == getattr(other, name) == f"new {file}"
    assert "watchfiles" not in sys.modules
    assert hw.explore(scores)._esm == (assets.STATIC / "widget.js").read_text(encoding="utf-8")


def test_a_closed_explorer_is_kept_by_nobody(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    held = weakref.ref(explorer)
    explorer.close()
    del explorer
    gc.collect()
    assert held() is None


def test_the_bundle_is_small() -> None:
    assert (
        sum((assets.STATIC / name).stat().st_size for name in ("widget.js", "widget.css"))
        <= 160_000  # of which pages have the same: they have no bundle of their own
    )


def test_exploring_needs_no_torch() -> None:
    code = (
        "import sys, headwidget as hw\n"
        "hw.explore(hw.HeadScores.from_arrays({'a': [[1.0]]}, method='m'))\n"
        "print([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_explorer_keeps_its_scores_and_shares_no_list(scores: hw.HeadScores) -> None:
    explorer = hw.explore(scores)
    explorer.selected.append([2, 0])
    assert hw.explore(scores).selected == []
    assert explorer.scores is explorer.shown is scores
    with pytest.raises(AttributeError, match="keeps its scores; make another"):
        explorer.scores = scores
    with pytest.raises(AttributeError, match="shown"):
        explorer.shown = scores
    with explorer.hold_trait_notifications():
        explorer.rule, explorer.threshold = "top", 20
    assert explorer.threshold == 20
    explorer.rule = "percent"
    assert explorer.threshold == 5


def test_ties_of_many_runs_stay_exact() -> None:
    values = np.random.default_rng(0).choice([0, 0.5, 1], size=(64, 3, 4)).astype(np.float32)
    header, buffer = wire.encode(hw.HeadScores.from_arrays({"a": values}, method="mine"))
    order = wire.decode(header, buffer)[0]["order"]
    np.testing.assert_array_equal(order, np.sort(values, axis=0)[header["tasks"][0]["ranks"]])


@pytest.mark.parametrize("preview", ["png", "svg", None])
def test_an_output_carries_a_picture_for_where_no_widget_runs(
    scores: hw.HeadScores, preview: str | None
) -> None:
    explorer = hw.explore(scores, preview=preview)
    bundle = explorer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert [kind for kind in data if kind.startswith("image/")] == (
        [] if preview is None else [{"png": "image/png", "svg": "image/svg+xml"}[preview]]
    )
    if preview == "png":
        assert data["image/png"].startswith(b"\x89PNG")
        explorer.view = "agreement"
        assert explorer._repr_mimebundle_()[0]["image/png"] != data["image/png"], (
            "a picture of the current view"
        )
    with pytest.raises(ValueError, match="preview 'gif' is not known; use 'png', 'svg' or None"):
        hw.explore(scores, preview="gif")


def test_without_matplotlib_the_widget_is_shown_without_a_picture(
    scores: hw.HeadScores, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = hw.explore(scores)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    data, _ = explorer._repr_mimebundle_()
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "text/plain"}
    with pytest.raises(ModuleNotFoundError, match="matplotlib"):
        explorer.to_png("heads.png")


def test_the_current_view_is_written_as_a_picture_and_as_a_drawing(
    scores: hw.HeadScores, tmp_path: Path
) -> None:
    explorer = hw.explore(scores, view="agreement", threshold=0.5)
    assert explorer.to_png(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    drawing = explorer.to_svg(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(drawing).tag.endswith("svg") and "math (Always)" in drawing
    explorer.view = "tasks"
    assert "math (Always)" not in explorer.to_svg(tmp_path / "b.svg").read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        explorer.to_png(tmp_path / "no" / "a.png")
