"""Checkpoints of other runs, and those that somebody made up, are refused in a sentence."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.scoring import checkpoint, code_digest, registry
from headwidget.scoring.contract import Job, Method
from headwidget.scoring.journal import Entry, Journal
from tests.support import checkpoints, tiny
from tests.support.checkpoints import TASKS, entries, landed, prepared
from tests.support.own_method import Options


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept at every chunk; what a test registers is gone after it."""
    monkeypatch.setattr(checkpoint, "STATE_SECONDS", 0)
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def one_bit(model: Any) -> None:
    weight = model.model.layers[1].mlp.up_proj.weight
    with torch.no_grad():
        weight.view(torch.int32)[3, 5] ^= 1


def changed(
    build: Callable[[Any], Any] = lambda module: None, name: str = "", **settings: Any
) -> hw.Model:
    module = tiny.build("llama", **settings)
    build(module)
    module.config._name_or_path = name
    return hw.load(module, tiny.tokenizer())


def with_hook(module: Any) -> None:
    module.model.layers[0].mlp.register_forward_hook(lambda *_: None)


def other(change: Callable[[list[Any]], Any]) -> list[hw.Task]:
    """The tasks with the second's rows changed."""
    rows = [(e.prompt, e.answer, e.foil) for e in TASKS[1].examples]
    change(rows)
    return [TASKS[0], hw.Task("two", rows)]


def replace(rows: list[Any], at: int, column: int, text: str) -> None:
    row = list(rows[at])
    row[column] = text
    rows[at] = tuple(row)


DIFFERENT: dict[str, tuple[str, Callable[[], dict[str, Any]], str]] = {
    "a bit": ("gradient", lambda: {"model": changed(one_bit)}, "its weights is"),
    "dtype": ("gradient", lambda: {"model": changed(lambda m: m.bfloat16())},
              "its dtype is 'float32', this run's 'bfloat16'"),
    "layers": ("gradient", lambda: {"model": changed(num_hidden_layers=2)},
               "its layers x heads is '3 x 4', this run's '2 x 4'"),
    "name": ("gradient", lambda: {"model": changed(name="mine")}, "its model is .*'mine'"),
    "positions": ("gradient", lambda: {"model": changed(rope_parameters={
        "rope_type": "default", "rope_theta": 500.0})}, "its configuration is"),
    "hook": ("gradient", lambda: {"model": changed(with_hook)}, r"its hooks is '\[\]', this run's"),
    "method": ("gradient", lambda: {"method": "attribution"},
               "its method is 'gradient', this run's 'attribution'"),
    "options": ("gradient", lambda: {"abs": True}, "its options is .*false.* this run's .*true"),
    "seed": ("gradient", lambda: {"seed": 1}, "its seed is '0', this run's '1'"),
    "batch size": ("gradient", lambda: {"batch_size": 3}, "its batch_size is '2', this run's '3'"),
    "fewer tasks": ("gradient", lambda: {"tasks": [TASKS[0]]},
                    "its tasks are 'one', 'two', this run's 'one'"),
    "tasks' order": ("gradient", lambda: {"tasks": list(TASKS[::-1])},
                     "its tasks are 'one', 'two', this run's 'two', 'one'"),
    "prompt": ("gradient", lambda: {"tasks": other(lambda r: replace(r, 4, 0, "new"))},
               "task 'two' has other prompts"),
    "answer": ("gradient", lambda: {"tasks": other(lambda r: replace(r, 4, 1, " up"))},
               "task 'two' has other prompts or answers"),
    "foil": ("gradient", lambda: {"tasks": other(lambda r: replace(r, 4, 2, " up"))},
             "task 'two' has other prompts or answers"),
    "order": ("gradient", lambda: {"tasks": other(lambda r: r.reverse())},
              "task 'two' has other prompts"),
    "one prompt less": ("gradient", lambda: {"tasks": other(lambda r: r.pop())},
                        "task 'two' has other prompts"),
    "contrast": ("gating, contrast", lambda: {"contrast": checkpoints.task("other", 4)},
                 "its options is"),
    "fits": ("gating", lambda: {"fits": 3}, "its options is"),
    "folds": ("probe", lambda: {"folds": 3}, "its options is"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DIFFERENT)
def test_another_run_is_refused_with_what_differs(kind: str, path: Path) -> None:
    case, change, sentence = DIFFERENT[kind]
    landed(prepared(case, path))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"is of another run: .*{sentence}.*path of its own"):
        landed(prepared(case, path, **change()))
    assert path.read_bytes() == before
    landed(prepared(case, path))  # it still serves its own run


