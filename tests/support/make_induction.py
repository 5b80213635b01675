"""Makes tests/data/induction.safetensors: a Llama of two layers without MLPs (theirs are
zero), trained to continue random tokens that repeat.

`python -m tests.support.make_induction` takes about a minute on one core. The period of the
repetition changes from line to line, so that positions alone do not give the answer:
the next token is found by looking for an earlier copy of this one and taking what
followed it, which needs a previous-token head below. With this seed all four heads of
the upper layer become induction heads, and one of the lower layer's their
previous-token head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.support import tiny

FILE = Path(__file__).parents[1] / "data" / "induction.safetensors"
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 1,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "tie_word_embeddings": False,
}
STEPS, LINES, TOKENS = 2000, 32, 48


def module() -> Any:
    """The trained model, in float32."""
    model = tiny.build("llama", **SIZES)
    kept = {name: value.float() for name, value in load_file(FILE).items()}
    model.load_state_dict(kept, strict=True)
    return model


def lines(count: int, tokens: int, seen: torch.Generator) -> tuple[Tensor, Tensor]:
    """Token ids (count, tokens), each line repeating a random beginning; and 1 where the
    next token can be known, (count, tokens - 1)."""
    first = len(tiny.SPECIAL)
    period = torch.randint(6, 24, (count, 1), generator=seen)
    at = torch.arange(tokens)[None]
    start = (
        torch.stack(
            [torch.randperm(tiny.VOCABULARY - first, generator=seen)[:24] for _ in range(count)]
        )
        + first
    )
    return start.gather(1, at % period), (at[:, 1:] >= period + 1).float()


def train() -> Any:
    """Cross-entropy where the next token can be known, Adam, everything but the MLPs."""
    model = tiny.build("llama", **SIZES)
    for block in model.model.layers:
        block.mlp.down_proj.weight.data.zero_()
    wanting = [p for name, p in model.named_parameters() if "mlp" not in name]
    optimiser = torch.optim.AdamW(wanting, lr=3e-3, betas=(0.9, 0.99), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=STEPS, pct_start=0.1)
    seen = torch.Generator().manual_seed(0)
    for step in range(STEPS):
        ids, predictable = lines(LINES, TOKENS, seen)
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
        )
        loss = (loss * predictable.flatten()).sum() / predictable.sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
        if step % 200 == 0 or step == STEPS - 1:
            right = ((logits.argmax(-1) == ids[:, 1:]) * predictable).sum() / predictable.sum()
            print(f"step {step}: loss {loss.item():.3f}, right {right.item():.2f}", flush=True)
    return model


if __name__ == "__main__":
    torch.set_num_threads(1)
    FILE.parent.mkdir(exist_ok=True)
    save_file(
        {name: value.half().contiguous() for name, value in train().state_dict().items()}, FILE
    )
