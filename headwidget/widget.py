"""The Explorer widget: heatmaps of head scores in the notebook, with traits that go both ways. Needs no torch."""

from __future__ import annotations

import math
import numbers
import operator
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from traitlets import TraitError

from headwidget import wire
from headwidget.scores import HeadScores

STATIC = Path(__file__).parent / "static"
VIEWS = ("tasks",)


def asset(name: str) -> str:
    """A file of the built front end, as text."""
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        why = f"headwidget's front end is not built ({name} is missing): run `make build`, or `npm ci` and `npm run build`, in its folder."
        raise FileNotFoundError(why) from error


class Explorer(anywidget.AnyWidget):
    """Linked layer x head heatmaps, one a task, with a threshold and a selection shared with Python.

    Made by :func:`headwidget.explore`. Every trait below can be set, observed and linked; the front end follows, and
    what is done there comes back here.

    >>> import headwidget as hw
    >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9], [0.2, 0.3]]}, method="mine")
    >>> explorer = hw.explore(scores, threshold=0.25)
    >>> explorer.selected = scores.top("copy", 1)
    >>> explorer.selected, explorer.threshold, explorer.tasks
    ([[0, 1]], 0.25, ['copy'])
    """

    selected: traitlets.List[Any] = traitlets.List(help="The selected heads.").tag(sync=True)
    """The selected heads, a list of [layer, head] by the model's own layer numbers. Click, shift-click and Escape change it."""

    threshold = traitlets.Any(None, allow_none=True, help="Heads below it are dimmed; None dims none.").tag(sync=True)
    """Heads whose mean lies below this number are dimmed; ``None`` dims none.

    Signed scores are compared by size, ``|mean|``: strong heads of either sign stay bright."""

    tasks: traitlets.List[Any] = traitlets.List(help="The tasks that are shown, in order.").tag(sync=True)
    """The names of the tasks that are shown, in order; at first all of them."""

    view = traitlets.Any("tasks", help="Which view is shown.").tag(sync=True)
    """Which view is shown: ``"tasks"``, one heatmap of means a task."""

    _header = traitlets.Dict().tag(sync=True)
    """What the buffer holds (:mod:`headwidget.wire`)."""

    _buffer = traitlets.Bytes().tag(sync=True)
    """The scores, as little-endian float32 (:mod:`headwidget.wire`)."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, scores: HeadScores, **traits: Any) -> None:
        known = ("selected", "threshold", "tasks", "view", "layout")
        if unknown := [name for name in traits if name not in known]:
            raise TypeError(f"an explorer has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}.")
        if not isinstance(scores, HeadScores):
            raise TypeError(f"explore takes HeadScores or the path of a saved file; got {type(scores).__name__}.")
        self.scores = scores
        """The scores that are shown."""
        header, buffer = wire.encode(scores)
        start = {"tasks": list(scores.tasks), **traits}
        assets = {"_esm": asset("widget.js"), "_css": asset("widget.css")}
        super().__init__(_header=header, _buffer=buffer, **assets, **start)

    def to_html(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write what is shown to a page that needs nothing else: no kernel, no network, no other file. Gives the path back.

        The page opens from disk with its slider, hover and selection working, in the state the explorer is in now.

        >>> import tempfile, headwidget as hw
        >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine")
        >>> page = hw.explore(scores).to_html(Path(tempfile.mkdtemp()) / "heads.html")
        >>> page.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from headwidget import page

        return page.write(self, path, title=title)

    @traitlets.validate("selected")
    def _valid_selected(self, proposal: Any) -> list[list[int]]:
        layers, heads = set(self.scores.layers), self.scores.shape[1]
        out: list[list[int]] = []
        for item in proposal["value"]:
            try:
                layer, head = (operator.index(n) for n in item)
            except (TypeError, ValueError):
                raise TraitError(f"selected is a list of [layer, head], two whole numbers each; got {item!r}.") from None
            if layer not in layers or not 0 <= head < heads:
                rows = self.scores.layers
                have = f"{len(rows)} layers ({rows[0]} to {rows[-1]}) of {heads} heads"
                raise TraitError(f"there is no head [{layer}, {head}] in these scores: they have {have}.")
            if [layer, head] not in out:
                out.append([layer, head])
        return out

    @traitlets.validate("threshold")
    def _valid_threshold(self, proposal: Any) -> float | None:
        value = proposal["value"]
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise TraitError(f"threshold is a finite number, or None for no threshold; got {value!r}.")
        return float(value)

    @traitlets.validate("tasks")
    def _valid_tasks(self, proposal: Any) -> list[str]:
        names = list(proposal["value"])
        for name in names:
            if name not in self.scores.tasks:
                raise TraitError(f"no task {name!r} in these scores; they have {', '.join(map(repr, self.scores.tasks))}.")
            if names.count(name) > 1:
                raise TraitError(f"tasks names {name!r} twice.")
        return names

    @traitlets.validate("view")
    def _valid_view(self, proposal: Any) -> str:
        if proposal["value"] not in VIEWS:
            raise TraitError(f"view {proposal['value']!r} is not known; use {' or '.join(map(repr, VIEWS))}.")
        return str(proposal["value"])


def explore(scores: HeadScores | str | Path, **traits: Any) -> Explorer:
    """The widget for some scores, or for the path of a saved file; keywords set its traits (:class:`Explorer`).

    >>> import headwidget as hw
    >>> hw.explore(hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine"), threshold=0.5).threshold
    0.5
    """
    if isinstance(scores, (str, Path)):
        from headwidget import files

        scores = files.open(scores)
    return Explorer(scores, **traits)
