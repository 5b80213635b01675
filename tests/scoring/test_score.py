"""Scoring: everything is checked first, Ctrl-C keeps what is done, provenance travels along."""

from __future__ import annotations

import inspect
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.display import wire
from headwidget.models import hooks
from headwidget.scoring import contract, registry, score
from headwidget.scoring.batch import collate, forward, log_probability
from headwidget.scoring.encode import encode
from headwidget.scoring.replay import Replay
from tests.support import tiny

TASKS = [tiny.task("one"), tiny.task("two")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"method": "magic"},
            "there is no method 'magic'; the methods are 'ablation', 'gradient', 'attribution'",
        ),
        ({"speed": 3}, "method 'gradient' has no option 'speed'; its options are abs"),
        (
            {"metod": "gradient"},
            r"no option 'metod'; its options are abs\. Did you mean 'method'\?",
        ),
        ({"batchsize": 8}, "Did you mean 'batch_size'"),
        ({"method": "ablation", "replce": "mean"}, "Did you mean 'replace'"),
        (
            {"method": "attribution", "abs": True},
            "method 'attribution' has no option 'abs'; it has no options",
        ),
        (
            {"method": "ablation", "replace": "noise"},
            "replace must be 'zero' or 'mean'; got 'noise'",
        ),
        ({"method": "ablation", "where": 3}, "where must be 'all' or 'last'; got 3"),
        ({"abs": 1}, "abs must be True or False"),
        ({"batch_size": 0}, "batch_size is a number of prompts, 1 or more"),
        ({"seed": "x"}, "seed is a whole number"),
        ({"tasks": []}, "no tasks to score"),
        ({"tasks": [tiny.task("a"), tiny.task("a")]}, "two tasks are named 'a'"),
        ({"tasks": [("p", "a")]}, "tasks must be hw.Task objects or a suite's name; got a tuple"),
        ({"tasks": "nope"}, "there is no suite 'nope'"),
        ({"tasks": 7}, "tasks must be hw.Task objects or a suite's name; got a int"),
        ({"method": ["x"]}, "there is no method"),
        ({"tasks": {"prompt": "a"}}, "got a dict. Make one with hw.Task"),
        ({"tasks": "capitals.csv"}, "For a file, use hw.Task.read"),
    ],
)
def test_bad_input_is_a_sentence_before_any_forward(
    arguments: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model("llama")
    monkeypatch.setattr(type(model.module), "forward", lambda *a, **k: pytest.fail("a forward ran"))
    with pytest.raises((ValueError, TypeError), match=sentence):
        hw.score(model, **{"tasks": TASKS, **arguments})


def test_a_bare_model_is_refused_with_the_way_to_wrap_it() -> None:
    with pytest.raises(TypeError, match=r"hw.score\(hw.load\(model, tokenizer\)"):
        hw.score(tiny.build("llama"), TASKS)


def interrupt_after(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.find

    def find(name: str) -> contract.Method:
        method = real(name)

        def run(job: contract.Job) -> Any:
            for chunk in method.run(job):
                nonlocal chunks
                if chunks == 0:
                    raise KeyboardInterrupt
                chunks -= 1
                yield chunk

        return contract.Method(method.name, run, method.options, method.signed)

    monkeypatch.setattr(registry, "find", find)


@pytest.mark.parametrize(
    ("method", "chunks", "runs"),
    [
        ("gradient", 3 + 1, {"one": (3, 0)}),
        ("gradient", 5 + 1, {"one": (4, 0), "two": (1, 0)}),
        ("ablation", 3 * 2 + 1, {"one": (3, 2)}),
        ("ablation", 1, {"one": (1, 2)}),
        ("ablation", 3 * 4 + 2, {"one": (4, 0), "two": (1, 1)}),
    ],
)
def test_ctrl_c_keeps_what_is_done(
    method: str, chunks: int, runs: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``runs``: for each task how many were begun, and how many layers one of them lacks."""
    model = tiny.model("llama")
    whole = hw.score(model, TASKS, method, batch_size=1, progress=False)
    interrupt_after(chunks, monkeypatch)
    scores = hw.score(model, TASKS, method, batch_size=1, progress=False)
    assert scores.partial and not whole.partial
    assert {t: len(scores.runs(t)) for t in scores.tasks} == {t: n for t, (n, _) in runs.items()}
    for task in scores.tasks:
        at = [whole.runs(task).index(label) for label in scores.runs(task)]
        values, expected = scores.values(task), whole.values(task)[at]
        lacking = np.isnan(values).all(axis=2).sum(axis=1)  # (run,) layers that are missing, not 0
        assert sorted(lacking) == [0] * (len(at) - 1) + [runs[task][1]]
        for run, count in enumerate(lacking):
            landed = len(values[run]) - count
            np.testing.assert_array_equal(values[run, :landed], expected[run, :landed])
        if len(at) < 4:
            assert scores.meta["tasks"][task]["dropped"] == [
                {"why": "scoring was stopped before it", "count": 4 - len(at)}
            ]


INTERRUPTED = """
import headwidget as hw
from tests.support import tiny
model = tiny.model("llama")
task = hw.Task("many", [(f"prompt number {i}", "x") for i in range(20_000)])
scores = hw.score(model, task, batch_size=1)
hooks = sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.module.modules())
trainable = all(p.requires_grad for p in model.module.parameters())
print(scores.partial, 0 < len(scores.runs("many")) < 20_000, hooks, trainable)
"""


def test_a_real_ctrl_c_gives_what_is_done_and_leaves_no_hook() -> None:
    root = Path(__file__).parents[2]
    heeded = lambda: signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # a job in the background starts with Ctrl-C ignored
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=root,
        preexec_fn=heeded,  # noqa: PLW1509
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        shown = b""
        while "gradient · many".encode() not in shown:  # the progress bar: some chunks have landed
            more = process.stderr.read1()
            assert more, shown.decode()
            shown += more
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.decode() == "True True 0 True\n", err.decode()[-2000:]


def test_ctrl_c_before_anything_is_done_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(0, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        hw.score(tiny.model("llama"), TASKS, progress=False)


def test_runs_stand_in_the_tasks_own_order_whatever_the_batches() -> None:
    model = tiny.model("llama")
    for method in ("gradient", "ablation", "attribution"):
        scores = hw.score(model, TASKS, method, batch_size=2, progress=False)
        assert scores.runs("one") == tuple(e.prompt + e.answer for e in TASKS[0].examples)


def test_provenance_travels_with_the_scores() -> None:
    model = tiny.model("llama")
    meta = hw.score(model, TASKS, "ablation", replace="mean", seed=7, progress=False).meta
    assert meta["options"] == {"replace": "mean", "where": "all"}
    assert (meta["seed"], meta["dtype"], meta["device"], meta["family"], meta["attention"]) == (
        7,
        "float32",
        "cpu",
        "llama",
        "sdpa",
    )
    assert meta["weights"] == model.fingerprint()
    assert meta["versions"]["torch"] == torch.__version__
    for known in meta["tasks"].values():
        assert (
            known["prompts"] == 4 and 0 <= known["accuracy"] <= 1 and 0 <= known["beats_foil"] <= 1
        )
    assert (
        "beats_foil"
        not in hw.score(model, tiny.task(foil=False), progress=False).meta["tasks"]["letters"]
    )


def test_what_a_score_means_travels_with_the_scores_to_file_and_browser(tmp_path: Path) -> None:
    scores = hw.score(tiny.model("llama"), TASKS, "gradient", progress=False)
    gradient = registry.find("gradient")
    about = gradient.meaning(gradient.options())
    assert scores.record.meaning == about
    scores.save(tmp_path / "scores.safetensors")
    header, _ = wire.encode(hw.open(tmp_path / "scores.safetensors"))
    assert header["meaning"] == about
    made = hw.HeadScores.from_arrays({"one": [[1.0]]}, method="gradient")
    assert "meaning" not in wire.encode(made)[0]  # a name alone says nothing


def test_accuracy_and_only_correct_on_the_real_model() -> None:
    model = hw.load()
    task = hw.Task(
        "capitals",
        [
            ("The capital of France is", " Paris", " London"),
            ("The capital of Italy is", " Rome"),
            ("The capital of Spain is", " Zanzibar", " Madrid"),
        ],
    )
    for method in ("gradient", "attribution"):
        known = hw.score(model, task, method, progress=False).meta["tasks"]["capitals"]
        assert (known["accuracy"], known["asked"]) == (pytest.approx(2 / 3), 3)
        assert (known["beats_foil"], known["foils"]) == (0.5, 2)  # of those that have one
    kept = hw.score(model, task, only_correct=True, progress=False)
    assert kept.runs("capitals") == (
        "The capital of France is Paris",
        "The capital of Italy is Rome",
    )
    known = kept.meta["tasks"]["capitals"]
    assert known["accuracy"] == pytest.approx(2 / 3)  # of all prompts, not of those kept
    assert known["dropped"] == [
        {
            "why": "the answer is not the model's first choice",
            "count": 1,
            "prompts": ["The capital of Spain is Zanzibar"],
        }
    ]
    with pytest.raises(ValueError, match="answers none of its 1 prompts right"):
        hw.score(model, hw.Task("t", [("The capital of Spain is", " Zanzibar")]), only_correct=True)


@pytest.mark.slow
def test_ablation_with_a_shared_prefix_is_exact_on_the_real_model() -> None:
    model = hw.load()
    examples = encode(hw.tasks.suite("math-syntax")[1].sample(5), model).examples
    replay = Replay(model, range(5), examples)
    assert replay.prefix > 30
    batch = collate(range(5), examples, model)
    with hooks.scoring(model):
        for row in range(len(model.layers)):
            replay.step()
            if row % 7:
                continue
            for head, found in zip((0, 5, 8), replay.without([0, 5, 8])):
                gates = torch.ones(model.shape)
                gates[row, head] = 0
                with hooks.gate(model, gates):
                    expected = log_probability(forward(model, batch), batch)
                torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
                assert (found - replay.base).abs().max() > 1e-4
        assert float(replay.finish().max()) < 1e-4


@pytest.mark.parametrize(
    ("weight", "dtype", "advice"),
    [
        (np.nan, torch.float32, r"weight 'model\.layers\.1\.mlp\.down_proj\.weight' has NaN"),
        (np.nan, torch.bfloat16, r"weight 'model\.layers\.1\.mlp\.down_proj\.weight' has NaN"),
        (np.inf, torch.float64, "down_proj.weight' is infinite: load a sound checkpoint"),
        (np.inf, torch.bfloat16, "overflow in torch.bfloat16: load .* dtype=torch.float32"),
        (3e38, torch.float32, "Every weight of the model is a finite torch.float32"),
    ],
)
def test_scores_that_are_not_numbers_are_refused_with_advice_that_helps(
    weight: float, dtype: torch.dtype, advice: str
) -> None:
    module = tiny.build("llama").to(dtype)
    with torch.no_grad():
        module.model.layers[1].mlp.down_proj.weight[0, :] = weight
    with pytest.raises(FloatingPointError) as raised:
        hw.score(hw.load(module, tiny.tokenizer()), TASKS, progress=False)
    sentence = str(raised.value)
    assert re.search("task 'one': gradient gave a score that is not a number for '.+'. ", sentence)
    assert re.search(advice, sentence)
    assert ("dtype=torch.float32" in sentence) == (dtype == torch.bfloat16 and weight == np.inf)


def test_the_progress_bar_names_task_and_method(capfd: pytest.CaptureFixture[str]) -> None:
    hw.score(tiny.model("llama"), TASKS, "ablation")
    shown = capfd.readouterr().err
    assert "ablation · two" in shown and "8/8 prompts" in shown


def test_the_model_is_as_it_was_after_scoring() -> None:
    module = tiny.build("llama").train()
    model = hw.load(module, tiny.tokenizer())
    torch.manual_seed(5)
    state = torch.get_rng_state()
    before = {n: p.clone() for n, p in module.named_parameters()}
    for method in ("ablation", "gradient", "attribution"):
        hw.score(model, TASKS, method, progress=False)
    assert all(
        torch.equal(p, before[n]) and p.grad is None and p.requires_grad
        for n, p in module.named_parameters()
    )
    assert torch.equal(torch.get_rng_state(), state)  # nor is the user's random state touched
    assert all(
        m.training
        and not m._forward_hooks
        and not m._forward_pre_hooks
        and "forward" not in m.__dict__
        for m in module.modules()
    )


def test_a_real_encoder_is_scored() -> None:
    """Ablation equals its definition on real weights.

    all-MiniLM has no masked-token head: its embeddings serve as one.
    """
    from tests.support.minilm import minilm

    model = minilm()
    assert model.shape == (6, 12)
    task = hw.Task(
        "letters",
        [
            ("the capital of france is [MASK].", "paris"),
            ("water is [MASK] when it is cold", "ice"),
            ("cats and", "dogs"),
        ],
    )
    from tests.support.definitions import one_forward_per_head

    found = hw.score(model, task, "ablation", progress=False).values("letters")
    np.testing.assert_allclose(found, one_forward_per_head(model, task), atol=1e-4)
    assert np.isfinite(hw.score(model, task, "gradient", progress=False).values("letters")).all()


def test_every_keyword_of_score_can_be_meant() -> None:
    named = [name for name in inspect.signature(hw.score).parameters if name != "options"]
    assert sorted(score.KEYWORDS) == sorted(named)
