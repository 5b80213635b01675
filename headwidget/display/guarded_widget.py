"""A widget that takes from the page only what the page may set, and closes what it made.

Every synced trait belongs to the kernel unless it is tagged ``from_page=True``: the page
shows it and cannot change it. That holds for the traits of ipywidgets and anywidget too.
"""

from __future__ import annotations

import weakref
from typing import Any

import anywidget
import ipywidgets  # type: ignore[import-untyped]
import traitlets


def page_trait(default: Any, text: str) -> Any:
    """A synced trait that the page may set, validated whatever its value, None too."""
    synced = traitlets.Any(default, help=text).tag(sync=True, from_page=True)
    # traitlets does not validate a None that is allowed; here some traits take None, some refuse it
    synced.allow_none = False
    return synced


class GuardedWidget(anywidget.AnyWidget):
    """An anywidget whose kernel and page agree, whatever the page sends."""

    _layout_made: Any = None

    def __init__(self, **traits: Any) -> None:
        # A Layout that the user made may be in use elsewhere; one made here is closed with us.
        layout = traits.get("layout", {})
        if isinstance(layout, dict):
            traits["layout"] = self._layout_made = ipywidgets.Layout(**layout)
        super().__init__(**traits)
        self._close_with_comm()

    # ---- what the page sends ----

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the page has set, where it may (ipywidgets calls this).

        The page is sent what the kernel has instead, where that differs.
        """
        taken = {name: value for name, value in sync_data.items() if self._is_from_page(name)}
        try:
            for name, value in taken.items():
                # ipywidgets sends it to all pages before it validates it.
                self.traits()[name]._validate(self, value)
            super().set_state(taken)
        finally:
            self._correct_page(sync_data)

    def _is_from_page(self, name: str) -> bool:
        return name in self.keys and bool(self.trait_metadata(name, "from_page"))

    def _correct_page(self, sent: dict[str, Any]) -> None:
        """Send the kernel's values of traits for which the page has sent others."""
        kept = self.get_state([name for name in sent if name in self.keys])
        if other := [name for name, value in kept.items() if not _is_same(value, sent[name])]:
            self.send_state(other)

    # ---- its end ----

    def _close_with_comm(self) -> None:
        """Close the widget where the page closes its end of the comm."""
        close = weakref.WeakMethod(self.close)

        def closed(message: Any) -> None:
            if (close_widget := close()) is not None:
                close_widget()

        if self.comm is not None and hasattr(self.comm, "on_close"):
            self.comm.on_close(closed)

    def close(self) -> None:
        """Close the widget, and the layout that it made."""
        super().close()
        if self._layout_made is not None:
            self._layout_made.close()


def _is_same(kept: Any, sent: Any) -> bool:
    """Whether two values are the same as JSON: True is not 1, and 1 is 1.0."""
    if isinstance(kept, bool) or isinstance(sent, bool):
        return kept is sent
    if isinstance(kept, (list, tuple)) and isinstance(sent, (list, tuple)):
        return len(kept) == len(sent) and all(map(_is_same, kept, sent))
    return bool(kept == sent)
