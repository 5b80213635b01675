"""What a page sends for a brush or a lasso sets only thresholds and heads that make sense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import headwidget as hw
from tests.support import made_up
from tests.support.page import pages

ODD: list[Any] = [
    *([], [1.0], [1.0, 2.0, 3.0], [math.nan, math.nan], [0.0, math.inf], [[0.1, 0.2], [0.3, 0.4]]),
    *([-1, -5], [0.5, 1.5], [10**400, 1], ["a", "b"], [None, 1], [True, False], [1e308, 2.0]),
    *("ab", {"value": 3}, 7, True),
]


@pytest.fixture
def explorer() -> hw.Explorer:
    with pages():
        return hw.explore(made_up.scores(4, 3, tasks=2, runs=3), preview=None, threshold=0.2)


@pytest.mark.parametrize("sent", ODD, ids=repr)
def test_a_brush_of_any_kind_leaves_a_threshold_or_none(explorer: hw.Explorer, sent: Any) -> None:
    with pages():
        chart = hw.charts.histogram(explorer)
    chart._x.comm.deliver({"method": "update", "state": {"min": math.nan, "max": 0.0}})
    chart.brush.comm.deliver({"method": "update", "state": {"brushing": False, "selected": sent}})
    assert explorer.threshold is None or math.isfinite(explorer.threshold)
    chart.brush.comm.deliver({"method": "update", "state": {"selected": [0.1, 0.4]}})
    assert explorer.threshold == pytest.approx(0.1, abs=0.01), "the next brush is heeded"
    chart.close()


@pytest.mark.parametrize("sent", ODD, ids=repr)
def test_a_lasso_of_any_kind_selects_heads_that_are_there(explorer: hw.Explorer, sent: Any) -> None:
    with pages():
        chart = hw.charts.scatter(explorer)
    explorer.selected = [[3, 2]]
    chart.dots.comm.deliver({"method": "update", "state": {"selected": sent}})
    numbers = sent if isinstance(sent, list) else []
    dots = [n for n in numbers if isinstance(n, (int, float)) and n in range(12)]
    expected = [[int(n) // 3, int(n) % 3] for n in dots]
    assert explorer.selected in ([[3, 2]], expected)
    chart.dots.comm.deliver({"method": "update", "state": {"selected": [0, 4]}})
    assert explorer.selected == [[0, 0], [1, 1]] and np.asarray(chart.chosen.x).size == 2
    chart.close()
