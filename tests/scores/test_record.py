"""The record of scores: typed, lenient with what others wrote, and nothing of it is lost."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwidget as hw
from headwidget.display import wire
from headwidget.scores import provenance
from headwidget.scores.json_fields import JsonFields
from headwidget.scores.record import (
    ComparedSide,
    Comparison,
    Contrast,
    Display,
    Dropped,
    ProbeRecord,
    Record,
    TaskRecord,
)
from headwidget.scoring import registry
from tests.support import tiny, words
from tests.support.planted import labelled, letters

ROOT = Path(__file__).parents[2]

# ---- the card of a real probe ----


def test_the_card_of_a_real_probe_says_what_the_words_alone_get_right() -> None:
    scores = hw.score(
        labelled([(0, 1)]), letters(12, held_out=4), "probe", progress=False, epochs=2, hidden=8
    )
    about = dict(wire.encode(scores)[0]["about"])
    surface = scores.record.probe.surface  # type: ignore[union-attr]
    assert (
        surface is not None
        and f"words of the prompts alone {int(100 * surface + 1e-9)}%" in about["probe"]
    )
    assert re.fullmatch(
        r"\d+% of held-out examples right; chance 33%, shuffled labels \d+%, "
        r"words of the prompts alone \d+%",
        about["probe"],
    )
    assert scores.ranked_by == "size" and scores.record.display.normalize == "share"


# ---- what methods write ----

SMALL: dict[str, dict[str, Any]] = {
    "ablation": {},
    "gradient": {},
    "attribution": {},
    "probe": {"units": 4, "hidden": 8, "epochs": 2, "folds": 2},
    "gating": {"preset": "quick", "updates": 2, "fits": 2, "contrast": tiny.task("other")},
    "patterns": {"lengths": 6, "sequences": 1},
    "relations": {},
}


def nested(record: JsonFields) -> list[JsonFields]:
    """A record and all records within it."""
    found = [record]
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        values = (
            value.values()
            if isinstance(value, dict)
            else value
            if isinstance(value, tuple)
            else [value]
        )
        for inner in values:
            if isinstance(inner, JsonFields):
                found += nested(inner)
    return found


@pytest.mark.parametrize("method", registry.names())
def test_all_that_a_method_writes_has_its_place_in_the_record(method: str) -> None:
    """A key that the record does not know, or a value of another kind, is read by no one."""
    model, tasks = tiny.model("llama"), [tiny.task("one"), tiny.task("two")]
    if method == "relations":
        model, tasks = words.made("llama"), [words.following()]
    scores = hw.score(model, tasks, method, progress=False, **SMALL.get(method, {}))
    for record in nested(scores.record):
        astray = {key: value for key, value in record.extra.items() if value not in (None, [], {})}
        assert astray == {}, type(record).__name__


# ---- round trips ----

TEXT = st.text(max_size=5)
WHOLE = st.integers(-5, 500)
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | WHOLE
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
WHOLES = st.lists(WHOLE, max_size=3).map(tuple)


def extra(cls: type[JsonFields]) -> st.SearchStrategy[dict[str, Any]]:
    known = {field.name for field in dataclasses.fields(cls)}
    return st.dictionaries(TEXT.filter(lambda key: key not in known), JSON, max_size=2)


def records(cls: type[JsonFields], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of a class with some of these fields."""
    given_fields = st.fixed_dictionaries({"extra": extra(cls)}, optional=fields)
    return given_fields.map(lambda values: cls(**values))


def by_name(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXT, values, max_size=2)


def known(record: JsonFields) -> bool:
    return bool(record.to_json())


DROPPED = records(Dropped, why=TEXT, count=WHOLE, prompts=TEXTS)
TASK = records(
    TaskRecord,
    prompts=WHOLE,
    dropped=st.lists(DROPPED, max_size=2).map(tuple),
    counted=TEXT,
    accuracy=NUMBER,
    asked=WHOLE,
    warning=TEXT,
    made_from=TEXTS,
    contrast=records(Contrast, task=TEXT, made_from=TEXTS).filter(known),
    paired=st.booleans(),
    gating=by_name(st.dictionaries(TEXT, JSON, max_size=2)),
)
PROBE = records(
    ProbeRecord,
    accuracy=NUMBER,
    surface=NUMBER,
    accuracy_by_task=by_name(NUMBER),
    tasks=TEXTS,
    confusion=st.lists(WHOLES, max_size=2).map(tuple),
)
COMPARISON = records(
    Comparison,
    names=TEXTS,
    tasks=by_name(TEXTS),
    sizes=st.booleans(),
    paired=TEXTS,
    sides=st.lists(
        records(ComparedSide, name=TEXT, layers=WHOLES, heads=by_name(st.just(((1, 2), (3,))))),
        max_size=2,
    ).map(tuple),
)
ONE_RECORD = {
    "model": TEXT,
    "seed": WHOLE,
    "options": st.dictionaries(TEXT, JSON, min_size=1, max_size=2),
    "versions": by_name(TEXT),
    "partial": st.booleans(),
    "tasks": by_name(TASK),
    "probe": PROBE.filter(known),
    "floor": by_name(NUMBER),
    "display": records(Display, normalize=st.just("share"), threshold=NUMBER),
    "axes": st.just(("Row", "Column")),
    "compare": COMPARISON,
}
RECORD = records(
    Record, **ONE_RECORD, merged=st.lists(records(Record, **ONE_RECORD), max_size=2).map(tuple)
)


