"""What gating's quick preset gives up: the published schedule and the quick one on the
same prompts, the same held out: `python -m benchmarks.schedule`.

Prints the tables of docs/gating.md. One published fit of one task takes half an hour or
so on two cores; each is kept as it is done.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import numpy as np

import headwidget as hw
from headwidget.charts.scatter_chart import spearman

PUBLISHED, QUICK = 1, 4
"""Fits of each preset."""
HELD_OUT = 5
"""Every so-manieth prompt is held out."""


def main(folder: Path) -> None:
    """Scores are kept in ``folder``, and read from there when they exist."""
    model = hw.load()
    tasks = [
        hw.Task(t.name, t.examples, t.category, held_out=range(0, len(t), HELD_OUT))
        for t in hw.tasks.suite("math-syntax")
    ]
    scores: dict[tuple[str, str], list[hw.HeadScores]] = {}
    wanted = [("quick", QUICK, 0), *(("published", 1, seed) for seed in range(PUBLISHED))]
    for (preset, fits, seed), task in itertools.product(wanted, tasks):
        path = folder / f"gating-{preset}-{task.name}-{seed}.safetensors"
        if not path.exists():
            start = time.monotonic()
            hw.score(
                model,
                task.split()[0],
                method="gating",
                preset=preset,
                fits=fits,
                seed=seed,
                progress=False,
            ).save(path)
            print(
                f"{preset}, {task.name}, {fits} fits, seed {seed}: "
                f"{time.monotonic() - start:.0f} s",
                flush=True,
            )
        scores.setdefault((task.name, preset), []).append(hw.open(path))
    for task in tasks:
        report(
            model, task, {preset: scores[task.name, preset] for preset in ("quick", "published")}
        )


def report(model: hw.Model, task: hw.Task, scores: dict[str, list[hw.HeadScores]]) -> None:
    """Whether the heads kept are enough, on prompts that were fitted on and on others; and
    how alike the fits are."""
    gates = {
        preset: np.concatenate([fits.values(task.name) for fits in fitted])
        for preset, fitted in scores.items()
    }  # (fit, layer, head)
    for preset, fitted in scores.items():
        for which, part in zip(("fitted on", "held out"), task.split()):
            for fits in fitted:
                frame = hw.keep_only(model, fits, part, draws=3, progress=False)
                rows = (
                    frame.groupby("kind", sort=False)[["heads", "accuracy", "log_probability"]]
                    .mean()
                    .round(3)
                )
                print(
                    f"\n{task.name}, {preset}, seed {fits.meta['seed']}, "
                    f"prompts {which} ({len(part)})",
                    rows.to_string(),
                    sep="\n",
                    flush=True,
                )
        on = gates[preset] >= 0.5
        settled = np.mean((gates[preset] < 0.1) | (gates[preset] > 0.9))
        print(
            f"{preset}: always on {on.all(0).sum()}, on in some fit {on.any(0).sum()}, "
            f"gates below 0.1 or above 0.9: {settled:.0%}"
        )
    for a, b in (("quick", "quick"), ("quick", "published"), ("published", "published")):
        pairs = [
            (i, j) for i in range(len(gates[a])) for j in range(len(gates[b])) if a != b or i < j
        ]
        if pairs:
            each = [spearman(gates[a][i].ravel(), gates[b][j].ravel())[0] for i, j in pairs]
            print(
                f"{task.name}: rank correlation of facilitation, a fit of {a} with one of {b}: "
                f"mean {np.mean(each):.2f} ({min(each):.2f} to {max(each):.2f})"
            )
    both = spearman(*(gates[preset].mean(0).ravel() for preset in ("quick", "published")))[0]
    print(f"{task.name}: of the mean over the fits, quick with published: {both:.2f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
