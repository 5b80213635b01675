"""The last runs of a lab, to be shown again or compared."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headwidget.scores import HeadScores
from headwidget.scoring import facts, registry

MOST = 8
"""How many runs are kept."""


@dataclass(frozen=True, eq=False)
class PastRun:
    """A run that has ended, or was stopped."""

    scores: HeadScores
    at: str = field(default_factory=lambda: time.strftime("%H:%M"))
    """When it ended, by the kernel's clock."""

    def to_json(self, shown: HeadScores) -> dict[str, Any]:
        """What the list of runs says of it; ``shown`` are the scores that the maps show."""
        scores = self.scores
        return {
            "method": scores.method,
            "tasks": list(scores.tasks),
            "prompts": max(len(scores.runs(task)) for task in scores.tasks),
            "partial": scores.partial,
            "heads": len(scores.record.heads_changed) or None,
            "options": _unusual(scores),
            "at": self.at,
            "shown": scores is shown,
        }


def _unusual(scores: HeadScores) -> str | None:
    """The options that differ from the method's usual ones, in words."""
    try:
        usual = facts.of_options(registry.find(scores.method).options())
    except (ValueError, TypeError):  # a method of the user's that is not there any more
        return None
    chosen = dict(scores.record.options or {}).items()
    return (
        ", ".join(f"{name} {value}" for name, value in chosen if value != usual.get(name)) or None
    )


class History:
    """The last :data:`MOST` runs, the newest first."""

    def __init__(self) -> None:
        self._runs: deque[PastRun] = deque(maxlen=MOST)

    def add(self, scores: HeadScores) -> None:
        """Keep the scores of a run that has ended."""
        self._runs.appendleft(PastRun(scores))

    def __iter__(self) -> Iterator[PastRun]:
        return iter(self._runs)

    def at(self, index: Any) -> PastRun:
        """A run by its place; ``ValueError`` where there is none."""
        if type(index) is not int or not 0 <= index < len(self._runs):
            raise ValueError(f"there are {len(self._runs)} past runs, from 0 on; got {index!r}.")
        return self._runs[index]