def test_a_method_that_was_edited_is_refused(path: Path) -> None:
    """Also where the edit is in a function, a class or a number that it uses."""
    code = """
import numpy as np
from headwidget.scoring.contract import Chunk
SCALE = 2.0
class Reader:
    def read(self): return 1.0
def helper(x): return x + 1
def run(job, start=0):
    n = len(job.task.examples)
    shape = (n, *job.model.shape)
    fine = job.task.name in {"one", "two", "three"}
    values = np.full(shape, helper(SCALE) * Reader().read() + 5.0 * fine)
    yield Chunk(job.task.name, range(n), slice(None), values)
"""

    def register(text: str) -> None:
        module = types.ModuleType("notebook_of_a_user")
        exec(text, module.__dict__)
        hw.register_method(Method("mine", module.run, Options, signed=False))

    edits = {"SCALE = 2.0": "SCALE = 3.0", "read(self): return 1.0": "read(self): return 2.0",
             "x + 1": "x + 2", "5.0": "6.0", "np.full": "np.add", "start=0": "start=1",
             '"three"': '"four"'}  # fmt: skip
    call = {"method": "mine", "progress": False, "checkpoint": path}
    register(code)
    hw.score(tiny.model("llama"), TASKS, **call)
    for old, new in edits.items():
        register(code.replace(old, new))
        with pytest.raises(ValueError, match="another run: method 'mine' was changed since"):
            hw.score(tiny.model("llama"), TASKS, **call)
    register("# a comment\n" + code)
    hw.score(tiny.model("llama"), TASKS, **call)


