"""Relations in prompts, and the tokens that a head changes most."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.methods import word_maps
from headwidget.models import weights
from tests.support import tiny
from tests.support.words import LETTERS, following, ids, made

# ---- in prompts ----


@pytest.mark.parametrize("family", ["llama", "gpt2", "falcon"])
def test_the_dynamic_check_is_the_same_test_on_what_heads_say(family: str) -> None:
    """Against a plain forward of each prompt.

    z is taken by torch's own hooks, projected in full, and its top k are taken.
    """
    model, templates = made(family), ["about {}", "we say: {}"]
    found = hw.relations.dynamic(model, following(), templates, batch_size=7)
    targets = [target for _, target in ids(model, following())]
    asked = [
        (template.format(a), target)
        for template in templates
        for a, target in zip(LETTERS, targets)
    ]
    expected = np.zeros((len(asked), *model.shape))
    u = model.unembedding.weight.detach().double()
    for run, (text, target) in enumerate(asked):
        seen = {}
        handles = [
            layer.projection.register_forward_pre_hook(
                lambda _, args, row=row: seen.update({row: args[0][0, -1]})
            )
            for row, layer in enumerate(model.layers)
        ]
        with torch.no_grad():
            model.module(torch.tensor([model.tokenizer(text)["input_ids"]]))
        for handle in handles:
            handle.remove()
        for row, layer in enumerate(model.layers):
            z = seen[row].double().reshape(layer.heads, 1, -1)
            top = (z @ layer.w_o().detach().double() @ u.T)[:, 0].topk(10).indices  # (head, k)
            expected[run, row] = (top == target).any(1)
    np.testing.assert_array_equal(found.scores.values("following"), expected)
    assert (
        found.scores.runs("following")[0] == "about a → b"
        and found.scores.meta["templates"] == templates
    )
    static = hw.score(model, following(), "relations", progress=False).reduce()[0]
    r = np.corrcoef(static.ravel(), expected.mean(0).ravel())[0, 1]
    assert found.correlation == pytest.approx(r, abs=1e-5)
    assert (
        f"52 pairs, 104 prompts; correlation with the static score {r:.2f} over 12 heads"
        in repr(found)
    )


def test_no_correlation_where_nothing_varies() -> None:
    model = made("llama")
    with torch.no_grad():
        for layer in model.layers:
            layer.projection.weight.zero_()
    found = hw.relations.dynamic(model, following())
    assert found.correlation is None and "not defined" in repr(found)


def test_wrong_templates_get_a_sentence() -> None:
    model = made("llama")
    for wrong in ("about X", "{} is it", "{} and {}", ["fine {}", 3]):
        with pytest.raises(
            ValueError,
            match="a template is text that ends in the source, "
            "such as 'This is a document about {}'",
        ):
            hw.relations.dynamic(model, following(), wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no templates"):
        hw.relations.dynamic(model, following(), [])
    with pytest.raises(TypeError, match="got a Model and a list"):
        hw.relations.dynamic(model, [following()])  # type: ignore[arg-type]


# ---- salient operations ----


@pytest.mark.parametrize(
    ("family", "layer"), [("llama", 0), ("llama", 2), ("gpt2", 1), ("falcon", 2), ("gemma2", 1)]
)
def test_salient_tokens_are_those_that_grow_most(
    family: str, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_maps, "TOKENS", 37)  # the vocabulary in pieces that do not divide it
    model, head = made(family), 3
    found = hw.salient(model, layer, head, tokens=12, to=4)
    with torch.no_grad():
        e = weights.embedded(model, torch.arange(model.vocabulary))
        e = weights.first_mlp(model, e) if layer else e
        w = weights.values(model, model.layers[layer])
        ov = (
            w.weight[head // w.repeat] @ model.layers[layer].w_o()[head]
        ).double()  # (width, width)
        written = e.double() @ ov
        gain, order = (written.norm(dim=1) / e.double().norm(dim=1)).topk(12)
        to = (written[order] @ model.unembedding.weight.double().T).topk(4).indices
    np.testing.assert_allclose(found["amplified"], gain.numpy(), atol=6e-4)
    assert list(found["token"]) == [word_maps._shown(model, int(token)) for token in order]
    assert list(found["maps to"]) == [
        " ".join(word_maps._shown(model, int(token)) for token in row) for row in to
    ]


def test_the_vocabulary_goes_through_the_mlp_once_for_the_same_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, through = made("llama"), []
    first_mlp = weights.first_mlp
    monkeypatch.setattr(
        weights, "first_mlp", lambda model, e: through.append(len(e)) or first_mlp(model, e)
    )
    before = hw.salient(model, 1, 0, tokens=3)
    hw.salient(model, 2, 1, tokens=3)
    assert through == [model.vocabulary, 3, 3]  # all of it, then only the tokens that are shown
    with torch.no_grad():
        model.blocks[0].mlp.down_proj.weight.normal_()
    assert not before.equals(hw.salient(model, 1, 0, tokens=3)) and through[3:] == [
        model.vocabulary,
        3,
    ]


def test_heads_that_are_not_there_get_a_sentence() -> None:
    model = made("jamba")
    with pytest.raises(
        ValueError,
        match=r"there is no head 0 in layer 1 of \S+: it has layers 0 to 2, heads 0 to 3",
    ):
        hw.salient(model, 1, 0)  # a layer without attention
    for layer, head in ((0, 4), (0, -1), (7, 0), (0, 1.0)):
        with pytest.raises(ValueError, match="there is no head"):
            hw.salient(model, layer, head)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tokens is a number of tokens, 1 or more; got 0"):
        hw.salient(model, 0, 0, tokens=0)
    with pytest.raises(TypeError, match="salient takes what hw.load gives"):
        hw.salient(tiny.build("llama"), 0, 0)  # type: ignore[arg-type]
