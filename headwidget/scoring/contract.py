"""Methods: one file each, a generator of chunks of ``S[task][run, layer, head]``; the blocking call, a live widget and a cluster consume the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores.rank import RankedBy

if TYPE_CHECKING:
    from torch import Tensor

    from headwidget.models import Model
    from headwidget.scoring.encode import EncodedTask
    from headwidget.tasks import Task


@dataclass(frozen=True, eq=False)
class Chunk:
    """Scores as they land: some runs of a task, at some layers."""

    runs: tuple[int, ...]
    """Which of the task's runs: its examples, where the method does not say otherwise."""
    layers: slice
    """Which rows."""
    values: npt.NDArray[np.float32]
    """(run, layer, head)."""
    correct: npt.NDArray[np.bool_] | None = None
    """(2, run): did the untouched model answer right; does the answer beat its foil?"""
    aspects: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """What else the method found of the same runs and layers, by name, (run, layer, head)."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """How far a method that trains is: stage, update, loss, …"""


def land(runs: tuple[int, ...], layers: slice, values: Tensor, right: Tensor) -> Chunk:
    """A chunk from the device: ``values`` (run, layer, head) and ``right`` (2, run) in one copy, so that the host waits once."""
    import torch

    count, rows, heads = values.shape
    flat = (
        torch.cat(
            [values.float().reshape(count, -1), right.T.to(values.device, torch.float32)], dim=1
        )
        .cpu()
        .numpy()
    )
    return Chunk(runs, layers, flat[:, :-2].reshape(count, rows, heads), flat[:, -2:].T > 0.5)


@dataclass
class Together:
    """What a method that needs all tasks at once is told, and what it leaves behind for the scores' meta as it goes."""

    seed: int = 0
    sources: Sequence[Task] = ()
    """The tasks as text."""
    note: Callable[[str, float], None] = lambda what, steps: None
    """``note(what, steps)`` says what is being done, and how many more steps of the method are done."""
    runs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Which of a task's examples are its runs, where not all are: the others were used to fit something."""
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The runs' labels, where a task's runs are not its examples."""
    right: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """(2, example) for each task: did the model answer right; does the answer beat its foil?"""
    meta: dict[str, Any] = field(default_factory=dict)
    """What is worth knowing of all."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """And of each task."""


def alone(*_: Any) -> Iterator[Chunk]:
    """Stands for ``run`` where a method scores all tasks together."""
    raise TypeError("this method scores all tasks together; hw.score(model, tasks, …) does it.")


@dataclass(frozen=True)
class Method:
    """A way to score heads."""

    name: str
    run: Callable[[Model, EncodedTask, int | None, Any], Iterator[Chunk]]
    """``run(model, task, batch_size, options)`` yields chunks."""
    options: type
    """A frozen dataclass: the options' names, defaults and checks."""
    signed: bool
    """Does a score's sign mean something?"""
    ranked_by: RankedBy = "mean"
    """Are heads ranked by their mean over runs or by its absolute value ("size")?"""
    check: Callable[[Model], None] = lambda model: None
    """Says, before any forward, why a model cannot be scored in this way."""
    together: (
        Callable[
            [Model, Sequence[EncodedTask], int | None, Any, Together],
            Iterator[tuple[EncodedTask, Chunk]],
        ]
        | None
    ) = None
    """For a method that needs all tasks at once, in place of ``run``: ``together(model, tasks, batch_size, options, its)`` yields each task's chunks."""
    check_tasks: Callable[[Model, Sequence[EncodedTask], Any], None] = (
        lambda model, tasks, options: None
    )
    """Says, before any forward, why these tasks cannot be scored in this way with these options."""
    encode: Callable[[Sequence[Task], Model, Any, int], list[EncodedTask]] | None = None
    """For a method whose input is not prompts with answers: ``encode(tasks, model, options, seed)`` gives what it scores, in place of tokenised prompts."""
    at_chance: str = "these head scores are noise"
    """What it means for the scores when the model does a task no better than a coin."""
    steps: Callable[[Sequence[EncodedTask], Any], tuple[float, str]] = lambda tasks, options: (
        sum(len(task.examples) for task in tasks),
        "prompts",
    )
    """How much there is to do, and what it is counted in: the progress bar's."""
