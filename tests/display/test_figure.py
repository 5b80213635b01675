"""Figures show what views.picture says.

Cells, titles, ticks, bars and legends are read back from what was drawn.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from headwidget import HeadScores
from headwidget.display import figure, palette, views
from headwidget.display.settings import settings
from tests.support import made_up


def noisy_scores(
    names: tuple[str, ...] = ("Math", "Syntax"),
    shape: tuple[int, int] = (30, 9),
    runs: int = 4,
    **more: Any,
) -> HeadScores:
    """Noise with a few strong heads."""
    random = np.random.default_rng(0)
    values = {
        name: random.exponential(0.1, (runs, *shape)) * (1 + 9 * (random.random(shape) > 0.95))
        for name in names
    }
    if more.pop("negative", False):
        values = {name: v - 0.3 for name, v in values.items()}
    return HeadScores.from_arrays(values, method="mine", **more)


def four_categories() -> HeadScores:
    names = {
        f"{category} {i}": category
        for category in ("Algorithmic", "Knowledge", "Linguistic", "Translation")
        for i in range(2)
    }
    return noisy_scores(tuple(names), (80, 64), runs=1, categories=names)


def colours(axes: Axes) -> np.ndarray:
    """(row, column, 3): the bytes of a map's cells."""
    return np.asarray(axes.images[0].get_array())


def maps(drawn: Figure) -> list[Axes]:
    """The axes that have a map, not the colour bar."""
    return [axes for axes in drawn.axes if axes.get_title()]


def ticks(axes: Axes, side: str) -> dict[float, str]:
    axis = axes.xaxis if side == "x" else axes.yaxis
    return {
        float(place): label.get_text()
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels())
    }


def stop(name: str, place: int) -> list[int]:
    return list(bytes.fromhex(palette.MAPS[name].split()[place]))


def test_cells_have_the_colours_of_their_numbers() -> None:
    scores = HeadScores.from_arrays({"a": [[0.0, 0.5, 1.0], [2.0, 0.25, 0.75]]}, method="mine")
    got = colours(scores.figure(cap=1.0).axes[0])
    assert got.shape == (2, 3, 3)
    for cell, place in {
        (0, 0): 0,
        (0, 1): 8,
        (0, 2): 16,
        (1, 0): 16,
        (1, 1): 4,
        (1, 2): 12,
    }.items():  # of viridis' 17 stops; 2.0 is capped
        np.testing.assert_allclose(
            got[cell].astype(int), stop("viridis", place), atol=2, err_msg=str(cell)
        )


@pytest.mark.parametrize("view", ["tasks", "agreement"])
@pytest.mark.parametrize(
    "more", [{}, {"threshold": 0.2}, {"orientation": "x"}, {"colormap": "magma", "cap": "90%"}]
)
def test_maps_show_the_picture(view: str, more: dict[str, Any]) -> None:
    scores = noisy_scores(negative=True)
    picture = views.picture(scores, settings(scores, view=view, **more))
    drawn = scores.figure(view, **more)
    assert len(maps(drawn)) == len(picture.panels) == (2 if view == "tasks" else 4)
    assert len(drawn.axes) == len(picture.panels) + 1
    ramp = matplotlib.colors.LinearSegmentedColormap.from_list(
        "ramp", palette.stops(picture.colours), N=4096
    )
    for panel, axes in zip(picture.panels, maps(drawn)):
        span = picture.range
        expected = (
            255 * ramp(((panel.values - span.low) / (span.high - span.low)).clip(0, 1))[:, :, :3]
        )
        if panel.passes is not None:
            assert 0 < panel.passes.sum() < panel.passes.size
            expected = np.where(panel.passes[:, :, None], expected, 255 * 0.87 + 0.13 * expected)
        got = colours(axes) if picture.layers_on == "y" else colours(axes).swapaxes(0, 1)
        np.testing.assert_allclose(got.astype(float), expected, atol=4)  # 256 steps of colour


