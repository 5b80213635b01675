"""The built-in suites, by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwidget.tasks.task import Task

_SUITES = {
    "math-syntax": "headwidget.tasks.suites.math_syntax",
    "cognitive": "headwidget.tasks.suites.cognitive",
    "relations": "headwidget.tasks.suites.relation_pairs",
    "patterns": "headwidget.tasks.suites.pattern_prompts",
}
"""Each suite's module has ``tasks(seed) -> list[Task]``."""


def suite(name: str, *, seed: int = 0) -> list[Task]:
    """A built-in suite's tasks; the same seed gives the same prompts.

    >>> [task.name for task in suite("math-syntax")]
    ['Math', 'Syntax']
    """
    if name not in _SUITES:
        raise ValueError(
            f"there is no suite {name!r}; the built-in ones are {', '.join(map(repr, _SUITES))}. "
            "For a file, use hw.Task.read."
        )
    tasks: list[Task] = importlib.import_module(_SUITES[name]).tasks(seed)
    return tasks
