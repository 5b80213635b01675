"""An explorer with a prompt: what the model says next, and what the selected head does there."""

from __future__ import annotations

from typing import Any

import traitlets

from headwidget.display.guarded_widget import page_trait
from headwidget.display.plain_values import or_trait_error
from headwidget.live.gated_explorer import GatedExplorer
from headwidget.live.prompt_panel import PromptPanel
from headwidget.scores import HeadScores


class PromptExplorer(GatedExplorer):
    """The maps, with a prompt that is read as it is typed. :class:`headwidget.Lab` is one.

    ``_panel`` reads, and is made before ``__init__`` of this class runs.
    """

    prompt = page_trait("", "A prompt that the model reads.")
    """A prompt that the model reads as it is typed."""
    target = page_trait(None, "The token to map.")
    """The id of the token whose map is shown beside the prompt; None is the likeliest."""
    _panel: PromptPanel
    _is_made = False
    """Are all traits set, so that what depends on them can follow?"""
    _reading = traitlets.Dict().tag(sync=True)
    _maps = traitlets.Bytes().tag(sync=True)
    """(target, layer, head) float32: the prompt's maps."""
    _head = traitlets.Dict().tag(sync=True)

    @property
    def results(self) -> dict[str, HeadScores]:
        """The last scores of every method that was run, by its name."""
        raise NotImplementedError

    @property
    def reading(self) -> dict[str, Any]:
        """What the prompt panel shows: tokens and predictions, or an error.

        A prediction is [id, text, probability, probability with heads scaled].
        """
        return dict(self._reading)

    @traitlets.observe("prompt")
    def _new_prompt(self, change: Any) -> None:
        self.target = None
        self._later("prompt", PromptExplorer._read_prompt)

    @traitlets.observe("target")
    def _new_target(self, change: Any) -> None:
        self._list_target()

    def _list_target(self) -> None:
        """Read again if the target is not listed, such as one chosen while the prompt was read."""
        listed = [prediction[0] for prediction in self._reading.get("predictions", [])]
        if self.target is not None and self.target not in listed:
            self._later("prompt", PromptExplorer._read_prompt)

    @traitlets.observe("selected")
    def _new_selected(self, change: Any) -> None:
        if self._is_made:
            self._later("head", PromptExplorer._read_head)

    def _read_prompt(self) -> None:
        payload, maps = self._panel.read(self.prompt, self.gates, self.target)
        self._set(_reading=payload, _maps=maps)
        if self._panel.reading is not None:
            self._list_target()
        self._read_head()

    def _read_head(self) -> None:
        """Show what the last selected head does; its salient tokens follow when they are ready."""
        if not self.selected:
            self._set(_head={})
            return
        card = self._panel.head(self.results, *self.selected[-1])
        self._set(_head=card)
        self._later("salient", lambda lab: lab._read_salient(card))

    def _read_salient(self, card: dict[str, Any]) -> None:
        if not self.selected or list(self.selected[-1]) != card["head"]:
            return
        salient = self._panel.salient(*card["head"])
        if salient is None:
            self._later("salient", lambda lab: lab._read_salient(card))
        else:
            self._set(_head={**card, **salient})

    def _warm(self) -> None:
        """Work ahead, so that the first click on a head is answered within a second."""
        if not self._panel.warm():
            self._later("warm", PromptExplorer._warm, idle=True)

    def _after_gates(self) -> None:
        if self._is_made:
            self._later("prompt", PromptExplorer._read_prompt)

    @traitlets.validate("prompt")
    def _valid_prompt(self, proposal: Any) -> str:
        return or_trait_error("prompt", self._panel.check_prompt, proposal["value"])

    @traitlets.validate("target")
    def _valid_target(self, proposal: Any) -> int | None:
        return or_trait_error("target", self._panel.check_target, proposal["value"])
