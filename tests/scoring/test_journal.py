"""The journal: what was written is read again, a torn end is dropped, damage is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwidget.scores import HeadScores
from headwidget.scoring import journal
from headwidget.scoring.journal import HEADER, Entry, Journal

ENTRIES = (
    Entry("begin", {"task": "däta \ud800", "n": [1, None, 2.5]}),
    Entry(
        "chunk",
        {},
        {
            "values": np.arange(6, dtype=np.float32).reshape(1, 2, 3),
            "double": np.array([0.1, np.nan, np.inf]),
            "step": np.array(7.0, np.float32),
            "empty": np.zeros((0, 4), np.int64),
            "whole": np.array([-(2**60), 5]),
            "yes": np.array([[True], [False]]),
            "bytes": np.arange(3, dtype=np.uint8),
            "turned": np.arange(6, dtype=np.float64).reshape(2, 3).T,
        },
    ),
    Entry("state", {"line": "two\nlines"}, {"x": np.full(5, 1.1, np.float32)}),
)


def write(path: Path, entries: Sequence[Entry] = ENTRIES) -> list[int]:
    """Where each record begins, and where the file ends."""
    kept = Journal(path)
    places = [0]
    for entry in entries:
        kept.append(entry)
        places.append(path.stat().st_size)
    kept.close()
    return places


def read(path: Path) -> list[Entry]:
    kept = Journal(path)
    try:
        return list(kept.entries())
    finally:
        kept.close()


def same(a: Entry, b: Entry) -> bool:
    if (a.kind, a.facts, list(a.arrays)) != (b.kind, b.facts, list(b.arrays)):
        return False
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a.arrays.values(), b.arrays.values())
    )


def is_beginning(found: Sequence[Entry], count: int) -> bool:
    return len(found) == count and all(map(same, found, ENTRIES))


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    write(path)
    assert is_beginning(read(path), 3)
    kept = Journal(path)
    assert len(list(kept.entries())) == 3
    kept.append(ENTRIES[0])
    kept.close()
    assert len(read(path)) == 4


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (Entry("a", {}, {"x": np.zeros(2, np.float16)}), "'x' is of float16: convert it"),
        (Entry("a", {}, {"x": np.array(["text"])}), "'x' is of <U4: convert it"),
        (Entry("a", {"n": np.int64(3)}), "as plain JSON .*int64"),
        (Entry("a", {"f": {1, 2}}), "as plain JSON .*set"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(entry: Entry, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        entry.payload()


def test_a_record_that_could_not_be_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Journal(tmp_path / "a.ckpt")
    monkeypatch.setattr(journal, "MOST_BYTES", 200)
    with pytest.raises(OSError, match="is too large for"):
        kept.append(Entry("a", {}, {"x": np.zeros(100)}))
    monkeypatch.setattr(journal, "MOST_JSON", 20)
    with pytest.raises(OSError, match="is too large for"):
        kept.append(Entry("a", {"text": "long" * 10}))
    kept.close()
    assert read(tmp_path / "a.ckpt") == []


# ---- torn and damaged ----


@pytest.mark.parametrize("nuls", [0, 7, 5000])
def test_a_torn_end_is_dropped_and_nothing_else(tmp_path: Path, nuls: int) -> None:
    """Cut at every byte of the last record; a machine that lost power may leave NULs behind."""
    path = tmp_path / "a.ckpt"
    places = write(path)
    whole, behind = path.read_bytes(), b"\0" * nuls
    for end in range(places[2], places[3]):
        path.write_bytes(whole[:end] + behind)
        found = read(path)
        assert is_beginning(found, 2), end
        assert path.read_bytes() == whole[: places[2]]
        kept = Journal(path)
        list(kept.entries())
        kept.append(ENTRIES[2])
        kept.close()
        assert path.read_bytes() == whole


def test_a_torn_first_record_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    (_, end, *_) = write(path)
    whole = path.read_bytes()
    for cut in range(end):
        path.write_bytes(whole[:cut])
        assert read(path) == [] and path.read_bytes() == b""


def test_a_flipped_byte_never_gives_other_content(tmp_path: Path) -> None:
    """Before the last record it is refused; the last record may be dropped as torn."""
    path = tmp_path / "a.ckpt"
    places = write(path)
    whole, refused, dropped = path.read_bytes(), 0, 0
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            found = read(path)
        except ValueError as error:
            assert "is damaged at byte" in str(error) or "is not a checkpoint" in str(error)
            assert path.read_bytes() == flipped, "what is refused is left as it is"
            refused += 1
        else:
            assert place >= places[2] and is_beginning(found, 2), place
            dropped += 1
    assert refused >= places[2] and dropped > 0


def test_nuls_in_the_middle_are_damage(tmp_path: Path) -> None:
    """A block that was lost before the end is no torn end."""
    path = tmp_path / "a.ckpt"
    places = write(path)
    whole = path.read_bytes()
    for start, end in ((places[1], places[2]), (places[1], places[1] + HEADER)):
        path.write_bytes(whole[:start] + b"\0" * (end - start) + whole[end:])
        with pytest.raises(ValueError, match=f"is damaged at byte {start}"):
            read(path)


# ---- other files ----


@pytest.mark.parametrize("kind", ["text", "NULs", "one NUL", "scores", "its letters"])
def test_a_foreign_file_is_refused_and_not_changed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.safetensors"
    HeadScores.from_arrays({"a": np.zeros((1, 2, 3))}, method="x").save(path)
    content = {"text": b"dear diary", "NULs": b"\0" * 100, "one NUL": b"\0", "its letters": b"hw!"}
    path.write_bytes(content.get(kind, path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is not a checkpoint of headwidget; choose another"):
        read(path)
    assert path.read_bytes() == before


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("", "a folder"), ("pipe", "a named pipe")):
        with pytest.raises(OSError, match=f"is {kind}, not a file"):
            Journal(tmp_path / name)
    with pytest.raises(OSError, match="is a device, not a file"):
        Journal("/dev/null")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        Journal(tmp_path / "no such folder" / "a.ckpt")
    with pytest.raises(TypeError, match="checkpoint is the path of a file; got a int"):
        Journal(3)  # type: ignore[arg-type]


def test_two_processes_at_once_the_second_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    kept = Journal(path)
    code = f"from headwidget.scoring.journal import Journal; Journal({str(path)!r})"
    call = [sys.executable, "-c", code]
    second = subprocess.run(call, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert "another run writes to it; wait for that run, or give this one" in second.stderr
    with pytest.raises(ValueError, match="another run writes to it"):
        Journal(path)
    kept.close()
    assert subprocess.run(call, capture_output=True, check=False).returncode == 0


# ---- the disk ----


def test_the_disk_is_waited_for_at_most_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, waits = [100.0], []
    monkeypatch.setattr(journal.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(journal.os, "fsync", lambda file: waits.append(now[0]))
    kept = Journal(tmp_path / "a.ckpt")
    for _ in range(1000):  # ten seconds
        kept.append(ENTRIES[0])
        now[0] += 0.01
    assert 8 <= len(waits) <= 10
    assert np.diff(waits).min() >= 1


def test_what_could_not_be_written_whole_is_cut_off_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ckpt"
    kept = Journal(path)
    kept.append(ENTRIES[0])
    before, real = path.read_bytes(), os.write

    def full(file: int, content: Any) -> int:
        if len(content) < 40:
            raise OSError(28, "No space left on device")
        return real(file, content[: len(content) // 2])

    monkeypatch.setattr(journal.os, "write", full)
    with pytest.raises(OSError, match="no space left on device; free some space"):
        kept.append(ENTRIES[1])
    assert path.read_bytes() == before
    monkeypatch.setattr(journal.os, "write", real)
    kept.append(ENTRIES[1])
    kept.close()
    assert is_beginning(read(path), 2)


@pytest.mark.parametrize("how", ["removed", "replaced", "folder gone"])
def test_a_file_that_is_gone_is_noticed(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a.ckpt"
    kept = Journal(path)
    kept.append(ENTRIES[0])
    path.unlink()
    if how == "replaced":
        path.write_text("mine")
    elif how == "folder gone":
        folder.rmdir()
    with pytest.raises(FileNotFoundError, match="was removed, or replaced, meanwhile"):
        kept.sync()
    if how == "replaced":
        assert path.read_text() == "mine"


# ---- hostile bytes ----


@given(st.binary(max_size=400))
def test_random_bytes_are_an_entry_or_a_value_error(payload: bytes) -> None:
    try:
        Entry.of(payload)
    except ValueError:
        pass


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_SHAPES = st.lists(st.integers(-1, 5) | st.sampled_from([2**31, 2**62, True, 1.5]), max_size=4)
_LISTED = st.lists(
    st.tuples(st.sampled_from(["a", "b", 3]), st.sampled_from([*journal._DTYPES, "O", 1]), _SHAPES)
    | _JSON,
    max_size=3,
)


@given(
    st.fixed_dictionaries({"kind": st.just("a") | _JSON, "facts": _JSON, "arrays": _LISTED})
    | _JSON,
    st.binary(max_size=60),
)
def test_any_json_before_any_bytes_is_an_entry_or_a_value_error(line: Any, rest: bytes) -> None:
    import json

    try:
        entry = Entry.of(json.dumps(line).encode() + b"\n" + rest)
    except ValueError:
        return
    assert sum(array.nbytes for array in entry.arrays.values()) == len(rest)
    assert same(Entry.of(entry.payload()), entry)


def test_memory_is_bounded_by_the_file(tmp_path: Path) -> None:
    """A header that promises two gigabytes, and arrays that promise more, cost nothing."""
    shapes = ("[1073741824]", "[2147483648, 2147483648]", "[0, 2147483648, 2147483648]")
    tracemalloc.start()
    for shape in shapes:
        line = '{"kind": "a", "facts": {}, "arrays": [["x", "<f8", ' + shape + "]]}"
        try:
            Entry.of(line.encode() + b"\n")
        except ValueError:
            pass
    path = tmp_path / "a.ckpt"
    head = journal._HEADER.pack(journal.MAGIC, journal.MOST_BYTES, 0)
    path.write_bytes(head + journal._CHECK.pack(zlib.crc32(head)) + b"few bytes")
    assert read(path) == []  # torn
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
