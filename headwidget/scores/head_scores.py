"""HeadScores: the labelled tensor ``S[task][run, layer, head]``.

Every method makes one and every view reads one.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import files, frames, merge, missing, rank, reduce, validation
from headwidget.scores.categories import Categories
from headwidget.scores.record import Record, checked_json, of_aspect

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from headwidget.scores.rank import RankedBy
    from headwidget.scores.reduce import Array, How, Mask


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Scores of every head, run by run, for every task, with all that is needed to trust them.

    Made by :func:`headwidget.score`, :func:`headwidget.open` or :meth:`from_arrays`, and
    read-only.

    >>> s = HeadScores.from_arrays({"copy": np.eye(3)}, method="mine")
    >>> s.tasks, s.shape, s.top("copy", 1)
    (('copy',), (3, 3), [(0, 0)])
    """

    method: str
    """The method that made the scores."""
    _values: Mapping[str, Array]
    _runs: Mapping[str, tuple[str, ...]]
    layers: tuple[int, ...]
    """The model's own number of each row.

    It is 0, 1, 2, … but for models where some layers have no attention.
    """
    signed: bool = False
    """True when a score's sign means something (positive helps).

    So it is for ablation, gradient and attribution.
    """
    ranked_by: RankedBy = "mean"
    """Heads are ranked by their mean over runs ("mean") or by its absolute value ("size").

    A probe's are ranked by size: the sign of its scores says whether a head raises or lowers
    the task's logit, not whether it matters.
    """
    _categories: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Where the scores come from, as JSON; :attr:`record` is the same with names and kinds.

    Model, revision, dtype, device, versions, seed and options, and per task the model's
    accuracy and the prompts that were dropped.
    """
    _aspects: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    # ---- making ----

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.ArrayLike],
        *,
        method: str,
        runs: Mapping[str, Sequence[str]] | None = None,
        layers: Sequence[int] | None = None,
        signed: bool | None = None,
        ranked_by: RankedBy | None = None,
        categories: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | Record | None = None,
        aspects: Mapping[str, Mapping[str, npt.ArrayLike]] | None = None,
    ) -> HeadScores:
        """Scores made elsewhere: ``{task: (run, layer, head)}``; a (layer, head) array is one run.

        ``signed`` is by default whether any score is negative. ``ranked_by`` is "mean" by
        default, and "size" where ``meta`` asks for shares to be shown. ``aspects`` are
        further scores of the same tasks and runs, by name. NaN is a score that was not
        measured: it counts nowhere, and maps show it hatched.

        >>> arrays = {"a": np.zeros((5, 2, 4)), "b": np.zeros((2, 4))}
        >>> HeadScores.from_arrays(arrays, method="mine").runs("b")
        ('run 0',)
        """
        values = validation.values_by_task(arrays)
        depth = next(iter(values.values())).shape[1]
        labels = validation.run_labels({} if runs is None else runs, values)
        if signed is None:
            signed = any(bool((v < 0).any()) for v in values.values())
        plain = checked_json(validation.record({} if meta is None else meta))
        validation.nesting(plain)
        if ranked_by is None:
            ranked_by = _ranked_by(Record.from_json(plain))
        return cls(
            method=validation.name(method, "the method's name"),
            _values=MappingProxyType(values),
            _runs=MappingProxyType(labels),
            layers=validation.layer_numbers(layers, depth),
            signed=bool(signed),
            ranked_by=rank.check(ranked_by),
            _categories=MappingProxyType(
                validation.categories_by_task({} if categories is None else categories, values)
            ),
            meta=MappingProxyType(plain),
            _aspects=MappingProxyType(
                validation.aspects_by_name({} if aspects is None else aspects, values)
            ),
        )

    # ---- reading ----

    @functools.cached_property
    def record(self) -> Record:
        """``meta`` with names and kinds.

        >>> meta = {"model": "tiny", "tasks": {"copy": {"accuracy": 0.75}}}
        >>> s = HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta)
        >>> s.record.model, s.record.tasks["copy"].accuracy
        ('tiny', 0.75)
        """
        return Record.from_json(self.meta)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order they were scored."""
        return tuple(self._values)

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, heads)."""
        layers, heads = next(iter(self._values.values())).shape[1:]
        return layers, heads

    @property
    def partial(self) -> bool:
        """True when scoring was stopped before every prompt was done."""
        return self.record.partial

    @property
    def categories(self) -> Categories:
        """The category of each task that has one.

        ``categories(threshold)`` gives the set of every head, as the categories view shows it.
        """
        return Categories(self._categories, self)

    def values(self, task: str) -> Array:
        """Every score of a task, (run, layer, head), read-only; NaN where none was measured."""
        return self._values[self._require(task)]

    def measured(self, task: str) -> npt.NDArray[np.int64]:
        """In how many runs of a task each head was measured, (layer, head).

        Fewer than all where scoring was stopped, or gave up on a head early; 0 also where the
        layer has no such head.
        """
        return missing.measured(self.values(task))

    def runs(self, task: str) -> tuple[str, ...]:
        """The label of each run of a task: for most methods its prompt and answer."""
        return self._runs[self._require(task)]

    @property
    def aspects(self) -> Mapping[str, HeadScores]:
        """Further scores of the same runs, by name.

        Gating has ``"interference"`` and ``"irrelevance"``, relations ``"suppression"``.
        """
        return MappingProxyType({name: self._aspect(name) for name in self._aspects})

    def _aspect(self, name: str) -> HeadScores:
        return dataclasses.replace(
            self,
            _values=self._aspects[name],
            meta=MappingProxyType(of_aspect(self.meta, name)),
            method=f"{self.method} ({name})",
            _aspects=MappingProxyType({}),
        )

    def reduce(self, how: How = "mean") -> Array:
        """One map a task, (task, layer, head).

        ``how`` is ``"mean"``, ``"median"``, ``"always"`` (min), ``"any"`` (max), or an
        agreement from 0 to 1.
        """
        return np.stack([reduce.reduce(v, how) for v in self._values.values()])

    def on(self, threshold: float, agreement: float = 1.0) -> Mask:
        """Which heads reach ``threshold`` in enough runs, (task, layer, head).

        Enough is at least the fraction ``agreement`` of a task's runs.
        """
        if not isinstance(threshold, numbers.Real) or not np.isfinite(float(threshold)):
            raise ValueError(f"threshold is a finite number; got {threshold!r}.")
        return np.stack([reduce.on(v, threshold, agreement) for v in self._values.values()])

    def interval(self, level: float = 0.95, *, draws: int = 1000, seed: int = 0) -> Array:
        """The bootstrap interval of the mean over runs, (2, task, layer, head): low and high.

        Of more than 2048 runs it is the Poisson bootstrap's, in which each run counts a Poisson
        number of times: the same but for a part in the number of runs.
        """
        fraction = isinstance(level, numbers.Real) and 0 < level < 1
        if not fraction or not isinstance(draws, numbers.Integral) or draws < 1:
            raise ValueError(
                "level is a fraction between 0 and 1, such as 0.95, and draws 1 or more; "
                f"got {level!r} and {draws!r}."
            )
        ends = [
            reduce.interval(v, level=level, draws=draws, seed=seed) for v in self._values.values()
        ]
        return np.stack([np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])])

    def share(self) -> Array:
        """Each head's share of its task's whole, ``|mean| / sum |mean|``, (task, layer, head)."""
        return np.stack([reduce.share(reduce.mean(v)) for v in self._values.values()])

    @property
    def by_size(self) -> bool:
        """True when heads are ranked by ``|mean|``: the same as ``ranked_by == "size"``."""
        return self.ranked_by == "size"

    def top(self, task: str, k: int = 10, *, by: RankedBy | None = None) -> list[tuple[int, int]]:
        """The first ``k`` heads of a task as (layer, head).

        Heads are ranked by their mean, so that those that help most come first, or by its size
        where ``ranked_by`` is "size"; ``by`` chooses otherwise.
        """
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k is a number of heads, 1 or more; got {k!r}.")
        if by not in (*rank.RANKED_BY, None):
            raise ValueError(f"by is 'mean', 'size' or None to choose; got {by!r}.")
        heads = rank.top(self, self._require(task), int(k), by=by)
        return [(self.layers[row], head) for row, head in heads]

    def elbow(self, task: str) -> float:
        """The cut-off of Ma et al. (2025) for a task: the elbow of its sorted ``|mean|``."""
        return reduce.elbow(reduce.mean(self.values(task)))

    def select(self, tasks: Iterable[str] | str) -> HeadScores:
        """The same scores with these tasks only, in this order."""
        if not isinstance(tasks, Iterable):
            raise TypeError(f"select takes a task's name or a list of them; got {tasks!r}.")
        wanted = [tasks] if isinstance(tasks, str) else list(tasks)
        for task in wanted:
            self._require(task)
        if len(set(wanted)) != len(wanted):
            raise ValueError(f"select names a task twice: {', '.join(map(repr, wanted))}.")
        return HeadScores.from_arrays(
            self._chosen(wanted),
            method=self.method,
            runs={task: self.runs(task) for task in wanted},
            layers=self.layers,
            signed=self.signed,
            ranked_by=self.ranked_by,
            categories={t: category for t, category in self._categories.items() if t in wanted},
            meta=self.record.only(wanted),
            aspects={name: self._aspect(name)._chosen(wanted) for name in self._aspects},
        )

    def _chosen(self, tasks: Iterable[str]) -> dict[str, Array]:
        return {task: self.values(task) for task in tasks}

    def __add__(self, other: HeadScores) -> HeadScores:
        """The runs of both, as :meth:`merge` gives them."""
        return self.merge(other) if isinstance(other, HeadScores) else NotImplemented

    def merge(self, other: HeadScores, *, trust: bool = False) -> HeadScores:
        """The runs of both, for scores of the same model and method; ``a + b`` does the same.

        Tasks that only one has are kept as they are. Where the weights could not be read when
        the scores were made (offloaded, say), ``trust=True`` says that they are the same.
        """
        if not isinstance(other, HeadScores):
            raise TypeError(
                f"scores are merged with scores of hw.score or hw.open; got {type(other).__name__}."
            )
        return HeadScores.from_arrays(**merge.merged(self, other, trust=trust))

    # ---- out ----

    def to_pandas(self) -> pandas.DataFrame:
        """A tidy frame with a row a score: task, category, run, label, layer, head, score."""
        return frames.to_pandas(self)

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with a variable ``score`` (task, run, layer, head).

        Tasks with fewer runs than the most end in NaN.
        """
        return frames.to_xarray(self)

    def figure(self, view: str = "tasks", *, columns: int | None = None, **settings: Any) -> Figure:
        """A matplotlib figure of a view: ``"tasks"``, ``"agreement"`` or ``"categories"``.

        ``.savefig("heads.pdf")`` writes it. Some journals refuse matplotlib's Type 3 fonts:
        ``matplotlib.rcParams["pdf.fonttype"] = 42`` before it is written embeds TrueType.

        ``columns`` is how many tasks stand side by side (by default 4 maps at most, and one
        task in the agreement view). The other
        settings are the explorer's, and mean the same: ``tasks`` and ``task`` (which ones),
        ``threshold``, ``rule``, ``sign`` and ``agreement`` (which heads pass), ``reduction``
        and ``normalize`` (which numbers), ``colormap``, ``scale``, ``cap`` and ``orientation``
        (how they are drawn), ``isolated`` (one class of the legend).
        """
        from headwidget.display.figure import figure
        from headwidget.display.settings import settings as checked_settings

        return figure(self, checked_settings(self, view=view, columns=columns, **settings))

    def save(self, path: str | Path) -> Path:
        """Write to ``path``, as safetensors with one JSON string: whole, or not at all."""
        return files.save(self, path)

    def __repr__(self) -> str:
        runs = ", ".join(
            f"{name}: {len(v)} run{'s' * (len(v) != 1)}" for name, v in self._values.items()
        )
        layers, heads = self.shape
        model = self.record.model or "unknown model"
        partly = ", partial" if self.partial else ""
        size = f"{layers} layers x {heads} heads"
        return f"HeadScores({self.method}, {model}, {size}, {runs}{partly})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the arguments of ``from_arrays``, so that reading goes through every check."""
        arguments: dict[str, Any] = {
            "method": self.method,
            "runs": dict(self._runs),
            "layers": self.layers,
            "signed": self.signed,
            "ranked_by": self.ranked_by,
            "categories": dict(self._categories),
            "meta": dict(self.meta),
            "aspects": {name: dict(values) for name, values in self._aspects.items()},
        }
        return functools.partial(HeadScores.from_arrays, dict(self._values), **arguments), ()

    def _require(self, task: str) -> str:
        if not isinstance(task, str) or task not in self._values:
            raise KeyError(
                f"no task {task!r} in these scores; they have {', '.join(map(repr, self.tasks))}."
            )
        return task


def open(path: str | Path) -> HeadScores:  # noqa: A001  (hw.open is the public name)
    """Read what :meth:`HeadScores.save` wrote.

    Any other file gives ``ValueError`` with a sentence; no file runs code.
    """
    contents = files.read(path)
    try:
        return HeadScores.from_arrays(**contents)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{str(Path(path))!r} cannot be read as head scores: {str(error).rstrip('.')}."
        ) from error


def _ranked_by(record: Record) -> RankedBy:
    """What scores without the field are ranked by.

    Files from before it was a field have it only as a display hint: shares were ranked by size.
    """
    return "size" if record.display.normalize == "share" else "mean"
