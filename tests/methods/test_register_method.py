"""A user's own method: CONTRIBUTING's example word for word, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.display import wire
from headwidget.models import hooks
from headwidget.scores import provenance
from headwidget.scoring import registry
from headwidget.scoring.contract import Chunk, Job, Method, Report, TaskReport
from headwidget.scoring.encode import encode
from tests.support import tiny
from tests.support.lab_tools import TASKS, at_each_block, fresh, hooked
from tests.support.own_method import MINE, Options, chunk, constant, values

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


# ---- the example of CONTRIBUTING.md ----


@pytest.fixture
def output_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the example as a notebook's module runs a cell."""
    section = CONTRIBUTING.read_text().split("\n## Write a method\n", 1)[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    notebook, cell = ModuleType("notebook_of_a_user"), "<cell of a notebook>"
    monkeypatch.setitem(sys.modules, notebook.__name__, notebook)
    lines = code[1].splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, cell, (len(code[1]), None, lines, cell))
    exec(compile(code[1], cell, "exec", dont_inherit=True), notebook.__dict__)


def norms_by_a_plain_loop(model: hw.Model, task: hw.Task) -> np.ndarray:
    """One prompt at a time, one head at a time."""
    examples = encode(task, model).examples
    norms = np.zeros((len(examples), *model.shape))
    for run, example in enumerate(examples):
        z: list[torch.Tensor] = []
        with hooks.scoring(model), hooks.read(model, lambda _, value: z.append(value[0].clone())):
            model.module(input_ids=torch.tensor([example.ids]))
        for row, head in np.ndindex(model.shape):
            w_o = model.layers[row].w_o()[head].detach()
            sizes = [float((z[row][at, head] @ w_o).norm()) for at in example.at]
            norms[run, row, head] = sum(sizes) / len(sizes)
    return norms


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3", "bert"])
def test_the_example_scores_as_it_says(output_norm: None, family: str) -> None:
    model = tiny.model(family)
    for batch_size in (None, 1, 3):
        scores = hw.score(model, TASKS, "output_norm", batch_size=batch_size, progress=False)
        assert scores.method == "output_norm" and not scores.signed and not scores.partial
        for task in TASKS:
            expected = norms_by_a_plain_loop(model, task)
            np.testing.assert_allclose(scores.values(task.name), expected, rtol=1e-4)
    logs = hw.score(model, TASKS, "output_norm", log=True, progress=False)
    np.testing.assert_allclose(logs.values("one"), np.log(scores.values("one")), atol=1e-4)


def test_the_example_shows_in_the_card_and_the_file(output_norm: None, tmp_path: Path) -> None:
    scores = hw.score(tiny.model("llama"), TASKS, "output_norm", log=True, progress=False)
    about = dict(provenance.about(scores))
    assert about["method"] == "output_norm" and about["options"] == "log true"
    assert "right" in (provenance.note(scores, "one") or "")
    scores.save(tmp_path / "mine.safetensors")
    registry._registered.clear()  # whoever opens the file need not have the method
    again = hw.open(tmp_path / "mine.safetensors")
    assert again.method == "output_norm"
    np.testing.assert_array_equal(again.values("two"), scores.values("two"))
    hw.explore(again)


def test_the_example_runs_live(output_norm: None) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "output_norm", prompts=None)
    assert lab.run().wait(60) and lab.state == "done"
    assert lab.scores is not None
    expected = hw.score(model, TASKS, "output_norm", progress=False)
    for task in expected.tasks:
        np.testing.assert_array_equal(lab.scores.values(task), expected.values(task))
    assert lab.run(method="gradient").wait(60)
    assert lab.run(method="output_norm", log=True).wait(60) and lab.state == "done"
    np.testing.assert_allclose(lab.scores.values("one"), np.log(expected.values("one")), atol=1e-4)
    assert set(lab.results) == {"output_norm", "gradient"}
    assert dict(lab._header["about"])["method"] == "output_norm"
    assert not hooked(model)


def test_the_example_is_offered_with_its_options(output_norm: None) -> None:
    lab = hw.live(tiny.model("llama"), TASKS)
    offered = {method["name"]: method for method in lab._offer["methods"]}
    assert list(offered) == list(registry.names()) and "output_norm" in offered
    assert offered["output_norm"]["why_not"] is None
    assert offered["output_norm"]["about"].startswith("The mean norm of what the head writes")
    (log,) = offered["output_norm"]["options"]
    assert (log["name"], log["kind"], log["default"]) == ("log", "bool", False)
    assert log["help"] == "Take the logarithm of the norm."
    json.dumps(offered)


