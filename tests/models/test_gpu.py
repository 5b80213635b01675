"""GPU discipline without a GPU.

A fake cuda device refuses to mix devices or look at values; host syncs are counted, those of
a backward included.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring import registry
from headwidget.scoring.batch import batches, forward, log_probability
from headwidget.scoring.contract import Chunk, Job
from headwidget.scoring.encode import EncodedTask, encode
from headwidget.scoring.replay import Replay
from tests.support import tiny
from tests.support.gpu import Syncs, copies_to_host, faked_copies_to_host, on_cuda

FEW_SHOT = hw.Task(
    "letters",
    [
        ("ab: ba, cd: dc, xy:", " yx", " xx"),
        ("ab: ba, cd: dc, pqr:", " r", " q"),
        ("ab: ba, cd: dc, m:", " mm", " nn"),
    ],
)


def test_the_fake_device_refuses_what_a_gpu_would_be_slow_at(fake_cuda: None) -> None:
    x = torch.ones(2)
    for bad in (
        lambda: x.sum().item(),
        lambda: bool(x.any()),
        lambda: x[x > 0],
        lambda: x.nonzero(),
    ):
        with pytest.raises(Exception):  # noqa: B017  (torch raises a type of its own for each)
            bad()
    with pytest.raises(RuntimeError, match="device"):
        _ = x + torch.ones(2, device="cpu")


@pytest.mark.parametrize(
    "family",
    [
        "llama",
        "mistral",
        "qwen3",
        "gemma2",
        "gemma3_text",
        "phi",
        "phi3",
        "olmo2",
        "gpt2",
        "gpt_neox",
        "opt",
        "falcon",
        "bloom",
        "bert",
    ],
)
def test_forward_only_methods_run_on_fake_cuda(fake_cuda: None, family: str) -> None:
    model = on_cuda(family)
    task = encode(FEW_SHOT, model)
    with hooks.scoring(model):
        for batch in batches(task.examples, model, None):
            with hooks.gate(
                model,
                torch.ones(len(batch.runs), *model.shape),
                fill=torch.zeros(*model.shape, model.head_dim),
            ):
                assert log_probability(forward(model, batch), batch).device.type == "cuda"
    replay = Replay(model, [0, 1, 2], task.examples)
    with hooks.scoring(model):
        for _ in model.layers:
            layer = replay.step()
            assert replay.without(range(layer.heads)).device.type == "cuda"
            assert (
                replay.without(
                    range(layer.heads), torch.zeros(layer.heads, layer.head_dim), answer_only=True
                ).device.type
                == "cuda"
            )
        assert replay.finish().shape == (3,)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "falcon"])
def test_attribution_runs_on_fake_cuda(
    fake_cuda: None, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        torch, "allclose", lambda *a, **k: True
    )  # the norm is checked once, before the loop
    devices = faked_copies_to_host(monkeypatch)
    model = on_cuda(family)
    method = registry.find("attribution")
    assert (
        len(list(method.run(Job(model, (encode(FEW_SHOT, model),), None, method.options())))) == 1
    )
    assert devices == ["cuda"]


@pytest.mark.parametrize(
    ("method", "size"), [("ablation", None), ("ablation", 1), ("gradient", 1), ("attribution", 1)]
)
@pytest.mark.parametrize(
    "family", ["llama", "gemma2", "gpt_neox", "gpt2", "opt", "falcon", "mixtral"]
)
def test_no_method_syncs_with_the_host_beyond_once_a_chunk(
    family: str, method: str, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hw.load(tiny.build(family), tiny.tokenizer())
    model.config.pad_token_id = (
        None  # with one, GPT-2's own forward looks for padding in its input, and the host waits
    )
    found = registry.find(method)
    task: EncodedTask = encode(FEW_SHOT, model)
    options = registry.options(found, {"replace": "mean"} if method == "ablation" else {})
    run = found.run(Job(model, (task,), size, options))
    first = next(run)  # what is checked before the loop may sync
    copies = copies_to_host(monkeypatch)
    with Syncs() as syncs:
        chunks = [item for item in run if isinstance(item, Chunk)]
    assert first.values.shape[-1] == model.n_heads
    expected = {1: 8, None: 2}[size] if method == "ablation" else 2
    assert len(chunks) == expected
    assert sum(syncs.counts.values()) == 0, syncs.counts
    assert len(copies) == len(chunks)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_the_sync_counter_counts(mode: Any) -> None:
    with mode(), Syncs() as syncs:
        x = torch.ones(3)
        x.sum().item()
        x[x > 0]
        x.nonzero()
    assert sum(syncs.counts.values()) == 3, syncs.counts
