"""A page's end of a comm: what a browser holds of widgets, through Jupyter's own packing.

Messages go both ways as the bytes that a kernel sends and receives, so what Jupyter cannot
pack fails here as it does there.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import comm
from comm.base_comm import BaseComm
from ipywidgets.widgets.widget import _put_buffers
from jupyter_client.session import json_packer, json_unpacker


def packed(value: Any) -> Any:
    """What arrives of a value that a kernel sends. Jupyter warns of what is no JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return json_unpacker(json_packer(value))


class PageEnd(BaseComm):
    """A comm that keeps the state that a page would show."""

    def __init__(self, **keywords: Any) -> None:
        self.state: dict[str, Any] = {}
        self.received: list[str] = []
        super().__init__(**keywords)

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: Any
    ) -> None:
        content = packed(data or {})
        self.received.append(content.get("method", msg_type))
        if "state" in content:
            copies = [memoryview(bytes(buffer)) for buffer in buffers or []]
            _put_buffers(content["state"], content.get("buffer_paths", []), copies)
            self.state.update(content["state"])

    def set(self, **state: Any) -> None:
        """Set traits as the page does: here at once, then in the kernel."""
        self.state.update(state)
        text = json.dumps({"method": "update", "state": state, "buffer_paths": []})
        self.deliver(json_unpacker(text.encode()))

    def ask(self, content: Any) -> None:
        """Send the kernel a message that is about no trait."""
        self.deliver({"method": "custom", "content": content})

    def deliver(self, data: dict[str, Any]) -> None:
        self.handle_msg({"content": {"comm_id": self.comm_id, "data": data}, "buffers": []})

    def close_here(self) -> None:
        """Close the comm from the page."""
        manager: Any = comm.get_comm_manager()
        manager.comm_close(None, "", {"content": {"comm_id": self.comm_id, "data": {}}})


@contextmanager
def pages() -> Iterator[None]:
    """Every widget made here has a page: its ``comm`` is a :class:`PageEnd`."""
    before = comm.create_comm
    comm.create_comm = PageEnd
    try:
        yield
    finally:
        comm.create_comm = before


def shown_by(widget: Any) -> dict[str, Any]:
    """What the page of a widget shows of its traits."""
    state: dict[str, Any] = widget.comm.state
    return state


def held_by(widget: Any) -> dict[str, Any]:
    """What the kernel holds of the same traits, as the page would get it."""
    held: dict[str, Any] = {}
    for name, value in widget.get_state().items():
        held[name] = value if isinstance(value, (bytes, memoryview)) else packed(value)
    return held
