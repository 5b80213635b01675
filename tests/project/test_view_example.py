"""The view that CONTRIBUTING shows, word for word, is a view that draws what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import headwidget as hw
from headwidget.display.settings import settings

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def test_the_view_of_contributing_draws_how_far_runs_lie_apart() -> None:
    section = CONTRIBUTING.read_text(encoding="utf-8").split("## Write a view")[1]
    source = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[0]
    names: dict[str, Any] = {}
    exec(compile(source, "CONTRIBUTING.md, Write a view", "exec"), names)
    view = names["Spread"]()
    rng = np.random.default_rng(0)
    values = {task: rng.normal(size=(5, 3, 4)).astype(np.float32) for task in ("a", "b")}
    scores = hw.HeadScores.from_arrays(values, method="made up", signed=True)

    picture = view.picture(scores, settings(scores, threshold=0.2))
    assert [panel.title for panel in picture.panels] == ["a", "b"]
    for panel in picture.panels:
        np.testing.assert_array_equal(panel.values, np.ptp(values[panel.title], axis=0))
        mean = np.abs(values[panel.title].mean(axis=0))
        np.testing.assert_array_equal(panel.passes, mean >= np.float32(0.2))
    alone = view.picture(scores, settings(scores, task="b"))
    assert [panel.title for panel in alone.panels] == ["b"] and alone.passing is None