def test_a_task_has_its_title_ticks_and_axis_labels_at_the_outer_edge() -> None:
    names = (
        "Recall",
        "Retrieval",
        "Reasoning",
        "Decisions",
        "Semantics",
        "Syntax",
        "Inference",
        "Math",
    )
    drawn = noisy_scores(names, (42, 32)).figure()
    assert tuple(axes.get_title() for axes in maps(drawn)) == names
    corners = np.array([axes.get_position().p0 for axes in maps(drawn)])
    assert len(np.unique(corners[:, 0].round(6))) == 4
    assert len(np.unique(corners[:, 1].round(6))) == 2
    assert [axes.get_ylabel() for axes in maps(drawn)] == ["Layer", "", "", ""] * 2
    assert [axes.get_xlabel() for axes in maps(drawn)] == [""] * 4 + ["Head"] * 4
    for axes in maps(drawn):
        assert ticks(axes, "x") == {n: str(n) for n in (0, 6, 12, 18, 24, 30)}
        assert ticks(axes, "y") == {n: str(n) for n in (0, 6, 12, 18, 24, 30, 36)}


def test_rows_carry_the_models_layer_numbers_and_axes_can_be_named() -> None:
    scores = noisy_scores(shape=(3, 2), layers=[3, 7, 11], meta={"axes": ["Block", "Expert"]})
    down, across = scores.figure().axes[0], scores.figure(orientation="x").axes[0]
    assert ticks(down, "y") == ticks(across, "x") == {0: "3", 1: "7", 2: "11"}
    assert (
        (down.get_ylabel(), down.get_xlabel())
        == (across.get_xlabel(), across.get_ylabel())
        == ("Block", "Expert")
    )


def test_columns_are_balanced_unless_given() -> None:
    def columns(drawn: Figure) -> list[float]:
        places = [round(axes.get_position().x0, 6) for axes in maps(drawn)]
        return [sorted(set(places)).index(place) for place in places]

    scores = noisy_scores(tuple("abcde"), (4, 4))
    assert columns(scores.figure()) == [0, 1, 2, 0, 1]
    assert columns(scores.figure(columns=4)) == [0, 1, 2, 3, 0]
    assert columns(scores.figure(columns=9)) == [0, 1, 2, 3, 4]
    assert [axes.get_xlabel() for axes in maps(scores.figure())] == [
        "",
        "",
        "Head",
        "Head",
        "Head",
    ]  # nothing is below the third


def test_the_colour_bar_has_ticks_and_a_plus_where_scores_go_on() -> None:
    values = np.full((20, 20), 0.5)
    values[0, 0] = 40
    bar = HeadScores.from_arrays({"a": values, "b": values}, method="ablation").figure().axes[-1]
    assert ticks(bar, "y") == {0.0: "0.0", 0.2: "0.2", 0.4: "0.4", 0.6: "0.6+"}
    assert bar.get_ylabel() == "ablation · score"
    assert bar.get_ylim() == (0.0, 0.6)
    assert tuple(bar.images[0].get_extent()) == (0, 1, 0.0, 0.6)
    assert colours(bar)[0, 0].tolist() == stop("viridis", -1)  # high is up
    assert colours(bar)[-1, 0].tolist() == stop("viridis", 0)
    signed = HeadScores.from_arrays({"a": [[-3.0, 1.0]]}, method="ablation").figure().axes[-1]
    assert list(ticks(signed, "y").values()) == ["−3", "−2", "−1", "0", "1", "2", "3"]
    assert colours(signed)[-1, 0].tolist() == stop("blue-orange", 0)


def test_a_threshold_counts_heads_behind_the_title() -> None:
    drawn = noisy_scores(("Math", "Syntax"), (12, 12)).figure(rule="top", threshold=7)
    assert [
        (axes.get_title(), [text.get_text() for text in axes.texts]) for axes in maps(drawn)
    ] == [("Math", [" · 7 pass"]), ("Syntax", [" · 7 pass"])]
    drawn.draw_without_rendering()
    axes = maps(drawn)[0]
    name, count, box = (
        axes.title.get_window_extent(),
        axes.texts[0].get_window_extent(),
        axes.get_window_extent(),
    )
    assert abs(name.x1 - count.x0) < 2
    assert (
        abs((name.x0 + count.x1) / 2 - (box.x0 + box.x1) / 2) < 0.02 * box.width
    )  # centred together
    assert not noisy_scores().figure().axes[0].texts


