"""What a page sends changes only what a page may set, and only to values that make sense.

Whatever comes, the page ends with what Python holds, and the model's thread goes on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis
import ipywidgets
import numpy as np
import pytest
from hypothesis import strategies as st
from traitlets import TraitError

import headwidget as hw
from headwidget.display import plain_values, settings
from tests.support.lab_tools import TASKS, fresh, threads
from tests.support.page import PageEnd, held_by, pages, shown_by

FROM_PAGE = {
    *("selected", "hover", *settings.NAMES),
    *("method", "options", "asked", "prompts", "prompt", "target", "_scaled", "heed_gates"),
}


def nested(depth: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    return deep


ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53, 10**400, 10**5000, 0.5, 1e39, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", "abc", "\ud83d", "a\udc80", "x" * 200_000),
    *([], {}, [[]], [None], [[0, 0]], [[True, False]], [[0, 0, 0]], [[0, 0, 1e39]]),
    *([[0, 0, 10**400]], [[0, 0, True]], [[True, 0, 2]], [[0, 0, 1]], [[0, 1, 2], [0, 1, 3]]),
    *([[0.0, 0, 2]], [[0, 0, float("nan")]], ["one"], ["one", "one"], {"one": 1}, [["one"]]),
    *({"updates": float("nan")}, {"updates": 10**400}, {"x": nested(50)}, nested(10_000)),
    *({"x": "\ud800"}, {"\ud800": 1}, "99%", " 99 %", "٩٩%", "tasks", "gradient", "elbow"),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 40)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=6)
)
JSON = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=3), part)
)


@pytest.fixture(scope="module")
def lab() -> Iterator[hw.Lab]:
    with pages():
        lab = hw.live(fresh(), TASKS)
    yield lab
    lab.close()


def test_the_page_may_set_these_traits_and_no_others(lab: hw.Lab) -> None:
    assert set(lab.traits(sync=True, from_page=True)) == FROM_PAGE
    assert set(hw.explore(lab.shown).traits(sync=True, from_page=True)) == {
        "selected",
        "hover",
        *settings.NAMES,
    }


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=400)
def test_whatever_the_page_sends_it_ends_with_what_python_holds(
    lab: hw.Lab, data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(set(lab.keys) - {"layout"}))
    value = st.sampled_from(ODD) | JSON
    sent = data.draw(st.dictionaries(names, value, min_size=1, max_size=3))
    kernels = {name: lab.get_state(name) for name in lab.keys if name not in FROM_PAGE}
    page = lab.comm
    page.state.update(sent)
    page.deliver({"method": "update", "state": sent, "buffer_paths": []})
    assert lab.wait(60)
    assert shown_by(lab) == held_by(lab)
    for name in sorted(FROM_PAGE):
        setattr(lab, name, getattr(lab, name))  # what is held is valid
    told = {
        "_head",
        "_reading",
        "_maps",
        "_trouble",
        "_effect",
        "_offer",
    }  # what these settings bring
    for name in set(kernels) - told:
        assert lab.get_state(name) == kernels[name]


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=200)
def test_whatever_python_sets_is_refused_with_a_sentence_or_reaches_the_page(
    lab: hw.Lab, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted({*FROM_PAGE, "gates"})))
    value = data.draw(st.sampled_from(ODD) | JSON)
    try:
        setattr(lab, name, value)
    except TraitError as error:
        assert 10 < len(str(error)) <= plain_values.LONGEST_SENTENCE + 1
    assert lab.wait(60)
    assert shown_by(lab) == held_by(lab)


@pytest.mark.parametrize("value", ODD, ids=map(str, range(len(ODD))))
def test_a_message_of_any_kind_stops_nothing(lab: hw.Lab, value: Any) -> None:
    for content in (value, {"ask": value}, {"ask": "painted", "took": value}):
        lab.comm.ask(content)
    assert lab.wait(60) and lab.state == "idle" and not threads()


@pytest.mark.parametrize("state", [None, 5, "run", [], [["view", "tasks"]]])
def test_a_state_that_is_none_is_no_state(lab: hw.Lab, state: Any) -> None:
    lab.comm.deliver({"method": "update", "state": state})
    assert shown_by(lab) == held_by(lab)


def test_the_page_cannot_make_python_wait_or_read_what_was_not_measured() -> None:
    with pages():
        lab = hw.live(fresh(), TASKS)
    forged = {"done": False, "heads": 3, "tasks": [{"name": "one"}]}
    lab.comm.set(_effect=forged, _state={"state": "running"}, _reading={"predictions": [[1]]})
    assert lab.effect == {} and lab.reading == {} and lab._state == {"state": "idle"}
    lab._effect = forged  # not even where it came through

    async def done() -> object:
        return await asyncio.wait_for(lab.done, 30)

    with ThreadPoolExecutor(1) as thread:  # this one may have the loop of a browser test
        assert thread.submit(lambda: asyncio.run(done())).result(60) is None
    lab.comm.set(_header={}, _buffer="", _offer={}, _live=False, _esm="alert(1)", layout=None)
    assert shown_by(lab) == held_by(lab) | {"_effect": forged}
    assert lab._esm != "alert(1)" and isinstance(lab.layout, ipywidgets.Layout)
    lab.close()


@pytest.mark.parametrize("factor", [1e39, -1e39, 10**400, float("inf"), float("nan"), True, "2"])
def test_a_factor_that_float32_cannot_hold_is_refused(factor: Any) -> None:
    with pages():
        lab = hw.live(fresh(), TASKS)
    lab.comm.state.update(_scaled=[[0, 1, factor]])
    lab.comm.deliver({"method": "update", "state": {"_scaled": [[0, 1, factor]]}})
    assert shown_by(lab)["_scaled"] == lab._scaled == [] and (lab.gates == 1).all()
    assert "a number that float32 can hold" in lab._trouble
    gates: list[list[Any]] = np.ones((3, 4)).tolist()
    gates[0][1] = factor
    if factor is not True:  # a mask is an array of gates
        with pytest.raises(TraitError, match=r"gates is a \(layer, head\) array of 3 x 4 finite"):
            lab.gates = gates
    assert (lab.gates == 1).all()
    lab.comm.set(_scaled=[[0, 1, 0.5]])
    assert lab.gates[0, 1] == 0.5 and lab._trouble == "", "the next value that is taken ends it"
    lab.close()


def test_a_refused_value_is_put_right_on_the_page_with_those_that_came_with_it() -> None:
    with pages():
        lab = hw.live(fresh(), TASKS)
    lab.comm.set(view="agreement", threshold="high")
    assert (lab.view, lab.threshold) == ("tasks", None)
    assert (shown_by(lab)["view"], shown_by(lab)["threshold"]) == ("tasks", None)
    lab.cap = "99%"
    lab.comm.set(cap=" 99 %")  # as Python writes it, also where that is what it has
    assert shown_by(lab)["cap"] == "99%"
    lab.close()


def test_what_the_kernel_cannot_send_is_never_held() -> None:
    """A state that cannot be packed would leave every new page without a widget."""
    with pages():
        lab = hw.live(fresh(), TASKS)
    for name, value in (("prompt", "\ud83d"), ("isolated", "\ud83d"), ("options", {"a": object()})):
        with pytest.raises(TraitError):
            setattr(lab, name, value)
    json.dumps({name: lab.get_state(name)[name] for name in FROM_PAGE}, allow_nan=False).encode()
    assert isinstance(lab.comm, PageEnd)
    lab.close()
