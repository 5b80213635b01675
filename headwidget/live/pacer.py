"""When a run sends the browser a new picture of its scores, and when it reports progress.

Pictures cost time: the kernel encodes them, the browser draws them, and both may share
the cores that the model runs on. The pacer spaces pictures so that they take a small
share of a run's time, and sends none faster than the browser paints. At the beginning of a
run, when the user watches, the share is larger, and pictures are a second apart at most
where scores land that often. Of a run of a minute, pictures take 5% at most:
20% of the first ten seconds, or ten pictures, and 2% of the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAINTED_GAP = 0.08
"""Least seconds between two pictures when the browser has painted the last one."""
UNPAINTED_GAP = 0.5
"""Least seconds between two pictures when the browser has not reported that it painted."""
PROGRESS_GAP = 0.5
"""Least seconds between two progress messages of a run."""
SHARE = 0.02
"""Largest share of a run's time that its pictures may take, in kernel and browser together."""
YOUNG = 10.0
"""Seconds at the beginning of a run in which pictures may take more."""
YOUNG_SHARE = 0.2
"""Their largest share in that time."""
YOUNG_GAP = 0.8
"""Most seconds between two pictures in that time, whatever they cost. A picture is sent early where
the next scores would come later than that."""
LONGEST_PAINT = 0.1
"""Seconds of work that are believed for one painting; what is longer was waiting."""
OVERHEAD = 0.07
"""Seconds of processor time that a picture takes where the kernel cannot measure it: in the
server and in the browser's other processes."""
FEW_CORES = 4
"""Up to this many cores, the overhead slows a model that runs on them."""


class Pacer:
    """Decides when the next picture of a run and its next progress message are due.

    ``overhead`` is the processor time of a picture that cannot be measured here
    (:func:`overhead`). ``clock`` gives seconds and exists for tests.

    >>> seconds = iter([0.0, 0.0, 0.1, 1.0])
    >>> pacer = Pacer(clock=lambda: next(seconds))
    >>> with pacer.picture(free=True):
    ...     pass  # the picture is sent here
    >>> pacer.due(), pacer.due()
    (False, True)
    """

    def __init__(self, overhead: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._overhead, self._clock = overhead, clock
        self._is_painted = True  # the browser has painted the last picture
        self._sent: float | None = None  # when the last picture was sent
        self._kernel_seconds = 0.0  # what the last picture took here
        self._browser_seconds = 0.0  # what it took in the browser
        self._told: float | None = None  # when progress was last reported
        self._began: float | None = None  # when the run began
        self._asked: float | None = None  # when scores landed last
        self._spacings = (0.0, 0.0)  # seconds between the last scores that landed

    def start_run(self) -> None:
        """Begin another run: its first progress message is due at once."""
        self._told = None
        self._spacings = (0.0, 0.0)
        self._began = self._asked = self._clock()

    def due(self) -> bool:
        """Whether the next picture may be sent now."""
        if self._sent is None:
            return True
        cost = self._kernel_seconds + self._browser_seconds + self._overhead
        now, least = self._clock(), PAINTED_GAP if self._is_painted else UNPAINTED_GAP
        if self._asked is not None:
            self._spacings = (self._spacings[1], now - self._asked)
        self._asked = now
        gap = cost / SHARE
        if self._began is not None and now - self._began < YOUNG:
            gap = min(cost / YOUNG_SHARE, YOUNG_GAP - max(self._spacings))
        return now - self._sent > max(least, gap)

    @contextmanager
    def picture(self, *, free: bool = False) -> Iterator[None]:
        """Measure what sending a picture takes. A ``free`` one is not held against the run."""
        started = self._clock()
        self._is_painted = False
        yield
        self._sent = self._clock()
        self._kernel_seconds = 0.0 if free else self._sent - started

    def painted(self, milliseconds: object) -> None:
        """Note that the browser painted the last picture, and how long that took by its clock."""
        self._is_painted = True
        self._browser_seconds = 0.0
        if isinstance(milliseconds, (int, float)) and milliseconds > 0:
            self._browser_seconds = min(milliseconds, 1000 * LONGEST_PAINT) / 1000

    def progress_due(self) -> bool:
        """Whether a progress message may be sent now; the caller then sends it."""
        now = self._clock()
        if self._told is not None and now - self._told <= PROGRESS_GAP:
            return False
        self._told = now
        return True


def overhead(device: str, cores: int | None = None) -> float:
    """Seconds of processor time to count for a picture beside what is measured.

    >>> overhead("cpu", cores=2), overhead("cuda", cores=2), overhead("cpu", cores=64)
    (0.07, 0.0, 0.0)
    """
    cores = cores or os.cpu_count() or 1
    return OVERHEAD if device == "cpu" and cores <= FEW_CORES else 0.0
