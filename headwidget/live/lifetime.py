"""Widgets that end with the last reference to them, so that the work done for them ends too.

ipywidgets keeps a reference to every widget until it is closed. :func:`let_go` makes that
reference weak. The widget then lives as long as something uses it: a variable, a notebook's
``Out``, another widget, or a page that shows it. After that, its ``__del__`` closes it.
"""

from __future__ import annotations

import asyncio
import atexit
import weakref
from typing import Any

import ipywidgets  # type: ignore[import-untyped]

MOVING = 5.0
"""Seconds without a view after which a widget counts as no longer shown. When a cell is moved,
the page closes its view and opens another."""
_on_pages: dict[Any, int] = {}  # how many views a widget has; 0 before the first
_let_go: weakref.WeakSet[Any] = weakref.WeakSet()


def let_go(widget: Any) -> None:
    """Make the references that ipywidgets has to a widget weak."""
    instances: Any = getattr(ipywidgets.widgets.widget, "_instances", {})
    if widget.comm is None or instances.get(widget.model_id) is not widget:
        return  # another host or version: there the widget stays until it is closed
    _let_go.add(widget)
    instances[widget.model_id] = weakref.proxy(widget)
    handle = weakref.WeakMethod(widget._handle_msg)

    def heard(message: Any) -> None:
        if (handle_message := handle()) is not None:
            handle_message(message)

    widget.comm.on_msg(heard)


def shown(widget: Any) -> None:
    """Keep a widget that a page is about to show, until its last view is gone."""
    _on_pages.setdefault(widget, 0)


def more_views(widget: Any) -> None:
    """Note that a view of a widget was opened."""
    _on_pages[widget] = _on_pages.get(widget, 0) + 1


def fewer_views(widget: Any) -> None:
    """Note that a view of a widget was closed; it is let go after :data:`MOVING` seconds."""
    _on_pages[widget] = max(0, _on_pages.get(widget, 0) - 1)
    try:
        asyncio.get_running_loop().call_later(MOVING, _check, widget)
    except RuntimeError:  # no event loop, as in a script
        _check(widget)


def hidden(widget: Any) -> None:
    """Let go of a widget that no page shows any more."""
    _on_pages.pop(widget, None)


def _check(widget: Any) -> None:
    if not _on_pages.get(widget):
        hidden(widget)


@atexit.register
def _close_all() -> None:
    """Close all widgets before the modules that closing needs are gone."""
    for widget in list(_let_go):
        widget.close()
