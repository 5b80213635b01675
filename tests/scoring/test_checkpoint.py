"""Checkpoints: a run that was ended goes on to the same scores, whatever ended it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring import checkpoint, registry
from headwidget.scoring.contract import Chunk, Job, Method, Report, TaskReport
from tests.support import checkpoints, tiny
from tests.support.checkpoints import CASES, TASKS, check_same, ends, entries, landed, prepared
from tests.support.lab_tools import at_each_block, forwards
from tests.support.own_method import Options


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept at every chunk; what a test registers is gone after it."""
    monkeypatch.setattr(checkpoint, "STATE_SECONDS", 0)
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


# ---- cut anywhere ----


@pytest.mark.parametrize("case", CASES)
def test_a_file_cut_anywhere_goes_on_to_the_same_scores(case: str, path: Path) -> None:
    """Values, aspects, runs and record, and every step is counted once."""
    expected, steps = landed(prepared(case))
    assert steps == pytest.approx(prepared(case).steps()[0])
    check_same(landed(prepared(case, path))[0], expected)
    whole, places = path.read_bytes(), list(ends(path))
    rng = random.Random(case)
    few = 1 if case.startswith("gating") else 5
    cuts = [rng.randrange(len(whole)) for _ in range(few)] + rng.sample(places, few)
    for cut in cuts:
        path.write_bytes(whole[:cut])
        found, counted = landed(prepared(case, path))
        check_same(found, expected)
        assert counted == pytest.approx(steps), cut
        if case.split(",", maxsplit=1)[0] in ("gradient", "ablation", "attribution"):
            check_scored_once(path, cut)


def check_scored_once(path: Path, cut: int) -> None:
    """No run that was scored at every layer when the file was cut is scored again."""
    rows: dict[tuple[str, int], set[int]] = {}
    for end, entry in zip(ends(path), entries(path)):
        if entry.kind == "chunk":
            for run in entry.facts["runs"]:
                scored = rows.setdefault((entry.facts["task"], run), set())
                assert end <= cut or len(scored) < 3
                scored.update(range(3)[slice(*entry.facts["rows"])])
    assert all(len(scored) == 3 for scored in rows.values()) and len(rows) == 16


@pytest.mark.parametrize("case", ["gating", "probe, seeds", "gradient"])
def test_a_file_cut_after_any_record_goes_on(case: str, path: Path) -> None:
    fewer: dict[str, Any] = {"tasks": [TASKS[0]], "fits": 1} if case == "gating" else {}
    expected, _ = landed(prepared(case, path, **fewer))
    whole = path.read_bytes()
    for cut in list(ends(path)):
        path.write_bytes(whole[:cut])
        check_same(landed(prepared(case, path, **fewer))[0], expected)


@pytest.mark.parametrize("case", CASES)
def test_a_finished_checkpoint_runs_nothing(case: str, path: Path) -> None:
    expected, steps = landed(prepared(case, path))
    before = path.read_bytes()

    def again() -> None:
        found, counted = landed(prepared(case, path))
        check_same(found, expected)
        assert counted == pytest.approx(steps)

    assert forwards(checkpoints.model_of(CASES[case][0]), again) == 0
    assert path.read_bytes() == before


def test_hw_score_takes_the_path(path: Path) -> None:
    model, call = tiny.model("llama"), {"method": "gradient", "progress": False}
    expected = hw.score(model, TASKS, **call)
    for _ in range(2):
        check_same(hw.score(model, TASKS, checkpoint=str(path), **call), expected)
    with pytest.raises(TypeError, match="checkpoint is the path of a file; got a int"):
        hw.score(model, TASKS, checkpoint=3, **call)