def test_stop_keeps_what_the_example_has_done(output_norm: None) -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "output_norm", prompts=None)

    def stop_in_the_second_task(_: int) -> None:
        if lab.scores is not None and lab.scores.tasks == ("one",):
            lab.stop()

    with at_each_block(model, stop_in_the_second_task):
        lab.run().wait(60)
    assert lab.state == "stopped" and lab.scores is not None
    assert lab.scores.tasks == ("one",) and lab.scores.partial
    assert not hooked(model)


def test_the_example_goes_on_with_half_the_batch_where_memory_runs_out(output_norm: None) -> None:
    model = fresh()
    expected = hw.score(model, TASKS, "output_norm", progress=False)

    def run_out(size: int) -> None:
        if size > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")

    with at_each_block(model, run_out):
        scores = hw.score(model, TASKS, "output_norm", progress=False)
    assert "halved to 1" in scores.meta["out_of_memory"]
    np.testing.assert_allclose(scores.values("one"), expected.values("one"), rtol=1e-5)


# ---- what can be registered ----


@dataclasses.dataclass
class NotFrozen:
    size: int = 1


@dataclasses.dataclass(frozen=True)
class NoDefault:
    size: int


@dataclasses.dataclass(frozen=True)
class NotSettable:
    size: int = dataclasses.field(default=1, init=False)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (constant, "hw.register_method takes a Method .*got a function"),
        ("mine", "hw.register_method takes a Method .*got a str"),
        (dataclasses.replace(MINE, name=""), "a method's name is text that is not empty; got ''"),
        (dataclasses.replace(MINE, name="  "), "a method's name is text that is not empty"),
        (dataclasses.replace(MINE, name=7), "a method's name is text that is not empty; got 7"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, name="\ud800"), "a method's name is text that is not empty"),
        (dataclasses.replace(MINE, about=object()), "method 'mine': about is text, one sentence"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, aspects={"a": 1}), "'mine': aspects is a dict of one sentence"),  # type: ignore[dict-item]
        (dataclasses.replace(MINE, explained="text"), "'mine': explained is a tuple of paragraphs"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, paper=("A. Author",)), r"'mine': paper is \(authors, address\)"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, name="probe"), "'probe' is a method of headwidget itself"),
        (dataclasses.replace(MINE, run=None), "method 'mine': run is a function"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, options=dict), "method 'mine': options is a frozen dataclass"),
        (dataclasses.replace(MINE, options=Options()), "'mine': options is a frozen dataclass"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, options=NotFrozen), "'mine': options is a frozen dataclass"),
        (
            dataclasses.replace(MINE, ranked_by="foo"),
            "method 'mine': ranked_by is 'mean' or 'size'",
        ),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, signed="no"), "method 'mine': signed is True or False"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, check_tasks=None), "'mine': check_tasks is a function"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, encode=3), "'mine': encode is a function"),  # type: ignore[arg-type]
        (dataclasses.replace(MINE, options=NotSettable), r"'mine': option 'size' has field\(init"),
        (dataclasses.replace(MINE, options=NoDefault), "'mine': every option needs a default"),
    ],
)
def test_what_is_no_method_is_refused_with_a_sentence(method: Any, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        hw.register_method(method)
    assert "mine" not in registry.names()


@pytest.mark.parametrize("name", ["seed", "batch_size", "progress", "only_correct", "prompts"])
def test_an_option_that_could_not_be_set_is_refused(name: str) -> None:
    options = dataclasses.make_dataclass("Options", [(name, int, 1)], frozen=True)
    sentence = f"method 'mine': .* takes '{name}' itself.*give it another name"
    with pytest.raises(ValueError, match=sentence):
        hw.register_method(dataclasses.replace(MINE, options=options))


@pytest.mark.parametrize(
    "value",
    [np.zeros(3), Path("x"), len, float("inf"), float("nan"), (TASKS[0], TASKS[1]), "\ud800"],
    ids=["array", "path", "function", "inf", "nan", "tasks", "surrogate"],
)
def test_an_option_that_no_record_holds_is_refused_before_scoring(value: Any) -> None:
    def run(job: Job) -> Iterator[Chunk | Report]:
        raise AssertionError("it is scored already")
        yield

    options = dataclasses.make_dataclass("Options", [("of", Any, None)], frozen=True)
    hw.register_method(dataclasses.replace(MINE, run=run, options=options))
    sentence = "method 'mine': option 'of' cannot be kept in the scores' record: use text"
    with pytest.raises(ValueError, match=sentence):
        hw.score(tiny.model("llama"), TASKS, "mine", of=value, progress=False)


@pytest.mark.parametrize("steps", [None, (1, 2), ("many", "prompts"), 3, (-1, "prompts")])
def test_steps_that_are_no_number_and_unit_are_refused(steps: Any) -> None:
    hw.register_method(dataclasses.replace(MINE, steps=lambda tasks, options: steps))
    with pytest.raises(TypeError, match=r"method 'mine': steps\(tasks, options\) returns how many"):
        hw.score(tiny.model("llama"), TASKS, "mine", progress=False)


def test_registering_again_replaces_the_method() -> None:
    model = tiny.model("llama")
    hw.register_method(MINE)
    assert hw.score(model, TASKS, "mine", size=2, progress=False).values("one").max() == 2

    def twice(job: Job) -> Iterator[Chunk | Report]:
        for item in constant(job):
            assert isinstance(item, Chunk)
            yield dataclasses.replace(item, values=2 * item.values)

    hw.register_method(dataclasses.replace(MINE, run=twice))
    assert registry.names().count("mine") == 1
    assert hw.score(model, TASKS, "mine", size=2, progress=False).values("one").max() == 4


def test_an_unknown_method_or_option_is_told_of_the_users_own() -> None:
    hw.register_method(MINE)
    with pytest.raises(ValueError, match="there is no method 'mime'.*'patterns', 'mine'"):
        hw.score(tiny.model("llama"), TASKS, "mime")
    with pytest.raises(ValueError, match="'mine' has no option 'sise'; its options are size, why"):
        hw.score(tiny.model("llama"), TASKS, "mine", sise=1)


@pytest.mark.parametrize("name", registry.names())
def test_every_built_in_method_says_what_a_score_means(name: str) -> None:
    method = registry.find(name)
    for about in (method.meaning(method.options()), *method.aspects.values()):
        assert about.endswith(".") and len(about) <= 100
    assert len(method.explained) >= 2 and all(text.endswith(".") for text in method.explained)
    assert method.paper is not None and method.paper[1].startswith("https://")


def test_what_a_score_means_follows_the_options() -> None:
    model = tiny.model("llama")
    signed = hw.score(model, TASKS, "gradient").record.meaning
    sizes = hw.score(model, TASKS, "gradient", abs=True).record.meaning
    assert signed is not None and "positive helps" in signed
    assert sizes is not None and "positive" not in sizes and "up or down" in sizes


def test_what_is_said_of_options_is_checked_before_anything_runs() -> None:
    hw.register_method(dataclasses.replace(MINE, about=lambda options: options.size))
    with pytest.raises(TypeError, match=r"about\(options\) gives one sentence .* got 1"):
        hw.score(tiny.model("llama"), TASKS, "mine")


def test_every_aspect_says_what_its_score_means() -> None:
    method = registry.find("gating")
    quick = {"preset": "quick", "fits": 1, "updates": 1}
    scores = hw.score(tiny.model("llama"), TASKS, "gating", **quick, progress=False)
    meanings = {name: aspect.record.meaning for name, aspect in scores.aspects.items()}
    assert meanings == method.aspects and scores.record.meaning not in meanings.values()


# ---- what follows from the options ----


@dataclasses.dataclass(frozen=True)
class SameNames:
    """Options with names that methods of headwidget use too."""

    abs: bool = True
    batch: int = 2
    size: float = -1.0


def test_the_names_of_options_mean_nothing_to_the_engine() -> None:
    batch_sizes: list[int | None] = []

    def run(job: Job) -> Iterator[Chunk | Report]:
        batch_sizes.append(job.batch_size)
        if job.batch_size is None:
            raise MemoryError
        yield from constant(job)

    model, one = tiny.model("llama"), [TASKS[0]]
    method = dataclasses.replace(MINE, run=run, options=SameNames, signed=True)
    hw.register_method(method)
    assert hw.score(model, one, "mine", progress=False).signed
    # half of all prompts, which fit into one of the engine's batches, and not of `batch`
    assert batch_sizes == [None, len(TASKS[0].examples) // 2] and batch_sizes[1] != 1
    batch_sizes.clear()
    hw.register_method(dataclasses.replace(method, usual_batch=lambda options: options.batch * 5))
    hw.score(model, one, "mine", progress=False, batch=4)
    assert batch_sizes == [None, 10]


def test_a_method_says_with_which_options_scores_are_signed() -> None:
    signed = dataclasses.replace(MINE, options=SameNames, signed=lambda options: not options.abs)
    hw.register_method(signed)
    for absolute in (True, False):
        scores = hw.score(tiny.model("llama"), TASKS, "mine", progress=False, abs=absolute)
        assert scores.signed is not absolute


def test_an_option_whose_type_is_not_known_is_left_to_the_method() -> None:
    fields: list[Any] = [("size", "float", 1.0), ("of", "Unheard | None", None)]
    options = dataclasses.make_dataclass("Options", fields, frozen=True)
    hw.register_method(dataclasses.replace(MINE, options=options))
    model = tiny.model("llama")
    assert hw.score(model, TASKS, "mine", size=2, of="x", progress=False).values("one").max() == 2
    with pytest.raises(ValueError, match="size is a number; got 'x'"):
        hw.score(model, TASKS, "mine", size="x", progress=False)


@pytest.mark.parametrize("absolute", [True, False])
def test_an_absolute_gradient_is_not_signed(absolute: bool) -> None:
    scores = hw.score(tiny.model("llama"), TASKS, "gradient", progress=False, abs=absolute)
    assert scores.signed is not absolute


def test_gating_says_how_many_prompts_an_update_has() -> None:
    gating = registry.find("gating")
    sizes = [gating.usual_batch(gating.options(preset=preset)) for preset in ("published", "quick")]
    assert sizes == [32, 8]


# ---- what a method is told ----


def test_a_method_is_told_one_task_and_only_what_is_not_done_yet() -> None:
    told: list[tuple[str, list[str], list[str], int | None]] = []

    def run(job: Job) -> Iterator[Chunk]:
        (source,) = job.sources
        texts = [example.prompt + example.answer for example in source.examples]
        told.append((source.name, texts, [e.label for e in job.task.examples], job.batch_size))
        for i in range(len(job.task.examples)):
            if i == 3:
                raise MemoryError
            yield chunk(job, runs=(i,), values=values(job, 1, *job.model.shape) + len(texts[i]))

    hw.register_method(dataclasses.replace(MINE, run=run))
    scores = hw.score(tiny.model("llama"), TASKS, "mine", batch_size=8, progress=False)
    texts = {task.name: [e.prompt + e.answer for e in task.examples] for task in TASKS}
    assert told == [
        ("one", texts["one"], texts["one"], 8),
        ("one", texts["one"][3:], texts["one"][3:], 4),
        ("two", texts["two"], texts["two"], 4),
        ("two", texts["two"][3:], texts["two"][3:], 2),
    ]
    assert scores.values("two")[:, 0, 0].tolist() == [len(text) for text in scores.runs("two")]


# ---- methods of the other kinds ----


def fits(job: Job) -> Iterator[Chunk | Report]:
    """Two fits a task, all tasks in one job; the seed and the sources are told."""
    assert [source.name for source in job.sources] == [task.name for task in job.tasks]
    for task in job.tasks:
        record = {"seed seen": job.seed, "warning": "Made up."}
        report = TaskReport(labels=("fit 0", "fit 1"), record=record)
        yield Report({task.name: report}, {"left_out": {"nothing": "much"}})
        for layer in range(job.model.shape[0]):
            numbers = np.full((2, 1, job.model.shape[1]), layer, np.float32)
            rows = slice(layer, layer + 1)
            yield Chunk(task.name, (0, 1), rows, numbers, aspects={"minus": -numbers})
            job.note(f"{task.name}, layer {layer}", 1)


def test_a_method_of_all_tasks_reports_what_it_found(capfd: pytest.CaptureFixture[str]) -> None:
    def steps(tasks: Any, options: Any) -> tuple[float, str]:
        return 3 * len(tasks), "layers"

    hw.register_method(Method("fits", fits, Options, signed=False, together=True, steps=steps))
    scores = hw.score(tiny.model("llama"), TASKS, "fits", seed=5)
    assert "fits · two, layer 2" in (shown := capfd.readouterr().err) and "6/6 layers" in shown
    assert scores.runs("one") == ("fit 0", "fit 1")
    assert scores.values("two")[1, :, 0].tolist() == [0, 1, 2]
    assert scores.aspects["minus"].values("two")[1, :, 0].tolist() == [0, -1, -2]
    record = scores.meta["tasks"]["one"]
    assert record["seed seen"] == 5 and record["prompts"] == 4 and len(record["made_from"]) == 4
    assert provenance.warning(scores, "one") == "Made up."
    assert dict(provenance.about(scores))["left out"] == "nothing much"
    wire.encode(scores)


def test_a_later_report_extends_an_earlier_one() -> None:
    first = Report({"a": TaskReport(runs=(1,), record={"x": 1, "y": 1})}, {"all": 1})
    second = Report({"a": TaskReport(labels=("l",), record={"y": 2}), "b": TaskReport()}, {"b": 2})
    both = first.extended(second)
    assert (both.tasks["a"].runs, both.tasks["a"].labels) == ((1,), ("l",))
    assert both.tasks["a"].record == {"x": 1, "y": 2} and both.record == {"all": 1, "b": 2}
    assert list(both.tasks) == ["a", "b"] and first.record == {"all": 1}
