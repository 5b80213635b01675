"""The contract of a scoring method: what it is told (Job) and what it yields (Chunk, Report).

A method is a generator ``run(job)``, a frozen dataclass of its options, and a few facts,
joined in a :class:`Method`. ``run`` does these steps, in this order:

1. Read ``job.model``, ``job.tasks`` and ``job.options``. ``job.tasks`` holds exactly one
   task (``job.task``), unless the method is declared ``together=True``; then it holds all.
2. Run the model, inside ``with hooks.scoring(job.model):``, which holds the model's lock,
   switches dropout off and lets Stop interrupt. Leave that block before each ``yield``:
   the live widget uses the model between two chunks.
3. Yield a :class:`Chunk` as soon as some runs are scored. Chunks may come in any order and
   may cover some layers only. When ``run`` ends, every run must be scored at every layer.
4. Yield a :class:`Report` for what belongs beside the scores: labels of runs that are not
   prompts, warnings, facts for the card and the file.

The same generator serves ``hw.score`` and ``hw.live``. The engine checks all that
is yielded. Where memory runs out, it calls ``run`` again with half the batch size, and a run
that goes on from a checkpoint begins with what is done: a method that scores one task at a time
is then given only the examples that are not done yet. A method that wants all of them, because
its batches or what it works out of the task must stay the same, is declared
``skips_done=True`` and leaves out ``job.landed`` itself.
``hw.register_method(method)`` makes a method known by its name; CONTRIBUTING.md has a
complete example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from headwidget.scores.rank import RankedBy

if TYPE_CHECKING:
    from torch import Tensor

    from headwidget.models import Model
    from headwidget.scoring.encode import EncodedTask
    from headwidget.scoring.journal import Entry
    from headwidget.tasks import Task


Portioned = Callable[[Iterable[Sequence[int]]], Iterator[Sequence[int]]]
"""Takes planned batches of prompts, as indices, and gives them in the same or smaller ones."""


def _silent(what: str, steps: float) -> None:
    """The ``note`` of a job whose progress nobody watches."""


class Kept(Protocol):
    """What a long method keeps of its own work, by name, so that a later run goes on there."""

    def get(self, name: str) -> Entry | None:
        """What was kept under this name; its ``facts`` are JSON, its ``arrays`` numpy's."""

    def due(self) -> bool:
        """Is it time to keep something? False where nothing is kept."""

    def put(self, name: str, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Keep this, in place of what stood under the name."""


class NothingKept:
    """The ``kept`` of a job without a checkpoint."""

    def get(self, name: str) -> None:
        return None

    def due(self) -> bool:
        return False

    def put(self, name: str, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        pass


@contextmanager
def taken_up(what: str) -> Iterator[None]:
    """Say in a sentence that what was kept of ``what`` does not fit the run."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(
            f"the checkpoint keeps a state of {what} that does not fit this run "
            f"({str(error).rstrip('.')}). Delete the file and score anew."
        ) from error


def check_shapes(
    arrays: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """``ValueError`` where an array that was kept has another shape.

    >>> check_shapes({"z": np.zeros(3)}, {"z": (4,)})
    Traceback (most recent call last):
    ValueError: 'z' has shape (3,), not (4,)
    """
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name!r} has shape {arrays[name].shape}, not {shape}")


