"""What all checks of a model cost, as a share of a scoring of a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import headwidget as hw
from benchmarks.timing import Row
from headwidget.methods import ablation
from headwidget.models import Model
from headwidget.scoring import slopes, trust

ROUNDS = 3
WORK: dict[str, tuple[int, dict[str, Any]]] = {
    "gradient": (32, {}),
    "ablation": (2, {}),
    "gating": (8, {"fits": 1, "updates": 2}),
    "attribution": (32, {}),
}
"""Prompts of each of two tasks, and options. What checks cost does not grow with prompts."""
MINUTE = 60.0
CHECKS = (
    (trust, "check"),
    (trust, "weight_versions"),
    (slopes, "check"),
    (slopes, "check_task"),
    (ablation, "_can_replay"),
    (Model, "fingerprint"),
)


class Clock:
    """Seconds that some functions take; one that another calls counts once."""

    def __init__(self) -> None:
        self.seconds, self.inside = 0.0, False

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.inside:
                return function(*args, **kwargs)
            self.inside, start = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.inside = False
                self.seconds += time.perf_counter() - start

        return call


def rows() -> list[Row]:
    model = hw.load()
    return [
        Row(f"all checks of {method} for two tasks / a minute", shares(model, method), at_most=0.05)
        for method in WORK
    ]


def shares(model: Model, method: str) -> list[float]:
    """The checks' seconds in each round over a minute; the model is new to them every time."""
    count, options = WORK[method]
    tasks = [task.sample(count) for task in hw.tasks.suite("math-syntax")]
    ratios = []
    for _ in range(ROUNDS):
        clock = Clock()
        model.checked, model.replayed = None, -1
        with ExitStack() as stack:
            for owner, name in CHECKS:
                timed = clock.timed(getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, timed))
            hw.score(model, tasks, method, progress=False, **options)
            ratios.append(clock.seconds / MINUTE)
    return ratios
