"""Two models, checkpoints or methods as one: for every task both, and their difference."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import head_scores, rank
from headwidget.scores.head_scores import HeadScores
from headwidget.scores.rank import RankedBy

Wide = npt.NDArray[np.float64]  # (run, row, column) of the common grid
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
    """Two scores as one: for every task both have, three tasks: ``"task: a"``, ``"task: b"`` and ``"task: a − b"``.

    ``a`` and ``b`` are scores or paths of saved ones. ``names`` are by default what tells them apart: model, revision,
    method or file. ``tasks`` picks among those both have. All that was decided stands in ``meta["compare"]``.

    ``heads="index"`` compares head 3 with head 3: right for checkpoints and for methods on one model, and the default
    where shape, layers and family agree. ``heads="rank"``, the default otherwise, compares the strongest head of a layer
    with the strongest of the other's, and so on down: across models a head's number means nothing. Heads are ranked once,
    by their mean over runs (sorting every run anew would make the top of pure noise look strong). Still, a mean that was
    picked because it is large is a little too large; the interval does not know of the picking.
    Where the models' sizes differ, the grid has the larger number of layers and of heads, and each model is read at the
    same relative depth and relative rank. :func:`heads_at` tells which head of each model a cell stands for.

    ``normalize="share"`` divides a task's scores by the sum of ``|mean|`` over its map, sign kept, so that scores of different
    scale can be compared; the default where the methods differ. ``"raw"`` leaves them alone, the default where they agree.
    Where only one of the two is signed, sizes are compared: the runs of a head with a negative mean change sign.

    Runs with the same labels are the same prompts (runs without labels go by position): the difference is taken prompt by
    prompt, and its interval is that of the paired difference. Otherwise the runs are independent samples, and the runs of
    the difference are Scheffé's (1943): ``n``, as many as the smaller side has, uncorrelated, their mean ``mean(a) − mean(b)``, their
    variance ``n (var(a) / n_a + var(b) / n_b)``, which makes the interval honest. One such run belongs to no prompt: "always"
    and "any" of them say nothing. With one run on the smaller side there is no interval.

    >>> import headwidget as hw
    >>> before, after = (hw.HeadScores.from_arrays({"copy": [[0.1, x]]}, method="mine") for x in (0.25, 0.75))
    >>> found = hw.difference(after, before, names=("after", "before"))
    >>> found.tasks[2], found.reduce("mean")[2].tolist()
    ('copy: after − before', [[0.0, 0.5]])
    """
    given = (a, b)
    sides = [_open(x) for x in given]
    called = _names(given, sides, names)
    shared = _tasks(sides, called, tasks)
    how = _heads(sides, heads)
    scale = _scale(sides, normalize)
    sizes = sides[0].signed != sides[1].signed
    rows, columns = (max(n) for n in zip(*(s.shape for s in sides)))
    grids: list[dict[str, _Grid]] = [{}, {}]
    arrays: dict[str, npt.NDArray[Any]] = {}
    runs: dict[str, tuple[str, ...]] = {}
    known: dict[str, dict[str, Any]] = {}
    titles = {
        t: (f"{t}: {called[0]}", f"{t}: {called[1]}", f"{t}: {called[0]} − {called[1]}")
        for t in shared
    }
    if len({title for three in titles.values() for title in three}) < 3 * len(shared):
        raise ValueError(
            f"the tasks {_listed(shared)} and the names {called[0]!r} and {called[1]!r} make the same title twice; give other names."
        )
    for task, three in titles.items():
        wide: list[Wide] = []
        for side, grid, title in zip(sides, grids, three):
            values = side.values(task).astype(np.float64)
            if sizes:
                values *= np.where(values.mean(axis=0) < 0, -1.0, 1.0)
            grid[task] = _Grid.of(
                values, rows, columns, ranked_by=side.ranked_by if how == "rank" else None
            )
            wide.append(_scaled(grid[task].spread(values), scale))
            runs[title] = side.runs(task)
            known[title] = _about(side, task)
        arrays |= dict(zip(three, wide))
        order = _paired(runs[three[0]], runs[three[1]])
        if order is not None:
            arrays[three[2]], runs[three[2]] = wide[0] - wide[1][order], runs[three[0]]
        else:
            made = _independent(*(w[_shuffled(s.runs(task))] for w, s in zip(wide, sides)))
            arrays[three[2]], runs[three[2]] = (
                made,
                tuple(f"unpaired {i + 1} of {len(made)}" for i in range(len(made))),
            )
        known[three[2]] = {"paired": order is not None}
    same_rows = sides[0].layers == sides[1].layers
    about = {
        "names": called,
        "tasks": {task: list(three) for task, three in titles.items()},
        "heads": how,
        "layers": "number" if same_rows else "depth",
        "normalize": scale,
        "sizes": sizes,
        "paired": [task for task, three in titles.items() if known[three[2]]["paired"]],
        "unpaired": [task for task, three in titles.items() if not known[three[2]]["paired"]],
        "sides": [_side(s, name, grid) for s, name, grid in zip(sides, called, grids)],
    }
    axes = [
        "Layer" if same_rows else f"Depth (of {rows})",
        "Head" if how == "index" else "Head, by rank in its layer",
    ]
    return HeadScores.from_arrays(
        arrays,
        method=" and ".join(dict.fromkeys(s.method for s in sides))
        + (", share" if scale == "share" else ""),
        runs=runs,
        layers=sides[0].layers if same_rows else None,
        signed=True,
        ranked_by=sides[0].ranked_by if sides[0].ranked_by == sides[1].ranked_by else "mean",
        meta={
            "model": " and ".join(
                dict.fromkeys(str(s.meta.get("model", name)) for s, name in zip(sides, called))
            ),
            "partial": any(s.partial for s in sides),
            "tasks": known,
            "compare": about,
            **({} if same_rows and how == "index" else {"axes": axes}),
        },
    )


def heads_at(scores: HeadScores, task: str, layer: int, head: int) -> dict[str, tuple[int, int]]:
    """Which (layer, head) of each model the cell (layer, head) of a comparison stands for; ``task`` is the shared task or one of its three.

    >>> import headwidget as hw
    >>> wide, narrow = hw.HeadScores.from_arrays({"copy": [[1, 3, 2]]}, method="mine"), hw.HeadScores.from_arrays({"copy": [[5]]}, method="mine")
    >>> heads_at(hw.difference(wide, narrow), "copy", 0, 0)
    {'a': (0, 1), 'b': (0, 0)}
    """
    about = scores.meta.get("compare")
    if not isinstance(about, Mapping):
        raise ValueError(
            "these scores are no comparison; hw.difference(a, b) or hw.compare(a, b).scores is one."
        )
    found = next(
        (name for name, three in about["tasks"].items() if task == name or task in three), None
    )
    if found is None:
        raise KeyError(f"no task {task!r} in this comparison; it has {_listed(about['tasks'])}.")
    if layer not in scores.layers or not 0 <= head < scores.shape[1]:
        raise ValueError(
            f"there is no cell ({layer}, {head}) in this comparison; it has {scores.shape[0]} layers of {scores.shape[1]} heads."
        )
    row = scores.layers.index(layer)
    return {
        side["name"]: (
            side["layers"][row],
            side["heads"][found][row][head] if side["heads"] else head,
        )
        for side in about["sides"]
    }


# ---- what is compared with what ----


@dataclass(frozen=True)
class _Grid:
    """Where the cells of the common grid are read in one side's scores."""

    layers: npt.NDArray[np.intp]  # (row,)
    heads: npt.NDArray[np.intp]  # (row, column)

    @classmethod
    def of(cls, values: Wide, rows: int, columns: int, *, ranked_by: RankedBy | None) -> _Grid:
        """Heads in order of their rank within a layer, or of their number where that is None."""
        count = values.shape[1:]
        layers = _relative(rows, count[0])
        order = (
            np.argsort(-rank.ranking_values(values.mean(axis=0), ranked_by), axis=1, kind="stable")
            if ranked_by is not None
            else np.tile(np.arange(count[1]), (count[0], 1))
        )  # (layer, rank)
        return cls(layers, order[layers][:, _relative(columns, count[1])])

    def spread(self, values: Wide) -> Wide:
        return values[:, self.layers[:, None], self.heads]


