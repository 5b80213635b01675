"""Batches in portions that land about every second, for a run that somebody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

YOUNG = 10.0
"""Seconds at the beginning of a run in which scores land most often."""
YOUNG_SECONDS = 0.45
"""Seconds that a portion is meant to take in that time."""
SECONDS = 2.0
"""Seconds that it is meant to take afterwards."""


class Portions:
    """Splits planned batches by how long the last portion took; the first is one prompt.

    Scores do not depend on how prompts are split, up to rounding. One instance serves all
    tasks of a run. ``clock`` gives seconds and exists for tests.

    >>> seconds = iter([0.0, 0.0, 0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.6])
    >>> list(Portions(clock=lambda: next(seconds))([[0, 1, 2, 3, 4, 5]]))
    [[0], [1, 2, 3, 4], [5]]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None  # when the first portion was asked for
        self._prompt_seconds: float | None = None  # what a prompt of the last portion took

    def __call__(self, planned: Iterable[Sequence[int]]) -> Iterator[list[int]]:
        """The same prompts in the same order, in portions within each planned batch.

        A task begins with one prompt, as its first ones are also checked.
        """
        self._prompt_seconds = None
        for batch in planned:
            start = 0
            while start < len(batch):
                portion = list(batch[start : start + self._size()])
                start += len(portion)
                began = self._clock()
                yield portion
                self._prompt_seconds = (self._clock() - began) / len(portion)

    def _size(self) -> int:
        """How many prompts the next portion has."""
        now = self._clock()
        if self._began is None:
            self._began = now
        if self._prompt_seconds is None:
            return 1
        aim = YOUNG_SECONDS if now - self._began < YOUNG else SECONDS
        return max(1, round(aim / max(self._prompt_seconds, 1e-6)))
