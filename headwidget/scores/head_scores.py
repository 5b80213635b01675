"""HeadScores: the one labelled tensor ``S[task][run, layer, head]`` that every method makes and every view reads."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from headwidget.scores import files, merge, provenance, reduce
from headwidget.scores.categories import Categories

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from headwidget.scores.reduce import Array, How, Mask


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Scores of every head, run by run, for every task, with all that is needed to trust them.

    Made by :func:`headwidget.score`, :func:`headwidget.open` or :meth:`from_arrays`; never changed afterwards.

    >>> s = HeadScores.from_arrays({"copy": np.eye(3)}, method="mine")
    >>> s.tasks, s.shape, s.top("copy", 1)
    (('copy',), (3, 3), [(0, 0)])
    """

    method: str
    """The method that made the scores."""
    _values: Mapping[str, Array]
    _runs: Mapping[str, tuple[str, ...]]
    layers: tuple[int, ...]
    """The model's own number of each row: 0, 1, 2, … but for models where some layers have no attention."""
    signed: bool = False
    """True when a score's sign means something (positive helps), as for ablation, gradient and attribution."""
    _categories: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Where the scores come from: model, revision, dtype, device, versions, seed, options, and per task accuracy and prompts dropped."""
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
        categories: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        aspects: Mapping[str, Mapping[str, npt.ArrayLike]] | None = None,
    ) -> HeadScores:
        """Scores made elsewhere: ``{task: (run, layer, head)}``; a (layer, head) array counts as one run.

        ``signed`` is by default whether any score is negative. ``aspects`` are further scores of the same tasks and runs, by name.

        >>> HeadScores.from_arrays({"a": np.zeros((5, 2, 4)), "b": np.zeros((2, 4))}, method="mine").runs("b")
        ('run 0',)
        """
        if not isinstance(arrays, Mapping):
            raise TypeError(
                f"from_arrays takes a dict, {{'task': array of (run, layer, head)}}; got a {type(arrays).__name__}."
            )
        values = {
            _label(name, "a task's name"): _checked(name, array) for name, array in arrays.items()
        }
        if not values:
            raise ValueError(
                "no scores: from_arrays needs at least one task, as {'task': array of (run, layer, head)}."
            )
        shapes = {v.shape[1:] for v in values.values()}
        if len(shapes) > 1:
            found = ", ".join(f"{name!r} {v.shape[1]} x {v.shape[2]}" for name, v in values.items())
            raise ValueError(f"all tasks must have the same layers x heads; got {found}.")
        depth = next(iter(shapes))[0]
        rows = (
            tuple(operator.index(n) for n in layers) if layers is not None else tuple(range(depth))
        )
        if len(rows) != depth or len(set(rows)) != depth or min(rows) < 0:
            raise ValueError(
                f"layers must give each of the {depth} rows a number of its own, 0 or more; got {list(rows)}."
            )
        labels = {}
        for name, v in values.items():
            given = (runs or {}).get(name)
            labels[name] = (
                tuple(given) if given is not None else tuple(f"run {i}" for i in range(len(v)))
            )
            if not all(isinstance(label, str) for label in labels[name]):
                raise ValueError(
                    f"task {name!r}: run labels must be text; got {next(x for x in labels[name] if not isinstance(x, str))!r}."
                )
            if len(labels[name]) != len(v):
                raise ValueError(
                    f"task {name!r} has {len(v)} runs but {len(labels[name])} run labels."
                )
        for kind, given_names in (("runs", runs or {}), ("categories", categories or {})):
            if unknown := [n for n in given_names if n not in values]:
                raise ValueError(
                    f"{kind} names tasks that have no scores: {', '.join(map(repr, unknown))}."
                )
        for name, category in (categories or {}).items():
            _label(category, f"the category of task {name!r}")
        negative = any(bool((v < 0).any()) for v in values.values())
        return cls(
            method=_label(method, "the method's name"),
            _values=MappingProxyType(values),
            _runs=MappingProxyType(labels),
            layers=rows,
            signed=negative if signed is None else bool(signed),
            _categories=MappingProxyType(dict(categories or {})),
            meta=MappingProxyType(_json(meta or {})),
            _aspects=MappingProxyType(
                {
                    _label(name, "an aspect's name"): _alike(name, of, values)
                    for name, of in (aspects or {}).items()
                }
            ),
        )

    # ---- reading ----

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
        return bool(self.meta.get("partial", False))

    @property
    def categories(self) -> Categories:
        """The category of each task that has one; ``categories(threshold)`` gives each head's set of them, as the categories view shows them."""
        return Categories(self._categories, self)

    def values(self, task: str) -> Array:
        """Every score of a task, (run, layer, head), read-only."""
        return self._values[self._known(task)]

    def runs(self, task: str) -> tuple[str, ...]:
        """The label of each run of a task: for most methods its prompt and answer."""
        return self._runs[self._known(task)]

    @property
    def aspects(self) -> Mapping[str, HeadScores]:
        """What else the method found of the same runs, by name: gating has ``"interference"`` and ``"irrelevance"``, relations ``"suppression"``."""
        return MappingProxyType(
            {
                name: self._with(values=of, method=f"{self.method} ({name})", aspects={})
                for name, of in self._aspects.items()
            }
        )

    def reduce(self, how: How = "mean") -> Array:
        """(task, layer, head): ``"mean"``, ``"median"``, ``"always"`` (min), ``"any"`` (max), or an agreement from 0 to 1."""
        return np.stack([reduce.reduce(v, how) for v in self._values.values()])

    def on(self, threshold: float, agreement: float = 1.0) -> Mask:
        """(task, layer, head): does the head reach ``threshold`` in at least the fraction ``agreement`` of its runs?"""
        if isinstance(threshold, str) or not np.isfinite(threshold):
            raise ValueError(f"threshold is a finite number; got {threshold!r}.")
        return np.stack([reduce.on(v, threshold, agreement) for v in self._values.values()])

    def interval(self, level: float = 0.95, *, draws: int = 1000, seed: int = 0) -> Array:
        """(2, task, layer, head): lower and upper end of the bootstrap interval of the mean over runs."""
        if not 0 < level < 1 or draws < 1:
            raise ValueError(
                f"level is a fraction between 0 and 1, such as 0.95, and draws 1 or more; got {level!r} and {draws!r}."
            )
        ends = [
            reduce.interval(v, level=level, draws=draws, seed=seed) for v in self._values.values()
        ]
        return np.stack([np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])])

    def share(self) -> Array:
        """(task, layer, head): the mean's size as a share of the task's whole, ``|mean| / sum |mean|``."""
        return np.stack([reduce.share(reduce.mean(v)) for v in self._values.values()])

    @property
    def by_size(self) -> bool:
        """True when heads are ranked by ``|mean|``, as a probe's are: its sign says which way a head speaks, not whether it matters."""
        return provenance.display(self).get("normalize") == "share"

    def top(
        self, task: str, k: int = 10, *, by: Literal["mean", "size"] | None = None
    ) -> list[tuple[int, int]]:
        """The ``k`` heads with the largest mean for a task, as (layer, head), largest first; ``by="size"`` goes by ``|mean|``, as a probe's do by default."""
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k is a number of heads, 1 or more; got {k!r}.")
        if by not in ("mean", "size", None):
            raise ValueError(f"by is 'mean', 'size' or None to choose; got {by!r}.")
        found = reduce.mean(self.values(task))
        sizes = by == "size" or (by is None and self.by_size)
        return [
            (self.layers[row], head)
            for row, head in reduce.top(np.abs(found) if sizes else found, k)
        ]

    def elbow(self, task: str) -> float:
        """The published cut-off for a task: the elbow of its sorted ``|mean|``."""
        return reduce.elbow(reduce.mean(self.values(task)))

    def select(self, tasks: Iterable[str] | str) -> HeadScores:
        """The same scores with these tasks only, in this order."""
        wanted = [tasks] if isinstance(tasks, str) else list(tasks)
        if len(set(wanted)) != len(wanted):
            raise ValueError(f"select names a task twice: {', '.join(map(repr, wanted))}.")
        meta = dict(self.meta)
        if isinstance(per_task := meta.get("tasks"), Mapping):
            meta["tasks"] = {name: per_task[name] for name in wanted if name in per_task}
        if isinstance(floor := meta.get("floor"), Mapping):
            meta["floor"] = {name: floor[name] for name in wanted if name in floor}
        return HeadScores.from_arrays(
            {name: self.values(name) for name in wanted},
            method=self.method,
            runs={name: self.runs(name) for name in wanted},
            layers=self.layers,
            signed=self.signed,
            categories={name: c for name, c in self.categories.items() if name in wanted},
            meta=meta,
            aspects={
                aspect: {name: of[name] for name in wanted} for aspect, of in self._aspects.items()
            },
        )

    def __add__(self, other: HeadScores) -> HeadScores:
        """The runs of both, for scores of the same model and method; tasks that only one has are kept as they are."""
        if not isinstance(other, HeadScores):
            return NotImplemented
        return HeadScores.from_arrays(**merge.merged(self, other))

    # ---- out ----

    def to_pandas(self) -> pandas.DataFrame:
        """A tidy frame with a row a score: task, category, run, label, layer, head, score."""
        import pandas as pd

        frames = []
        for name, v in self._values.items():
            run, row, head = np.indices(v.shape).reshape(3, -1)
            columns = {
                "task": name,
                "category": self.categories.get(name),
                "run": run,
                "label": np.asarray(self._runs[name], dtype=object)[run],
                "layer": np.asarray(self.layers)[row],
                "head": head,
                "score": v.reshape(-1),
            }
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with a variable ``score`` (task, run, layer, head); tasks with fewer runs than the most end in NaN."""
        try:
            import xarray as xr
        except ImportError as error:
            raise ImportError("to_xarray needs xarray: pip install xarray.") from error
        most = max(len(v) for v in self._values.values())
        block = np.full((len(self.tasks), most, *self.shape), np.nan, dtype=np.float32)
        labels = np.full((len(self.tasks), most), "", dtype=object)
        for i, name in enumerate(self.tasks):
            v = self._values[name]
            block[i, : len(v)] = v
            labels[i, : len(v)] = self._runs[name]
        return xr.Dataset(
            {
                "score": (("task", "run", "layer", "head"), block),
                "label": (("task", "run"), labels),
            },
            coords={
                "task": list(self.tasks),
                "layer": list(self.layers),
                "head": range(self.shape[1]),
            },
            attrs={"method": self.method, "model": str(self.meta.get("model", ""))},
        )

    def figure(self, view: str = "tasks", *, columns: int | None = None, **settings: Any) -> Figure:
        """A matplotlib figure of a view, ``"tasks"``, ``"agreement"`` or ``"categories"``; ``.savefig("heads.pdf")`` writes it.

        Some journals refuse matplotlib's Type 3 fonts: ``matplotlib.rcParams["pdf.fonttype"] = 42`` before it is written embeds TrueType.

        ``columns`` is how many maps stand side by side (by default 4 at most). The other settings are the explorer's, and mean the same:
        ``tasks`` and ``task`` (which ones), ``threshold``, ``rule``, ``sign`` and ``agreement`` (which heads pass), ``reduction`` and
        ``normalize`` (which numbers), ``colormap``, ``cap`` and ``orientation`` (how they are drawn), ``isolated`` (one class of the legend).
        """
        from headwidget.display.figure import figure
        from headwidget.display.settings import settings as checked

        return figure(self, checked(self, view=view, columns=columns, **settings))

    def save(self, path: str | Path) -> Path:
        """Write to ``path`` (safetensors + one JSON string): to a temporary name first, then renamed."""
        return files.save(self, path)

    def __repr__(self) -> str:
        runs = ", ".join(
            f"{name}: {len(v)} run{'s' * (len(v) != 1)}" for name, v in self._values.items()
        )
        layers, heads = self.shape
        partly = ", partial" if self.partial else ""
        return f"HeadScores({self.method}, {self.meta.get('model', 'unknown model')}, {layers} layers x {heads} heads, {runs}{partly})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as it is made, through every check."""
        kept: dict[str, Any] = {
            "method": self.method,
            "runs": dict(self._runs),
            "layers": self.layers,
            "signed": self.signed,
        }
        kept |= {"categories": dict(self.categories), "meta": dict(self.meta)}
        kept |= {"aspects": {name: dict(of) for name, of in self._aspects.items()}}
        return functools.partial(HeadScores.from_arrays, dict(self._values), **kept), ()

    def _with(
        self,
        *,
        values: Mapping[str, Array],
        method: str,
        aspects: Mapping[str, Mapping[str, Array]],
    ) -> HeadScores:
        """Other values of the same tasks and runs."""
        return dataclasses.replace(
            self, _values=values, method=method, _aspects=MappingProxyType(dict(aspects))
        )

    # ---- checks ----

    def _known(self, task: str) -> str:
        if task not in self._values:
            raise KeyError(
                f"no task {task!r} in these scores; they have {', '.join(map(repr, self.tasks))}."
            )
        return task


