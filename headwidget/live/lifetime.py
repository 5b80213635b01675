"""A widget that ends with the last reference to it, as any other object does, so that what runs for it ends, too.

ipywidgets keeps every widget until it is closed. One that was let go is kept only by those who use it: a variable, a notebook's ``Out``, another widget,
or a page that shows it. When the last of them is gone, ipywidgets' own ``__del__`` closes it.
"""

from __future__ import annotations

import asyncio
import atexit
import weakref
from typing import Any

import ipywidgets  # type: ignore[import-untyped]

MOVING = 5.0
"""Seconds that a widget may be without a view before it counts as shown no more."""
_on_pages: dict[Any, int] = {}  # how many views a widget has, or 0 before the first
_let_go: weakref.WeakSet[Any] = weakref.WeakSet()


def let_go(widget: Any) -> None:
    """Let ipywidgets forget a widget that nobody else knows."""
    instances: Any = getattr(ipywidgets.widgets.widget, "_instances", {})
    if widget.comm is None or instances.get(widget.model_id) is not widget:
        return  # a host or a version that does this otherwise: there it stays until it is closed
    _let_go.add(widget)
    instances[widget.model_id] = weakref.proxy(widget)
    handle = weakref.WeakMethod(widget._handle_msg)

    def heard(message: Any) -> None:
        if (found := handle()) is not None:
            found(message)

    widget.comm.on_msg(heard)


def shown(widget: Any) -> None:
    """A page is about to show it, which needs no variable: keep it until its last view is gone."""
    _on_pages.setdefault(widget, 0)


def more_views(widget: Any) -> None:
    """A view of it was opened."""
    _on_pages[widget] = _on_pages.get(widget, 0) + 1


def fewer_views(widget: Any) -> None:
    """A view of it was closed. A page that moves a cell closes its view and opens another: give it time."""
    _on_pages[widget] = max(0, _on_pages.get(widget, 0) - 1)
    try:
        asyncio.get_running_loop().call_later(MOVING, _check, widget)
    except RuntimeError:  # no kernel's loop
        _check(widget)


def hidden(widget: Any) -> None:
    """No page shows it any more."""
    _on_pages.pop(widget, None)


def _check(widget: Any) -> None:
    if not _on_pages.get(widget):
        hidden(widget)


@atexit.register
def _close_all() -> None:
    """A widget that is closed later would find the modules that it needs gone."""
    for one in list(_let_go):
        one.close()
