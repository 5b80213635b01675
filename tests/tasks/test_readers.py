"""Files and rows that cannot be a task: a sentence at once, never a traceback or a hang."""

from __future__ import annotations

import csv
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

import headwidget as hw
from tests.support.unprivileged import unprivileged

ROW = {"prompt": "1 +", "answer": " 1"}
HALF = "a\ud800b"


def as_csv(*cells: str) -> str:
    return "prompt,answer\n" + ",".join(cells) + "\n"


# ---- texts that no file can hold ----


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: hw.Task(HALF, [("a", "b")]), "a task's name"),
        (lambda: hw.Task("t", [("a", "b")], HALF), "task 't': the category"),
        (lambda: hw.Task("t", [("a", "b"), (HALF, "b")]), "task 't', example 1: the prompt"),
        (lambda: hw.Task("t", [("a", HALF)]), "task 't', example 0: the answer"),
        (lambda: hw.Task("t", [("a", "b", HALF)]), "task 't', example 0: the foil"),
        (lambda: hw.Relation(HALF, [("a", "b")]), "a task's name"),
        (lambda: hw.Relation("r", [("a", HALF)]), "task 'r', example 0: the answer"),
        (lambda: hw.Task.read([{**ROW, "answer": HALF}], "t"), "task 't', example 0: the answer"),
        (lambda: hw.Task.read([ROW], HALF), "a task's name"),
    ],
)
def test_half_a_letter_is_refused_when_the_task_is_made(
    make: Callable[[], hw.Task], what: str
) -> None:
    with pytest.raises(ValueError, match=f"{what} has half a letter .* which no file can hold"):
        make()


def test_half_a_letter_in_json_is_refused_and_a_whole_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"prompt": "\\ud83d", "answer": "b"}\n')
    with pytest.raises(ValueError, match="the prompt has half a letter"):
        hw.Task.read(path)
    path.write_text('{"prompt": "\\ud83d\\ude00", "answer": "b"}\n')
    assert hw.Task.read(path).examples[0].prompt == "😀"


def test_half_a_letter_in_a_cogqa_file_leaves_its_step_out(tmp_path: Path) -> None:
    def item(question: str, *answers: str) -> dict[str, Any]:
        steps = [
            {"subquestion": "q", "answer": answer, "cognitive_skill": "Retrieval"}
            for answer in answers
        ]
        return {"question": question, "answer": "", "generated": steps}

    path = tmp_path / "c.json"
    path.write_text(json.dumps([item("fine", "yes", HALF, "after it"), item(HALF, "no")]))
    report = hw.tasks.CogQAReport()
    with pytest.warns(UserWarning, match="left out: item 0, step 1 has half a letter"):
        [task] = hw.tasks.read_cogqa(path, least=1, report=report)
    assert [example.answer for example in task] == [" yes"]
    assert report.malformed == [
        "item 0, step 1 has half a letter in its 'answer' (nor the 1 after it).",
        "item 1 has half a letter in its 'question'.",
    ]


# ---- what a file holds ----


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", as_csv("x" * 131_073, "b"), r"t\.csv, line 2: .*field larger .*use \.jsonl"),
        (
            "t.csv",
            as_csv("one", "two", "three"),
            r"t\.csv, line 2: a row has more cells than the 2",
        ),
        ("t.json", "[" * 100_000, r"t\.json: .* nested too deeply"),
        ("t.jsonl", '{"a":' * 100_000, r"t\.jsonl, line 1: .* nested too deeply"),
        ("t.json", "[" + "1" * 5000 + "]", r"t\.json: Exceeds the limit"),
        ("t.json", '[{"prompt": 1}, ', r"t\.json: not JSON \(.* at line 1, column 17\)"),
        ("t.json", "{}", "must hold a JSON list of objects; it holds a dict"),
        ("t.jsonl", "[1]\n", r"t\.jsonl, line 1: a row must be a JSON object; it is a list"),
    ],
    ids=lambda value: value[:12],
)
def test_a_file_that_holds_no_task_is_a_sentence(
    name: str, content: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=sentence):
        hw.Task.read(tmp_path / name)
    assert csv.field_size_limit() == 131_072  # of the whole process


