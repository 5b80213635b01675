"""A run that heeds changed heads gives the scores of a model whose weights are changed so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from traitlets import TraitError

import headwidget as hw
from headwidget.live import run_settings
from headwidget.scores import provenance
from tests.support.lab_tools import TASKS, fresh, hooked

GATES = np.ones((3, 4), np.float32)
GATES[1, 2], GATES[0, 1], GATES[2, 0] = 0, 0.5, 2.5


def with_weights_changed() -> hw.Model:
    """A model whose output projections hold the gates."""
    model = fresh()
    with torch.no_grad():
        for row, layer in enumerate(model.layers):
            for head, gate in enumerate(GATES[row]):
                columns = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
                layer.projection.weight[:, columns] *= float(gate)
    return model


CASES: list[tuple[str, dict[str, Any]]] = [
    ("gradient", {}),
    ("gradient", {"abs": True}),
    ("ablation", {}),
    ("ablation", {"replace": "mean"}),
    ("ablation", {"where": "last"}),
    ("attribution", {}),
    ("gating", {"updates": 3, "fits": 2}),
    ("patterns", {}),
]


@pytest.mark.parametrize(("method", "options"), CASES)
def test_a_run_that_heeds_gates_scores_the_changed_model(
    method: str, options: dict[str, Any]
) -> None:
    expected = hw.score(with_weights_changed(), TASKS, method, progress=False, **options)
    model = fresh()
    lab = hw.live(model, TASKS, method, prompts=None, gates=GATES, heed_gates=True)
    assert lab.run(**options).wait(60) and lab.state == "done", lab._state
    assert lab.scores is not None
    plain = hw.score(model, TASKS, method, progress=False, **options)
    for task in expected.tasks:
        found = lab.scores.values(task)
        np.testing.assert_allclose(found, expected.values(task), atol=1e-5)
        assert not np.allclose(found, plain.values(task), atol=1e-3)
    assert lab.scores.record.heads_changed == ("L0 H1 × 0.5", "L1 H2 × 0", "L2 H0 × 2.5")
    assert ["heads changed", "L0 H1 × 0.5, L1 H2 × 0, L2 H0 × 2.5"] in provenance.about(lab.scores)
    assert not hooked(model)


def test_every_method_is_proven_or_refused() -> None:
    assert {method for method, _ in CASES} == set(run_settings.HEEDING)
    lab = hw.live(fresh(), TASKS, gates=GATES, heed_gates=True)
    probe: Any = SimpleNamespace(method=SimpleNamespace(name="probe"))
    with pytest.raises(ValueError, match="'probe' cannot score the model with its heads changed"):
        run_settings.heed(probe, GATES, True)
    with pytest.raises(TraitError, match="heed_gates is True or False"):
        lab.heed_gates = 1


def test_a_run_that_does_not_heed_them_says_so(tmp_path: Any) -> None:
    lab = hw.live(fresh(), TASKS, "attribution", prompts=None, gates=GATES)
    assert lab.run().wait(60) and lab.scores is not None
    assert lab.scores.record.heads_changed == () and lab.scores.record.heads_not_heeded == 3
    said = ["changes not heeded", "3 heads changed in the lab, scored unchanged"]
    assert said in provenance.about(lab.scores)
    lab.scores.save(tmp_path / "scores.safetensors")
    assert hw.open(tmp_path / "scores.safetensors").record.heads_not_heeded == 3
    lab.gates = np.ones((3, 4), np.float32)
    assert lab.run().wait(60) and lab.scores.record.heads_not_heeded is None


@pytest.mark.parametrize(("method", "options"), CASES)
def test_numbers_that_overflow_are_put_down_to_the_scaled_heads(
    method: str, options: dict[str, Any]
) -> None:
    gates = np.ones((3, 4), np.float32)
    gates[1, 1] = 3e38
    lab = hw.live(fresh(), TASKS, method, prompts=None, gates=gates, heed_gates=True)
    assert lab.run(**options).wait(60) and lab.state == "failed"
    message = lab._state["message"]
    assert "is not a number" in message
    assert "The likely cause is that heads are scaled: scale heads by less" in message
    assert "Every weight" not in message