def test_agreement_has_a_row_a_task_from_always_to_any() -> None:
    arrays = {"Math": np.random.default_rng(0).random((4, 5, 5)), "Once": np.ones((1, 5, 5))}
    drawn = HeadScores.from_arrays(arrays, method="mine").figure("agreement", agreement=0.5)
    assert [axes.get_title() for axes in maps(drawn)] == [
        "Math (Always)",
        "Math (≥ 2 of 4)",
        "Math (Any)",
        "Once (Always)",
        "Once (Any)",
    ]
    always, _, most, once, once_any = (axes.get_position() for axes in maps(drawn))
    assert (once.x0, once_any.x0) == (always.x0, most.x0)
    assert once.y1 < always.y0
    assert colours(drawn.axes[-1])[0, 0].tolist() == stop("turbo", -1)
    fractions = (
        HeadScores.from_arrays(arrays, method="mine").figure("agreement", threshold=0.5).axes[-1]
    )
    assert list(ticks(fractions, "y").values()) == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert fractions.get_ylabel() == "mine · fraction of runs"


def test_agreement_wraps_where_columns_are_given() -> None:
    scores = noisy_scores(("a", "b", "c"))
    drawn = maps(scores.figure(view="agreement", columns=2))
    tops = [round(axes.get_position().y1, 3) for axes in drawn]
    assert tops[0] == tops[1] == tops[2] == tops[3] > tops[4] == tops[5]


def test_a_scale_of_its_own_shows_a_quiet_task_and_says_where_it_ends() -> None:
    loud, quiet = np.array([[[0.0, 1.0]]]), np.array([[[0.0, 0.01]]])
    scores = HeadScores.from_arrays({"loud": loud, "quiet": quiet}, method="mine")
    end = [stop("viridis", 0), stop("viridis", -1)]

    def written(drawn: Figure) -> list[str]:
        return [" ".join(text.get_text() for text in axes.texts) for axes in maps(drawn)]

    shared = scores.figure()
    assert written(shared) == ["", " · at most 0.01"]
    assert colours(maps(shared)[1])[0, 1].tolist() != end[1]
    own = scores.figure(scale="own")
    assert written(own) == [" · to 1.00", " · to 0.0100"]
    assert [colours(axes)[0].tolist() for axes in maps(own)] == [end, end]
    bar = own.axes[-1]
    assert list(ticks(bar, "y").values()) == ["low", "high"]


def test_a_task_that_is_not_scored_is_an_empty_frame_with_a_sentence() -> None:
    values = {"a": np.ones((2, 3, 4)), "b": np.full((2, 3, 4), np.nan)}
    drawn = maps(HeadScores.from_arrays(values, method="mine").figure())
    assert [[text.get_text() for text in axes.texts] for axes in drawn] == [[], ["Not scored yet"]]
    assert (colours(drawn[1]) == 255).all() and not drawn[1].collections


def test_categories_look_like_the_published_figure() -> None:
    scores = four_categories()
    picture = views.picture(
        scores, settings(scores, view="categories", rule="percent", threshold=2)
    )
    drawn = scores.figure("categories", rule="percent", threshold=2)
    assert [axes.get_title() for axes in drawn.axes] == [
        "All Categories",
        "Algorithmic",
        "Knowledge",
        "Linguistic",
        "Translation",
    ]
    own = np.array([list(bytes.fromhex(c[1:])) for c in palette.category_colours(4)])
    for panel, axes in zip(picture.panels, drawn.axes):
        assert colours(axes).shape == (64, 80, 3)
        assert (colours(axes) == own[panel.values.astype(int).T]).all()
        assert list(ticks(axes, "x")) == [0, 16, 32, 48, 64]
        assert list(ticks(axes, "y")) == [0, 12, 24, 36, 48, 60]
    assert (drawn.axes[0].get_ylabel(), drawn.axes[3].get_xlabel()) == ("Head", "Layer")
    assert len(np.unique(picture.panels[0].values)) > 5  # the colours above were not all one
    legend = drawn.legends[0]
    names = [
        "4 categories",
        "3 categories",
        "2 categories",
        "Translation",
        "Linguistic",
        "Knowledge",
        "Algorithmic",
        "Unclassified",
    ]
    counts = {entry.name: entry.count for entry in picture.legend}
    assert [text.get_text() for text in legend.get_texts()] == [
        f"{name} ({counts[name]})" for name in names
    ]
    assert [
        to_hex(patch.get_facecolor()) for patch in legend.get_patches()
    ] == palette.category_colours(4)[::-1]
    drawn.draw_without_rendering()
    inside(drawn)


