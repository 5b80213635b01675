"""Memory that runs out: how it is told from other errors, and smaller batches in answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch

T = TypeVar("T")

_MESSAGES = ("out of memory", "can't allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Did memory run out, on a device or on the host?"""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    message = str(error).lower()  # MPS and the host's allocators raise a plain RuntimeError
    return any(known in message for known in _MESSAGES)


def halving(
    start: Callable[[int | None], Iterable[T]],
    size: int | None,
    *,
    usual: Callable[[], int] = lambda: 2,
    halved: Callable[[int], None] = lambda size: None,
) -> Iterator[T]:
    """Everything that ``start(size)`` yields, with half the batch size when memory runs out.

    ``start`` is then called again and goes on, or starts over, as it sees fit. ``usual()``
    is the batch size that None stands for; ``halved(size)`` is called with each new size.

    >>> def run(size):
    ...     if size > 2:
    ...         raise MemoryError
    ...     yield size
    >>> list(halving(run, 8))
    [2]
    """
    while True:
        try:
            yield from start(size)
            return
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error) or size == 1:
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        size = max(1, (size or usual()) // 2)
        halved(size)