@settings(max_examples=40, deadline=None)
@given(RECORD)
def test_what_is_written_is_read_back(record: Record) -> None:
    assert Record.from_json(record.to_json()) == record


KEYS = TEXT | st.sampled_from([field.name for field in dataclasses.fields(Record)])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_foreign_records_never_raise(meta: dict[str, Any]) -> None:
    """Whatever JSON stands under the keys: read, shown and written back as often as one likes."""
    record = Record.from_json(meta)
    once = record.to_json()
    assert Record.from_json(once) == record
    assert Record.from_json(once).to_json() == once
    # what is there in one piece stays: unknown keys, and values of another kind
    for key, value in record.extra.items():
        assert once[key] == value
    try:
        scores = hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta=meta)
    except ValueError as error:
        assert "meta" in str(error)
        return
    assert dict(scores.meta) == meta
    wire.encode(scores)
    provenance.line(scores)
    provenance.known_prompts(scores, "a")("prompt")
    scores.select("a").record.task("a")


def test_what_has_no_place_is_kept() -> None:
    meta = {
        "model": "m",
        "revision": None,
        "seed": "random",
        "note": {"mine": [1, 2]},
        "tasks": {"a": {"accuracy": "high", "mood": "good"}, "b": {}},
        "floor": {"a": 0.5, "b": 0.25},
    }
    scores = hw.HeadScores.from_arrays({"a": [[1.0]], "b": [[1.0]]}, method="mine", meta=meta)
    assert dict(scores.meta) == meta
    assert dict(scores.select("a").meta) == {
        **meta,
        "tasks": {"a": {"accuracy": "high", "mood": "good"}},
        "floor": {"a": 0.5},
        "partial": False,
    }
    assert ["seed", "random"] in provenance.about(scores)
    assert scores.record.task("a").accuracy is None and scores.record.seed is None


def test_a_record_can_be_given_in_place_of_json() -> None:
    record = Record(model="m", tasks={"a": TaskRecord(accuracy=0.5)}, extra={"mine": 1})
    scores = hw.HeadScores.from_arrays({"a": [[1.0]]}, method="mine", meta=record)
    assert scores.record == record
    assert dict(scores.meta) == {
        "model": "m",
        "partial": False,
        "tasks": {"a": {"accuracy": 0.5}},
        "mine": 1,
    }


def test_merged_records_that_were_merged_themselves_are_read_one_level_deep() -> None:
    nested: dict[str, Any] = {}
    for _ in range(400):
        nested = {"merged": [nested]}
    record = Record.from_json(nested)
    assert len(record.merged) == 1 and record.merged[0].merged == ()
    assert record.to_json()["merged"][0]["merged"] == nested["merged"][0]["merged"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks" / "data").glob("*.safetensors")), ids=lambda p: p.stem
)
def test_the_records_of_stored_files_are_read_whole(path: Path) -> None:
    scores = hw.open(path)
    assert scores.record.to_json() == dict(scores.meta)
    assert scores.record.model and scores.record.weights and scores.record.versions
    assert set(scores.record.tasks) == set(scores.tasks)
    for record in (scores.record, *scores.record.tasks.values()):
        assert all(value in ([], None) for value in record.extra.values())


def test_only_the_record_reads_meta_by_its_keys() -> None:
    by_key = re.compile(r"\.meta(\[|\.get\()")
    allowed = {"scores/record.py", "display/effect.py"}  # an Effect has a meta of its own
    found = []
    for path in sorted((ROOT / "headwidget").rglob("*.py")):
        name = path.relative_to(ROOT / "headwidget").as_posix()
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if name not in allowed:
            found += [f"{name}:{number}" for number, line in lines if by_key.search(line)]
    assert found == []


def test_counts_that_json_holds_as_floats_are_counts_when_merged() -> None:
    sides = []
    for runs, accuracy in ((4.0, 1.0), (12.0, 0.0)):
        task = {"asked": runs, "accuracy": accuracy, "prompts": runs}
        arrays = {"copy": np.full((int(runs), 2, 2), runs)}
        sides.append(hw.HeadScores.from_arrays(arrays, method="m", meta={"tasks": {"copy": task}}))
    merged = (sides[0] + sides[1]).record.tasks["copy"]
    assert (merged.asked, merged.accuracy, merged.prompts) == (16, 0.25, 16)


def test_a_probe_of_which_only_the_accuracy_is_known_gets_a_whole_text() -> None:
    meta = {"probe": {"accuracy": 0.9}}
    scores = hw.HeadScores.from_arrays({"copy": [[1.0]]}, method="probe", meta=meta)
    assert ["probe", "90% of held-out examples right"] in provenance.about(scores)