def _relative(cells: int, count: int) -> npt.NDArray[np.intp]:
    """For each of ``cells`` places, which of ``count`` lies at the same relative place: floor((i + 0.5) * count / cells)."""
    return (2 * np.arange(cells) + 1) * count // (2 * cells)


def _scaled(values: Wide, scale: str) -> Wide:
    total = np.abs(values.mean(axis=0)).sum()
    return values / total if scale == "share" and total > 0 else values


def _paired(a: Sequence[str], b: Sequence[str]) -> list[int] | None:
    """Which run of ``b`` belongs to each run of ``a``; None where they are not the same runs."""
    if tuple(a) == tuple(b):
        return list(range(len(a)))
    place = {label: i for i, label in enumerate(b)}
    if len(a) == len(b) == len(place) and set(a) == set(place):
        return [place[label] for label in a]
    return None  # also where a label stands twice and the order differs: which is which cannot be known


def _shuffled(labels: Sequence[str]) -> list[int]:
    """An order that has nothing to do with how the prompts were listed (often easy ones first) and is the same every time."""
    return sorted(
        range(len(labels)),
        key=lambda i: hashlib.sha256(labels[i].encode(errors="surrogatepass")).digest(),
    )


def _independent(a: Wide, b: Wide) -> Wide:
    """Scheffé's runs for the difference of the means of two independent samples: uncorrelated, of one mean and one variance."""
    if len(a) > len(b):
        return -_independent(b, a)
    n, m = len(a), len(b)
    if n == m:
        return a - b  # the other terms cancel, but for rounding
    made: Wide = a - np.sqrt(n / m) * b[:n] + b[:n].sum(axis=0) / np.sqrt(n * m) - b.mean(axis=0)
    return made


