"""Patterns: one layer's attention weights at a time, against plain forwards of the same
prompts and against eager attention that gives all of them away.

Times, and peak memory above the loaded model, each in a process of its own (Linux).
Patterns unembed one position of a prompt, the other two all.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import torch

import headwidget as hw
from benchmarks.memory import memory
from benchmarks.timing import Row, against
from benchmarks.workload import TOKENS, plain_forward, task
from headwidget.methods.patterns import METHOD, PATTERNS, Patterns, shows
from headwidget.models import Model, embedded
from headwidget.scoring.batch import batches
from headwidget.scoring.contract import Job
from headwidget.scoring.encode import EncodedTask

LONG, FEW = 256, 8


def rows() -> list[Row]:
    peak = {call: measured(call) for call in ("plain", "patterns", "eager")}
    print(
        f"A plain forward of {FEW} x {LONG} tokens peaks {peak['plain']:.0f} MB "
        "above the loaded model.\n"
    )
    model, eager = loaded("plain"), loaded("eager")
    return [
        *(
            row
            for tokens, size in ((TOKENS, 32), (LONG, FEW))
            for row in compared(model, eager, tokens, size)
        ),
        Row(
            f"patterns: peak memory above the model / a plain forward's, {FEW} x {LONG} tokens",
            [peak["patterns"] / peak["plain"]],
        ),
        Row("eager attention with output_attentions: the same", [peak["eager"] / peak["plain"]]),
    ]


def loaded(call: str) -> Model:
    return hw.load(embedded.folder(), attn_implementation="eager") if call == "eager" else hw.load()


def workload(model: Model, tokens: int, size: int) -> list[EncodedTask]:
    """``size`` prompts of random tokens, each for all patterns that it shows."""
    prompts = task("random", 0, tokens, model.config.vocab_size).examples[:size]
    prompts = tuple(
        dataclasses.replace(e, ids=(*e.ids[: tokens // 2], *e.ids[: tokens // 2])) for e in prompts
    )  # said twice
    return [
        EncodedTask(name, None, prompts, (), 0)
        for name in PATTERNS
        if shows(name, prompts[0], False)
    ]


def scored(model: Model, tasks: list[EncodedTask]) -> None:
    for _ in METHOD.run(Job(model, tuple(tasks), len(tasks[0].examples), Patterns())):
        pass


def all_given_away(eager: Model, tasks: list[EncodedTask]) -> None:
    """What peers do: every layer's weights at once; no pattern is read from them."""
    (batch,) = batches(tasks[0].examples, eager, len(tasks[0].examples))
    with torch.inference_mode():
        eager.module(input_ids=batch.ids, use_cache=False, output_attentions=True)


def compared(model: Model, eager: Model, tokens: int, size: int) -> list[Row]:
    tasks = workload(model, tokens, size)
    (batch,) = batches(tasks[0].examples, model, size)
    calls = {
        "patterns": lambda: scored(model, tasks),
        "eager": lambda: all_given_away(eager, tasks),
    }
    ratios = against(lambda: plain_forward(model, batch.ids), calls, rounds=3)
    return [
        Row(
            f"patterns of all heads / plain forward, {size} x {tokens} tokens",
            ratios["patterns"],
            at_most=1.5,
        ),
        Row(
            "eager attention with output_attentions, no pattern read / plain forward",
            ratios["eager"],
        ),
    ]


def measured(call: str) -> float:
    """What one call adds to a fresh process's memory at its peak, MB."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.patterns", call],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def peak(call: str) -> float:
    """What one call adds to this process's memory at its peak, MB."""
    model = loaded(call)
    tasks = workload(model, LONG, FEW)
    (batch,) = batches(tasks[0].examples, model, FEW)
    plain_forward(model, batch.ids[:1, :2])  # what a first forward sets up is no one's peak
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = memory("VmRSS")
    {
        "plain": lambda: plain_forward(model, batch.ids),
        "patterns": lambda: scored(model, tasks),
        "eager": lambda: all_given_away(model, tasks),
    }[call]()
    return memory("VmHWM") - before


if __name__ == "__main__":
    print(peak(sys.argv[1]))
