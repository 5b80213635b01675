"""What is closed leaves nothing behind in ipywidgets' registry, and can be collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import ipywidgets
import pytest
from traitlets import TraitError

import headwidget as hw
from tests.charts.test_charts import MAKE
from tests.support import made_up
from tests.support.lab_tools import TASKS, fresh
from tests.support.page import pages


def registered() -> dict[str, Any]:
    """Every widget that ipywidgets keeps."""
    gc.collect()
    return dict(ipywidgets.widgets.widget._instances)


def explorer(**traits: Any) -> hw.Explorer:
    return hw.explore(made_up.scores(4, 3, tasks=2, runs=3), preview=None, **traits)


def lab(**traits: Any) -> hw.Lab:
    return hw.live(fresh(), TASKS, **traits)


@pytest.mark.parametrize("make", [explorer, lab])
@pytest.mark.parametrize("layout", [{}, {"layout": {"width": "50%"}}])
def test_a_closed_widget_takes_its_layout_with_it(
    make: Callable[..., Any], layout: dict[str, Any]
) -> None:
    before = registered()
    widget = make(**layout)
    held, layout_held = weakref.ref(widget), weakref.ref(widget.layout)
    assert len(registered()) == len(before) + 2
    widget.close()
    widget.close()
    assert registered() == before
    del widget
    gc.collect()
    assert held() is None and layout_held() is None


@pytest.mark.parametrize("make", [explorer, lab])
def test_a_layout_of_the_users_stays(make: Callable[..., Any]) -> None:
    shared = ipywidgets.Layout(width="50%")
    other = ipywidgets.HTML(layout=shared)
    make(layout=shared).close()
    late = make()
    late.layout = shared
    late.close()
    assert shared.comm is not None and other.layout is shared
    for widget in (other.style, other, shared):
        widget.close()


@pytest.mark.parametrize("make", [explorer, lab])
def test_a_widget_that_could_not_be_made_leaves_nothing(make: Callable[..., Any]) -> None:
    before = registered()
    with pytest.raises(TraitError):
        make(threshold="high")
    with pytest.raises(TraitError):
        make(layout={"width": "50%"}, view="no such view")
    assert registered() == before


@pytest.mark.parametrize("make", [explorer, lab])
def test_a_widget_that_the_page_closes_is_closed(make: Callable[..., Any]) -> None:
    before = registered()
    with pages():
        widget = make()
    widget.comm.close_here()
    assert widget.comm is None and registered() == before


def test_a_lab_that_nothing_uses_takes_its_layout_with_it() -> None:
    before = registered()
    widget = lab()
    del widget
    assert registered() == before


@pytest.mark.parametrize("name", MAKE)
def test_a_closed_chart_leaves_nothing_and_its_explorer_alone(name: str) -> None:
    shown = explorer(tasks=["Knowledge Recall", "Retrieval"])
    before = registered()
    chart = MAKE[name](shown)
    held = weakref.ref(chart)
    assert len(registered()) > len(before)
    chart.close()
    chart.close()
    assert registered() == before and shown.comm is not None
    del chart
    gc.collect()
    assert held() is None
    shown.close()


def test_a_dashboard_leaves_the_charts_it_did_not_make() -> None:
    shown = explorer()
    mine = hw.charts.histogram(shown)
    before = registered()
    hw.dashboard(shown, [mine, "layer_profile"]).close()
    hw.dashboard(shown, []).close()
    assert registered() == before and mine.comm is not None
    shown.threshold = 0.1
    assert mine.title.endswith("pass")
    mine.close()
    shown.close()


def test_a_chart_closes_what_it_made_not_what_the_page_put_there() -> None:
    with pages():
        shown = explorer()
        chart = hw.charts.histogram(shown)
    chart.figure.comm.set(marks=[f"IPY_MODEL_{shown.model_id}"])
    chart.close()
    assert shown.comm is not None
    shown.close()
