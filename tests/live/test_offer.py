"""What the run form offers: options with their types, defaults and help."""

from __future__ import annotations

import dataclasses
import linecache
from typing import Any, Literal

import pytest

import headwidget as hw
from headwidget.live import offer
from headwidget.live.field_help import field_help, first_sentence
from headwidget.methods.probe import Probe
from headwidget.scoring import registry
from tests.support.lab_tools import TASKS, fresh
from tests.support.own_method import MINE, constant


def offered(method: str) -> dict[str, dict[str, Any]]:
    methods = offer.offer(fresh(), TASKS)["methods"]
    (found,) = [entry for entry in methods if entry["name"] == method]
    return {option["name"]: option for option in found["options"]}


def test_an_option_is_offered_with_its_choices_its_default_and_its_help() -> None:
    options = offered("ablation")
    where = options["where"]
    assert (where["kind"], where["choices"], where["default"]) == ("choice", ["all", "last"], "all")
    assert where["help"] == "At all positions, or only where the answer is predicted."
    assert offered("gradient")["abs"]["kind"] == "bool"


def test_every_option_that_is_offered_has_a_help_of_one_sentence() -> None:
    methods = offer.offer(fresh(), TASKS)["methods"]
    options = []
    for method in methods:
        options += [(method["name"], option) for option in method["options"]]
    missing = [(name, option["name"]) for name, option in options if not option["help"]]
    assert len(options) > 20 and set(missing) <= {("probe", "lr"), ("probe", "hidden")}
    assert all("\n" not in option["help"] for _, option in options)


def test_the_lab_sends_the_help_to_the_browser() -> None:
    lab = hw.live(fresh(), TASKS)
    (gradient,) = [entry for entry in lab._offer["methods"] if entry["name"] == "gradient"]
    assert gradient["options"][0]["help"].endswith(".")
    assert gradient["about"].startswith("How fast log p(answer) changes")
    assert lab._offer["tasks"] == [[task.name, len(task)] for task in TASKS]


def raises_a_key_error(model: hw.Model) -> None:
    raise KeyError("x")


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, job: Any) -> Any:
        return constant(job)


def made(*fields: Any) -> type:
    return dataclasses.make_dataclass("Made", fields, frozen=True)


FAULTY: dict[str, tuple[dict[str, Any], str | None, list[str]]] = {
    "check": ({"check": raises_a_key_error}, "'mine': its check of the model raised KeyErr", []),
    "unhashable": ({"run": Unhashable(), "options": made(("k", int, 1))}, None, ["k"]),
    "type unknown": (
        {"options": made(("k", "int", 1), ("of", "Unheard", None))},
        None,
        ["k"],
    ),
    "choice of bytes": (
        {"options": made(("k", Literal[b"x"], b"x"))},
        "method 'mine': its options cannot be read: TypeError",
        [],
    ),
    "infinite": ({"options": made(("k", float, float("inf")))}, "options cannot be read", []),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_method_does_not_hide_the_others(fault: str) -> None:
    changes, why_not, options = FAULTY[fault]
    hw.register_method(dataclasses.replace(MINE, **changes))
    lab = hw.live(fresh(), TASKS)
    *others, mine = lab._offer["methods"]
    of_the_model = lab._offered["methods"][:-1]
    assert len(others) == 7 and all(method["why_not"] is None for method in of_the_model)
    assert mine["name"] == "mine" and (why_not or "") in (mine["why_not"] or "")
    assert (mine["why_not"] is None) == (why_not is None)
    if "check" not in changes:
        assert [option["name"] for option in mine["options"]] == options


def test_a_method_that_cannot_score_the_tasks_asked_for_says_why() -> None:
    pairs = hw.Task("pairs", [("a", "b"), ("b", "c")])
    lab = hw.live(fresh(), [*TASKS, pairs], asked=["one"])

    def why_not(name: str) -> str:
        (method,) = [one for one in lab._offer["methods"] if one["name"] == name]
        return method["why_not"] or ""

    assert "single tokens" in why_not("relations") and why_not("gradient") == ""
    assert "probe" in why_not("probe")
    lab.asked = ["pairs"]
    assert ("single tokens" in why_not("relations")) == (
        offer.why_not(registry.find("relations"), lab._model, [pairs], 0, {}) is not None
    )


def test_what_the_options_allow_is_not_refused() -> None:
    def task(name: str) -> hw.Task:
        return hw.Task(name, [(f"{name} {i}", "b") for i in range(4)])

    lab = hw.live(fresh(), [task("one"), task("two")], "probe", prompts=None)

    def why_not() -> str:
        (method,) = [one for one in lab._offer["methods"] if one["name"] == "probe"]
        return method["why_not"] or ""

    assert "too few to hold each out once in 5 folds" in why_not()
    lab.options = {"folds": 2}
    assert why_not() == ""
    lab.options = {}
    assert "folds" in why_not()


def test_an_option_has_a_plain_label_and_says_what_an_empty_field_stands_for() -> None:
    assert offered("gradient")["abs"]["label"] == "size without sign"
    assert offered("gating")["updates"]["hint"] == "500"
    assert offered("probe")["validation"]["hint"] == "0.2"
    own = [option for method in registry.names() for option in offered(method).values()]
    assert {option["name"] for option in own} == set(offer.LABELS)


def test_a_class_whose_source_is_unknown_has_no_help() -> None:
    assert field_help(dataclasses.make_dataclass("Made", [("speed", int, 3)])) == {}


def test_a_class_of_a_notebooks_cell_has_its_help() -> None:
    cell = '''
import dataclasses
@dataclasses.dataclass(frozen=True)
class Mine:
    """Options."""
    speed: int = 3
    """How fast. Not more than 9."""
    depth: int = 1
def run(job):
    yield
'''
    filename = "<ipykernel cell>"
    space: dict[str, Any] = {"__name__": "__main__"}
    linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
    try:
        exec(compile(cell, filename, "exec"), space)
        assert field_help(space["Mine"], space["run"]) == {"speed": "How fast."}
    finally:
        del linecache.cache[filename]


def test_a_sentence_ends_before_the_next_and_not_in_a_number() -> None:
    assert first_sentence("Between 0.5 and 1, i.e. most. The rest\n    follows.") == (
        "Between 0.5 and 1, i.e. most."
    )
    assert first_sentence("No full stop") == "No full stop"
    assert set(field_help(Probe)) <= {field.name for field in dataclasses.fields(Probe)}
