"""A model that carries hooks of its user's own, or whose answers depend on their surroundings.

Each is scored equal to the definition by a plain loop, or refused with a sentence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headwidget as hw
from headwidget.models import hooks
from tests.support import tiny
from tests.support.own_model import OTHERS, PROMPTS, fresh, load, scored, steer
from tests.support.plain import ablation_by_loop, slopes_by_steps

# ---- hooks of the user's ----


@pytest.mark.parametrize("family", OTHERS)
def test_a_hook_on_the_last_position_never_hits_padding(family: str) -> None:
    model = load(fresh(family))
    plain = scored(model, "ablation")
    model.blocks[1].register_forward_hook(steer)
    for method, definition in (("ablation", ablation_by_loop), ("gradient", slopes_by_steps)):
        expected = definition(model, PROMPTS)
        np.testing.assert_allclose(scored(model, method), expected, rtol=5e-3, atol=2e-3)
    assert np.abs(scored(model, "ablation") - plain).max() > 0.01, "the hook must matter"


@pytest.mark.parametrize("where", ["all", "last"])
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_a_hook_before_the_output_projection_runs_once(where: str, replace: str) -> None:
    model = load(fresh())
    model.layers[1].projection.register_forward_pre_hook(lambda _, args: (args[0] * 2 + 0.3,))
    expected = ablation_by_loop(model, PROMPTS, where=where, replace=replace)
    ours = scored(model, "ablation", where=where, replace=replace)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_hooks_that_pass_a_value_from_layer_to_layer_find_it_in_its_place() -> None:
    kept: list[torch.Tensor] = []
    model = load(fresh())

    def keep(_: nn.Module, args: Any, output: torch.Tensor) -> None:
        kept[:] = [output]

    model.blocks[0].register_forward_hook(keep)
    model.blocks[2].register_forward_hook(lambda _m, _a, output: output + 0.5 * kept[0])
    np.testing.assert_allclose(
        scored(model, "ablation"), ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4
    )


def test_scores_name_the_hooked_modules_and_say_how_prompts_were_run() -> None:
    model = load(fresh())
    handle = model.blocks[1].register_forward_hook(lambda *_: None)
    scores = hw.score(model, PROMPTS, progress=False)
    assert scores.record.hooks == ("model.layers.1",) and scores.record.one_by_one
    from headwidget.scores.provenance import about

    card: dict[str, str] = dict(about(scores))
    assert card["hooks of the user's"] == "model.layers.1"
    assert card["prompts"] == "one at a time"
    handle.remove()
    after = hw.score(model, PROMPTS, progress=False)
    assert after.record.hooks == () and after.record.one_by_one is None
    with pytest.raises(ValueError, match=r"hooks is \['model.layers.1'\] here and None there"):
        scores + after
    with pytest.warns(UserWarning, match=r"made with hooks on model.layers.1, and .* nothing\."):
        hw.knockout(model, scores, PROMPTS, k=1, draws=1, progress=False)


def test_a_replaced_forward_and_hooks_on_all_modules_count_as_hooks() -> None:
    model = load(fresh())
    assert model.hooked == ()
    mlp = model.blocks[0].mlp
    mlp.forward = lambda x: x * 2
    assert model.hooked == ("model.layers.0.mlp",)
    del mlp.forward
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert model.hooked == ("every module",) and model.one_by_one
    finally:
        handle.remove()
    assert not model.one_by_one


def test_hooks_of_headwidget_accelerate_and_transformers_do_not_count() -> None:
    module = fresh()
    module.enable_input_require_grads()  # a hook of transformers
    model = load(module)
    with hooks.gate(model, torch.ones(model.shape)), hooks.stand_in(model.blocks[0], lambda: 0):
        assert model.hooked == ()


@pytest.mark.parametrize(
    "place", ["model", "model.layers.1", "model.layers.1.self_attn", "model.norm", "lm_head"]
)
def test_attribution_refuses_a_hook_between_a_head_and_the_logits(place: str) -> None:
    model = load(fresh())
    model.module.get_submodule(place).register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=f"but {place} carries a hook that is not headwidget's"):
        scored(model, "attribution")


def test_attribution_takes_a_hook_beside_that_way() -> None:
    model = load(fresh())
    before = scored(model, "attribution")
    model.blocks[1].mlp.register_forward_hook(lambda _m, _a, out: out)
    np.testing.assert_allclose(scored(model, "attribution"), before, rtol=1e-4, atol=1e-5)


def test_relations_refuses_a_hook_on_the_first_mlp() -> None:
    from tests.support.words import following, made

    model = load(made("llama").module)
    model.tokenizer = made("llama").tokenizer
    handle = model.blocks[0].mlp.register_forward_hook(steer)
    with pytest.raises(ValueError, match=r"model.layers.0.mlp of .* carries a hook that is not"):
        hw.score(model, following(), "relations", progress=False)
    hw.score(model, following(), "relations", progress=False, mlp=False)
    handle.remove()


def test_a_model_that_answers_at_random_is_refused() -> None:
    model = load(fresh())
    model.blocks[0].mlp.register_forward_hook(lambda _m, _a, out: out + torch.randn_like(out))
    sentence = r"two different answers .* hooks on model.layers.0.mlp"
    options = {"probe": {"folds": 2}}
    for method in ("ablation", "gradient", "attribution", "probe", "gating", "patterns"):
        with pytest.raises(RuntimeError, match=sentence):
            tasks = [tiny.task(), tiny.task("more")]
            hw.score(model, tasks, method, progress=False, **options.get(method, {}))


class Mixing(nn.Module):
    """An MLP that lets positions see each other, padding too."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.inner(x)
        return out + out.mean(1, keepdim=True)


def test_a_model_whose_answer_depends_on_its_batch_runs_prompts_alone() -> None:
    module = fresh()
    module.model.layers[2].mlp = Mixing(module.model.layers[2].mlp)
    model = load(module)
    ours = scored(model, "ablation")
    assert model.batch_dependent
    np.testing.assert_allclose(ours, ablation_by_loop(model, PROMPTS), rtol=1e-4, atol=1e-4)


def test_a_model_that_cannot_be_replayed_is_run_whole() -> None:
    """Prompts of one length do not disturb each other, but the last block needs all positions."""
    module = fresh()
    module.model.layers[2].mlp = Mixing(module.model.layers[2].mlp)
    model = load(module)
    task = hw.Task("letters", [("abcd", "e"), ("bcde", "f")])
    ours = hw.score(model, task, "ablation", progress=False).values("letters")
    assert not model.batch_dependent
    np.testing.assert_allclose(ours, ablation_by_loop(model, task), rtol=1e-4, atol=1e-4)