@pytest.mark.parametrize("case", ["ablation", "gradient", "gating", "probe"])
def test_ctrl_c_again_and_again_loses_nothing(case: str, path: Path) -> None:
    expected, _ = landed(prepared(case))
    model, stops = checkpoints.model_of("gradient"), 0
    for patience in range(6, 400, 9):
        left = patience

        def act(size: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        try:
            with at_each_block(model, act):
                found, _ = landed(prepared(case, path))
            break
        except KeyboardInterrupt:
            stops += 1
    check_same(found, expected)
    assert stops > (0 if case == "probe" else 1)  # a probe runs the model six times


def test_only_correct_goes_on(path: Path) -> None:
    model = hw.load()
    pairs = [
        ("The capital of France is", " Paris"),
        ("The capital of Italy is", " Rome"),
        ("The capital of Spain is", " of"),
        ("The capital of Germany is", " Berlin"),
    ]
    task = hw.Task("capitals", pairs)
    call = {"only_correct": True, "batch_size": 1, "progress": False}
    expected = hw.score(model, task, **call)
    assert 1 < len(expected.runs("capitals")) < 4
    hw.score(model, task, checkpoint=path, **call)
    whole = path.read_bytes()
    path.write_bytes(whole[: list(ends(path))[2]])
    check_same(hw.score(model, task, checkpoint=path, **call), expected)
    assert expected.record.task("capitals").dropped
    with pytest.raises(ValueError, match="task 'capitals' has other prompts or answers there"):
        hw.score(model, task, checkpoint=path, batch_size=1, progress=False)


# ---- memory that runs out ----


def out_of_memory(case: str, path: Path | None, chunks: int, most: int) -> Any:
    """A run in which batches above ``most`` prompts find no memory once ``chunks`` have landed."""
    scoring, landed_chunks = prepared(case, path), 0

    def act(size: int) -> None:
        if landed_chunks >= chunks and size > most:
            raise MemoryError

    def land(note: Any) -> Iterator[Any]:
        nonlocal landed_chunks
        for landed_chunks, chunk in enumerate(land_all(note), 1):  # noqa: B007
            yield chunk

    land_all, scoring.land = scoring.land, land
    with at_each_block(tiny.model("llama"), act):
        return landed(scoring)


@pytest.mark.parametrize(
    ("case", "chunks", "most"),
    [
        ("gradient, size", 1, 2),
        ("ablation", 4, 1),
        ("ablation, last", 4, 1),
        ("attribution", 1, 1),
        ("patterns", 3, 1),
        ("gating", 3, 4),
        ("probe", 0, 2),
    ],
)
def test_a_halved_batch_is_remembered(case: str, chunks: int, most: int, path: Path) -> None:
    expected, steps = out_of_memory(case, None, chunks, most)
    assert expected.record.out_of_memory and steps == pytest.approx(prepared(case).steps()[0])
    check_same(out_of_memory(case, path, chunks, most)[0], expected)
    whole = path.read_bytes()
    kinds = [entry.kind for entry in entries(path)]
    halved = kinds.index("batch")
    for cut in list(ends(path))[halved :: max(1, (len(kinds) - halved) // 6)]:
        path.write_bytes(whole[:cut])
        found, counted = landed(prepared(case, path))  # there is memory now: the batch stays
        check_same(found, expected)
        assert counted == pytest.approx(steps)


def test_the_mean_stays_that_of_all_prompts(path: Path) -> None:
    """After memory ran out, and after a resume, ``replace="mean"`` stays the plain loop's."""
    model, task = tiny.model("llama"), TASKS[1]
    encoded = prepared("ablation, mean", tasks=[task]).tasks[0]
    total, count = np.zeros((*model.shape, model.head_dim)), 0
    for example in encoded.examples:  # one by one, unpadded
        z: list[torch.Tensor] = []
        with hooks.scoring(model), hooks.read(model, lambda _, here: z.append(here[0].clone())):
            model.module(input_ids=torch.tensor([example.ids]))
        total += np.stack([layer.double().sum(0).numpy() for layer in z])
        count += len(example.ids)
    fill = torch.tensor(total / count, dtype=torch.float32)
    expected = np.zeros((len(encoded.examples), *model.shape))
    for run, example in enumerate(encoded.examples):
        whole = _log_p(model, example)
        for row, head in np.ndindex(model.shape):
            gates = torch.ones(model.shape)
            gates[row, head] = 0
            with hooks.gate(model, gates, fill):
                expected[run, row, head] = whole - _log_p(model, example)
    found: list[hw.HeadScores] = []
    calls = 0

    def act(size: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 20 and size > 1:
            raise MemoryError

    with at_each_block(model, act):
        found.append(landed(prepared("ablation, mean", path, tasks=[task]))[0])
    assert found[0].record.out_of_memory
    whole_file, places = path.read_bytes(), list(ends(path))
    for cut in places[2::5]:
        path.write_bytes(whole_file[:cut])
        found.append(landed(prepared("ablation, mean", path, tasks=[task]))[0])
    for scores in found:
        np.testing.assert_allclose(scores.values("two"), expected, atol=2e-5)
    mean_of_one = hw.score(
        model, hw.Task("two", task.examples[-1:]), "ablation", replace="mean", progress=False
    )
    assert not np.allclose(mean_of_one.values("two")[0], expected[-1], atol=1e-3)


def _log_p(model: hw.Model, example: Any) -> float:
    with hooks.scoring(model):
        logits = model.module(input_ids=torch.tensor([example.ids])).logits[0].double()
    log_p = logits.log_softmax(-1)
    return sum(float(log_p[at, token]) for at, token in zip(example.at, example.answer))


# ---- a user's own method ----


def constant(job: Job) -> Iterator[Chunk | Report]:
    """Prompt by prompt; what it says of the whole task comes last."""
    for run in range(len(job.task.examples)):
        length = float(len(job.task.examples[run].ids))
        yield Chunk(job.task.name, (run,), slice(None), np.full((1, *job.model.shape), length))
    yield Report({job.task.name: TaskReport(record={"said": np.float32(0.5)})})


def fitted(job: Job) -> Iterator[Chunk | Report]:
    """Runs that are not prompts, of all tasks together; numpy's integers where they may be."""
    for task in job.tasks:
        yield Report({task.name: TaskReport(labels=["fit 0", "fit 1", "fit 2"])})
    for run in np.arange(3):
        for task in job.tasks:
            values = np.full((1, *job.model.shape), run + len(task.examples), np.float32)
            yield Chunk(task.name, (run,), slice(None), values, aspects={"twice": 2 * values})


def chosen(job: Job) -> Iterator[Chunk | Report]:
    """Some examples are the runs."""
    yield Report({job.task.name: TaskReport(runs=np.array([1, 3]), right=np.ones((2, 7)))})
    for run in (3, 1):
        yield Chunk(job.task.name, (run,), slice(None), np.full((1, *job.model.shape), run))


@pytest.mark.parametrize(
    ("run", "together", "tasks"),
    [(constant, False, TASKS), (fitted, True, TASKS), (chosen, False, TASKS[:1])],
)
def test_a_users_method_goes_on(run: Any, together: bool, tasks: Any, path: Path) -> None:
    hw.register_method(Method("mine", run, Options, signed=False, together=together))

    def mine(path: Path | None) -> Any:
        kept = {"batch_size": None, "tasks": list(tasks)}
        return prepared("attribution", path, method="mine", **kept)

    expected, steps = landed(mine(None))
    landed(mine(path))
    whole = path.read_bytes()
    for cut in list(ends(path)):
        path.write_bytes(whole[:cut])
        found, counted = landed(mine(path))
        check_same(found, expected)
        assert together or counted == pytest.approx(steps)


def test_a_method_that_fails_goes_on_once_it_is_mended_elsewhere(path: Path) -> None:
    """What a method raises ends the run; what landed before is there at the next."""
    fails, asked = [True], []

    def run(job: Job) -> Iterator[Chunk]:
        for number, example in enumerate(job.task.examples):
            asked.append(example.label)
            if fails and len(asked) == 12:
                raise OSError("the network is away")
            yield Chunk(job.task.name, (number,), slice(None), np.ones((1, *job.model.shape)))

    hw.register_method(Method("mine", run, Options, signed=False))
    call = {"method": "mine", "progress": False, "checkpoint": path}
    with pytest.raises(OSError, match="the network is away"):
        hw.score(tiny.model("llama"), TASKS, **call)
    fails.clear()
    scores = hw.score(tiny.model("llama"), TASKS, **call)
    assert [len(scores.runs(name)) for name in scores.tasks] == [7, 9]
    assert len(asked) == 12 + 5 and asked[12] == asked[11], "the other eleven were kept"