def open(path: str | Path) -> HeadScores:  # noqa: A001  (hw.open is the public name)
    """Read what :meth:`HeadScores.save` wrote. Anything else gives ``ValueError`` with a sentence; no file runs code."""
    kept = files.read(path)
    try:
        return HeadScores.from_arrays(**kept)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{str(Path(path))!r} cannot be read as head scores: {str(error).rstrip('.')}."
        ) from error


def _label(text: object, what: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{what} must be text and not empty; got {text!r}.")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(
            f"{what} has half a letter (a lone surrogate), which no file can hold: {text!r}."
        )
    return text


def _checked(name: str, array: npt.ArrayLike) -> Array:
    """A read-only float32 copy, (run, layer, head), or a sentence about what is wrong and where."""
    raw = np.asarray(array)
    if raw.dtype.kind not in "fiub":
        raise ValueError(
            f"task {name!r}: scores must be real numbers; got an array of {raw.dtype}."
        )
    if raw.ndim == 2:
        raw = raw[None]
    if raw.ndim != 3 or 0 in raw.shape:
        raise ValueError(
            f"task {name!r}: scores must be (run, layer, head) or (layer, head), none of them 0; got {np.asarray(array).shape}."
        )
    with np.errstate(over="ignore"):
        values = raw.astype(np.float32, order="C", copy=True)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        run, layer, head = (int(i) for i in bad[0])
        what = "NaN" if np.isnan(values[run, layer, head]) else "infinite in float32"
        raise ValueError(
            f"task {name!r}: {len(bad)} scores are not finite; the first, at run {run}, layer {layer}, head {head}, is {what}."
        )
    values.setflags(write=False)
    return values


