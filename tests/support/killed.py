"""Runs that are killed at random moments, until each has ended with the scores of one that was not.

``python -m tests.support.killed FOLDER KILLS`` forks a child a run from one warm interpreter,
and prints a line of JSON a case: how many were killed, and how many ended. It fails where scores,
record or steps differ.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headwidget.scoring import checkpoint
from tests.support import checkpoints, tiny
from tests.support.checkpoints import check_same, landed, prepared

TASKS = [checkpoints.task("one", 10), checkpoints.task("two", 10)]
CASES: dict[str, dict[str, Any]] = {
    "ablation, mean": {"batch_size": 1},
    "gradient": {"batch_size": 1},
    "probe, seeds": {"epochs": 20},
    "gating": {"updates": 12, "fits": 1},
}


def fork(work: Callable[[], None]) -> int:
    """Do ``work`` in a child, whose process id this is."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def killed(child: int, after: float) -> bool:
    """Kill the child; False where it had ended by then."""
    until = time.monotonic() + after
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.01))
        if ended(child, os.WNOHANG):
            return False
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    check(status)
    return False


def ended(child: int, how: int = 0) -> bool:
    pid, status = os.waitpid(child, how)
    if pid:
        check(status)
    return bool(pid)


def check(status: int) -> None:
    if status:
        sys.exit("a run went on to something else than the run that was not killed")


def case(name: str, folder: Path, kills: int) -> dict[str, Any]:
    """Kill runs of a case at random moments."""
    path, expected = folder / "run.ckpt", folder / "expected.pickle"
    options = {"tasks": TASKS, **CASES[name]}

    def plain() -> None:
        landed(prepared(name, **options))  # what is only slow at first
        began = time.monotonic()
        outcome = landed(prepared(name, **options))
        expected.write_bytes(pickle.dumps((*outcome, time.monotonic() - began)))

    def run() -> None:
        found, steps = landed(prepared(name, path, **options))
        scores, all_steps, _ = pickle.loads(expected.read_bytes())
        check_same(found, scores)
        assert abs(steps - all_steps) < 1e-6, (steps, all_steps)

    ended(fork(plain))
    seconds = pickle.loads(expected.read_bytes())[2]
    rng, done, finished, torn = random.Random(name), 0, 0, 0
    while done < kills:
        if killed(fork(run), rng.uniform(0, 0.8 * seconds)):
            done += 1
            torn += path.exists() and path.stat().st_size > 0
        else:
            finished += 1
            path.unlink()
    ended(fork(run))
    path.unlink()
    return {
        "case": name,
        "killed": done,
        "ended": finished + 1,
        "with a file": torn,
        "seconds": round(seconds, 2),
    }


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    checkpoint.STATE_SECONDS = 0.02
    tiny.model("llama")
    for name in CASES:
        print(json.dumps(case(name, folder, kills)), flush=True)


if __name__ == "__main__":
    main()