def test_an_isolated_class_dims_the_others() -> None:
    scores = four_categories()
    whole, isolated = (
        scores.figure("categories", rule="percent", threshold=2, isolated=name)
        for name in (None, "Knowledge")
    )
    before, after = (colours(drawn.axes[0]).astype(float) for drawn in (whole, isolated))
    orange = (before == list(bytes.fromhex("fe8700"))).all(axis=2)
    assert 0 < orange.sum() < orange.size / 2
    assert (before[orange] == after[orange]).all()
    np.testing.assert_allclose(after[~orange], 255 * 0.87 + 0.13 * before[~orange], atol=0.51)


def inside(drawn: Figure) -> None:
    """Nothing is cut off at the edge, and no two titles or maps overlap."""
    page = drawn.bbox
    parts = [
        part
        for axes in drawn.axes
        for part in (
            axes.title,
            *axes.texts,
            axes.xaxis.label,
            axes.yaxis.label,
            *axes.get_xticklabels(),
            *axes.get_yticklabels(),
        )
    ]
    for part in [*(p for p in parts if p.get_text()), *drawn.legends]:
        box = part.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1, part
    boxes = [
        box
        for axes in drawn.axes
        for box in (axes.get_window_extent(), axes.title.get_window_extent())
        if box.width > 0
    ]
    boxes += [legend.get_window_extent() for legend in drawn.legends]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not (
                min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
            ), (a, b)


