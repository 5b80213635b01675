"""What the first salient call needs, done ahead: piece by piece, once, in any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import headwidget as hw
from headwidget.methods import word_maps
from headwidget.models import weights
from tests.support import tiny
from tests.support.words import made


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens went through the first MLP, call by call, in pieces that do not divide it."""
    seen: list[int] = []
    first_mlp = weights.first_mlp
    monkeypatch.setattr(
        weights, "first_mlp", lambda model, e: seen.append(len(e)) or first_mlp(model, e)
    )
    monkeypatch.setattr(word_maps, "TOKENS", 37)
    return seen


def pieces(model: hw.Model) -> list[int]:
    whole, rest = divmod(model.vocabulary, 37)
    return [37] * whole + [rest]


@pytest.mark.parametrize("family", ["llama", "gpt2", "falcon"])
def test_salient_finds_done_what_warm_did_and_says_the_same(
    family: str, through: list[int]
) -> None:
    cold, model = made(family), made(family)
    expected = hw.salient(cold, 2, 3, tokens=6)
    through.clear()
    word_maps.warm(model)
    assert through == pieces(model)
    assert hw.salient(model, 2, 3, tokens=6).equals(expected)
    word_maps.warm(model)
    assert through[len(pieces(model)) :] == [6]  # only the tokens that are shown


def test_it_stops_between_pieces_and_what_is_made_stays(
    monkeypatch: pytest.MonkeyPatch, through: list[int]
) -> None:
    cold, model, stop = made("llama"), made("llama"), threading.Event()
    expected = hw.salient(cold, 1, 0, tokens=6)
    through.clear()
    counted: Callable[[hw.Model, Tensor], Tensor] = weights.first_mlp

    def stopping(model: hw.Model, e: Tensor) -> Tensor:
        if len(through) == 1:
            stop.set()  # during the second piece
        return counted(model, e)

    with monkeypatch.context() as patch:
        patch.setattr(weights, "first_mlp", stopping)
        word_maps.warm(model, stop)
    assert through == [37, 37]
    word_maps.warm(model, stop)  # still set: not one piece more
    assert through == [37, 37]
    assert hw.salient(model, 1, 0, tokens=6).equals(expected)
    assert through == [*pieces(model), 6]


def test_a_salient_at_the_same_time_shares_the_work(
    monkeypatch: pytest.MonkeyPatch, through: list[int]
) -> None:
    cold, model = made("llama"), made("llama")
    expected = [hw.salient(cold, 1, head, tokens=6) for head in range(4)]
    through.clear()
    counted: Callable[[hw.Model, Tensor], Tensor] = weights.first_mlp
    started, asked = threading.Event(), threading.Event()

    def slow(model: hw.Model, e: Tensor) -> Tensor:
        if threading.current_thread() is warming and not asked.is_set():
            started.set()
            asked.wait(60)  # the first piece is under way until salient has asked
        return counted(model, e)

    monkeypatch.setattr(weights, "first_mlp", slow)
    found: dict[int, object] = {}
    warming = threading.Thread(target=word_maps.warm, args=(model,))
    asking = [
        threading.Thread(
            target=lambda head=head: found.update({head: hw.salient(model, 1, head, tokens=6)})
        )
        for head in range(4)
    ]
    warming.start()
    assert started.wait(60)
    for thread in asking:
        thread.start()
    asked.set()
    for thread in (warming, *asking):
        thread.join()
    assert all(found[head].equals(expected[head]) for head in range(4))  # type: ignore[attr-defined]
    assert sorted(through) == sorted([*pieces(model), 6, 6, 6, 6])


def test_other_weights_are_warmed_anew(through: list[int]) -> None:
    model = made("llama")
    word_maps.warm(model)
    with torch.no_grad():
        model.blocks[0].mlp.down_proj.weight.normal_()
    word_maps.warm(model)
    assert through == 2 * pieces(model)


def test_what_cannot_be_done_ahead_is_left_to_salient(
    monkeypatch: pytest.MonkeyPatch, through: list[int]
) -> None:
    model = made("gpt2")
    model.module.train()
    word_maps.warm(model)  # its dropout would be part of what is kept
    assert through == [] and all(m.training for m in model.module.modules())
    model.module.eval()
    with monkeypatch.context() as patch:
        patch.setattr(word_maps, "MOST_KEPT", model.vocabulary * 32 - 1)
        word_maps.warm(model)
        assert through == []
        hw.salient(model, 1, 0, tokens=3)
        hw.salient(model, 1, 0, tokens=3)
    assert through == 2 * [*pieces(model), 3]  # nothing kept
    with pytest.raises(TypeError, match="warm takes what hw.load gives; got a LlamaForCausalLM"):
        word_maps.warm(tiny.build("llama"))  # type: ignore[arg-type]
