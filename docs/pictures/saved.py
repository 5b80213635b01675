"""The scores that the pictures show, all of the embedded model."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import headwidget as hw

DATA = Path(__file__).parents[2] / "notebooks" / "data"


@cache
def gradient() -> hw.HeadScores:
    """Two tasks, 32 prompts each."""
    return hw.open(DATA / "smollm2-gradient.safetensors")


@cache
def ablation() -> hw.HeadScores:
    """The eight tasks of the suite cognitive, 8 prompts each."""
    return hw.open(DATA / "smollm2-cognitive-ablation.safetensors")


@cache
def gating() -> hw.HeadScores:
    """Two tasks, four fits each."""
    return hw.open(DATA / "smollm2-gating.safetensors")


@cache
def relations() -> hw.HeadScores:
    """Nineteen relations, every pair. Scored here in half a minute; the file would be 4 MB."""
    return hw.score(hw.load(), "relations", method="relations", progress=False)
