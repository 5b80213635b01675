"""What must hold of any model that is scored, whatever its weights are."""

from __future__ import annotations

import numpy as np
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.scoring.encode import encode
from tests.support.plain import ablation_by_loop, slopes_by_steps


def gates_of_one_change_nothing(model: hw.Model, ids: torch.Tensor) -> None:
    """Bit for bit; gates of 0 change the logits."""
    with torch.no_grad():
        plain = model.module(input_ids=ids).logits
        with hooks.gate(model, torch.ones(model.shape)):
            assert torch.equal(model.module(input_ids=ids).logits, plain)
        with hooks.gate(model, torch.zeros(model.shape)):
            assert not torch.allclose(model.module(input_ids=ids).logits, plain, atol=0.1)


def contributions_sum_to_the_output(model: hw.Model, ids: torch.Tensor) -> None:
    """What the heads of a layer write, and the bias, is what its projection gives."""
    z: dict[int, torch.Tensor] = {}
    outputs: dict[int, torch.Tensor] = {}
    with torch.no_grad(), hooks.read(model, lambda row, value: z.update({row: value})):
        watches = [
            layer.projection.register_forward_hook(
                lambda _m, _a, out, row=row: outputs.update({row: out})
            )
            for row, layer in enumerate(model.layers)
        ]
        model.module(input_ids=ids)
        for watch in watches:
            watch.remove()
    assert len(z) == len(outputs) == len(model.layers)
    for row, layer in enumerate(model.layers):
        total = torch.einsum("bshd,hdw->bsw", z[row], layer.w_o()) + layer.projection.bias
        torch.testing.assert_close(total, outputs[row], rtol=1e-4, atol=1e-4)


def scores_are_those_of_plain_loops(model: hw.Model, task: hw.Task) -> None:
    """Ablation by one forward a head, gradient by a small step of every gate."""
    assert encode(task, model).examples, "no prompt was left"
    for method, definition in (("ablation", ablation_by_loop), ("gradient", slopes_by_steps)):
        ours = hw.score(model, task, method, progress=False).values(task.name)
        expected = definition(model, task)
        size = np.abs(expected).max()
        assert size > 0.01, "some head must matter"
        np.testing.assert_allclose(ours, expected, rtol=5e-3, atol=2e-3 * size)
