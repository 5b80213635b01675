"""Where a model's heads are, and how to reach them. Nothing else knows architectures."""

from __future__ import annotations

from headwidget.models.load import load as load
from headwidget.models.model import Layer as Layer
from headwidget.models.model import Model as Model