@dataclass(frozen=True, eq=False)
class Job:
    """What a method is told."""

    model: Model
    tasks: tuple[EncodedTask, ...]
    """The tasks as token ids: exactly one, unless the method is declared ``together``."""
    batch_size: int | None = None
    """Prompts a batch; None where the method may choose."""
    options: Any = None
    """An instance of the method's options class."""
    seed: int = 0
    """All that is random must follow from it."""
    sources: tuple[Task, ...] = ()
    """The tasks as text; a ``together`` method is also told those that were not encoded."""
    note: Callable[[str, float], None] = _silent
    """``note(what, steps)`` names what is being done and adds ``steps`` to the progress.

    Only a ``together`` method counts its own steps; for others, the engine counts runs.
    """
    watched: Portioned = iter
    """Splits planned batches further where somebody watches the run
    (:class:`headwidget.scoring.portions.Portions`); otherwise leaves them as they are."""
    landed: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """By task, (run, layer): what is scored already, for a method that ``skips_done``."""
    kept: Kept = field(default_factory=NothingKept)
    """What the method keeps of its own work; an ended run goes on with it."""
    heads_scaled: bool = False
    """Does the model run with some heads' outputs scaled, as the live widget asked?"""

    def portions(self, planned: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
        """Planned batches of the one task's examples, in portions, without those that are done."""
        return self.watched(self.left(planned))

    def left(self, planned: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
        """The same, not split."""
        landed = self.landed.get(self.task.name)
        return left_out(planned, () if landed is None else np.flatnonzero(landed.all(1)).tolist())

    @property
    def task(self) -> EncodedTask:
        """The one task of a method that scores one task at a time."""
        (task,) = self.tasks
        return task


@dataclass(frozen=True, eq=False)
class Chunk:
    """Scores as they land: of some runs of a task, at some layers."""

    task: str
    """The task's name."""
    runs: Sequence[int]
    """Which runs: indices into the task's examples, or into the labels of a report."""
    layers: slice
    """Which rows of ``model.layers``; ``slice(None)`` for all."""
    values: npt.NDArray[np.float32]
    """(run, layer, head)."""
    correct: npt.NDArray[np.bool_] | None = None
    """(2, run): did the untouched model answer right; does the answer beat its foil?"""
    aspects: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Further scores of the same runs and layers by name, (run, layer, head)."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Progress of a method that trains: stage, update, loss, …"""
    discrepancy: npt.NDArray[np.float32] | None = None
    """(run,): how far the method's own log p(answer) is from the model's plain forward.

    Relative to its size. Where it is more than rounding, the engine refuses to go on.
    """


@dataclass(frozen=True, eq=False)
class TaskReport:
    """What a method reports about one task; None leaves what was reported before."""

    runs: tuple[int, ...] | None = None
    """Which examples are the runs, where not all are: the method was fitted on the others."""
    labels: tuple[str, ...] | None = None
    """The runs' labels, where runs are not examples. Reported before the task's chunks."""
    right: npt.NDArray[np.bool_] | None = None
    """(2, example): did the model answer right; does the answer beat its foil?"""
    record: Mapping[str, Any] = field(default_factory=dict)
    """Facts for the task's record, as JSON; ``"warning"`` is a sentence shown in the card."""

    def extended(self, later: TaskReport) -> TaskReport:
        """This report with what a later one says in addition, or instead."""
        return TaskReport(
            self.runs if later.runs is None else later.runs,
            self.labels if later.labels is None else later.labels,
            self.right if later.right is None else later.right,
            {**self.record, **later.record},
        )


@dataclass(frozen=True, eq=False)
class Report:
    """What a method returns besides scores. A later report extends an earlier one."""

    tasks: Mapping[str, TaskReport] = field(default_factory=dict)
    """By the tasks' names."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """Facts for the record of all tasks, as JSON."""

    def extended(self, later: Report) -> Report:
        """This report with what a later one says in addition, or instead."""
        tasks = dict(self.tasks)
        for name, report in later.tasks.items():
            tasks[name] = tasks.get(name, TaskReport()).extended(report)
        return Report(tasks, {**self.record, **later.record})


def left_out(planned: Iterable[Sequence[int]], done: Iterable[int]) -> Iterator[Sequence[int]]:
    """Planned batches without what is done.

    >>> list(left_out([[0, 1], [2, 3], [4]], {1, 2, 3}))
    [[0], [4]]
    """
    gone = set(done)
    for batch in planned:
        if rest := [i for i in batch if i not in gone]:
            yield rest


def prompts_to_score(tasks: Sequence[EncodedTask], options: Any) -> tuple[float, str]:
    """The progress of a method whose steps are prompts."""
    return sum(len(task.examples) for task in tasks), "prompts"


@dataclass(frozen=True)
class Method:
    """A way to score heads. The module's text says how ``run`` is written."""

    name: str
    run: Callable[[Job], Iterator[Chunk | Report]]
    """``run(job)`` yields chunks, and reports where there is something to report."""
    options: type
    """A frozen dataclass: names, defaults and checks of the options.

    The first sentence of a field's docstring explains it in the live widget.
    """
    signed: bool | Callable[[Any], bool]
    """Does a score's sign mean something? A function of the options where they decide it."""
    ranked_by: RankedBy = "mean"
    """Are heads ranked by their mean over runs or by its absolute value ("size")?"""
    together: bool = False
    """Must all tasks be scored in one job, because they are compared or share work?"""
    check: Callable[[Model], None] = lambda model: None
    """Raises a ValueError, before any forward, that says why the model cannot be scored."""
    check_tasks: Callable[[Model, Sequence[EncodedTask], Any], None] = (
        lambda model, tasks, options: None
    )
    """Raises a ValueError, before any forward, that says why these tasks cannot be scored."""
    encode: Callable[[Sequence[Task], Model, Any, int], list[EncodedTask]] | None = None
    """``encode(tasks, model, options, seed)``, for input that is not prompts with answers."""
    chance_consequence: str = "these head scores are noise"
    """What follows for the scores where the model does a task no better than a coin."""
    steps: Callable[[Sequence[EncodedTask], Any], tuple[float, str]] = prompts_to_score
    """``steps(tasks, options)``: the number of steps and their unit, for the progress bar."""
    usual_batch: Callable[[Any], int | None] = lambda options: None
    """``usual_batch(options)``: the prompts a batch where the user gave no batch size.

    Half of it is tried where memory runs out. None: as many as the engine's batches hold.
    """
    skips_done: bool = False
    """Does it leave out ``job.landed`` itself, and is given all examples of a task?"""
    runs_model: bool = True
    """Does it run the model? False for a method that reads weights alone."""
    about: str | Callable[[Any], str] = ""
    """What a score means, in one sentence. A function of the options where they decide it."""
    aspects: Mapping[str, str] = field(default_factory=dict)
    """What a score of each aspect means, in one sentence, by the aspect's name."""
    explained: tuple[str, ...] = ()
    """How it is worked out, how to read a score, and what it cannot say: a paragraph each."""
    paper: tuple[str, str] | None = None
    """Where the method is from: authors with the year, and the address."""

    def is_signed(self, options: Any) -> bool:
        """Does the sign of a score mean something with these options?"""
        return bool(self.signed(options)) if callable(self.signed) else self.signed

    def meaning(self, options: Any) -> str:
        """What a score means with these options."""
        return self.about(options) if callable(self.about) else self.about


def to_host(
    values: Tensor, correct: Tensor, discrepancy: Tensor | None = None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.float32] | None]:
    """``values`` (run, …), ``correct`` (2, run) and ``discrepancy`` (run,) as arrays.

    They cross in one copy, so that the host waits for the device once.
    """
    import torch

    count = len(values)
    columns = [values.float().reshape(count, -1), correct.T.to(values.device, torch.float32)]
    if discrepancy is not None:
        columns.append(discrepancy.to(values.device, torch.float32)[:, None])
    flat = torch.cat(columns, dim=1).cpu().numpy()
    size = columns[0].shape[1]
    return (
        flat[:, :size].reshape(values.shape),
        flat[:, size : size + 2].T > 0.5,
        None if discrepancy is None else flat[:, -1],
    )


def land(
    task: str,
    runs: Sequence[int],
    layers: slice,
    values: Tensor,
    correct: Tensor,
    discrepancy: Tensor | None = None,
) -> Chunk:
    """A chunk from tensors on the device, in one copy.

    ``values`` is (run, layer, head), ``correct`` (2, run), ``discrepancy`` (run,).
    """
    scores, right, difference = to_host(values, correct, discrepancy)
    return Chunk(task, tuple(runs), layers, scores, right, discrepancy=difference)
