"""The dashboard: the explorer with charts at its side, or below it where there is no room."""

from __future__ import annotations

from typing import Any

import ipywidgets  # type: ignore[import-untyped]

from headwidget.charts.parts import parts
from headwidget.display.explorer import ExplorerBase


class Dashboard(ipywidgets.AppLayout):  # type: ignore[misc]
    """The explorer in the centre and charts in a sidebar.

    Where the page is narrow, the sidebar goes below the explorer. ``owned`` are the charts
    that are closed with the dashboard.
    """

    def __init__(self, explorer: ExplorerBase, charts: list[Any], owned: list[Any]) -> None:
        self._owned = owned
        middle = ipywidgets.VBox(
            [explorer],
            layout={
                "flex": "4 1 520px",
                "min_width": "0",
                "max_width": "100%",
                "overflow": "visible",
            },
        )
        beside = [
            ipywidgets.Box(
                [chart],
                layout={
                    "flex": "1 1 300px",
                    "min_width": "0",
                    "max_width": "620px",
                    "display": "block",
                },
            )
            for chart in charts
        ]
        side = ipywidgets.Box(
            beside,
            layout={
                "flex": "1 1 320px",
                "flex_flow": "row wrap",
                "min_width": "0",
                "align_content": "flex-start",
                "grid_gap": "12px",
            },
        )
        super().__init__(center=middle, right_sidebar=side if charts else None)
        # Panes of a grid stay where they are; in a row that wraps, the sidebar goes below.
        # AppLayout puts the centre last: order puts it first.
        self.layout.display, self.layout.flex_flow, self.layout.width = "flex", "row wrap", "100%"
        self.layout.grid_gap, self.layout.align_items = "16px", "flex-start"
        middle.layout.order, side.layout.order = "0", "1"
        self.charts = tuple(charts)
        self._parts = parts(self.layout, middle, side, without=[explorer, *charts])

    def close(self) -> None:
        """Close the dashboard and the charts it made; the explorer and other charts stay."""
        super().close()
        for widget in (*self._owned, *self._parts):
            widget.close()
