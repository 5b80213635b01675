"""The lab's measurements and their controls, and what the front end may send by mistake."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing
from traitlets import TraitError

import headwidget as hw
from headwidget.live import measure, reading
from tests.support import tiny
from tests.support.lab_tools import TASKS, at_each_block, fresh, hooked

MANY = hw.Task("sums", [(f"{n} + 1 =", " 1") for n in range(20)])


# ---- measuring ----


def off(lab: hw.Lab, *heads: tuple[int, int]) -> None:
    gates = np.ones(lab.gates.shape)
    for head in heads:
        gates[head] = 0
    lab.gates = gates


def test_measure_is_before_and_after_beside_random_heads_of_the_same_layers() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompt="abcab")
    with pytest.raises(ValueError, match="no head is scaled"):
        lab.measure()
    gates = np.ones(model.shape, np.float32)
    gates[1, :2] = 0
    lab.gates = gates
    assert lab.measure().wait(60)
    effect = lab.effect
    assert (
        effect["done"]
        and effect["heads"] == 2
        and [task["name"] for task in effect["tasks"]] == ["one", "two"]
    )
    scores = hw.HeadScores.from_arrays(
        {"one": gates[None]}, method="gates", meta={"weights": model.fingerprint()}
    )
    frame = hw.keep_only(model, scores, TASKS[0], draws=0, progress=False)
    kept = frame[frame.kind == "kept"].iloc[0]
    assert effect["tasks"][0]["after"]["log_probability"] == pytest.approx(
        kept.log_probability, abs=1e-5
    )
    whole = frame[frame.kind == "all"].iloc[0]
    assert effect["tasks"][0]["before"]["log_probability"] == pytest.approx(
        whole.log_probability, abs=1e-5
    )
    assert 1 <= len(effect["tasks"][0]["controls"]) <= 3
    assert set(effect["text"]) == {"prompt", "before", "after"}


def test_prompts_that_no_run_has_scored_are_measured_first() -> None:
    task = hw.Task("sums", [(f"{n} + 1 =", " 1") for n in range(20)])
    lab = hw.live(fresh(), task, "gradient", prompts=8)
    lab.gates = np.zeros((3, 4))
    assert lab.run().wait(60) and lab.measure(prompts=12).wait(60)
    assert [(one["prompts"], one["unseen"]) for one in lab.effect["tasks"]] == [(12, 12)]
    assert lab.measure(prompts=15).wait(60)
    assert [(one["prompts"], one["unseen"]) for one in lab.effect["tasks"]] == [(15, 12)]


def test_a_control_gets_the_same_factors_in_the_same_layers() -> None:
    gates = np.ones((3, 4), np.float32)
    gates[1, 0], gates[1, 2], gates[2, 3] = 0, 2, 0.5
    made = measure.like(gates, [(1, 0), (1, 2), (2, 3)], [(1, 1), (1, 3), (2, 0)])
    assert made.tolist() == [[1, 1, 1, 1], [1, 0, 1, 2], [0.5, 1, 1, 1]]


def test_other_gates_drop_the_measurement_under_way() -> None:
    model = fresh()
    lab = hw.live(model, TASKS)
    off(lab, (1, 0), (1, 1))
    calls: list[int] = []

    def change(_: int) -> None:
        calls.append(1)
        if len(calls) == 3:
            off(lab, (2, 0))

    with at_each_block(model, change):
        assert lab.measure().wait(60)
    assert len(calls) >= 3 and lab.effect == {}
    assert lab.measure().wait(60) and lab.effect["done"] and lab.effect["heads"] == 1


def test_a_second_measurement_replaces_the_first() -> None:
    model = fresh()
    lab = hw.live(model, MANY)
    off(lab, (1, 0))
    calls: list[int] = []

    def again(_: int) -> None:
        calls.append(1)
        if len(calls) == 2:
            lab.measure(prompts=7)

    with at_each_block(model, again):
        assert lab.measure(prompts=3).wait(60)
    assert lab.effect["done"] and [task["prompts"] for task in lab.effect["tasks"]] == [7]


@pytest.mark.parametrize(
    ("method", "options"), [("gating", {"updates": 1, "fits": 2}), ("gradient", {})]
)
def test_prompts_that_gates_were_fitted_on_are_not_called_new(
    method: str, options: dict[str, Any]
) -> None:
    lab = hw.live(fresh(), MANY, method, prompts=8)
    off(lab, (1, 0))
    assert lab.run(**options).wait(60) and lab.measure(prompts=15).wait(60)
    assert [(one["prompts"], one["unseen"]) for one in lab.effect["tasks"]] == [(15, 12)]
    effect = hw.knockout(lab._model, lab.scores, MANY, k=1, draws=1, prompts=15, progress=False)
    assert effect.untouched["scored_on"].tolist() == [3]


def test_a_control_that_is_the_heads_themselves_is_none() -> None:
    lab = hw.live(fresh(), TASKS[:1])
    off(lab, *((1, head) for head in range(4)))
    assert lab.measure().wait(60) and lab.effect["tasks"][0]["controls"] == []
    off(lab, *((1, head) for head in range(3)))
    assert (
        lab.measure().wait(60)
        and len(lab.effect["tasks"][0]["controls"]) == 3
        and lab.effect["shared"] == 2
    )
    off(lab, (1, 0))
    assert lab.measure().wait(60) and lab.effect["shared"] == 0


def test_a_measurement_that_runs_out_of_memory_takes_less_at_a_time() -> None:
    model = fresh()
    lab = hw.live(model, MANY)
    off(lab, (1, 0))
    assert lab.measure().wait(60)
    expected = lab.effect["tasks"]

    def only_four(size: int) -> None:
        if size > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    with at_each_block(model, only_four):
        assert lab.measure().wait(60)
    assert lab.effect["done"] and "error" not in lab.effect
    assert lab.effect["tasks"][0]["after"]["log_probability"] == pytest.approx(
        expected[0]["after"]["log_probability"], abs=1e-5
    )


def test_gates_that_overflow_are_a_sentence() -> None:
    lab = hw.live(fresh(), TASKS, prompt="abcab")
    lab.gates = np.full((3, 4), 3e38)
    assert lab.wait(60) and "scale heads by less" in lab.reading["error"]
    assert lab.measure().wait(60) and "scale heads by less" in lab.effect["error"]


# ---- nonsense ----


def test_a_prompt_ends_where_it_was_typed_to() -> None:
    tokenizer = copy.deepcopy(tiny.tokenizer())
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<pad> $A <mask>", special_tokens=[("<pad>", 0), ("<mask>", 1)]
    )
    model = hw.load(tiny.build("llama"), tokenizer)
    read = reading.read(model, "abcab")
    assert read.ids[0] == 0 and read.ids[-1] != 1 and len(read.ids) == 6
    expected = hw.score(
        model, hw.Task("t", [("abcab", "c")]), "attribution", progress=False
    ).values("t")[0]
    (mine,) = reading.towards(
        model, read.outputs, tokenizer("c", add_special_tokens=False)["input_ids"]
    )
    np.testing.assert_allclose(mine, expected, atol=1e-5)


@pytest.mark.parametrize(
    "scaled",
    [
        [[99, 0, 0]],
        [[0, 99, 0]],
        [[0, -1, 2]],
        [[0, 0, float("nan")]],
        [[0, 0, "a"]],
        [[0, 0]],
        [7],
    ],
)
def test_heads_that_are_not_there_are_not_scaled(scaled: Any) -> None:
    lab = hw.live(fresh(), TASKS)
    with pytest.raises(TraitError, match="a head is scaled by"):
        lab.set_state({"_scaled": scaled})
    assert lab._scaled == [] and (lab.gates == 1).all()


@pytest.mark.parametrize("content", [None, 5, "run", {"ask": None}, {"ask": []}, {"ask": "close"}])
def test_a_message_that_makes_no_sense_does_nothing(content: Any) -> None:
    lab = hw.live(fresh(), TASKS)
    lab._on_message(None, content, [])
    assert lab.wait(60) and lab.state == "idle"


@pytest.mark.parametrize("asked", [5, None, [["a"]]])
def test_tasks_that_are_no_names_are_refused_with_a_sentence(asked: Any) -> None:
    with pytest.raises(TraitError, match="asked names tasks of the lab, 'one', 'two'"):
        hw.live(fresh(), TASKS).asked = asked


@pytest.mark.parametrize("options", [{"prompts": 0}, {"prompts": -1}, {"draws": 1.5}])
def test_a_measurement_of_nothing_is_refused(options: dict[str, Any]) -> None:
    lab = hw.live(fresh(), TASKS)
    off(lab, (0, 0))
    with pytest.raises(ValueError, match="is a whole number, 1 or more"):
        lab.measure(**options)


def test_a_run_asked_for_with_a_wrong_option_says_so_while_another_goes_on() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, "ablation", prompts=None)
    asked = threading.Event()

    def ask(_: int) -> None:
        if not asked.is_set():
            asked.set()
            lab.options = {"speed": 3}
            lab._on_message(None, {"ask": "run"}, [])

    with at_each_block(model, ask):
        assert lab.run().wait(60)
    assert lab.state == "done" and "has no option 'speed'" in lab._trouble
    assert not hooked(model)


def test_a_misspelt_word_is_told_from_an_option_that_looks_like_it() -> None:
    lab = hw.live(fresh(), TASKS)
    with pytest.raises(TypeError, match=r"no 'promts'\. Did you mean 'prompts'\? It takes method"):
        lab.run(promts=3)
    with pytest.raises(
        ValueError, match="too few to hold each out once in 5 folds"
    ):  # the probe's own sentence: seeds is no misspelt tasks
        lab.run(method="probe", seeds=1)


def test_gates_and_target_can_be_given_at_once() -> None:
    gates = np.ones((3, 4))
    gates[1, 1] = 0
    lab = hw.live(fresh(), TASKS, prompt="abc", gates=gates, target=5)
    assert lab._scaled == [[1, 1, 0.0]] and lab.wait(60) and "error" not in lab.reading


def test_a_measurement_goes_on_whatever_its_handler_raises() -> None:
    lab = hw.live(fresh(), TASKS, prompt="abc")
    lab.gates = lab.gates * 0.5

    def bad(change: Any) -> None:
        if change["new"].get("tasks"):
            raise SystemExit

    lab.observe(bad, "_effect")
    assert lab.measure(prompts=1, draws=1).wait(60) and lab.effect["done"]


def test_any_token_can_be_the_target_also_one_that_is_not_likely() -> None:
    model = fresh()
    lab = hw.live(model, TASKS, prompt="abc")
    assert lab.wait(60)
    listed = [one[0] for one in lab.reading["predictions"]]
    other = next(i for i in range(model.vocabulary) if i not in listed)
    lab.target = other
    assert lab.wait(60) and [one[0] for one in lab.reading["predictions"]] == [*listed, other]
    read = reading.read(model, "abc")
    assert read.outputs is not None
    whole = reading.towards(model, read.outputs, range(model.vocabulary))
    np.testing.assert_allclose(
        np.frombuffer(lab._maps, "<f4").reshape(-1, 3, 4)[-1], whole[other], rtol=1e-5, atol=1e-7
    )
    with pytest.raises(TraitError, match=f"0 to {model.vocabulary - 1}"):
        lab.target = model.vocabulary

    later = [one.id for one in reading.read(model, "b a").predictions]
    old = next(i for i in listed if i not in later)

    def choose(_: int) -> None:  # while the next prompt is read
        if lab.target is None:
            lab.target = old

    with at_each_block(model, choose):
        lab.prompt = "b a"
        assert lab.wait(60)
    assert lab.target == old and [one[0] for one in lab.reading["predictions"]] == [*later, old]
    lab.prompt = "abcd"
    assert lab.wait(60) and lab.target is None and len(lab.reading["predictions"]) == len(listed)


def test_a_prompt_with_half_a_letter_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="half a letter"):
        reading.encode(fresh(), "\ud83d")


def test_a_model_whose_numbers_are_none_is_said_to_be_the_cause() -> None:
    model = fresh()
    lab = hw.live(model, TASKS)
    off(lab, (0, 0))
    with torch.no_grad():
        model.module.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    lab.prompt = "abc"
    assert lab.measure().wait(60)
    assert "probabilities are not numbers for this prompt" in lab.reading["error"]
    assert "log-probability is not a number" in lab.effect["error"]
    for sentence in (lab.reading["error"], lab.effect["error"]):
        assert "down_proj.weight' has NaN: load a sound checkpoint." in sentence
