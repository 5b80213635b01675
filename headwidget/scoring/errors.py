"""Errors: which are sentences of headwidget's own, and the first line of another's."""

from __future__ import annotations

from pathlib import Path

import headwidget

_PACKAGE = Path(headwidget.__file__).parent


def is_ours(error: BaseException) -> bool:
    """Was it raised by code of headwidget, and not by something that it called?

    >>> try:
    ...     int("x")
    ... except ValueError as error:
    ...     is_ours(error)
    False
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and _PACKAGE in Path(trace.tb_frame.f_code.co_filename).parents


def first_line(error: BaseException) -> str:
    """What an error says, its first line without a full stop; its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
