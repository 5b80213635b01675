"""An explorer whose heads can be scaled, and that measures what scaling them does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from headwidget.display.guarded_widget import page_trait
from headwidget.display.plain_values import or_trait_error
from headwidget.live import gates as gating
from headwidget.live.measure import Measurement
from headwidget.live.threaded_explorer import ThreadedExplorer
from headwidget.scoring import option_checks

if TYPE_CHECKING:
    from typing_extensions import Self


class GatedExplorer(ThreadedExplorer):
    """The maps, with a gate for each head. :class:`headwidget.Lab` is one."""

    gates: Any = page_trait(None, "The factor of each head's output.").tag(sync=False)
    """The factor of each head's output, a (layer, head) array with 1 where nothing is changed.
    Set it whole; the widget follows."""

    _scaled = page_trait([], "The heads that are scaled.")
    """[layer, head, factor] of every head that is scaled."""
    _effect = traitlets.Dict().tag(sync=True)
    """What the measurement has found so far (:attr:`Measurement.effect`)."""
    _measurement: Measurement | None = None

    def _after_gates(self) -> None:
        """Bring up to date what depends on the gates."""

    def _pieces(self, prompts: int, draws: int) -> Iterator[dict[str, Any]]:
        """The pieces of a measurement of the gates (:func:`headwidget.live.measure.pieces`)."""
        raise NotImplementedError

    @traitlets.observe("_scaled")
    def _new_scaled(self, change: Any) -> None:
        gates = gating.from_scaled(change["new"], self._shown.layers, self._shown.shape[1])
        if not np.array_equal(gates, self.gates):
            self.gates = gates

    @traitlets.observe("gates")
    def _new_gates(self, change: Any) -> None:
        scaled = gating.to_scaled(self.gates, self._shown.layers)
        if scaled != self._scaled:
            self._scaled = scaled
        with self._lock:
            self._measurement = None
            self._set(_effect={})
        self._after_gates()

    @traitlets.validate("gates")
    def _valid_gates(self, proposal: Any) -> Any:
        return or_trait_error("gates", gating.checked, self._model.shape, proposal["value"])

    @traitlets.validate("_scaled")
    def _valid_scaled(self, proposal: Any) -> Any:
        layers, n_heads = self._shown.layers, self._shown.shape[1]
        return or_trait_error("_scaled", gating.checked_scaled, layers, n_heads, proposal["value"])

    def measure(self, prompts: int = 12, draws: int = 3) -> Self:
        """Measure what the gates do to the tasks, and to the text that follows the prompt.

        Gives accuracy and log-probability before and after, and after the same was done to
        ``draws`` random sets of heads of the same layers. ``prompts`` of each task are used,
        those first that no run has scored. Comes piece by piece as ``lab.effect``.
        """
        self._check_open()
        option_checks.at_least("prompts", prompts, 1)
        option_checks.at_least("draws", draws, 1)
        with self._lock:
            n_scaled = int((self.gates != 1).sum())
            if not n_scaled:
                raise ValueError(
                    "no head is scaled: select heads and turn them off in the widget, or set "
                    "lab.gates."
                )
            self._measurement = measurement = Measurement(n_scaled, self._pieces(prompts, draws))
            self._set(_effect=measurement.effect)
            self._later("effect", lambda lab: lab._measure_on(measurement))
        return self

    def _measure_on(self, measurement: Measurement) -> None:
        """Do the next piece of a measurement, unless another one or other gates replaced it."""
        if self._measurement is not measurement or not measurement.step():
            return
        with self._lock:  # the gates may have changed meanwhile
            if self._measurement is measurement:
                self._later("effect", lambda lab: lab._measure_on(measurement))
                self._set(_effect=measurement.effect)

    @property
    def _is_measuring(self) -> bool:
        measurement = self._measurement
        return not self._closed and measurement is not None and not measurement.effect["done"]

    @property
    def effect(self) -> dict[str, Any]:
        """What :meth:`measure` has found so far."""
        return dict(self._effect)
