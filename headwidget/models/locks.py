"""Locks of modules: two models that share a module never run at the same time.

Hooks, gates and modes act on modules, and a module may be part of several models: of a
compiled model and its original, or of two heads on one body. So modules have locks, and who
runs a model takes the locks of its modules, always in the same order.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import nn

from headwidget.models.altering import Altered, Undo, acquire

_numbers = itertools.count()


@dataclass(eq=False)
class _Lock:
    """A lock that one thread may take several times, and its place in the order."""

    number: int = field(default_factory=lambda: next(_numbers))
    lock: threading.RLock = field(default_factory=threading.RLock)


_locks: weakref.WeakKeyDictionary[nn.Module, _Lock] = weakref.WeakKeyDictionary()
_registering = threading.Lock()


class SharedLock:
    """The locks of a model's modules."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        with _registering:
            locks = [_locks.setdefault(module, _Lock()) for module in modules]
        self._locks = sorted(locks, key=lambda lock: lock.number)

    def held(self) -> Altered:
        """A context in which this thread alone may run the model. It may be entered again."""
        return Altered(self.take)

    def take(self, undo: Undo) -> None:
        """Take the locks as a step of an alteration."""
        for lock in self._locks:
            acquire(lock.lock, undo)
