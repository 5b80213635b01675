"""``S[task][run, layer, head]`` while it is being filled: NaN where nothing has landed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwidget.scoring.contract import Chunk

Scores = npt.NDArray[np.float32]


class ScoreStore:
    """The scores of all tasks and aspects that have landed so far."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._values: dict[str, dict[str, Scores]] = {"": {}}
        # aspect, task: (run, layer, head); the aspect "" is the score itself
        self._correct: dict[str, npt.NDArray[np.bool_]] = {}  # (2, run)
        self._asked: dict[str, set[int]] = {}  # the runs whose chunks said what was right

    def put(self, chunk: Chunk, runs: int) -> int:
        """Store a checked chunk of a task that has so many ``runs``.

        How many of its (run, layer) had no scores before.
        """
        where = list(chunk.runs)
        before = self.of(chunk.task)
        count = len(range(*chunk.layers.indices(self.shape[0]))) * len(where)
        if before is not None:
            count -= int(np.isfinite(before[where, chunk.layers]).all(2).sum())
        for aspect, values in ({"": chunk.values} | dict(chunk.aspects)).items():
            tasks = self._values.setdefault(aspect, {})
            empty = np.full((runs, *self.shape), np.nan, np.float32)
            tasks.setdefault(chunk.task, empty)[where, chunk.layers] = values
        if chunk.correct is not None:
            right = self._correct.setdefault(chunk.task, np.zeros((2, runs), bool))
            right[:, where] = chunk.correct
            self._asked.setdefault(chunk.task, set()).update(where)
        return count

    def of(self, task: str, aspect: str = "") -> Scores | None:
        """A task's scores, (run, layer, head); None before any has landed."""
        return self._values.get(aspect, {}).get(task)

    def correct(self, task: str) -> npt.NDArray[np.bool_]:
        """(2, run): was the answer right, does it beat its foil; of runs in :meth:`asked`."""
        return self._correct[task]

    def asked(self, task: str) -> list[int]:
        """The runs of which it is known whether the answer was right."""
        return sorted(self._asked.get(task, ()))

    @property
    def aspects(self) -> list[str]:
        """The names of all aspects; "" is the score itself."""
        return list(self._values)

    def landed(self, task: str, runs: int) -> npt.NDArray[np.bool_]:
        """(run, layer): what is scored at every head, of a task that has so many ``runs``."""
        values = self.of(task)
        if values is None:
            return np.zeros((runs, self.shape[0]), bool)
        return np.asarray(np.isfinite(values).all(2))

    def done(self, task: str) -> list[int]:
        """The runs that are scored at every head."""
        values = self.of(task)
        return [] if values is None else _where(np.isfinite(values).all((1, 2)))

    def begun(self, task: str) -> list[int]:
        """The runs that are scored at some heads."""
        values = self.of(task)
        return [] if values is None else _where(np.isfinite(values).any((1, 2)))


def _where(chosen: npt.ArrayLike) -> list[int]:
    return [int(i) for i in np.flatnonzero(chosen)]
