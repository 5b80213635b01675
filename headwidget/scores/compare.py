"""Two models, checkpoints or methods as one: for every task both, and their difference."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headwidget.scores import common_grid, head_scores, provenance, reduce, validation
from headwidget.scores.common_grid import Grid, Wide
from headwidget.scores.head_scores import HeadScores
from headwidget.scores.record import ComparedSide, Comparison, Record, TaskRecord

Source = HeadScores | str | Path


def difference(
    a: Source,
    b: Source,
    *,
    names: Sequence[str] | None = None,
    tasks: Sequence[str] | str | None = None,
    heads: str | None = None,
    normalize: str | None = None,
) -> HeadScores:
    """Two scores as one, with three tasks for every task that both have.

    They are ``"task: a"``, ``"task: b"`` and ``"task: a − b"``. ``a`` and ``b`` are scores or
    paths of saved ones. ``names`` are by default what tells them apart: model, revision,
    method or file. ``tasks`` picks among those both have. All that was decided stands in
    ``meta["compare"]``.

    ``heads="index"`` compares head 3 with head 3: right for checkpoints and for methods on
    one model, and the default where shape, layers and family agree. ``heads="rank"``, the
    default otherwise, compares the strongest head of a layer with the strongest of the
    other's, and so on down: across models a head's number means nothing. Heads are ranked
    once, by their mean over runs or by its size, as the scores say (sorting every run anew
    would make the top of pure noise look strong). Still, a mean that was picked because it
    is large is a little too large; the interval does not know of the picking. Where the
    models' sizes differ, the grid has the larger number of layers and of heads, and each
    model is read at the same relative depth and relative rank. :func:`heads_at` tells which
    head of each model a cell stands for.

    ``normalize="share"`` divides a task's scores by the sum of ``|mean|`` over its map, sign
    kept, so that scores of different scale can be compared; the default where the methods
    differ. ``"raw"`` leaves them alone, the default where they agree. Where only one of the
    two is signed, sizes are compared: the runs of a head with a negative mean change sign.

    Runs with the same labels are the same prompts (runs without labels go by position): the
    difference is taken prompt by prompt, and its interval is that of the paired difference.
    Otherwise the runs are independent samples, and the runs of the difference are Scheffé's
    (1943): ``n``, as many as the smaller side has, uncorrelated, their mean ``mean(a) −
    mean(b)``, their variance ``n (var(a) / n_a + var(b) / n_b)``, which makes the interval
    honest. One such run belongs to no prompt: "always" and "any" of them say nothing. With
    one run on the smaller side there is no interval.

    >>> import headwidget as hw
    >>> before = hw.HeadScores.from_arrays({"copy": [[0.1, 0.25]]}, method="mine")
    >>> after = hw.HeadScores.from_arrays({"copy": [[0.1, 0.75]]}, method="mine")
    >>> change = hw.difference(after, before, names=("after", "before"))
    >>> change.tasks[2], change.reduce("mean")[2].tolist()
    ('copy: after − before', [[0.0, 0.5]])
    """
    sources = (a, b)
    sides = [_open(source) for source in sources]
    side_names = _names(sources, sides, names)
    _check_sections(sides, side_names)
    plan = _Plan(
        sides,
        side_names,
        titles=_titles(_tasks(sides, side_names, tasks), side_names),
        heads=_heads(sides, heads),
        scale=_scale(sides, normalize),
        sizes=sides[0].signed != sides[1].signed,
    )
    for task in plan.titles:
        plan.add(task)
    return plan.scores()


def _check_sections(sides: Sequence[HeadScores], names: Sequence[str]) -> None:
    """Refuse rows that are other stacks: an encoder's layer is no decoder's."""
    rows = [provenance.sections(side) for side in sides]
    if rows[0] != rows[1]:
        words = [
            " + ".join(f"{count} {name}" for name, count in each) or "one stack of layers"
            for each in rows
        ]
        raise ValueError(
            f"{names[0]} has rows of {words[0]}, and {names[1]} of {words[1]}: they cannot be laid "
            "on each other. Compare models with the same stacks."
        )


def heads_at(scores: HeadScores, task: str, layer: int, head: int) -> dict[str, tuple[int, int]]:
    """Which (layer, head) of each model the cell (layer, head) of a comparison stands for.

    ``task`` is the shared task or one of its three.

    >>> import headwidget as hw
    >>> wide = hw.HeadScores.from_arrays({"copy": [[1, 3, 2]]}, method="mine")
    >>> narrow = hw.HeadScores.from_arrays({"copy": [[5]]}, method="mine")
    >>> heads_at(hw.difference(wide, narrow), "copy", 0, 0)
    {'a': (0, 1), 'b': (0, 0)}
    """
    comparison = scores.record.compare
    if comparison is None:
        raise ValueError(
            "these scores are no comparison; hw.difference(a, b) or hw.compare(a, b).scores is one."
        )
    titles = comparison.tasks
    shared = next((name for name in titles if task == name or task in titles[name]), None)
    if shared is None:
        raise KeyError(f"no task {task!r} in this comparison; it has {_listed(titles)}.")
    if layer not in scores.layers or not 0 <= head < scores.shape[1]:
        raise ValueError(
            f"there is no cell ({layer}, {head}) in this comparison; "
            f"it has {scores.shape[0]} layers of {scores.shape[1]} heads."
        )
    row = scores.layers.index(layer)
    cells = {}
    for side in comparison.sides:
        own_head = side.heads[shared][row][head] if side.heads else head
        cells[side.name or ""] = (side.layers[row], own_head)
    return cells


# ---- the comparison, task by task ----


@dataclass(eq=False)
class _Plan:
    """What was decided, and the tasks that are compared so far."""

    sides: list[HeadScores]
    names: list[str]
    titles: dict[str, tuple[str, str, str]]
    """For each shared task the names of its three: a, b and their difference."""
    heads: str
    scale: str
    sizes: bool
    arrays: dict[str, Wide] = field(default_factory=dict)
    runs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    records: dict[str, TaskRecord] = field(default_factory=dict)
    grids: list[dict[str, Grid]] = field(default_factory=lambda: [{}, {}])
    """For each side, by task."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the common grid: the larger of both."""
        rows, columns = (max(sizes) for sizes in zip(*(side.shape for side in self.sides)))
        return rows, columns

    @property
    def same_rows(self) -> bool:
        return self.sides[0].layers == self.sides[1].layers

    def add(self, task: str) -> None:
        """Compare one task."""
        first, second, difference_title = self.titles[task]
        a, b = (self._on_grid(task, number) for number in (0, 1))
        labels = [side.runs(task) for side in self.sides]
        order = common_grid.paired(*labels)
        if order is not None:
            change, runs = a - b[order], labels[0]
        else:
            shuffled = [common_grid.shuffled(texts) for texts in labels]
            change = common_grid.independent(a[shuffled[0]], b[shuffled[1]])
            runs = tuple(f"unpaired {i + 1} of {len(change)}" for i in range(len(change)))
        self.arrays |= {first: a, second: b, difference_title: change}
        self.runs |= {first: labels[0], second: labels[1], difference_title: runs}
        self.records |= {
            first: self.sides[0].record.task(task),
            second: self.sides[1].record.task(task),
            difference_title: TaskRecord(paired=order is not None),
        }

    def _on_grid(self, task: str, number: int) -> Wide:
        """One side's scores of a task on the common grid, (run, row, column)."""
        side = self.sides[number]
        values = side.values(task).astype(np.float64)
        if self.sizes:
            values *= np.where(reduce.wide_mean(values) < 0, -1.0, 1.0)
        ranked_by = side.ranked_by if self.heads == "rank" else None
        grid = self.grids[number][task] = Grid.of(values, *self.shape, ranked_by=ranked_by)
        spread = grid.spread(values)
        return common_grid.as_share(spread) if self.scale == "share" else spread

    def scores(self) -> HeadScores:
        """All of it as scores."""
        a, b = self.sides
        methods = " and ".join(dict.fromkeys(side.method for side in self.sides))
        return HeadScores.from_arrays(
            self.arrays,
            method=methods + (", share" if self.scale == "share" else ""),
            runs=self.runs,
            layers=a.layers if self.same_rows else None,
            signed=True,
            ranked_by=a.ranked_by if a.ranked_by == b.ranked_by else "mean",
            meta=self._record(),
        )

    def _record(self) -> Record:
        models = [side.record.model or name for side, name in zip(self.sides, self.names)]
        axes = (
            "Layer" if self.same_rows else f"Depth (of {self.shape[0]})",
            "Head" if self.heads == "index" else "Head, by rank in its layer",
        )
        return Record(
            model=" and ".join(dict.fromkeys(models)),
            partial=any(side.partial for side in self.sides),
            tasks=self.records,
            compare=self._comparison(),
            axes=() if axes == ("Layer", "Head") else axes,
        )

    def _comparison(self) -> Comparison:
        is_paired = {task: self.records[three[2]].paired for task, three in self.titles.items()}
        sides = zip(self.sides, self.names, self.grids)
        return Comparison(
            names=tuple(self.names),
            tasks=self.titles,
            heads=self.heads,
            layers="number" if self.same_rows else "depth",
            normalize=self.scale,
            sizes=self.sizes,
            paired=tuple(task for task in is_paired if is_paired[task]),
            unpaired=tuple(task for task in is_paired if not is_paired[task]),
            sides=tuple(_side(side, name, grids) for side, name, grids in sides),
        )


