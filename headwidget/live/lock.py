"""A re-entrant lock that tells whether the current thread holds it."""

from __future__ import annotations

import threading


class Lock:
    """A lock that the thread that holds it may take again.

    >>> lock = Lock()
    >>> with lock:
    ...     lock.is_held_here
    True
    >>> lock.is_held_here
    False
    """

    def __init__(self) -> None:
        self._lock, self._owners = threading.RLock(), list[int]()

    @property
    def is_held_here(self) -> bool:
        """Whether the current thread holds the lock."""
        return threading.get_ident() in self._owners

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owners.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        self._owners.pop()
        self._lock.release()
