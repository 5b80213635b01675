"""Comparing two scores: identities that hold for any numbers, intervals that cover, sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwidget as hw
from headwidget.scores.compare import heads_at

RNG = np.random.default_rng(0)


def random_scores(*shape: int, task: str = "t", **more: Any) -> hw.HeadScores:
    return hw.HeadScores.from_arrays(
        {task: RNG.normal(size=shape)}, **{"method": "mine", "signed": True, **more}
    )


def of(values: Any, **more: Any) -> hw.HeadScores:
    return hw.HeadScores.from_arrays({"t": values}, **{"method": "mine", "signed": True, **more})


def maps(found: hw.HeadScores) -> np.ndarray:
    return found.reduce("mean")


def labels(start: int, count: int) -> dict[str, list[str]]:
    return {"t": [f"prompt {i}" for i in range(start, start + count)]}


# ---- identities ----


@pytest.mark.parametrize(
    "how", [{}, {"heads": "rank"}, {"normalize": "share"}, {"heads": "rank", "normalize": "share"}]
)
def test_scores_do_not_differ_from_themselves(how: dict[str, str]) -> None:
    a = random_scores(5, 3, 4, layers=[2, 5, 8])
    found = hw.difference(a, a, **how)
    assert found.tasks == ("t: a", "t: b", "t: a − b")
    assert found.layers == (2, 5, 8) and found.signed
    assert not found.values("t: a − b").any()
    assert found.values("t: a").any()


@pytest.mark.parametrize(
    ("shape", "other", "runs"),
    [
        ((6, 3, 4), (6, 3, 4), (0, 0)),
        ((6, 3, 4), (6, 3, 4), (0, 3)),
        ((6, 3, 4), (9, 3, 4), (0, 6)),
        ((6, 2, 4), (4, 5, 3), (0, 0)),
        ((6, 3, 4), (1, 3, 4), (0, 6)),
    ],
    ids=["paired", "overlapping", "unpaired", "other shape", "one run"],
)
@pytest.mark.parametrize("normalize", ["raw", "share"])
def test_a_minus_b_is_minus_b_minus_a(shape: Any, other: Any, runs: Any, normalize: str) -> None:
    a, b = (
        random_scores(*s, runs=labels(first, s[0]))
        for s, first in ((shape, runs[0]), (other, runs[1]))
    )
    one, two = (
        hw.difference(a, b, normalize=normalize),
        hw.difference(b, a, normalize=normalize, names=("b", "a")),
    )
    np.testing.assert_array_equal(one.values("t: a − b"), -two.values("t: b − a"))
    np.testing.assert_array_equal(one.values("t: a"), two.values("t: a"))
    np.testing.assert_allclose(
        maps(one)[2], maps(one)[0] - maps(one)[1], atol=1e-6
    )  # also unpaired: the difference's mean is the means' difference


def test_equal_shapes_are_compared_head_by_head() -> None:
    a, b = random_scores(4, 3, 5), random_scores(4, 3, 5)
    found = hw.difference(a, b)
    np.testing.assert_array_equal(found.values("t: a"), a.values("t"))
    np.testing.assert_array_equal(found.values("t: b"), b.values("t"))
    np.testing.assert_allclose(found.values("t: a − b"), a.values("t") - b.values("t"), atol=1e-6)
    assert "axes" not in found.meta and found.meta["compare"]["heads"] == "index"


@pytest.mark.parametrize("normalize", ["raw", "share"])
@pytest.mark.parametrize("axis", [1, 2], ids=["layers", "heads"])
def test_a_model_with_every_layer_or_head_twice_is_the_same_model(
    axis: int, normalize: str
) -> None:
    a = random_scores(5, 3, 4)
    found = hw.difference(a, of(np.repeat(a.values("t"), 2, axis=axis)), normalize=normalize)
    assert found.shape == ((6, 4) if axis == 1 else (3, 8))
    np.testing.assert_allclose(found.values("t: a − b"), 0, atol=1e-7)
    assert found.meta["axes"] == [
        "Depth (of 6)" if axis == 1 else "Layer",
        "Head, by rank in its layer",
    ]


def test_layers_are_aligned_by_relative_depth_and_heads_by_rank() -> None:
    a, b = of([[1, 3], [0, 9]]), of([[[5, 1, 7]], [[5, 1, 7]]], runs=labels(0, 2))
    found = hw.difference(a, b)
    np.testing.assert_array_equal(
        found.values("t: a")[0], [[3, 1, 1], [9, 0, 0]]
    )  # rank floor((c + 0.5) * 2 / 3) is 0, 1, 1
    np.testing.assert_array_equal(found.values("t: b")[0], [[7, 5, 1], [7, 5, 1]])
    five, two = hw.difference(
        of(np.arange(5.0)[:, None]), of([[0.0], [1.0]]), heads="index"
    ).reduce("mean")[:2, :, 0]
    assert (five.tolist(), two.tolist()) == (
        [0, 1, 2, 3, 4],
        [0, 0, 1, 1, 1],
    )  # floor((r + 0.5) * 2 / 5)


def test_every_run_keeps_the_order_of_the_mean() -> None:
    found = hw.difference(of([[[4, 0]], [[0, 2]]]), of([[[1, 0]], [[1, 0]]]), heads="rank")
    np.testing.assert_array_equal(
        found.values("t: a")[:, 0], [[4, 0], [0, 2]]
    )  # sorted anew, the second run would be 2, 0: a top head in every run


def test_a_cell_can_be_traced_back_to_each_models_head(tmp_path: Path) -> None:
    a, b = (
        random_scores(4, 3, 4, layers=[1, 4, 7], meta={"model": "org/small"}),
        random_scores(4, 5, 6, meta={"model": "org/large"}),
    )
    hw.difference(a, b).save(tmp_path / "c.safetensors")
    found = hw.open(tmp_path / "c.safetensors")  # the way back is in the file
    for row in range(5):
        for column in range(6):
            cell = heads_at(found, "t", row, column)
            assert cell == heads_at(found, "t: small − large", row, column)
            for side, name in ((a, "small"), (b, "large")):
                layer, head = cell[name]
                np.testing.assert_array_equal(
                    found.values(f"t: {name}")[:, row, column],
                    side.values("t")[:, side.layers.index(layer), head],
                )
    plain = hw.difference(a, a)
    assert heads_at(plain, "t", 4, 2) == {"a": (4, 2), "b": (4, 2)}
    with pytest.raises(ValueError, match=r"no cell \(0, 2\)"):
        heads_at(plain, "t", 0, 2)
    with pytest.raises(ValueError, match="no comparison"):
        heads_at(a, "t", 1, 0)
    with pytest.raises(KeyError, match="no task 'x'"):
        heads_at(plain, "x", 1, 0)


# ---- scale ----


def test_methods_are_compared_as_shares_that_sum_to_1() -> None:
    a, b = random_scores(5, 3, 4, method="gradient"), random_scores(5, 2, 7, method="ablation")
    found = hw.difference(a, b)
    np.testing.assert_allclose(np.abs(maps(found)[:2]).sum((1, 2)), 1, rtol=1e-5)
    assert (found.method, found.meta["compare"]["normalize"], found.meta["compare"]["names"]) == (
        "gradient and ablation, share",
        "share",
        ["gradient", "ablation"],
    )
    louder = of(a.values("t") * 50, method="other")  # the same scores on another scale
    np.testing.assert_allclose(hw.difference(a, louder).values("t: gradient − other"), 0, atol=1e-6)
    raw = hw.difference(a, b, normalize="raw", heads="rank")
    assert raw.method == "gradient and ablation"
    assert np.abs(maps(raw)[0]).sum() > 1.5
    assert (
        not hw.difference(of(np.zeros((2, 2))), of(np.zeros((2, 2))), normalize="share")
        .values("t: a")
        .any()
    )


def test_signed_scores_are_compared_with_unsigned_ones_by_size() -> None:
    a = of([[[-3, 1]], [[-1, 3]]], method="gradient")
    b = of([[[2, 2]], [[2, 2]]], method="probe", signed=False)
    found = hw.difference(a, b)
    assert found.meta["compare"]["sizes"] is True
    np.testing.assert_allclose(maps(found), [[[0.5, 0.5]], [[0.5, 0.5]], [[0.0, 0.0]]], atol=1e-6)
    np.testing.assert_allclose(found.values("t: gradient")[:, 0], [[0.75, 0.25], [0.25, 0.75]])
    assert hw.difference(a, a).meta["compare"]["sizes"] is False


# ---- runs ----


def test_the_order_of_the_runs_does_not_matter() -> None:
    a = random_scores(8, 2, 3, runs=labels(0, 8))
    shuffled = RNG.permutation(8)
    for first in (0, 20):  # paired, unpaired
        b = random_scores(8, 2, 3, runs=labels(first, 8))
        again = of(b.values("t")[shuffled], runs={"t": [b.runs("t")[i] for i in shuffled]})
        one, two = hw.difference(a, b), hw.difference(a, again)
        np.testing.assert_array_equal(one.values("t: a − b"), two.values("t: a − b"))
        assert one.runs("t: a − b") == two.runs("t: a − b")
        assert one.meta["compare"]["paired"] == (["t"] if first == 0 else [])
        assert one.meta["compare"]["unpaired"] == ([] if first == 0 else ["t"])
        assert one.meta["tasks"]["t: a − b"] == {"paired": first == 0}


def test_runs_that_share_a_label_are_paired_only_where_they_stand_in_the_same_order() -> None:
    a = random_scores(3, 1, 2, runs={"t": ["x", "x", "y"]})
    assert hw.difference(a, random_scores(3, 1, 2, runs={"t": ["x", "x", "y"]})).meta["compare"][
        "paired"
    ] == ["t"]
    assert (
        hw.difference(a, random_scores(3, 1, 2, runs={"t": ["x", "y", "x"]})).meta["compare"][
            "paired"
        ]
        == []
    )
    assert (
        hw.difference(a, random_scores(3, 1, 2, runs={"t": ["x", "y", "z"]})).meta["compare"][
            "paired"
        ]
        == []
    )


def test_pairing_takes_out_what_the_prompts_have_in_common() -> None:
    prompts = RNG.normal(size=(20, 1, 1)) * 5  # hard and easy ones
    a, b = prompts + RNG.normal(size=(20, 4, 5)), prompts + RNG.normal(size=(20, 4, 5)) + 0.5
    width = []
    for first in (0, 100):
        low, high = hw.difference(
            of(a, runs=labels(0, 20)), of(b, runs=labels(first, 20))
        ).interval()[:, 2]
        width.append(float((high - low).mean()))
    assert width[0] < width[1] / 3


@pytest.mark.parametrize(
    ("n", "m", "spread"),
    [(30, 30, (1, 1)), (25, 100, (1, 1)), (25, 100, (1, 4)), (100, 25, (1, 4))],
)
def test_the_interval_of_an_unpaired_difference_covers_the_truth(
    n: int, m: int, spread: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(n, 40, 50)) * spread[0] + 0.3, rng.normal(size=(m, 40, 50)) * spread[1]
    found = hw.difference(of(a, runs=labels(0, n)), of(b, runs=labels(1000, m)))
    low, high = found.interval()[:, 2]  # 2000 heads, whose true difference is 0.3
    assert (
        0.90 < ((low <= 0.3) & (high >= 0.3)).mean() < 0.97
    )  # a percentile bootstrap of 25 runs covers 93%
    promised = np.sqrt(spread[0] ** 2 / n + spread[1] ** 2 / m)
    np.testing.assert_allclose((high - low).mean(), 2 * 1.96 * promised, rtol=0.06)


# ---- names, tasks, widget, sentences ----


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ({"meta": {"model": "x/pythia"}}, {"meta": {"model": "y/gpt2"}}, ["pythia", "gpt2"]),
        ({"meta": {"model": "x/gpt2"}}, {"meta": {"model": "y/gpt2"}}, ["x/gpt2", "y/gpt2"]),
        (
            {"meta": {"model": "m", "revision": "step1"}},
            {"meta": {"model": "m", "revision": "step9"}},
            ["step1", "step9"],
        ),
        ({"meta": {"model": "m"}}, {"meta": {"model": "m"}, "method": "other"}, ["mine", "other"]),
        ({"meta": {"model": "m"}}, {}, ["a", "b"]),
    ],
)
def test_names_are_what_differs(
    a: dict[str, Any], b: dict[str, Any], names: list[str], tmp_path: Path
) -> None:
    one, two = random_scores(2, 2, 2, **a), random_scores(2, 2, 2, **b)
    assert hw.difference(one, two).meta["compare"]["names"] == names
    first = one.save(tmp_path / "one.safetensors")
    second = str(two.save(tmp_path / "two.safetensors"))
    assert hw.difference(first, second).meta["compare"]["names"] == (
        ["one", "two"] if names == ["a", "b"] else names
    )


def test_models_of_different_families_are_compared_by_rank_though_their_shapes_agree() -> None:
    a, b = (random_scores(2, 2, 3, meta={"model": f, "family": f}) for f in ("gpt2", "opt"))
    found = hw.difference(a, b)
    assert found.meta["compare"]["heads"] == "rank" and found.meta["axes"] == [
        "Layer",
        "Head, by rank in its layer",
    ]
    assert hw.difference(a, b, heads="index").meta["compare"]["heads"] == "index"


def test_shared_tasks_come_in_the_first_ones_order_with_what_is_known_of_them() -> None:
    def scores(*tasks: str, model: str) -> hw.HeadScores:
        known = {t: {"accuracy": 0.5} for t in tasks}
        return hw.HeadScores.from_arrays(
            {t: RNG.normal(size=(2, 2, 2)) for t in tasks},
            method="mine",
            meta={"model": model, "tasks": known, "partial": model == "n"},
        )

    a, b = scores("x", "y", "z", model="m"), scores("z", "w", "x", model="n")
    found = hw.difference(a, b)
    assert found.tasks == ("x: m", "x: n", "x: m − n", "z: m", "z: n", "z: m − n")
    assert (
        found.meta["tasks"]["z: n"] == {"accuracy": 0.5}
        and found.partial
        and found.meta["model"] == "m and n"
    )
    assert hw.difference(a, b, tasks="z").tasks == ("z: m", "z: n", "z: m − n")
    assert hw.difference(a, b, tasks=["z", "x"], names=("1", "2")).tasks[0] == "z: 1"
    for wrong in (["y"], [], ["x", "x"]):
        with pytest.raises(ValueError, match="both scores have, each once: 'x', 'z'"):
            hw.difference(a, b, tasks=wrong)


def test_compare_shows_the_difference_in_one_explorer() -> None:
    a, b = random_scores(3, 2, 4), random_scores(3, 2, 4)
    explorer = hw.compare(a, b, names=("before", "after"), threshold=0.5, selected=[(1, 3)])
    assert isinstance(explorer, hw.Explorer)
    assert (explorer.tasks, explorer.threshold, explorer.selected) == (
        ["t: before", "t: after", "t: before − after"],
        0.5,
        [[1, 3]],
    )
    np.testing.assert_allclose(maps(explorer.scores)[2], a.reduce()[0] - b.reduce()[0], atol=1e-6)
    with pytest.raises(TypeError, match="no 'colour'"):
        hw.compare(a, b, colour=1)


@pytest.mark.parametrize(
    ("keywords", "error", "sentence"),
    [
        ({"names": ("x", "x")}, ValueError, "both sides are named 'x'"),
        ({"names": "xy"}, ValueError, "names are two texts"),
        ({"names": ("x", " ")}, ValueError, "names are two texts"),
        ({"heads": "name"}, ValueError, "heads 'name' is not known; use 'index' .* or 'rank'"),
        ({"heads": "index"}, ValueError, "these have 3 and 4. Use heads='rank'"),
        ({"normalize": "z"}, ValueError, "normalize 'z' is not known; use 'share'"),
        ({"b": np.zeros((2, 2))}, TypeError, "compare takes HeadScores or paths .* got a ndarray"),
        (
            {"b": random_scores(1, 2, 3, task="u")},
            ValueError,
            "no task is in both scores: 'a' has 't', 'b' has 'u'",
        ),
        ({"b": "nowhere.safetensors"}, FileNotFoundError, "no file"),
    ],
)
def test_what_cannot_be_compared_is_said(
    keywords: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    both = {"a": random_scores(2, 2, 3), "b": random_scores(2, 2, 4), **keywords}
    with pytest.raises(error, match=sentence):
        hw.difference(**both)


def test_titles_that_would_collide_are_refused() -> None:
    a = hw.HeadScores.from_arrays({"t": np.zeros((1, 1)), "t: x": np.zeros((1, 1))}, method="mine")
    with pytest.raises(ValueError, match="the same title twice"):
        hw.difference(a, a, names=("x: y", "y"))