def test_a_digest_of_code_is_the_same_in_every_process() -> None:
    """Sets have another order in every process, and objects another address."""
    script = (
        "from headwidget.scoring.code_digest import digest\n"
        "LOCK = object()\n"
        "def f(x, y=LOCK): return x in {'a', 'b', 'c'} or (lambda: LOCK)\n"
        "print(digest(f))"
    )
    found = set()
    for seed in ("1", "2", "3"):
        call = [sys.executable, "-c", script]
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(hw.__file__).parents[1])}
        found.add(subprocess.run(call, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


def test_a_digest_sees_through_wrappings() -> None:
    class Called:
        def __call__(self, job: Job) -> int:
            return 1

    class Other:
        def __call__(self, job: Job) -> int:
            return 2

    def f(job: Job, n: int) -> int:
        return n

    digests = [
        code_digest.digest(Called()),
        code_digest.digest(Other()),
        code_digest.digest(functools.partial(f, n=1)),
        code_digest.digest(functools.partial(f, n=2)),
        code_digest.digest(Called().__call__),
    ]
    assert len(set(digests)) == 5
    assert code_digest.digest(Called()) == code_digest.digest(Called())


def test_a_file_of_a_newer_headwidget_is_refused(path: Path) -> None:
    rewrite(path, lambda begin: begin.facts.update(version=checkpoint.VERSION + 1))
    with pytest.raises(ValueError, match="was written by a newer headwidget; upgrade"):
        landed(prepared("gradient", path))
    path.unlink()
    rewrite(path, lambda begin: begin.facts.update(version="one"))
    with pytest.raises(ValueError, match="is not a checkpoint of a run"):
        landed(prepared("gradient", path))


# ---- sound checksums, and content that is not ----


def rewrite(path: Path, change: Callable[[Entry], Any], more: tuple[Entry, ...] = ()) -> None:
    """A checkpoint of the gradient case that has only begun, changed, with ``more`` behind."""
    landed(prepared("gradient", path))
    begin = entries(path)[0]
    change(begin)
    path.unlink()
    journal = Journal(path)
    for entry in (begin, *more):
        journal.append(entry)
    journal.close()


def chunk(**changes: Any) -> Entry:
    facts = {"task": "one", "runs": [0, 1], "rows": [None, None, None]}
    arrays = {"values": np.ones((2, 3, 4), np.float32), "correct": np.ones((2, 2), bool)}
    facts |= {name: value for name, value in changes.items() if name in facts}
    arrays |= {name: value for name, value in changes.items() if name not in facts}
    return Entry("chunk", facts, arrays)


def report(**changes: Any) -> Entry:
    said: dict[str, Any] = {"runs": None, "labels": None, "record": {}}
    facts = {"tasks": {"one": {**said, **changes}}, "record": {}, "tasks_of_job": ["one"]}
    return Entry("report", facts)


NAN = np.full((2, 3, 4), np.nan, np.float32)
HOSTILE: dict[str, tuple[Entry, ...]] = {
    "shape": (chunk(values=np.ones((2, 3, 5), np.float32)),),
    "no axes": (chunk(values=np.array(1.0)),),
    "NaN": (chunk(values=NAN),),
    "NaN in an aspect": (chunk(**{"aspect x": NAN}),),
    "infinity": (chunk(values=NAN + np.inf),),
    "unknown task": (chunk(task="three"),),
    "no task": (chunk(task=None),),
    "run too large": (chunk(runs=[0, 7]),),
    "run below 0": (chunk(runs=[0, -1]),),
    "twice the same run": (chunk(runs=[1, 1]),),
    "no run": (chunk(runs=[]),),
    "runs in words": (chunk(runs="ab"),),
    "runs that are none": (chunk(runs=7),),
    "rows in words": (chunk(rows=["a", None, None]),),
    "rows of five": (chunk(rows=[1, 2, 3, 4, 5]),),
    "rows of step 0": (chunk(rows=[0, 3, 0]),),
    "rows out of range": (chunk(rows=[3, 9, 1]),),
    "correct of three": (chunk(correct=np.ones((2, 3), bool)),),
    "other aspects": (chunk(), chunk(**{"aspect x": np.ones((2, 3, 4), np.float32)})),
    "no values": (Entry("chunk", {"task": "one", "runs": [0], "rows": [0, 1, 1]}),),
    "no facts": (Entry("chunk"),),
    "huge labels": (report(labels=["x"] * 2**20 * 3),),
    "labels of numbers": (report(labels=[1, 2]),),
    "labels and other runs": (chunk(), report(labels=["a"])),
    "runs out of range": (report(runs=[99]),),
    "record": (report(record=[1]),),
    "reports of lists": (Entry("report", {"tasks": [1], "record": {}, "tasks_of_job": ["one"]}),),
    "merged": (Entry("report", {"tasks": {}, "record": {"merged": []}, "tasks_of_job": ["one"]}),),
    "kind": (Entry("gift"),),
    "batch of 0": (Entry("batch", {"size": 0}),),
    "batch of words": (Entry("batch", {"size": "many"}),),
    "a true batch": (Entry("batch", {"size": True}),),
    "end before the chunks": (Entry("end", {"tasks": ["one"]}),),
    "end of nothing": (Entry("end", {}),),
    "state without a name": (Entry("state", {}),),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_is_a_sentence(
    kind: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MOST_BYTES", 2**20)
    rewrite(path, lambda begin: None, HOSTILE[kind])
    with pytest.raises(ValueError, match="holds what does not fit this run: .*Delete it and"):
        landed(prepared("gradient", path))


STATES: dict[str, tuple[str, str, Callable[[Entry], Any]]] = {
    "stage": ("gating", "one", lambda e: e.facts.update(stage=7)),
    "stage in words": ("gating", "one", lambda e: e.facts.update(stage="free")),
    "update": ("gating", "one", lambda e: e.facts.update(done=12)),
    "no seeds": ("gating", "one", lambda e: e.facts.pop("seeds")),
    "other seeds": ("gating", "one", lambda e: e.facts.update(seeds=[{"state": 1}] * 2)),
    "curves": ("gating", "one", lambda e: e.facts.update(curves={})),
    "other fits": ("gating", "one", lambda e: e.arrays.update(theta=np.ones((1, 1, 1)))),
    "no momentum": ("gating", "one", lambda e: e.arrays.pop("exp_avg")),
    "prompts": ("gating", "one", lambda e: e.arrays["waiting 0"].fill(9)),
    "heads": ("probe", "heads", lambda e: e.arrays.update(z=np.ones((1, 2), np.float32))),
    "no heads": ("probe", "heads", lambda e: e.arrays.clear()),
    "folds": ("probe", "folds", lambda e: e.facts.update(epochs=[1, 2, 3])),
    "confusion": ("probe", "folds", lambda e: e.arrays.update(confusion=np.ones((9, 9), np.int64))),
    "slopes": ("gradient", "one", lambda e: e.facts.update(off="far")),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATES)
def test_a_hostile_state_is_a_sentence(kind: str, path: Path) -> None:
    case, name, change = STATES[kind]
    landed(prepared(case, path))
    kept = entries(path)
    at = next(
        i
        for i, e in enumerate(kept)
        if e.kind == "state" and e.facts["name"].startswith(name)
        and (case != "gating" or len(e.arrays["waiting 0"]))
    )  # fmt: skip
    state = kept[at]
    inner = Entry("state", state.facts["facts"], dict(state.arrays))
    change(inner)
    kept[at] = dataclasses.replace(state, arrays=inner.arrays)
    path.unlink()
    journal = Journal(path)
    for entry in kept[: at + 1]:
        journal.append(entry)
    journal.close()
    with pytest.raises(ValueError, match="checkpoint keeps a state of .* does not fit this run"):
        landed(prepared(case, path))