def _side(side: HeadScores, name: str, grids: Mapping[str, Grid]) -> ComparedSide:
    """Where one side's scores come from, and which of its layers and heads is in each cell."""
    record = side.record
    by_number = all(grid.by_number for grid in grids.values())
    layers = next(iter(grids.values())).layers
    return ComparedSide(
        name=name,
        model=record.model,
        revision=record.revision,
        weights=record.weights,
        family=record.family,
        heads_found=record.heads_found,
        dtype=record.dtype,
        options=record.options,
        seed=record.seed,
        method=side.method,
        shape=side.shape,
        layers=tuple(side.layers[row] for row in layers),
        heads={} if by_number else {task: _rows(grid) for task, grid in grids.items()},
    )


def _rows(grid: Grid) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in grid.heads.tolist())


# ---- what was asked ----


def _open(source: object) -> HeadScores:
    if isinstance(source, (str, os.PathLike)):
        return head_scores.open(Path(source))
    if not isinstance(source, HeadScores):
        raise TypeError(
            "compare takes HeadScores or paths of saved files, two of them; "
            f"got a {type(source).__name__}."
        )
    return source


def _names(
    sources: Sequence[object], sides: Sequence[HeadScores], names: Sequence[str] | None
) -> list[str]:
    """The names asked for, or the first of model, revision, method and file that differs."""
    if names is not None:
        return _checked_names(names)
    models = [side.record.model or "" for side in sides]
    candidates = [
        [model.rstrip("/").rpartition("/")[2] for model in models],
        models,
        [side.record.revision or "" for side in sides],
        [side.method for side in sides],
        [Path(s).stem if isinstance(s, (str, os.PathLike)) else "" for s in sources],
    ]
    for pair in candidates:
        if pair[0] != pair[1] and all(name.strip() for name in pair):
            return pair
    return ["a", "b"]


