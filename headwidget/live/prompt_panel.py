"""What the prompt's and the head's panels show: the last prompt read, and heads on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from headwidget.live import payloads, reading
from headwidget.live.gates import Gates
from headwidget.methods import word_maps
from headwidget.models import Model
from headwidget.scores import HeadScores
from headwidget.scoring import option_checks

WARM_SECONDS = 0.25
"""Seconds at a time that work ahead may delay what the user asks for."""


class PromptPanel:
    """Reads prompts with one model and keeps the last reading. Runs on the model's thread."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.reading: reading.Reading | None = None
        """The last prompt read; None where there is none or it could not be read."""

    def check_prompt(self, text: Any) -> str:
        """A prompt; ``ValueError`` for what is not text."""
        if not isinstance(text, str):
            raise ValueError(f"prompt is text; got {text!r}.")
        return text

    def check_target(self, target: Any) -> int | None:
        """A token's id, or None; ``ValueError`` for one that the model does not have."""
        if target is None:
            return None
        token = option_checks.plain(target)
        if not option_checks.is_whole(token) or not 0 <= token < self._model.vocabulary:
            raise ValueError(
                f"target is the id of a token, 0 to {self._model.vocabulary - 1}, or None for "
                f"the likeliest; got {target!r}."
            )
        return int(token)

    def read(self, text: str, gates: Gates, target: int | None) -> tuple[dict[str, Any], bytes]:
        """Read a prompt in one forward: what the panel shows, and the maps as float32 bytes."""
        if not text.strip():
            self.reading = None
            return {}, b""
        started = time.monotonic()
        try:
            self.reading = reading.read(self._model, text, gates, target)
        except Exception as error:
            self.reading = None
            return {"error": payloads.sentence(error)}, b""
        payload = payloads.prompt(self.reading, time.monotonic() - started)
        return payload, self.reading.maps.astype("<f4").tobytes()

    def head(self, results: Mapping[str, HeadScores], layer: int, number: int) -> dict[str, Any]:
        """What a head does on the last prompt, and its ranks in the scores so far."""
        return payloads.head(self._model, self.reading, results, layer, number)

    def salient(self, layer: int, number: int) -> dict[str, Any] | None:
        """The tokens that a head amplifies most; None if :meth:`warm` has to be called again."""
        return payloads.salient(self._model, layer, number) if self.warm() else None

    def warm(self) -> bool:
        """Do some of the work ahead that salient tokens need, for :data:`WARM_SECONDS`.

        True when none is left. Also where it fails: :meth:`salient` then says why.
        """
        try:
            return word_maps.warm(self._model, _TimeLimit())
        except Exception:
            return True


class _TimeLimit(threading.Event):
    """An event that is set some time after it is first asked, so that each call gets work done."""

    _started: float | None = None

    def is_set(self) -> bool:
        now = time.monotonic()
        self._started = now if self._started is None else self._started
        return now - self._started > WARM_SECONDS
