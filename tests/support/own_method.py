"""A small method such as a user writes, and its chunks, sound but for what a test changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwidget.scoring.contract import Chunk, Job, Method, Report


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a method of these tests."""

    size: float = 1.0
    """How large every score is."""
    why: str = ""


def constant(job: Job) -> Iterator[Chunk | Report]:
    """Every score the same."""
    runs = range(len(job.task.examples))
    values = np.full((len(runs), *job.model.shape), job.options.size)
    yield Chunk(job.task.name, runs, slice(None), values)


MINE = Method("mine", constant, Options, signed=False)


def values(job: Job, *shape: int) -> np.ndarray:
    return np.zeros(shape or (len(job.task.examples), *job.model.shape), np.float32)


def chunk(job: Job, **changes: Any) -> Chunk:
    """A sound chunk of all runs, but for ``changes``."""
    runs = tuple(range(len(job.task.examples)))
    sound = Chunk(job.task.name, runs, slice(None), values(job))
    return dataclasses.replace(sound, **changes)
