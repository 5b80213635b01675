"""Do the heads that a method finds matter? The cognitive suite, four methods, top heads
off beside random heads: `python -m benchmarks.knockout`.

Prints the table of docs/knockout.md, log-probability and accuracy. Half an hour on two
cores, most of it ablation and the knock-outs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import headwidget as hw

PROMPTS = {"ablation": 8, "gradient": 24, "attribution": 24, "probe": 64}
"""Prompts of each task that a method sees: ablation costs a hundred times the others."""


def main(folder: Path) -> None:
    """Scores are kept in ``folder``, and read from there when they exist."""
    model, tasks = hw.load(), hw.tasks.suite("cognitive")
    scores = {}
    for method, prompts in PROMPTS.items():
        path = folder / f"cognitive-{method}.safetensors"
        start = time.monotonic()
        if not path.exists():
            hw.score(
                model, [task.sample(prompts) for task in tasks], method=method, progress=False
            ).save(path)
        scores[method] = hw.open(path)
        print(f"{method}: {prompts} prompts a task, {time.monotonic() - start:.0f} s", flush=True)
    print(scores["probe"].meta["probe"], scores["probe"].meta["floor"], sep="\n")
    start = time.monotonic()
    effect = hw.knockout(
        model, scores, tasks, k=(1, 4, 16), draws=5, prompts=20, others="top", progress=False
    )
    print(f"knock-out: {time.monotonic() - start:.0f} s\n", flush=True)
    effect.frame.drop(columns="heads").to_csv(folder / "knockout.csv", index=False)
    print(effect.untouched.to_string(index=False), "\n")
    for measure in ("log_probability", "accuracy"):
        summary = effect.summary(measure)
        print(measure, summary.to_string(index=False, float_format=lambda x: f"{x:.2f}"), sep="\n")
        print(
            summary.groupby(["method", "k"])["beats_control"].agg(["sum", "count"]).to_string(),
            "\n",
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