# ---- what was asked ----


def _open(given: object) -> HeadScores:
    if isinstance(given, (str, os.PathLike)):
        return head_scores.open(Path(given))
    if not isinstance(given, HeadScores):
        raise TypeError(
            f"compare takes HeadScores or paths of saved files, two of them; got a {type(given).__name__}."
        )
    return given


def _names(
    given: Sequence[object], sides: Sequence[HeadScores], names: Sequence[str] | None
) -> list[str]:
    """The given names, or the first of model, revision, method and file that differs."""
    if names is not None:
        if (
            isinstance(names, str)
            or len(names) != 2
            or not all(isinstance(n, str) and n.strip() for n in names)
        ):
            raise ValueError(
                f"names are two texts, such as names=('before', 'after'); got {names!r}."
            )
        if names[0] == names[1]:
            raise ValueError(
                f"both sides are named {names[0]!r}; give each a name of its own, such as names=('before', 'after')."
            )
        return list(names)
    model = [str(s.meta.get("model") or "") for s in sides]
    candidates = [
        [m.rstrip("/").rpartition("/")[2] for m in model],
        model,
        [str(s.meta.get("revision") or "") for s in sides],
        [s.method for s in sides],
        [Path(g).stem if isinstance(g, (str, os.PathLike)) else "" for g in given],
    ]
    return next(
        (pair for pair in candidates if pair[0] != pair[1] and all(n.strip() for n in pair)),
        ["a", "b"],
    )


def _tasks(
    sides: Sequence[HeadScores], called: Sequence[str], tasks: Sequence[str] | str | None
) -> list[str]:
    a, b = sides
    shared = [task for task in a.tasks if task in b.tasks]
    if not shared:
        raise ValueError(
            f"no task is in both scores: {called[0]!r} has {_listed(a.tasks)}, {called[1]!r} has {_listed(b.tasks)}."
        )
    if tasks is None:
        return shared
    wanted = [tasks] if isinstance(tasks, str) else list(tasks)
    if not wanted or len(set(wanted)) != len(wanted) or any(task not in shared for task in wanted):
        raise ValueError(
            f"tasks names tasks that both scores have, each once: {_listed(shared)}; got {_listed(wanted) or 'none'}."
        )
    return wanted


def _heads(sides: Sequence[HeadScores], heads: str | None) -> str:
    a, b = sides
    if heads not in (None, "index", "rank"):
        raise ValueError(
            f"heads {heads!r} is not known; use 'index' (head 3 with head 3) or 'rank' (strongest with strongest)."
        )
    if heads == "index" and a.shape[1] != b.shape[1]:
        raise ValueError(
            f"heads='index' needs the same number of heads in a layer; these have {a.shape[1]} and {b.shape[1]}. Use heads='rank'."
        )
    if heads is not None:
        return heads
    families = {str(s.meta["family"]) for s in sides if s.meta.get("family")}
    return "index" if a.shape == b.shape and a.layers == b.layers and len(families) < 2 else "rank"


def _scale(sides: Sequence[HeadScores], normalize: str | None) -> str:
    if normalize not in (None, "raw", "share"):
        raise ValueError(
            f"normalize {normalize!r} is not known; use 'share' (of the task's sum of |mean|), 'raw', or None to choose by method."
        )
    return normalize or ("raw" if sides[0].method == sides[1].method else "share")


# ---- what is told ----


def _about(side: HeadScores, task: str) -> dict[str, Any]:
    return dict(side.meta.get("tasks", {}).get(task, {}))


def _side(side: HeadScores, name: str, grid: Mapping[str, _Grid]) -> dict[str, Any]:
    """Where one side's scores come from, and which of its layers and heads stands in each cell (heads only where they are ranked)."""
    first = next(iter(grid.values()))
    by_index = all(
        np.array_equal(g.heads, np.broadcast_to(np.arange(g.heads.shape[1]), g.heads.shape))
        for g in grid.values()
    )
    return {
        "name": name,
        **{
            key: side.meta[key]
            for key in ("model", "revision", "weights", "family", "dtype", "options", "seed")
            if key in side.meta
        },
        "method": side.method,
        "shape": list(side.shape),
        "layers": [side.layers[i] for i in first.layers],
        "heads": {} if by_index else {task: g.heads.tolist() for task, g in grid.items()},
    }


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names))