SHAPES = [(1, 1), (1, 40), (40, 1), (30, 9), (80, 64), (126, 128)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_fits_and_cells_are_whole_pixels(shape: tuple[int, int]) -> None:
    scores = noisy_scores(("Knowledge Recall", "Math"), shape, runs=1)
    drawn = figure.figure(scores, settings(scores))
    drawn.draw_without_rendering()
    inside(drawn)
    for axes in maps(drawn):
        box = axes.get_window_extent()
        for begin, size, cells in ((box.x0, box.width, shape[1]), (box.y0, box.height, shape[0])):
            assert abs(begin - round(begin)) < 1e-6
            assert abs(size / cells - round(size / cells)) < 1e-6
            assert round(size / cells) >= 3
        longer, shorter = max(box.width, box.height), min(box.width, box.height)
        assert shorter > 0.5 * longer or min(shape) == 1


def test_a_png_has_every_cell_in_its_colour() -> None:
    scores = noisy_scores(shape=(80, 64), runs=1)
    asked = settings(scores)
    image = (
        (255 * imread(io.BytesIO(figure.png(scores, asked, dpi=160)))).round().astype(int)[:, :, :3]
    )
    for axes in maps(figure.figure(scores, asked, dpi=160)):
        box = axes.get_window_extent()
        left, top, cell = round(box.x0), image.shape[0] - round(box.y1), round(box.width / 64)
        middles = image[top + cell // 2 :: cell, left + cell // 2 :: cell][:80, :64]
        assert (middles == colours(axes)).all()


@pytest.mark.parametrize("view", ["tasks", "agreement", "categories"])
def test_hostile_names_are_drawn_as_they_are(view: str) -> None:
    names = (
        "$x_1$ \\frac{a}",
        "_hidden",
        "😀 emoji",
        "مهمة",
        "日本語",
        "a name that goes on " * 20,
        "X" * 200,
        "line\nbreak\x00",
    )
    scores = noisy_scores(names, (16, 16), runs=3)
    asked = settings(scores, view=view, threshold=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = figure.figure(scores, asked)
        svg = ET.fromstring(figure.svg(scores, asked))
        png = figure.png(scores, asked)
    assert png.startswith(b"\x89PNG")
    titles = [axes.get_title() for axes in maps(drawn)]
    assert any(title.startswith("$x_1$ \\frac{a}") for title in titles)
    assert any(title.startswith("line break") for title in titles)
    assert max(title.count("\n") for title in titles) == 1
    assert any(title.startswith("a name that goes on") and title.endswith("…") for title in titles)
    text = "".join(svg.itertext())
    for name in names[:5]:
        assert name in text
    if view == "categories":
        assert "_hidden (" in "".join(label.get_text() for label in drawn.legends[0].get_texts())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        drawn.draw_without_rendering()
        inside(drawn)


@pytest.mark.parametrize("view", ["tasks", "agreement", "categories"])
def test_no_task_is_said_not_drawn(view: str) -> None:
    drawn = noisy_scores().figure(view, tasks=[])
    assert [text.get_text() for text in drawn.texts] == ["No task is shown."]
    assert not drawn.axes


def test_one_task_alone_is_drawn() -> None:
    assert [axes.get_title() for axes in maps(noisy_scores().figure(task="Syntax"))] == ["Syntax"]
    assert [axes.get_title() for axes in maps(noisy_scores().figure(tasks=["Syntax", "Math"]))] == [
        "Syntax",
        "Math",
    ]


def test_wrong_settings_get_a_sentence() -> None:
    scores = noisy_scores()
    for wrong, sentence in (
        (
            {"view": "heads"},
            "view 'heads' is not known; use 'tasks' or 'agreement' or 'categories'.",
        ),
        ({"columns": 0}, "columns is a whole number, 1 or more"),
        ({"tasks": ["Maths"]}, "no task 'Maths' in these scores; they have 'Math', 'Syntax'."),
        ({"threshold": float("nan")}, "threshold is a finite number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            scores.figure(**wrong)
    with pytest.raises(
        TypeError, match="there is no setting 'treshold'; the settings are view, tasks"
    ):
        scores.figure(treshold=1)


def test_the_same_input_gives_the_same_bytes_and_text_stays_text() -> None:
    scores = four_categories()
    asked = settings(scores, view="categories")
    assert figure.svg(scores, asked) == figure.svg(scores, asked)
    assert figure.png(scores, asked) == figure.png(scores, asked)
    svg = figure.svg(scores, asked)
    assert b"<dc:date>" not in svg
    words = [
        element.text for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {"All Categories", "Linguistic", "Layer", "Head", "48"} <= set(words)


def test_a_users_style_is_neither_used_nor_changed() -> None:
    scores = noisy_scores()
    plain = figure.png(scores, settings(scores))
    with matplotlib.rc_context(
        {
            "axes.grid": True,
            "text.color": "red",
            "figure.facecolor": "black",
            "image.origin": "lower",
            "text.usetex": True,
            "axes.titlesize": 40,
        }
    ):
        before = dict(matplotlib.rcParams)
        assert figure.png(scores, settings(scores)) == plain
        figure.svg(scores, settings(scores))
        scores.figure().draw_without_rendering()
        assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.family": "serif"}):
        assert scores.figure().axes[0].title.get_fontfamily() == ["serif"]


def test_no_pyplot_is_needed(tmp_path: Path) -> None:
    code = """
import json, sys
from headwidget import HeadScores
from headwidget.display import figure
from headwidget.display.settings import settings
from tests.support import made_up
scores = HeadScores.from_arrays({"a": [[0.1, 0.9]]}, method="mine")
scores.figure().savefig(sys.argv[1])
views = ("tasks", "agreement", "categories")
sizes = [len(figure.png(scores, settings(scores, view=view))) for view in views]
sizes.append(len(figure.svg(scores, settings(scores))))
print(json.dumps([*sizes, "matplotlib.pyplot" in sys.modules]))
"""
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "heads.pdf")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    *sizes, pyplot = json.loads(out.stdout)
    assert min(sizes) > 1000
    assert (tmp_path / "heads.pdf").read_bytes().startswith(b"%PDF")
    assert pyplot is False


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "asked",
    [
        {"cap": 1.5e-45},
        {"cap": 3.4e38},
        *({"rule": rule, "threshold": 1.7e308} for rule in ("value", "top", "percent", "elbow")),
        {"rule": "percent", "threshold": -1.7e308},
        {"threshold": 5e-324},
    ],
    ids=str,
)
def test_the_largest_and_the_smallest_numbers_are_drawn(asked: Any, signed: bool) -> None:
    scores = made_up.scores(30, 9, tasks=2, runs=2, signed=signed)
    drawing = figure.svg(scores, settings(scores, **asked))
    assert drawing.startswith(b"<?xml")
