"""Peak memory: what a method needs on top of the loaded model, against a plain forward of
the same batch; each in a process of its own (Linux)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Row

CALLS = {
    "plain": "",
    "attribution": "attribution: peak memory above the loaded model / that of a plain forward",
    "gradient": "gradient: the same",
    "ablation": "ablation: the same",
    "lens": "TransformerLens, cache of everything: the same",
}


def rows() -> list[Row]:
    peak = {call: measured(call) for call in CALLS}
    print(
        f"A plain forward of 32 x 32 tokens peaks {peak['plain']:.0f} MB above the loaded model.\n"
    )
    return [Row(what, [peak[call] / peak["plain"]]) for call, what in CALLS.items() if what]


def measured(call: str) -> float:
    """What one call adds to a fresh process's memory at its peak, MB."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", call],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def prepared(call: str) -> Callable[[], object]:
    """Load all that the call needs, and give the call."""
    import torch

    import headwidget as hw
    from benchmarks.workload import batch_of, plain_forward, workloads
    from headwidget.models import embedded, hooks
    from headwidget.scoring import registry
    from headwidget.scoring.contract import Job
    from headwidget.scoring.replay import Replay

    model = hw.load()
    work, _ = workloads(model)
    ids = batch_of(model, work).ids
    plain_forward(model, ids[:1, :2])  # what a first forward sets up is no one's peak

    def scored() -> None:
        method = registry.find(call)
        list(method.run(Job(model, (work,), len(work.examples), method.options())))

    def ablated() -> None:
        replay = Replay(model, range(len(work.examples)), work.examples)
        with hooks.scoring(model):
            for _ in range(3):
                replay.step()
                replay.without(range(model.n_heads))

    if call.startswith("gating"):
        from benchmarks.gating import PROMPTS, ours, peer_of

        peer, gates = peer_of(model, work.examples[:PROMPTS])
        fits = ours(model, work.examples[:PROMPTS], gates())
        return peer if call == "gating peer" else lambda: fits.update(1.0)
    if call == "lens":
        from transformer_lens.model_bridge import TransformerBridge

        peer = TransformerBridge.boot_transformers(str(embedded.folder()), device="cpu")
        return torch.inference_mode()(lambda: peer.run_with_cache(ids))
    return {"plain": lambda: plain_forward(model, ids), "ablation": ablated}.get(call, scored)


def memory(kind: str) -> float:
    """VmRSS (now) or VmHWM (the peak) of this process, MB."""
    status = dict(
        line.split(":", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":" in line
    )
    return float(status[kind].split()[0]) / 1024


if __name__ == "__main__":
    run = prepared(sys.argv[1])
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = memory("VmRSS")
    run()
    print(memory("VmHWM") - before)
