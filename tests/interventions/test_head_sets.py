"""Which heads a knock-out changes and which prompts it measures; controls are what they say."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headwidget as hw
from headwidget.interventions import measuring
from headwidget.interventions.sampling import controls, unseen_first
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import encode
from tests.support import tiny
from tests.support.knockouts import FEW_SHOT, TASKS, random_scores


def test_top_heads_are_the_largest_means_and_controls_come_from_their_layers() -> None:
    model = tiny.model("llama")
    scores = random_scores(model)
    effect = hw.knockout(model, scores, TASKS, k=(4, 2), draws=3, progress=False)
    assert effect.frame["k"].unique().tolist() == [2, 4]
    for (heads_of, k), part in effect.frame.groupby(["heads_of", "k"]):
        top = list(part[part["kind"] == "top"]["heads"].iloc[0])
        assert top == scores.top(heads_of, k)
        per_layer = Counter(layer for layer, _ in top)
        drawn = part[(part["kind"] == "control") & (part["task"] == heads_of)]
        assert drawn["heads"].nunique() == len(drawn)
        for heads, in_top in zip(drawn["heads"], drawn["in_top"]):
            assert len(set(heads)) == k and Counter(layer for layer, _ in heads) == per_layer
            assert (
                len(set(heads) & set(top))
                == in_top
                == sum(max(0, 2 * n - model.n_heads) for n in per_layer.values())
            )


def test_a_layer_without_enough_others_lends_its_top_heads() -> None:
    top = [(0, 0), (0, 1), (0, 2), (2, 5)]
    drawn = controls(top, 4 + 2, 50, 0)
    assert len(drawn) == len(set(drawn)) == 5  # (0: the three others) x (2: five others)
    assert all(
        set(heads[:3]) == {(0, 3), (0, 4), (0, 5)} and heads[3][0] == 2 and heads[3] != (2, 5)
        for heads in drawn
    )
    short = controls(top[:3], 4, 50, 0)
    assert len(short) == 3 and all(
        (0, 3) in heads and len(set(heads) & set(top)) == 2 for heads in short
    )
    assert controls(top, 6, 3, 0) != controls(top, 6, 3, 1)
    assert controls(top, 6, 3, 0) == controls(top, 6, 3, 0)


def test_layers_without_attention_are_counted_in_the_models_own_numbers() -> None:
    model = tiny.model("jamba")
    effect = hw.knockout(model, random_scores(model), TASKS, k=3, draws=1, progress=False)
    indices = {layer for layer, _ in itertools.chain(*effect.frame["heads"])}
    assert indices <= {0, 2}


def test_prompts_that_no_score_has_seen_come_first_and_held_out_ones_before_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny.model("llama")
    task = hw.Task("many", [(f"prompt {i}", "x", "y") for i in range(12)])
    object.__setattr__(task, "held_out", (3, 9, 10))
    scores = hw.HeadScores.from_arrays(
        {"many": np.zeros((9, *model.shape))},
        method="mine",
        runs={"many": [f"prompt {i}x" for i in range(9)]},
        meta={"weights": model.fingerprint()},
    )
    chosen: list[list[str]] = []
    monkeypatch.setattr(
        measuring,
        "encode",
        lambda t, m: chosen.append([e.prompt for e in t.examples]) or encode(t, m),
    )
    counts = []
    for prompts in (2, 3, 4, 12, 20):
        row = hw.knockout(
            model, scores, task, k=1, draws=1, prompts=prompts, progress=False
        ).untouched.iloc[0]
        counts.append((row["prompts"], row["held_out"], row["scored_on"]))
    assert counts == [(2, 2, 0), (3, 2, 0), (4, 3, 1), (12, 3, 9), (12, 3, 9)]
    assert chosen[:3] == [
        ["prompt 9", "prompt 10"],
        ["prompt 9", "prompt 10", "prompt 11"],
        ["prompt 3", "prompt 9", "prompt 10", "prompt 11"],
    ]


def test_several_scores_stand_side_by_side_and_like_settings_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny.model("llama")
    first, second = random_scores(model), random_scores(model, "letters", seed=1, method="yours")
    ran: list[np.ndarray] = []
    real = gated_forward.run
    monkeypatch.setattr(
        gated_forward, "run", lambda m, e, gates, b: ran.append(gates) or real(m, e, gates, b)
    )
    both = hw.knockout(model, [first, second], TASKS, k=(1, 3), draws=2, progress=False)
    for gates in ran:
        assert len({g.tobytes() for g in gates}) == len(gates) and (gates[0] == 1).all()
    assert both.summary()[["method", "heads_of"]].drop_duplicates().values.tolist() == [
        ["mine", "letters"],
        ["mine", "few-shot"],
        ["yours", "letters"],
    ]
    for name, one in {"mine": first, "yours": second}.items():
        alone = hw.knockout(model, {name: one}, TASKS, k=(1, 3), draws=2, progress=False).frame
        pd.testing.assert_frame_equal(
            both.frame[both.frame["method"] == name].reset_index(drop=True), alone, atol=1e-4
        )
    ran.clear()
    hw.knockout(model, {"a": first, "b": first}, FEW_SHOT, k=1, draws=2, progress=False)
    assert [len(g) for g in ran] == [1 + 1 + 2]


@pytest.mark.parametrize(
    ("others", "kinds"), [("all", {"top", "control"}), ("top", {"top"}), ("none", set())]
)
def test_how_much_is_measured_on_other_tasks(others: Any, kinds: set[str]) -> None:
    model = tiny.model("llama")
    effect = hw.knockout(
        model, random_scores(model), TASKS, k=2, draws=2, others=others, progress=False
    )
    elsewhere = effect.frame[effect.frame["task"] != effect.frame["heads_of"]]
    assert set(elsewhere["kind"]) == kinds
    assert len(effect.frame) == 6 + len(elsewhere)
    assert effect.summary()["others"].isna().all() == (others == "none") and effect.summary()[
        "others_control"
    ].isna().all() == (others != "all")
    effect.plot()


def test_a_control_that_is_another_tasks_top_head_is_not_taken_for_a_measurement_elsewhere() -> (
    None
):
    model = tiny.model("llama")
    values = np.zeros((2, *model.shape))
    values[0, 1, 0] = values[1, 1, 1] = (
        1  # in one layer, so that each is among the other's three possible controls
    )
    scores = hw.HeadScores.from_arrays(
        dict(zip([t.name for t in TASKS], values)),
        method="mine",
        meta={"weights": model.fingerprint()},
    )
    frame = hw.knockout(model, scores, TASKS, k=1, draws=3, others="top", progress=False).frame
    assert set(frame[frame["task"] != frame["heads_of"]]["kind"]) == {"top"}


def test_the_seed_decides_the_draws() -> None:
    model = tiny.model("llama")
    scores = random_scores(model)
    one, again, two = (
        hw.knockout(model, scores, TASKS, k=3, draws=2, seed=s, progress=False).frame
        for s in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one, again)
    assert one["heads"].tolist() != two["heads"].tolist()


def test_unseen_prompts_are_drawn_first_then_those_held_out() -> None:
    labels = [f"{i} is{i}" for i in range(6)]
    scores = hw.HeadScores.from_arrays(
        {"t": np.zeros((3, 1, 1))}, method="m", runs={"t": labels[:3]}
    )
    draws = [unseen_first(labels, "t", [scores], 3, seed) for seed in range(9)]
    assert all(set(draw.indices) == {3, 4, 5} and draw.scored_on == 0 for draw in draws)
    assert len({draw.indices for draw in draws}) > 1
    draw = unseen_first(labels, "t", [scores], 5, 0, held_out=(5, 1))
    assert draw.indices[0] == 5 and set(draw.indices[1:3]) == {3, 4}
    assert draw.indices[3] == 1 and draw.scored_on == 2
    assert unseen_first(labels, "other", [scores], 9, 0).scored_on == 0


def test_numpys_whole_numbers_are_whole_numbers() -> None:
    model, scores = tiny.model("llama"), random_scores(tiny.model("llama"))
    plain, numpys = (
        hw.knockout(
            model,
            scores,
            TASKS,
            k=number(2),
            draws=number(2),
            prompts=number(3),
            batch_size=number(4),
            seed=number(5),
            progress=False,
        )
        for number in (int, np.int64)
    )
    pd.testing.assert_frame_equal(plain.frame, numpys.frame)
    assert plain.meta == numpys.meta and type(numpys.meta["seed"]) is int
