"""Weights spread over places by device_map give what the whole model gives.

Where that cannot be, it is said at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headwidget as hw
from tests.support import tiny
from tests.support.words import VOCABULARY, following, made, tokenizer

PARTS = (
    "model.embed_tokens",
    "model.layers.0",
    "model.layers.1",
    "model.layers.2",
    "model.norm",
    "model.rotary_emb",
    "lm_head",
)


def spread(folder: Path, on_disk: str) -> hw.Model:
    """A llama with the weights of :func:`made`, placed by accelerate, a part of it on disk."""
    tiny.build("llama", vocab_size=VOCABULARY).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    places = {part: "disk" if part == on_disk else "cpu" for part in PARTS}
    model = hw.load(folder, device_map=places, offload_folder=folder / "offload")
    assert next(
        model.module.get_submodule(on_disk).parameters()
    ).is_meta  # accelerate brings it in when that part runs
    return model


@pytest.mark.parametrize(
    "on_disk", ["model.norm", "model.layers.1", "model.layers.0", "model.embed_tokens"]
)
def test_patterns_of_a_sharded_model_are_those_of_the_whole(on_disk: str, tmp_path: Path) -> None:
    ours, theirs = (
        hw.score(m, tiny.task(), "patterns", progress=False, lengths=6)
        for m in (made("llama"), spread(tmp_path, on_disk))
    )
    assert ours.tasks == theirs.tasks and "Induction" in ours.tasks
    for name in ours.tasks:
        np.testing.assert_allclose(ours.values(name), theirs.values(name), rtol=0, atol=1e-6)


@pytest.mark.parametrize("on_disk", ["model.norm", "model.embed_tokens"])
def test_relations_of_a_sharded_model_are_those_of_the_whole(on_disk: str, tmp_path: Path) -> None:
    whole, parts = made("llama"), spread(tmp_path, on_disk)
    ours, theirs = (hw.score(m, following(), "relations", progress=False) for m in (whole, parts))
    assert 0 < ours.values("following").mean() < 0.3
    np.testing.assert_array_equal(ours.values("following"), theirs.values("following"))
    np.testing.assert_array_equal(
        ours.aspects["suppression"].values("following"),
        theirs.aspects["suppression"].values("following"),
    )
    both = [hw.relations.dynamic(m, following(), "about {}") for m in (whole, parts)]
    np.testing.assert_array_equal(*(found.scores.values("following") for found in both))


@pytest.mark.parametrize("on_disk", ["model.norm", "model.layers.1", "model.embed_tokens"])
def test_salient_reads_the_layer_that_is_asked_for_wherever_the_others_are(
    on_disk: str, tmp_path: Path
) -> None:
    whole, parts = made("llama"), spread(tmp_path, on_disk)
    hw.relations.warm(parts)  # the first MLP runs where accelerate has it run
    assert all(p.requires_grad for p in parts.module.parameters())  # as it was
    for mlp in (True, False):
        assert hw.salient(parts, 2, 3, mlp=mlp).equals(hw.salient(whole, 2, 3, mlp=mlp))


def test_weights_that_are_on_disk_are_named_before_any_work(tmp_path: Path) -> None:
    model = spread(tmp_path, "model.layers.1")
    sentence = (
        r"model\.layers\.1\.self_attn\.\w_proj is a Linear whose weight cannot be read as plain "
        r"numbers \(.*offloaded to\s+disk\?\); load the model whole"
    )
    ran: list[int] = []
    model.module.get_input_embeddings().register_forward_hook(lambda *_: ran.append(1))
    for ask in (
        lambda: hw.score(model, following(), "relations", progress=False),
        lambda: hw.relations.dynamic(model, following()),
        lambda: hw.salient(model, 1, 0),
    ):
        with pytest.raises(TypeError, match=sentence):
            ask()
    model = spread(tmp_path, "lm_head")
    model.module.get_input_embeddings().register_forward_hook(lambda *_: ran.append(1))
    sentence = (
        r"the unembedding of .* cannot be read as plain numbers "
        r"\(quantised, or offloaded to disk\?\); load the model whole"
    )
    for ask in (
        lambda: hw.score(model, following(), "relations", progress=False),
        lambda: hw.relations.dynamic(model, following()),
        lambda: hw.salient(model, 1, 0),
        lambda: hw.relations.warm(model),
    ):
        with pytest.raises(TypeError, match=sentence):
            ask()
    assert ran == []  # not one token was embedded
