"""An awaitable for the end of work on another thread, for ``await lab.done``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
POLL = 0.05
"""Seconds between two looks at whether the work has ended."""


class Ended(Coroutine[Any, Any, T], Generic[T]):
    """Waits until ``is_busy()`` is false, then gives ``result()``.

    ``await``, ``asyncio.gather`` and ``asyncio.create_task`` take it. It may be awaited any
    number of times; Python does not warn if it never is, as it would for a plain coroutine.
    """

    def __init__(self, is_busy: Callable[[], bool], result: Callable[[], T]) -> None:
        self._is_busy, self._result = is_busy, result
        self._started: Coroutine[Any, Any, T] | None = None  # for a task, which uses send()

    async def _wait(self) -> T:
        while self._is_busy():
            await asyncio.sleep(POLL)
        return self._result()

    def _start(self) -> Coroutine[Any, Any, T]:
        if self._started is None:
            self._started = self._wait()
        return self._started

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()  # a new coroutine each time

    def send(self, value: Any) -> Any:
        """Resume the waiting (the coroutine protocol)."""
        return self._start().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error, such as a cancellation, in the waiting (the coroutine protocol)."""
        return self._start().throw(*error)

    def close(self) -> None:
        """Give up waiting (the coroutine protocol)."""
        if self._started is not None:
            self._started.close()
