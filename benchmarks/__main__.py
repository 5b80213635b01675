"""`make bench`: a table of ratios on the embedded model, each side measured in the same
run, medians of several; then the browser's times and bytes.

Machine and versions stand on top. Names choose parts: `python -m benchmarks browser`,
or `speed`, `trust`, `loading`, `probe`, `gating`, `patterns`, `relations`, `memory`,
`many_runs`, `live`.
"""

from __future__ import annotations

import platform
import statistics
import sys

import torch
import transformers

from benchmarks import (
    browser,
    gating,
    live,
    loading,
    many_runs,
    memory,
    patterns,
    probe,
    relations,
    speed,
    trust,
)
from benchmarks.timing import Row


def main() -> None:
    only = sys.argv[1:]
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, {platform.system()}"
    print(
        f"# {machine}; python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}\n"
    )
    for part in (speed, trust, loading, probe, gating, patterns, relations, memory, many_runs):
        if not only or part.__name__.removeprefix("benchmarks.") in only:
            show(part.rows())
    if not only or "browser" in only:
        browser.show()
    if not only or "live" in only:
        live.show()


def show(rows: list[Row]) -> None:
    print(f"| {'what':<78} | {'ratio':>7} | {'of each run':<26} | {'promise':<9} | kept |")
    print(f"|{'-' * 80}|{'-' * 8}:|{'-' * 28}|{'-' * 11}|------|")
    for row in rows:
        each = " ".join(f"{r:.3g}" for r in row.ratios)
        print(
            f"| {row.what:<78} | {statistics.median(row.ratios):>7.3g} | {each:<26} "
            f"| {row.promise:<9} | {row.verdict():<4} |",
            flush=True,
        )
    print()


if __name__ == "__main__":
    main()
