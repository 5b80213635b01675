"""How an effect shows: its summary, its text, its plot."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import headwidget as hw
from headwidget.display.effect import Effect
from tests.support import tiny
from tests.support.knockouts import FEW_SHOT, TASKS, random_scores


def test_summary_counts_a_beaten_control_only_when_every_draw_is_beaten() -> None:
    def effect(changes: list[float], factor: float) -> Effect:
        rows = [
            {
                "method": "m",
                "heads_of": "t",
                "task": "t",
                "k": 1,
                "kind": "control" if i else "top",
                "draw": i,
                "accuracy_change": c,
                "log_probability_change": c,
            }
            for i, c in enumerate(changes)
        ]
        return Effect(
            pd.DataFrame(rows),
            pd.DataFrame([{"task": "t", "log_probability": -1.0, "accuracy": 1.0}]),
            factor,
        )

    for factor, changes, beats in [
        (0, [-3.0, -1.0, -2.0], True),
        (0, [-2.0, -1.0, -2.0], False),  # a tie is not better
        (0, [-1.5, -1.0, -2.0], False),
        (2, [1.0, 0.5, -0.5], True),
        (2, [-3.0, 0.5, -0.5], False),  # amplified, a helping head should help
    ]:
        found = effect(changes, factor).summary().iloc[0]
        assert bool(found["beats_control"]) is beats
        assert (found["control_low"], found["control_high"], found["draws"]) == (
            min(changes[1:]),
            max(changes[1:]),
            2,
        )
        assert found["control"] == pytest.approx(np.mean(changes[1:])) and found["before"] == -1
    assert effect([-1, 0], 0).summary("accuracy")["before"].item() == 1
    with pytest.raises(
        ValueError, match="measure is 'log_probability', 'accuracy', 'beats_foil'; got 'speed'"
    ):
        effect([-1, 0], 0).summary("speed")


def test_what_is_shown_is_text_and_says_what_was_done() -> None:
    model = tiny.model("llama")
    task = hw.Task("<b>sums</b> $x_1$", tiny.task().examples)
    effect = hw.knockout(
        model, random_scores(model, task.name), [task, FEW_SHOT], k=(1, 2), draws=2, progress=False
    )
    html = effect._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;sums" in html and "heads turned off" in html
    assert repr(effect).startswith("Effect(") and "beats_control" in repr(effect)
    assert (
        effect.meta["k"] == [1, 2]
        and effect.meta["seed"] == 0
        and effect.meta["weights"] == model.fingerprint()
    )


@pytest.mark.parametrize("measure", ["log_probability", "accuracy", "beats_foil"])
def test_the_plot_draws_the_frames_own_numbers(measure: str) -> None:
    model = tiny.model("llama")
    effect = hw.knockout(
        model,
        {"a": random_scores(model), "b": random_scores(model, "letters", seed=1)},
        TASKS,
        k=(1, 2),
        draws=3,
        progress=False,
    )
    figure = effect.plot(measure)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["letters · a", "few-shot · a", "letters · b"]
    before = effect.untouched.set_index("task")[measure]
    for axes, (method, task) in zip(shown, [("a", "letters"), ("a", "few-shot"), ("b", "letters")]):
        part = effect.frame[(effect.frame["method"] == method) & (effect.frame["heads_of"] == task)]
        own = part[part["task"] == task]
        lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
        np.testing.assert_allclose(
            lines["top heads"], [before[task], *own[own["kind"] == "top"][measure]]
        )
        control = own[own["kind"] == "control"].groupby("k")[measure]
        np.testing.assert_allclose(
            lines["random heads, same layers"], [before[task], *control.mean()]
        )
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == pytest.approx(
            (min(before[task], control.min().min()), max(before[task], control.max().max()))
        )
        elsewhere = part[(part["task"] != task) & (part["kind"] == "top")][measure]
        np.testing.assert_allclose(
            lines["top heads, other tasks"], [before.drop(task).mean(), *elsewhere]
        )
        assert [t.get_text() for t in axes.get_xticklabels()] == ["0", "1", "2"]


def test_a_plot_needs_no_pyplot() -> None:
    code = """
import sys
import pandas as pd
from headwidget.display.effect import Effect
row = {"method": "m", "heads_of": "t", "task": "t", "k": 1}
rows = [{**row, "kind": "top", "accuracy": 0.1}, {**row, "kind": "control", "accuracy": 0.9}]
before = pd.DataFrame([{"task": "t", "accuracy": 1.0}])
Effect(pd.DataFrame(rows), before, 0.0).plot("accuracy").canvas.draw()
print([name for name in ("matplotlib.pyplot", "torch") if name in sys.modules])
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
