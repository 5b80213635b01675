"""``make fuzz-models``: many random compositions, each checked against the definitions.

Compositions are numbered by their seeds. Child processes check some seeds each, so that a
crash costs one composition: its seed is reported and the run goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.support import sixteen_bit

CHUNK = 25
"""Seeds a child process checks."""
SECONDS = 600
"""How long one composition may take before its process is ended."""


def main() -> int:
    """Check what the command line asks for; the number of faults decides the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many seeds")
    parser.add_argument("--minutes", type=float, default=60, help="begin no seeds after this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--composition", help="check this one, as it was printed")
    parser.add_argument("--check", action="append", help="with --composition: only this check")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sixteen_bit.limit_where_it_does_not_work()  # before torch is imported
    logging.disable(logging.WARNING)
    if asked.child:
        return _child(*asked.child)
    if asked.composition:
        return _one(asked.composition, asked.check)
    return _Run(asked).run()


def _one(text: str, checks: list[str] | None) -> int:
    """One composition, every verdict printed."""
    from tests.fuzz.property import examine
    from tests.support.compositions import Composition

    verdicts = examine(Composition.parse(text), checks)
    print("\n".join(map(str, verdicts)))
    return int(any(verdict.kind == "fault" for verdict in verdicts))


def _child(first: int, last: int) -> int:
    """Check some seeds; a line of JSON before and after each."""
    import torch

    from tests.fuzz.property import examine
    from tests.fuzz.shrink import Faults, actions, kind
    from tests.support.compositions import Composition

    torch.set_num_threads(1)
    faults = Faults()
    for seed in range(first, last):
        _say({"begins": seed})
        composition = Composition.draw(seed)
        rows = []
        for verdict in examine(composition):
            row = {"check": verdict.check, "kind": verdict.kind, "text": verdict.text}
            if verdict.kind == "fault":
                least = faults.smallest(composition, verdict)
                cause = ", ".join(sorted(actions(least))) or "nothing but the model"
                row |= {"smallest": str(least), "cause": cause, "sort": kind(verdict)}
            rows.append(row)
        _say({"seed": seed, "composition": str(composition), "verdicts": rows})
    return 0


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


@dataclass
class _Group:
    """Faults of one cause."""

    smallest: str
    text: str
    checks: dict[str, None] = field(default_factory=dict)
    seeds: dict[int, None] = field(default_factory=dict)


class _Run:
    """All seeds that were asked for, and what came of them."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.ends = asked, time.monotonic() + 60 * asked.minutes
        self.counts: Counter[tuple[str, str]] = Counter()
        self.groups: dict[tuple[str, str], _Group] = {}
        self.refusals: Counter[str] = Counter()
        self.done, self.next = 0, asked.start
        self.lock = threading.Lock()

    def run(self) -> int:
        with ThreadPoolExecutor(self.asked.jobs) as pool:
            list(pool.map(self._work, range(self.asked.jobs)))
        self._report()
        return int(bool(self.groups))

    def _work(self, _: int) -> None:
        """Take chunks of seeds until there are none, or no time."""
        end = self.asked.start + self.asked.count
        while True:
            with self.lock:
                first = self.next
                if first >= end or time.monotonic() > self.ends:
                    return
                self.next = min(end, first + CHUNK)
                last = self.next
            while first < last:
                first = self._process(first, last)

    def _process(self, first: int, last: int) -> int:
        """One child process from ``first`` on; the seed behind the last that it did."""
        command = [sys.executable, "-m", "tests.fuzz", "--child", str(first), str(last)]
        seed = first
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process:
                for line in _lines(process):
                    if "begins" in line:
                        seed = line["begins"]
                    else:
                        self._take(line)
            errors.seek(0)
            last_words = (errors.read().strip().splitlines() or [""])[-1]
        if process.returncode == 0:
            return last
        crash = f"the process ended with {process.returncode}: {last_words[:120]}"
        row = {"sort": crash, "cause": f"seed {seed}", "smallest": f"seed {seed}", "check": "any"}
        self._fault({**row, "text": crash}, seed)
        return seed + 1

    def _take(self, line: dict[str, Any]) -> None:
        with self.lock:
            self.done += 1
            if self.done % 50 == 0:
                print(f"{self.done} compositions", flush=True)
            for row in line["verdicts"]:
                self.counts[row["check"], row["kind"]] += 1
                if row["kind"] == "refused":
                    self.refusals[row["text"][:110]] += 1
        for row in line["verdicts"]:
            if row["kind"] == "fault":
                self._fault(row, line["seed"])

    def _fault(self, row: dict[str, str], seed: int) -> None:
        """Note a fault, and print it where it is the first of its cause."""
        with self.lock:
            key = (row["sort"], row["cause"])
            if key not in self.groups:
                self.groups[key] = _Group(row["smallest"], row["text"])
                print(
                    f"seed {seed}, {row['check']}: {row['text']}\n    {row['smallest']}", flush=True
                )
            self.groups[key].checks[row["check"]] = None
            self.groups[key].seeds[seed] = None

    def _report(self) -> None:
        checks = dict.fromkeys(check for check, _ in self.counts)
        kinds = ("equal", "refused", "fault", "unbuildable")
        print(f"\n{'check':20}" + "".join(f"{kind:>12}" for kind in kinds))
        for check in checks:
            numbers = "".join(f"{self.counts[check, kind]:12}" for kind in kinds)
            print(f"{check:20}{numbers}")
        print("\nrefused most often:")
        for sentence, count in self.refusals.most_common(12):
            print(f"{count:6}  {sentence}")
        if self.groups:
            print("\nfaults, most frequent first; show one with")
            print("    python -m tests.fuzz --composition '…' --check …")
        for (sort, cause), group in sorted(
            self.groups.items(), key=lambda item: -len(item[1].seeds)
        ):
            print(f"{len(group.seeds):6}  {cause}: {sort}")
            print(f"        {group.smallest}  ({', '.join(group.checks)})")
        last = self.asked.start + self.asked.count
        print(f"\n{self.done} compositions, {len(self.groups)} faults", end="")
        print("." if self.next >= last else f"; go on with START={self.next}.")


def _lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """A child's lines; it is ended where a composition takes too long."""
    assert process.stdout is not None
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        for text in process.stdout:
            timer.cancel()
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            if text.startswith("{"):
                yield json.loads(text)
    finally:
        timer.cancel()


if __name__ == "__main__":
    sys.exit(main())
