"""A hundred random compositions of what users do to their models, and that the search can fail.

Each is held to every other check, in turn; ``make fuzz-models`` holds some thousands to all.
"""

from __future__ import annotations

import pytest
import torch

import headwidget as hw
from headwidget.models import families
from headwidget.scoring import slopes
from headwidget.scoring.batch import Batch, forward, log_probability
from tests.fuzz.checks import CHECKS
from tests.fuzz.property import Verdict, examine
from tests.fuzz.shrink import smallest
from tests.support.compositions import Composition
from tests.support.ingredients import INGREDIENTS

COUNT = 100
PLAIN = Composition("llama", 2, 0, None)


@pytest.mark.parametrize("seed", range(COUNT))
def test_scores_equal_their_definition_or_are_refused_in_words(seed: int) -> None:
    composition = Composition.draw(seed)
    checks = list(CHECKS)[seed % 2 :: 2]
    faults = [verdict for verdict in examine(composition, checks) if verdict.kind == "fault"]
    if faults:
        least = smallest(composition, faults[0])
        lines = [str(composition), *map(str, faults)]
        show = f"python -m tests.fuzz --composition '{least}' --check {faults[0].check}"
        pytest.fail("\n".join([*lines, "smallest reproduction:", show]), pytrace=False)


def test_a_composition_is_read_from_its_text() -> None:
    for seed in range(300):
        composition = Composition.draw(seed)
        assert Composition.parse(str(composition)) == composition


def test_the_compositions_have_every_ingredient() -> None:
    drawn: set[str] = set()
    for seed in range(COUNT):
        drawn |= {text.split(":")[0] for text in Composition.draw(seed).ingredients}
    assert drawn == set(INGREDIENTS)


def test_every_method_scores_a_plain_model() -> None:
    assert [(v.check, v.kind) for v in examine(PLAIN)] == [(check, "equal") for check in CHECKS]


# ---- the search can fail ----


def verdict() -> Verdict:
    (of_gradient,) = examine(PLAIN, ["gradient"])
    return of_gradient


def test_numbers_that_are_off_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "log_probability", lambda *of: log_probability(*of) * 1.0001)
    assert verdict().kind == "equal"
    monkeypatch.setattr(slopes, "log_probability", lambda *of: log_probability(*of) * 1.02)
    assert "by definition" in verdict().text


def test_an_error_of_torch_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "log_probability", lambda logits, batch: logits[9999])
    assert verdict().text.startswith("raw IndexError")


def test_a_hook_that_is_left_behind_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves_a_hook(model: hw.Model, batch: Batch) -> torch.Tensor:
        model.layers[0].block.register_forward_hook(lambda *_: None)
        return forward(model, batch)

    monkeypatch.setattr(slopes, "forward", leaves_a_hook)
    assert verdict().text.startswith("left changed: model.layers.0: _forward_hooks")


def test_a_plain_model_that_is_refused_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(families.FAMILIES, "llama", families.Family("llama", blocks="nowhere"))
    assert verdict().text.startswith("refused without a reason: LlamaForCausalLM has no list")


def test_what_a_fault_does_not_need_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_in_double(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        return log_probability(logits, batch) * (2 if logits.dtype == torch.float64 else 1)

    monkeypatch.setattr(slopes, "log_probability", wrong_in_double)
    composition = Composition.parse("gpt2/4/p3/b2 tied:no dtype:float64 freeze:half train:all")
    (fault,) = examine(composition, ["gradient"])
    assert str(smallest(composition, fault)) == "llama/2/p0/b0 dtype:float64"
