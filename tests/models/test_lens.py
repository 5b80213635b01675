"""TransformerLens agrees: z, and the effect of turning a head off, on the same weights."""

from __future__ import annotations

import pytest
import torch

import headwidget as hw
from headwidget.models import embedded
from tests.support import lens

KNOWN = "gpt2 gpt_neox gptj opt bloom phi phi3 mistral mixtral qwen2 qwen3 gemma2 llama".split()
FOUND = "gpt_neo olmo olmo3 olmoe starcoder2 cohere granite glm codegen mpt gpt_oss".split()
"""Families that are not in headwidget's table: their heads are found by structure."""


@pytest.mark.parametrize("family", [*KNOWN, *FOUND])
def test_z_and_zero_ablation_agree_with_transformer_lens(family: str) -> None:
    model, peer = lens.of_family(family)
    assert model.family.table == (family in KNOWN)
    lens.agree(model, peer)


def test_the_embedded_model_agrees_with_transformer_lens() -> None:
    model = hw.load()
    prompt = "When Mary and John went to the store, John gave a drink to"
    ids = torch.tensor([model.tokenizer(prompt)["input_ids"]])
    lens.agree(model, lens.bridge(embedded.folder()), ids)
