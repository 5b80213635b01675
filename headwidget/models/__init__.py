"""Where a model's heads are, and how to reach them. Nothing else knows architectures.

Torch is imported with the first of the names below: ``headwidget.models.sixteen_bit`` has
to run before torch does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwidget.models.layers import Layer as Layer
    from headwidget.models.loading import load as load
    from headwidget.models.model import Model as Model

_MODULES = {
    "load": "headwidget.models.loading",
    "Layer": "headwidget.models.layers",
    "Model": "headwidget.models.model",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headwidget.models' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value
