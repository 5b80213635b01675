"""TransformerLens agrees: z, and the effect of turning a head off, on the same weights."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.models import embedded, hooks
from tests.support import tiny

IDS = torch.tensor([[5, 6, 7, 8, 9, 6, 7, 11]])


def bridge(folder: Path):
    """The peer's view of a model saved in a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformer_lens.model_bridge import TransformerBridge

        return TransformerBridge.boot_transformers(str(folder), device="cpu")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_z_and_zero_ablation_agree_with_transformer_lens(family: str, tmp_path: Path) -> None:
    model = tiny.model(family)
    model.module.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    _agree(model, bridge(tmp_path), IDS)


def test_the_embedded_model_agrees_with_transformer_lens() -> None:
    model = hw.load()
    ids = torch.tensor(
        [model.tokenizer("When Mary and John went to the store, John gave a drink to")["input_ids"]]
    )
    _agree(model, bridge(embedded.folder()), ids)


def _agree(model: hw.Model, lens, ids: torch.Tensor) -> None:
    z: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        with hooks.read(model, lambda row, value: z.update({row: value})):
            plain = model.module(input_ids=ids).logits
        _, cache = lens.run_with_cache(ids)
        for row in range(len(model.layers)):
            theirs = cache[f"blocks.{row}.attn.hook_z"]
            torch.testing.assert_close(z[row].reshape(theirs.shape), theirs, rtol=1e-3, atol=1e-4)
        rng = np.random.default_rng(0)
        for row, head in zip(
            rng.integers(0, model.shape[0], 3), rng.integers(0, model.shape[1], 3)
        ):
            gates = torch.ones(model.shape)
            gates[row, head] = 0
            with hooks.gate(model, gates):
                ours = model.module(input_ids=ids).logits

            def off(value: torch.Tensor, hook: object, head: int = int(head)) -> torch.Tensor:
                value = value.clone()
                value.view(*ids.shape, *model.shape[1:], model.head_dim)[:, :, head] = 0
                return value

            theirs = lens.run_with_hooks(ids, fwd_hooks=[(f"blocks.{row}.attn.hook_z", off)])
            ours, theirs = ours.log_softmax(-1), theirs.log_softmax(-1)
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
            assert (ours - plain.log_softmax(-1)).abs().max() > 1e-3  # the head was really off
