"""The widgets that a widget is made of, so that they can be closed with it.

ipywidgets keeps every widget until it is closed, also the layouts, styles and scales that a
widget makes for itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets  # type: ignore[import-untyped]


def parts(*widgets: Any, without: Iterable[Any] = ()) -> list[Any]:
    """These widgets and all that they refer to, each once; ``without`` some and their parts.

    >>> box = ipywidgets.HBox([ipywidgets.HTML()])
    >>> [type(part).__name__ for part in parts(box)]
    ['HBox', 'HTML', 'Layout', 'HTMLStyle', 'Layout']
    """
    seen = set(without)
    collected: list[Any] = []
    waiting = list(widgets)
    while waiting:
        widget = waiting.pop(0)
        if widget in seen:
            continue
        seen.add(widget)
        collected.append(widget)
        inner: list[Any] = []
        for name in widget.keys:
            inner += _widgets_in(getattr(widget, name))
        waiting = inner + waiting
    return collected


def _widgets_in(value: Any) -> list[Any]:
    """The widgets that are a trait's value, or stand in its list or dict."""
    values = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (list, tuple, dict)):
        values = [value]
    return [item for item in values if isinstance(item, ipywidgets.Widget)]