def _alike(
    aspect: str, of: Mapping[str, npt.ArrayLike], values: Mapping[str, Array]
) -> Mapping[str, Array]:
    """An aspect's values, task by task as the scores' own."""
    found = {name: _checked(f"{name} ({aspect})", array) for name, array in of.items()}
    if {name: v.shape for name, v in found.items()} != {
        name: v.shape for name, v in values.items()
    }:
        raise ValueError(
            f"aspect {aspect!r} must have the tasks, runs, layers and heads of the scores themselves."
        )
    return MappingProxyType({name: found[name] for name in values})


def _json(meta: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``meta`` as JSON keeps it, so that what is shown is what a file will hold; a sentence for what it cannot."""
    try:
        plain = json.loads(json.dumps(dict(meta), allow_nan=False, default=_number))
        json.dumps(plain, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"meta must be plain JSON (text, finite numbers, lists, dicts): {error}."
        ) from error
    tasks, merged = plain.get("tasks", {}), plain.get("merged", [])
    if not isinstance(tasks, dict) or not all(isinstance(t, dict) for t in tasks.values()):
        raise ValueError("meta['tasks'] must be a dict with a dict for each task.")
    if not isinstance(merged, list) or not all(isinstance(m, dict) for m in merged):
        raise ValueError("meta['merged'] must be a list of dicts.")
    return dict(plain)


def _number(value: object) -> Any:
    """numpy's scalars as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")