def test_long_cells_are_read_up_to_the_limit_and_commas_at_the_end_of_rows_are_fine(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text(as_csv("x" * 131_072, "b", "", ""))
    assert len(hw.Task.read(tmp_path / "t.csv").examples[0].prompt) == 131_072
    (tmp_path / "t.jsonl").write_text(json.dumps({**ROW, "prompt": "x" * 1_000_000}))
    assert len(hw.Task.read(tmp_path / "t.jsonl").examples[0].prompt) == 1_000_000


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_text_that_is_not_utf_8_says_which_file_and_where(
    kind: str, mark: bytes, tmp_path: Path
) -> None:
    line = b'{"prompt": "x", "answer": "y"}\n'  # for CSV, one column with odd names
    good = mark + line * 400  # beyond a reader's buffer of 8 KB
    path = tmp_path / f"t.{kind}"
    path.write_bytes(good + "é".encode("latin-1") + b"\n")
    sentence = rf"t\.{kind} is not UTF-8 text: .* at byte {len(good)}, in line 401\. Save it as UTF"
    for read in (hw.Task.read, hw.tasks.read_cogqa):
        with pytest.raises(ValueError, match=sentence):
            read(path)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_any_line_ending_are_fine(ending: str, tmp_path: Path) -> None:
    texts = {
        "csv": 'prompt,answer\n"a\u2028b",c\n"d",e\n',
        "jsonl": '{"prompt": "a\u2028b", "answer": "c"}\n\n{"prompt": "d", "answer": "e"}\n',
        "json": '[{"prompt": "a\u2028b", "answer": "c"},\n{"prompt": "d", "answer": "e"}]',
    }
    for kind, text in texts.items():
        path = tmp_path / f"t.{kind}"
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", ending).encode())
        examples = hw.Task.read(path).examples
        assert [(e.prompt, e.answer) for e in examples] == [("a\u2028b", "c"), ("d", "e")], kind


# ---- what is no file ----


def folder(at: Path) -> Path:
    at.mkdir()
    return at


def pipe(at: Path) -> Path:
    os.mkfifo(at)
    return at


def bound_socket(at: Path) -> Path:
    here = Path.cwd()
    os.chdir(at.parent)  # the paths of sockets are short
    try:
        socket.socket(socket.AF_UNIX).bind(at.name)
    finally:
        os.chdir(here)
    return at


def device(at: Path) -> Path:
    at.symlink_to("/dev/zero")
    return at


def loop(at: Path) -> Path:
    at.symlink_to(at)
    return at


def below_a_file(at: Path) -> Path:
    at.write_text("")
    return at / at.name


READERS: dict[str, Callable[[Path], object]] = {
    "t.csv": hw.Task.read,
    "t.jsonl": hw.Task.read,
    "t.json": hw.Task.read,
    "t.txt": hw.Task.read,
    "c.json": hw.tasks.read_cogqa,
    "s.safetensors": hw.open,
    "e.safetensors": lambda path: hw.explore(str(path)),
    "d.safetensors": lambda path: hw.difference(path, path),
}


@pytest.mark.timeout(60)  # a pipe that is opened waits for ever
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda at: at, FileNotFoundError, "there is no file '"),
        (folder, IsADirectoryError, "is a folder, not a file"),
        (pipe, OSError, "is a named pipe, not a file"),
        (bound_socket, OSError, "is a socket, not a file"),
        (device, OSError, "is a device, not a file"),
        (loop, OSError, "cannot be read: its symbolic links lead in a circle"),
        (below_a_file, NotADirectoryError, "cannot be read: '.*' is a file, not a folder"),
        (
            lambda at: at.parent / ("x" * 300 + at.suffix),
            OSError,
            "cannot be read: its path .* is too long for this system",
        ),
        (
            lambda at: at.parent / ("x/" * 3000 + at.name),
            OSError,
            "cannot be read: its path .* is too long for this system",
        ),
    ],
)
def test_what_is_not_an_ordinary_file_is_a_sentence(
    make: Callable[[Path], Path], error: type[OSError], sentence: str, name: str, tmp_path: Path
) -> None:
    path = make(tmp_path / name)
    with pytest.raises(error, match=sentence) as caught:
        READERS[name](path)
    assert len(str(caught.value)) < 600
    if error is OSError:
        assert not isinstance(caught.value, FileNotFoundError)


def test_a_file_that_may_not_be_read_is_not_said_to_be_missing() -> None:
    with unprivileged() as folder:
        closed = folder / "closed"
        closed.mkdir()
        for name, read in READERS.items():
            (folder / name).write_text("")
            (folder / name).chmod(0)
            for path in (folder / name, closed / name):
                (closed / name).parent.chmod(0)
                with pytest.raises(PermissionError, match="cannot be read: permission denied"):
                    read(path)
        closed.chmod(0o700)


@pytest.mark.parametrize(
    ("path", "error"),
    [(b"t.csv", TypeError), ("", ValueError), ("a\0b.csv", ValueError), (HALF, ValueError)],
)
def test_what_is_no_path_is_a_sentence(path: Any, error: type[Exception]) -> None:
    for read in (hw.open, hw.tasks.read_cogqa, lambda path: hw.Task.read(path, "t")):
        with pytest.raises(error, match="path"):
            read(path)


# ---- what is no row ----


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda: hw.Task.read([ROW], "t", split=["train"]), "split=… is the name of a column"),
        (lambda: hw.Task.read([ROW], "t", foil=["a", "b"]), "foil=… is the name of a column"),
        (lambda: hw.Task.read([ROW], "t", prompt=0), "prompt=… is the name of a column.*got 0"),
        (lambda: hw.Task.read([ROW], "t", answer=None), "answer=… is the name of a column"),
        (
            lambda: hw.Task.read([{**ROW, "split": ["train", "test"]}], "t"),
            r"row 0: the column 'split' says \['train', 'test'\]; it takes 'train'",
        ),
        (lambda: hw.Task.read([{**ROW, "split": 1}], "t"), "the column 'split' says 1"),
        (
            lambda: hw.Task.read(datasets.Dataset.from_list([ROW]), "t", split=["train"]),
            "split=… is the name of a column",
        ),
        (
            lambda: hw.Task.read(
                datasets.DatasetDict({"train": datasets.Dataset.from_list([ROW])}), "t"
            ),
            "got a DatasetDict of 'train'. Pass one of its values, such as one split",
        ),
        (lambda: hw.Task.read(7, "t"), "a pandas frame, a dataset or a list of dicts; got a int"),
        (lambda: hw.Task.read(None, "t"), "got a NoneType"),
        (lambda: hw.Task("t", 7), "examples is a list of .*; got 7"),
        (lambda: hw.Task("t", None), "examples is a list of .*; got None"),
        (lambda: hw.Task("t", [{"a", "b"}]), "an example is .*; got {"),
    ],
)
def test_what_is_no_row_is_a_sentence(read: Callable[[], hw.Task], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        read()
