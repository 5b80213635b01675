"""Key-value caches: what a forward keeps of its keys and values, and what it goes on from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

if TYPE_CHECKING:
    from headwidget.models.model import Model


class ForgetfulCache(DynamicCache):  # type: ignore[misc]
    """Keeps nothing: each update is answered with its own keys and values."""

    def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        return key, value


class PrefixCache(DynamicCache):  # type: ignore[misc]
    """Keeps the keys and values of a prefix, from which many batches can go on.

    The first update of a layer is the prefix and is kept. Every later update is answered
    with prefix and update together, and is not kept. Gradients reach the prefix.

    Each row of the prefix goes on as equally many consecutive rows of the batch. With
    ``row`` set, that row alone goes on as the whole batch.
    """

    row: int | None = None

    def update(
        self, key: Tensor, value: Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.get_seq_length(layer):
            kept: tuple[Tensor, Tensor] = super().update(key, value, layer, *args, **kwargs)
            return kept
        prefix = self.layers[layer]
        return self._joined(prefix.keys, key), self._joined(prefix.values, value)

    def _joined(self, prefix: Tensor, new: Tensor) -> Tensor:
        """Prefix (row, kv head, seq, dim) before the update (batch, kv head, seq, dim)."""
        if self.row is not None:
            prefix = prefix[self.row : self.row + 1]
        branches = len(new) // len(prefix)
        spread = prefix[:, None].expand(-1, branches, -1, -1, -1).flatten(0, 1)
        return torch.cat([spread, new], dim=-2)


def nothing_kept(model: Model) -> dict[str, Any]:
    """Keyword arguments for a forward that keeps no keys and values.

    A cache that forgets is better than none: without one, transformers looks for packed
    sequences, and the host waits for the device.
    """
    if model.encoder or model.classifier:
        return {}
    if model.hybrid or not model.forgets:  # transformers gives it a cache of another class
        takes = inspect.signature(model.module.forward).parameters
        return {"use_cache": False} if "use_cache" in takes else {}
    return kept_in(ForgetfulCache())


def everything_kept() -> dict[str, Any]:
    """Keyword arguments for forwards that each add one token to those before."""
    return kept_in(DynamicCache())


def kept_in(cache: DynamicCache) -> dict[str, Any]:
    """Keyword arguments for a forward that uses ``cache``."""
    return {"past_key_values": cache, "use_cache": True}


def keeps_positions(module: nn.Module) -> bool:
    """Does the model keep how far an image moved positions, for the forwards that go on from it?

    Qwen2-VL and its kin do; a prompt that goes on from another's prefix would be moved, too.
    """
    return any("rope_deltas" in vars(part) for part in module.modules())
