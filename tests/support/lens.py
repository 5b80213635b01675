"""TransformerLens on the same weights: z of every head, and the effect of turning heads off."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headwidget as hw
from headwidget.models import hooks
from tests.support import every_family, tiny
from tests.support.small_configs import Unbuildable

IDS = torch.tensor([[5, 6, 7, 8, 9, 6, 7, 11]])


class NotInLens(Exception):
    """The peer does not take the model."""


def bridge(folder: Path) -> Any:
    """The peer's view of a model saved in a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformer_lens.model_bridge import TransformerBridge

        return TransformerBridge.boot_transformers(str(folder), device="cpu")


def of_family(family: str) -> tuple[hw.Model, Any]:
    """A tiny model of a family and the peer's view of its weights."""
    # built anew: other tests change the settings of the one that they share
    model = hw.load(every_family.build.__wrapped__(family).float(), tiny.tokenizer())
    with tempfile.TemporaryDirectory() as folder:
        model.module.save_pretrained(folder)
        tiny.tokenizer().save_pretrained(folder)
        try:
            return model, bridge(Path(folder))
        except Exception as error:  # its own code, for a model that it cannot take
            text = (str(error).splitlines() or [""])[0]
            raise NotInLens(f"{type(error).__name__}: {text[:120]}") from error


def agree(model: hw.Model, lens: Any, ids: torch.Tensor = IDS) -> None:
    """Raise where z, or log p with a head off, differ."""
    z: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        with hooks.read(model, lambda row, value: z.update({row: value})):
            plain = model.module(input_ids=ids).logits
        _, cache = lens.run_with_cache(ids)
        for row, layer in enumerate(model.layers):
            theirs = cache[f"blocks.{layer.index}.attn.hook_z"]
            torch.testing.assert_close(z[row].reshape(theirs.shape), theirs, rtol=1e-3, atol=1e-4)
        rng = np.random.default_rng(0)
        for row, head in zip(
            rng.integers(0, model.shape[0], 3), rng.integers(0, model.shape[1], 3)
        ):
            ours, theirs = _without(model, lens, ids, int(row), int(head))
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
            assert (ours - plain.log_softmax(-1)).abs().max() > 1e-3, "the head was not off"


def _without(
    model: hw.Model, lens: Any, ids: torch.Tensor, row: int, head: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """log p with a head off, ours and theirs."""
    layer, gates = model.layers[row], torch.ones(model.shape)
    gates[row, head] = 0
    with hooks.gate(model, gates):
        ours = model.module(input_ids=ids).logits

    def off(value: torch.Tensor, hook: object) -> torch.Tensor:
        value = value.clone()
        value.view(*ids.shape, layer.heads, layer.head_dim)[:, :, head] = 0
        return value

    name = f"blocks.{layer.index}.attn.hook_z"
    theirs = lens.run_with_hooks(ids, fwd_hooks=[(name, off)])
    return ours.log_softmax(-1), theirs.log_softmax(-1)


def verdict(family: str) -> str | None:
    """ "" where the peer agrees, what is off where it does not, None where it has no such model."""
    try:
        model, lens = of_family(family)
    except (NotInLens, Unbuildable, ValueError):
        return None
    try:
        agree(model, lens)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join(lines[:3])[:160]}"
    return ""
