"""Files: what was saved comes back.

A truncated, hostile or foreign file gives ValueError with a sentence and never runs code.
"""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import headwidget as hw

RNG = np.random.default_rng(0)
META = {"model": "m", "versions": {"torch": "2"}, "tasks": {"a <b>": {"dropped": []}}}
SCORES = hw.HeadScores.from_arrays(
    {"a <b>": RNG.normal(size=(5, 2, 3)), "日本": RNG.normal(size=(2, 3))},
    method="mine",
    layers=[1, 4],
    categories={"a <b>": "c"},
    meta=META,
)


def header(**changes: Any) -> str:
    whole = {
        "version": 1,
        "method": "m",
        "signed": True,
        "layers": [0, 1],
        "heads": 3,
        "tasks": [{"name": "a", "category": None, "runs": ["x"]}],
        "meta": {},
    }
    return json.dumps({**whole, **changes})


def write(
    path: Path, text: str | None = None, tensors: dict[str, np.ndarray] | None = None
) -> Path:
    save_file(
        tensors if tensors is not None else {"task0": np.zeros((1, 2, 3), np.float32)},
        path,
        {"headwidget": header() if text is None else text},
    )
    return path


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    again = hw.open(SCORES.save(tmp_path / "s.safetensors"))
    for name in ("tasks", "method", "layers", "signed", "ranked_by", "categories", "meta"):
        assert getattr(again, name) == getattr(SCORES, name), name
    assert dict(again.meta) == META
    for task in SCORES.tasks:
        np.testing.assert_array_equal(again.values(task), SCORES.values(task))
        assert again.runs(task) == SCORES.runs(task)
    assert [p.name for p in tmp_path.iterdir()] == ["s.safetensors"]  # no temporary name is left


def test_the_test_file_itself_is_good(tmp_path: Path) -> None:
    assert hw.open(write(tmp_path / "s")).tasks == (
        "a",
    )  # so that what follows fails for its own reason


def test_files_from_before_ranked_by_was_a_field_are_ranked_as_they_were(tmp_path: Path) -> None:
    assert hw.open(write(tmp_path / "plain")).ranked_by == "mean"
    probe = header(meta={"display": {"normalize": "share"}})
    assert hw.open(write(tmp_path / "probe", probe)).ranked_by == "size"
    assert hw.open(write(tmp_path / "new", header(ranked_by="size"))).ranked_by == "size"


STORED = sorted((Path(__file__).parents[2] / "notebooks" / "data").glob("*.safetensors"))


@pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])
def test_stored_files_open(path: Path, tmp_path: Path) -> None:
    scores = hw.open(path)
    again = hw.open(scores.save(tmp_path / "again.safetensors"))
    assert again.ranked_by == scores.ranked_by == "mean" and again.meta == scores.meta


def test_a_failed_save_leaves_the_old_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SCORES.save(tmp_path / "s.safetensors")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(OSError, match="no space left"):
        SCORES.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist; make it first"):
        SCORES.save(tmp_path / "nowhere" / "s.safetensors")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "cannot be read as head scores"),
        ("[1]", "not a JSON object"),
        (header(version=None), "no version"),
        (header(version=True), "no version"),
        (header(version=3), "version 3, written by a newer headwidget; upgrade to open it"),
        (header(version=0), "version 0; this headwidget reads versions 1 to 2"),
        (header(version=2, aspects=["a", "a"]), "aspects"),
        (header(version=2, aspects={"a": 1}), "aspects"),
        (header(version=2, aspects=["a"]), "its tensors are"),
        (header(method=3), "method is missing or of the wrong kind"),
        (header(signed="yes"), "signed"),
        (header(ranked_by="sum"), "ranked_by is missing or of the wrong kind"),
        (header(ranked_by=["mean"]), "ranked_by"),
        (header(layers=[0, "1"]), "layers"),
        (header(layers=[0, 0]), "a number of its own"),
        (header(heads=-3), "heads"),
        (header(heads=2**40), "heads"),
        (header(tasks=[]), "tasks"),
        (header(tasks=[{"name": ["a"], "runs": []}]), "tasks"),
        (header(tasks=[{"name": "a", "category": 3, "runs": ["x"]}]), "category"),
        (header(tasks=[{"name": "a", "runs": "x"}]), "runs"),
        (
            header(tasks=[{"name": "a", "runs": ["x", "y"]}]),
            r"holds F32 \[1, 2, 3\], where its header promises F32 \[2, 2, 3\]",
        ),
        (
            header(tasks=[{"name": "a", "runs": ["x"]}, {"name": "a", "runs": ["x"]}]),
            "names that differ",
        ),
        (header(meta=[]), "meta"),
        (header().replace('"meta": {}', '"meta": {"x": NaN}'), "NaN, which is not JSON"),
        (header().replace('"meta": {}', '"meta": {"x": 1e999}'), "meta"),
        (header().replace('"meta": {}', '"meta": ' + "[" * 200_000), "cannot be read"),
        (header(meta={"tasks": "zzz"}), "a dict for each task"),
    ],
)
def test_a_hostile_header_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        hw.open(write(tmp_path / "s", text))
    assert str(tmp_path / "s") in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"task0": np.zeros((1, 2, 3))}, "holds F64"),
        ({"task0": np.zeros((2, 3), np.float32)}, r"holds F32 \[2, 3\]"),
        ({"task0": np.full((1, 2, 3), np.inf, np.float32)}, "6 scores are not finite"),
        ({}, "its tensors are"),
        ({"task0": np.zeros((1, 2, 3), np.float32), "more": np.zeros(1)}, "its tensors are"),
    ],
)
def test_tensors_that_do_not_fit_the_header_are_refused(
    tensors: dict[str, np.ndarray], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        hw.open(write(tmp_path / "s", tensors=tensors))


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle ran",))


def test_foreign_files_are_refused_and_never_run(tmp_path: Path) -> None:
    foreign = {
        "pickle": pickle.dumps(Bomb()),
        "empty": b"",
        "text": b"hello",
        "huge header": struct.pack("<Q", 2**62) + b"{}",
        "other safetensors": None,
    }
    for name, content in foreign.items():
        path = tmp_path / name
        if content is None:
            save_file({"x": np.zeros(2)}, path)
        else:
            path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as head scores"):
            hw.open(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        hw.open(tmp_path / "nowhere")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = SCORES.save(tmp_path / "s").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cannot be read as head scores"):
            hw.open(tmp_path / "cut")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_flipped_byte_gives_scores_or_a_sentence(at: float, byte: int, tmp_path: Path) -> None:
    whole = bytearray(SCORES.save(tmp_path / "s").read_bytes())
    whole[int(at * (len(whole) - 1))] = byte
    (tmp_path / "flipped").write_bytes(whole)
    try:
        assert hw.open(tmp_path / "flipped").shape == (2, 3)
    except ValueError as error:
        assert "cannot be read as head scores" in str(error)
