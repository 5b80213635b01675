"""`hw.explore` of 200,000 runs: its time, and its peak of memory above the scores (Linux)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import headwidget as hw
from benchmarks.memory import memory
from benchmarks.timing import Row, seconds

SHAPE = (200_000, 12, 12)
SECONDS = 2.0
ROUNDS = 3


def scores() -> hw.HeadScores:
    values = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    return hw.HeadScores.from_arrays({"task": values}, method="mine")


def rows() -> list[Row]:
    shown = scores()
    times = [seconds(lambda: hw.explore(shown)) / SECONDS for _ in range(ROUNDS)]
    peak = subprocess.run(
        [sys.executable, "-m", "benchmarks.many_runs"], capture_output=True, text=True, check=True
    )
    size = shown.values("task").nbytes / 2**20
    what = f"explore, {SHAPE[0]:,} runs of {SHAPE[1]} x {SHAPE[2]} heads"
    return [
        Row(f"{what}: time / {SECONDS:g} s", times, at_most=1),
        Row(
            f"the same: peak memory above the scores / theirs ({size:.0f} MB)",
            [float(peak.stdout) / size],
            at_most=0.5,
        ),
    ]


if __name__ == "__main__":
    large = scores()
    hw.explore(
        hw.HeadScores.from_arrays({"task": [[1.0]]}, method="mine")
    )  # what a first one loads
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = memory("VmRSS")
    hw.explore(large)
    print(memory("VmHWM") - before)
