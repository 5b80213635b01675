"""The Explorer widget: heatmaps of head scores, with traits that go both ways.

Needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import traitlets

from headwidget.display import assets, page, settings, wire
from headwidget.display.guarded_widget import GuardedWidget, page_trait
from headwidget.display.plain_values import or_trait_error
from headwidget.scores import head_scores
from headwidget.scores.compare import difference
from headwidget.scores.head_scores import HeadScores
from headwidget.scores.spelling import did_you_mean
from headwidget.scores.threshold import START
from headwidget.scores.whole_file import write_whole

SCORE_TRAITS = ("_header", "_buffer")
"""The traits that change when an explorer shows other scores."""


class ExplorerBase(GuardedWidget):
    """The heatmaps and their settings, whichever scores they show.

    :class:`Explorer` shows scores that do not change, :class:`headwidget.Lab` those that
    have landed so far.
    """

    if assets.is_built():  # else the first explorer says what to do; the import does not fail
        _esm = assets.STATIC / "widget.js"
        _css = assets.STATIC / "widget.css"

    selected = page_trait([], "The selected heads.")
    """The selected heads, a list of [layer, head] by the model's own layer numbers."""

    view = page_trait("tasks", "Which view is shown.")
    """Which view is shown: ``"tasks"`` (one map a task), ``"agreement"`` (Always, Any and
    between) or ``"categories"``."""

    tasks = page_trait([], "The tasks that are shown, in order.")
    """The names of the tasks that are shown, in order; at first all of them."""

    task = page_trait(None, "One task alone, large.")
    """The name of one task that is shown alone and large, or None for all of ``tasks``."""

    threshold = page_trait(None, "Heads that do not reach it are dimmed; None dims none.")
    """Heads that do not reach it are dimmed; ``None`` dims none. ``rule`` says what the number
    means."""

    rule = page_trait("value", "What the threshold's number means.")
    """``"value"`` (a score), ``"top"`` (so many of each task's strongest heads), ``"percent"``
    (so many percent of them) or ``"elbow"`` (times the elbow of each task's sorted scores; 1
    is the cut-off of Ma et al. 2025). A new rule sets the threshold it starts with: none, 10, 5 and
    1."""

    agreement = page_trait(
        1.0, "The fraction of runs that must reach the threshold, in the agreement view."
    )
    """The fraction of its runs in which a head must reach the threshold in the agreement view:
    0 is any run, 1 is always."""

    sign = page_trait("either", "What the threshold counts when scores are signed.")
    """What the threshold counts when scores are signed: heads that matter ``"either"`` way (by
    size), ``"helps"`` or ``"hurts"``."""

    reduction = page_trait("mean", "How runs become one number.")
    """How the runs of a head become one number: ``"mean"`` or ``"median"``."""

    normalize = page_trait(None, "Show shares of a task's whole.")
    """``"share"`` shows ``|score|`` over its sum, a task's heads adding up to 1; ``None`` shows
    the score itself."""

    colormap = page_trait(None, "The colour map.")
    """``"viridis"``, ``"cividis"``, ``"magma"``, ``"turbo"``, ``"blue-orange"``, or None:
    viridis, blue to orange for signed scores, turbo for agreement."""

    scale = page_trait("shared", "One scale of colours for all maps, or each its own.")
    """``"shared"``: one scale of colours for all maps. ``"own"``: each task has its own, so that
    a quiet one is seen beside a loud one; its end stands above the map."""

    cap = page_trait(None, "Where colours end.")
    """Where colours end: a score, a percentile such as ``"99%"``, or None (the 99.5th
    percentile rounded up to a tick)."""

    orientation = page_trait(None, "The axis that has the layers.")
    """The axis that has the layers, ``"y"`` or ``"x"``; None is y, and x in the categories
    view, as in Elhelo and Geva (2025)."""

    columns = page_trait(None, "How many maps stand side by side.")
    """How many tasks stand side by side where there is room; None chooses by width. In a figure
    of the agreement view None is a row a task."""

    isolated = page_trait(None, "The class of the categories' legend that stands out.")
    """The entry of the categories' legend that stands out, such as ``"2 categories"``; None
    shows all alike."""

    hover = traitlets.Any(None, allow_none=True, help="The head that is pointed at.").tag(
        sync=True, from_page=True, echo_update=False
    )
    """The head that is pointed at, [layer, head] or None. Pointing sends a message only while
    ``hover`` is observed by name; otherwise Python knows it as of the last message about
    something else."""

    _hover_heard = traitlets.Bool(False).tag(sync=True)
    """Whether a handler observes ``hover``."""

    _header = traitlets.Dict().tag(sync=True)
    """What the buffer holds (:mod:`headwidget.display.wire`)."""

    _buffer = traitlets.Bytes().tag(sync=True)
    """The scores, as bytes (:mod:`headwidget.display.wire`)."""

    _kind = "an explorer"
    preview: str | None
    """The picture that stands in for the widget where none can run (GitHub, nbviewer):
    ``"png"``, ``"svg"``, or None for none."""

    def __init__(self, scores: HeadScores, *, preview: str | None = "png", **traits: Any) -> None:
        names = ("selected", *settings.NAMES)
        if unknown := [name for name in traits if name not in (*names, "layout")]:
            meant = did_you_mean(unknown[0], (*names, "layout", "preview"))
            raise TypeError(f"an explorer has no {unknown[0]!r}.{meant} It has {', '.join(names)}.")
        if not isinstance(scores, HeadScores):
            raise TypeError(
                "explore takes HeadScores or the path of a saved file; "
                f"got {type(scores).__name__}."
            )
        if preview not in ("png", "svg", None):
            raise ValueError(f"preview {preview!r} is not known; use 'png', 'svg' or None.")
        self._shown, self.preview = scores, preview
        # The traits of the front end's message, while it is handled.
        self._incoming: set[str] = set()
        self._last_threshold: float | None = None
        header, buffer = wire.encode(scores)
        start: dict[str, Any] = {
            "selected": [],
            "tasks": list(scores.tasks),
            **settings.start(scores, traits),
        }
        if isinstance(start.get("rule"), str):
            start.setdefault("threshold", START.get(start["rule"]))
            # What was asked for stays, whatever the rule starts with.
            self._incoming = {"threshold"}
        self._add_front_end()
        super().__init__(_header=header, _buffer=buffer, **start)
        self._incoming = set()

    def _add_front_end(self) -> None:
        """Add the traits ``_esm`` and ``_css``, which follow their files during development.

        anywidget would add them, too, but with handlers that keep every widget for ever.
        psygnal holds a bound method weakly.
        """
        self.add_traits(
            _esm=traitlets.Unicode(assets.asset("widget.js")).tag(sync=True),
            _css=traitlets.Unicode(assets.asset("widget.css")).tag(sync=True),
        )
        for name, reload in (("_esm", self._reload_script), ("_css", self._reload_style)):
            watched = getattr(ExplorerBase, name, None)  # anywidget has made it FileContents
            if watched is not None:
                watched.changed.connect(reload)

    def _reload_script(self, text: str) -> None:
        self.set_trait("_esm", text)

    def _reload_style(self, text: str) -> None:
        self.set_trait("_css", text)

    @property
    def shown(self) -> HeadScores:
        """The scores that the maps show; of a lab, what has landed so far."""
        return self._shown

    @property
    def encoded(self) -> tuple[dict[str, Any], bytes]:
        """The scores as the browser has them: header and buffer."""
        return self._header, self._buffer

    # ---- out ----

    def to_html(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write what is shown to a page that needs no kernel, no network and no other file.

        The page opens from disk with everything working in the browser, in the state the
        explorer is in now. Gives the path back.

        >>> import tempfile, headwidget as hw
        >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine")
        >>> page = hw.explore(scores).to_html(Path(tempfile.mkdtemp()) / "heads.html")
        >>> page.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        return page.write(self, path, title=title)

    def to_png(self, path: str | Path, *, dpi: float = 160) -> Path:
        """Write the current view as a picture (:meth:`HeadScores.figure`). Gives the path back."""
        from headwidget.display import figure

        return write_whole(
            path, lambda temporary: temporary.write_bytes(figure.png(*self._drawn(), dpi=dpi))
        )

    def to_svg(self, path: str | Path) -> Path:
        """Write the current view as a drawing (:meth:`HeadScores.figure`). Gives the path back."""
        from headwidget.display import figure

        return write_whole(
            path, lambda temporary: temporary.write_bytes(figure.svg(*self._drawn()))
        )

    def _drawn(self) -> tuple[HeadScores, settings.Settings]:
        """What is shown now, as figures take it."""
        asked = {name: getattr(self, name) for name in settings.NAMES}
        return self._shown, settings.settings(self._shown, **asked)

    def page_state(self) -> dict[str, Any]:
        """What a page must know to show the same: every setting and the selection."""
        return {name: getattr(self, name) for name in (*settings.NAMES, "selected")}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and a picture of the current view for where no widget can run."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if self.preview is None or not bundle:
            return bundle
        from headwidget.display import figure

        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        try:
            if self.preview == "png":
                data["image/png"] = figure.png(*self._drawn(), dpi=110)
            else:
                data["image/svg+xml"] = figure.svg(*self._drawn()).decode()
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":  # the widget itself needs none
                raise
        return data, metadata

    # ---- traits ----

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the front end has set (ipywidgets calls this)."""
        self._incoming = set(sync_data)
        try:
            super().set_state(sync_data)
        finally:
            self._incoming = set()

    def observe(
        self,
        handler: Callable[..., Any],
        names: Any = traitlets.All,
        type: Any = "change",  # noqa: A002
    ) -> None:
        super().observe(handler, names, type)
        self._note_hover_observers()

    def unobserve(
        self,
        handler: Callable[..., Any],
        names: Any = traitlets.All,
        type: Any = "change",  # noqa: A002
    ) -> None:
        super().unobserve(handler, names, type)
        self._note_hover_observers()

    def unobserve_all(self, name: Any = traitlets.All) -> None:
        super().unobserve_all(name)
        self._note_hover_observers()

    def _note_hover_observers(self) -> None:
        self._hover_heard = any(self._trait_notifiers.get("hover", {}).values())

    @traitlets.observe("rule")
    def _new_rule(self, change: Any) -> None:
        # A threshold that comes with the rule stays: in one message, or held back with it.
        if "threshold" not in self._incoming and self.threshold == self._last_threshold:
            self.threshold = START[change["new"]]

    @traitlets.observe("threshold")
    def _new_threshold(self, change: Any) -> None:
        self._last_threshold = change["new"]

    @traitlets.validate(*settings.NAMES)
    def _valid_setting(self, proposal: Any) -> Any:
        name = proposal["trait"].name
        return or_trait_error(name, settings.check, self._shown, name, proposal["value"])

    @traitlets.validate("selected")
    def _valid_selected(self, proposal: Any) -> list[list[int]]:
        return or_trait_error("selected", settings.selected, self._shown, proposal["value"])

    @traitlets.validate("hover")
    def _valid_hover(self, proposal: Any) -> list[int] | None:
        return or_trait_error("hover", settings.hover, self._shown, proposal["value"])

    def __repr__(self) -> str:
        return f"Explorer({self._shown!r})"

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse a misspelt trait, and other scores than those that the browser has."""
        if name == "scores":
            raise AttributeError(
                "an explorer keeps its scores; make another with hw.explore(scores)."
            )
        if not name.startswith("_") and not hasattr(type(self), name) and name != "preview":
            public = [trait for trait in self.trait_names() if not trait.startswith("_")]
            raise AttributeError(f"{self._kind} has no {name!r}.{did_you_mean(name, public)}")
        super().__setattr__(name, value)


class Explorer(ExplorerBase):
    """Linked layer x head heatmaps in three views.

    Threshold, agreement and selection are shared with Python. Made by
    :func:`headwidget.explore`. Every trait can be set, observed and linked; the front end
    follows, and what is done there comes back here. A value that makes no sense is refused
    with a sentence and changes nothing.

    >>> import headwidget as hw
    >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9], [0.2, 0.3]]}, method="mine")
    >>> explorer = hw.explore(scores, threshold=0.25)
    >>> explorer.selected = scores.top("copy", 1)
    >>> explorer.selected, explorer.threshold, explorer.tasks
    ([[0, 1]], 0.25, ['copy'])
    """

    @property
    def scores(self) -> HeadScores:
        """The scores that are shown."""
        return self._shown


def explore(scores: HeadScores | str | Path, **traits: Any) -> Explorer:
    """The widget for scores, or for the path of a saved file.

    Keywords set its traits (:class:`Explorer`).

    >>> import headwidget as hw
    >>> scores = hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine")
    >>> hw.explore(scores, threshold=0.5).threshold
    0.5
    """
    if isinstance(scores, (str, Path)):
        scores = head_scores.open(scores)
    return Explorer(scores, **traits)


def compare(
    a: HeadScores | str | Path,
    b: HeadScores | str | Path,
    *,
    names: Sequence[str] | None = None,
    tasks: Sequence[str] | str | None = None,
    heads: str | None = None,
    normalize: str | None = None,
    **traits: Any,
) -> Explorer:
    """The widget for two scores: for every task both have, ``a``, ``b`` and ``a − b``.

    The maps share cursor, threshold and selection. What is shown is what :func:`difference`
    gives, and that is where the keywords are explained; further keywords set the explorer's
    traits. ``compare(…).scores`` are the scores shown.

    >>> import headwidget as hw
    >>> def scores(name: str, size: int) -> hw.HeadScores:
    ...     maps = {"copy": [[1.0] * size] * size}
    ...     return hw.HeadScores.from_arrays(maps, method="mine", meta={"model": name})
    >>> hw.compare(scores("small", 2), scores("large", 4)).tasks
    ['copy: small', 'copy: large', 'copy: small − large']
    """
    return Explorer(
        difference(a, b, names=names, tasks=tasks, heads=heads, normalize=normalize),
        **{"columns": 3, **traits},
    )
