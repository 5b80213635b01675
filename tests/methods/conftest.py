"""What the tests of methods share."""

from __future__ import annotations

import pytest

from headwidget.scoring import registry


@pytest.fixture(autouse=True)
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", {})