def _checked_names(names: Sequence[str]) -> list[str]:
    two = isinstance(names, Sequence) and not isinstance(names, str) and len(names) == 2
    if not two or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(f"names are two texts, such as names=('before', 'after'); got {names!r}.")
    if names[0] == names[1]:
        raise ValueError(
            f"both sides are named {names[0]!r}; give each a name of its own, "
            "such as names=('before', 'after')."
        )
    return [validation.encodable(name, "a name in names=…") for name in names]


def _titles(tasks: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """For each task the names of its three: a, b and their difference."""
    a, b = names
    titles = {task: (f"{task}: {a}", f"{task}: {b}", f"{task}: {a} − {b}") for task in tasks}
    if len(set().union(*titles.values())) < 3 * len(tasks):
        raise ValueError(
            f"the tasks {_listed(tasks)} and the names {a!r} and {b!r} make the same title twice; "
            "give other names."
        )
    return titles


def _tasks(
    sides: Sequence[HeadScores], names: Sequence[str], tasks: Sequence[str] | str | None
) -> list[str]:
    """The tasks to compare: all that both have, or those of them that were asked for."""
    a, b = sides
    shared = [task for task in a.tasks if task in b.tasks]
    if not shared:
        raise ValueError(
            f"no task is in both scores: {names[0]!r} has {_listed(a.tasks)}, "
            f"{names[1]!r} has {_listed(b.tasks)}."
        )
    if tasks is None:
        return shared
    wanted = [tasks] if isinstance(tasks, str) else list(tasks)
    if not wanted or len(set(wanted)) != len(wanted) or any(task not in shared for task in wanted):
        raise ValueError(
            f"tasks names tasks that both scores have, each once: {_listed(shared)}; "
            f"got {_listed(wanted) or 'none'}."
        )
    return wanted


def _heads(sides: Sequence[HeadScores], heads: str | None) -> str:
    """Are heads compared by their index, or by their rank in a layer?"""
    a, b = sides
    if heads not in (None, "index", "rank"):
        raise ValueError(
            f"heads {heads!r} is not known; use 'index' (head 3 with head 3) or "
            "'rank' (strongest with strongest)."
        )
    if heads == "index" and a.shape[1] != b.shape[1]:
        raise ValueError(
            "heads='index' needs the same number of heads in a layer; "
            f"these have {a.shape[1]} and {b.shape[1]}. Use heads='rank'."
        )
    if heads is not None:
        return heads
    families = {side.record.family for side in sides if side.record.family}
    return "index" if a.shape == b.shape and a.layers == b.layers and len(families) < 2 else "rank"


def _scale(sides: Sequence[HeadScores], normalize: str | None) -> str:
    if normalize not in (None, "raw", "share"):
        raise ValueError(
            f"normalize {normalize!r} is not known; use 'share' (of the task's sum of |mean|), "
            "'raw', or None to choose by method."
        )
    return normalize or ("raw" if sides[0].method == sides[1].method else "share")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
