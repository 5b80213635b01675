"""Key-value caches: what a forward keeps of its keys and values."""

from __future__ import annotations

import functools
from typing import Any

from torch import Tensor

from headwidget.models.model import Model


def nothing_kept(model: Model) -> dict[str, Any]:
    """Keyword arguments for a forward that keeps no keys and values.

    A cache that forgets is better than none: without one, transformers looks for packed sequences, and the host waits for the device.
    """
    if model.encoder:
        return {}
    if len(model.blocks) != len(model.layers):  # a hybrid model has a cache of its own
        return {"use_cache": False}
    return {"past_key_values": _forgetful()(), "use_cache": True}


@functools.cache
def _forgetful() -> Any:
    from transformers import DynamicCache

    class Forgetful(DynamicCache):  # type: ignore[misc]
        """Answers each update with what it was given."""

        def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            return key, value

    return Forgetful
