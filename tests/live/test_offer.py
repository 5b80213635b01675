"""What the run form offers: options with their types, defaults and help."""

from __future__ import annotations

import dataclasses
import linecache
from typing import Any

import headwidget as hw
from headwidget.live import offer
from headwidget.live.field_help import field_help, first_sentence
from headwidget.methods.probe import Probe
from tests.support.lab_tools import TASKS, fresh


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
    filename = "/tmp/ipykernel_1/cell.py"
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
