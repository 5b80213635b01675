"""Ablation equals the plain loop, gradient the finite difference, attribution its definition.

A planted head is found by each.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.models import hooks
from headwidget.models.norms import FrozenNorm
from headwidget.scoring.batch import Batch, collate, forward, log_probability
from headwidget.scoring.encode import encode
from headwidget.scoring.prefix import shared_prefix
from headwidget.scoring.replay import Replay
from tests.support import tiny
from tests.support.definitions import answered, one_forward_per_head
from tests.support.planted import planted

TOLERANCE = 1e-4


def values(
    model: hw.Model, method: str, task: hw.Task | None = None, **options: object
) -> np.ndarray:
    return hw.score(model, task or tiny.task(), method, progress=False, **options).values("letters")


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_ablation_equals_one_forward_per_head(family: str) -> None:
    model = tiny.model(family)
    np.testing.assert_allclose(
        values(model, "ablation"), one_forward_per_head(model, tiny.task()), atol=TOLERANCE
    )


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_ablation_with_a_shared_prefix_equals_one_forward_per_head(family: str) -> None:
    model = tiny.model(family)
    task = hw.Task(
        "letters",
        [
            ("ab: ba, cd: dc, xy:", " yx"),
            ("ab: ba, cd: dc, pqr:", " r"),
            ("ab: ba, cd: dc, m:", " mm"),
        ],
    )
    encoded = encode(task, model)
    assert shared_prefix(encoded.examples) == len("ab: ba, cd: dc, ")
    assert (Replay(model, [0, 1, 2], encoded.examples).prefix > 0) != model.hybrid
    np.testing.assert_allclose(
        values(model, "ablation", task), one_forward_per_head(model, task), atol=TOLERANCE
    )


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "bloom", "jamba", "bert"])
@pytest.mark.parametrize("where", ["all", "last"])
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_ablation_options_equal_their_definition(family: str, where: str, replace: str) -> None:
    model = tiny.model(family)
    task = hw.Task(
        "letters", [("ab: ba, cd: dc, xy:", " yx"), ("ab: ba, cd: dc, pqr:", " r"), ("zz", "top")]
    )
    if model.encoder:  # equal lengths, and text behind the mask
        task = hw.Task(
            "letters", [("ab<mask>cdef", "x"), ("gh<mask>ijkl", "y"), ("the <mask> sat", "c")]
        )
    examples = encode(task, model).examples
    alone = [collate([i], [e], model) for i, e in enumerate(examples)]
    z: list[list[torch.Tensor]] = []  # prompt, layer: (seq, head, dim)
    with hooks.scoring(model):
        for batch in alone:
            z.append([])
            with hooks.read(model, lambda _, value: z[-1].append(value[0].clone())):
                forward(model, batch)
    chosen = [list(e.at) if where == "last" else list(range(len(e.ids))) for e in examples]
    expected = np.zeros((len(examples), *model.shape))
    for row, head in np.ndindex(model.shape):
        mean = torch.cat([prompt[row][at, head] for prompt, at in zip(z, chosen)]).mean(0)
        stand_in = mean if replace == "mean" else torch.zeros_like(mean)
        for i, batch in enumerate(alone):
            own = slice(head * model.head_dim, (head + 1) * model.head_dim)

            def change(
                _m: object,
                args: tuple[torch.Tensor],
                i: int = i,
                own: slice = own,
                stand_in: torch.Tensor = stand_in,
            ) -> tuple[torch.Tensor]:
                flat = args[0].clone()
                flat[:, chosen[i], own] = stand_in
                return (flat,)

            with hooks.scoring(model):
                base = log_probability(forward(model, batch), batch)
                handle = model.layers[row].projection.register_forward_pre_hook(change)
                expected[i, row, head] = float(base - log_probability(forward(model, batch), batch))
                handle.remove()
    np.testing.assert_allclose(
        values(model, "ablation", task, replace=replace, where=where), expected, atol=TOLERANCE
    )


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_gradient_equals_finite_differences_of_the_gates(family: str) -> None:
    smooth = {
        "opt": {"activation_function": "gelu"},
        "qwen3_moe": {"num_experts_per_tok": 2},
    }  # a kink or a switch of experts has no slope
    model = hw.load(tiny.build(family, **smooth.get(family, {})), tiny.tokenizer())
    task = tiny.task()
    found = values(model, "gradient", task)
    examples, step = (
        encode(task, model).examples,
        2e-2,
    )  # wide, of fourth order, because norms compute in float32
    with hooks.scoring(model):
        for i, example in enumerate(examples):
            heads = list(np.ndindex(model.shape))
            batch = collate(
                range(len(heads)), [example] * len(heads), model
            )  # one copy of the prompt for each head
            at = {}
            for k in (-2, -1, 1, 2):
                gates = torch.ones(len(heads), *model.shape)
                for copy, (row, head) in enumerate(heads):
                    gates[copy, row, head] = 1 + k * step
                at[k] = answered(model, batch, gates).numpy()
            slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * step)
            np.testing.assert_allclose(found[i].ravel(), slope, atol=1e-3)


def test_gradient_can_be_taken_by_size() -> None:
    model = tiny.model("llama")
    np.testing.assert_array_equal(
        values(model, "gradient", abs=True), np.abs(values(model, "gradient"))
    )
    assert not hw.score(model, tiny.task(), "gradient", progress=False, abs=True).signed


@pytest.mark.parametrize("family", tiny.DECODERS)
@pytest.mark.parametrize("foil", [True, False])
def test_attribution_equals_its_definition(family: str, foil: bool) -> None:
    """One prompt, one head: z W_O, through the frozen norms, onto the answer's direction.

    The direction is the answer's unembedding minus the foil's, or minus the mean.
    """
    model = tiny.model(family)
    task = tiny.task(foil=foil)
    found = values(model, "attribution", task)
    unembedding = model.unembedding.weight.detach()
    for i, example in enumerate(encode(task, model).examples):
        z: list[torch.Tensor] = []
        seen: dict[int, torch.Tensor] = {}
        inputs: dict[str, torch.Tensor] = {}
        with hooks.scoring(model), hooks.read(model, lambda _, value: z.append(value[0])):
            handles = [
                model.final_norm.register_forward_pre_hook(
                    lambda _m, a: inputs.update(final=a[0][0])
                )
            ]
            handles += [
                layer.projection.register_forward_hook(
                    lambda _m, _a, out, row=row: seen.update({row: out[0]})
                )
                for row, layer in enumerate(model.layers)
            ]
            model.module(input_ids=torch.tensor([example.ids]))
            for handle in handles:
                handle.remove()
        for row, head in np.ndindex(model.shape):
            layer, total = model.layers[row], 0.0
            for k, (at, token) in enumerate(zip(example.at, example.answer)):
                if example.parting is not None and k != example.parting:
                    continue
                written = z[row][at, head] @ layer.w_o()[head].detach()
                if layer.post_norm is not None:
                    written = frozen(layer.post_norm, seen[row][at], written)
                written = frozen(model.final_norm, inputs["final"][at], written)
                against = unembedding.mean(0) if example.foil is None else unembedding[example.foil]
                total += float(written @ (unembedding[token] - against))
            assert found[i, row, head] == pytest.approx(total, abs=TOLERANCE)


def frozen(norm: torch.nn.Module, at: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """x through the norm with its scale held at ``at``.

    The norm is linear along the ray, and what is left of a sum when one part is set apart.
    """
    with torch.no_grad():
        if isinstance(norm, torch.nn.LayerNorm):
            return (x - x.mean()) * (at.var(unbiased=False) + norm.eps).rsqrt() * norm.weight
        eps = getattr(norm, "eps", None) or norm.variance_epsilon
        gain = 1 + norm.weight if type(norm).__name__.startswith("Gemma") else norm.weight
        return x * (at.pow(2).mean() + eps).rsqrt() * gain


def test_attribution_of_all_that_is_written_sums_to_the_logit_difference() -> None:
    """Embedding + every head + every MLP, read by one direction, is answer minus foil logit."""
    model = tiny.model("llama")
    found = hw.score(model, tiny.task(), "attribution", progress=False).values("letters")
    norm, unembedding = model.final_norm, model.unembedding.weight.detach()
    for i, example in enumerate(encode(tiny.task(), model).examples):
        parts: list[torch.Tensor] = []
        final: list[torch.Tensor] = []
        at = example.at[example.parting]
        handles = [
            b.mlp.register_forward_hook(lambda _m, _a, out: parts.append(out[0, at]))
            for b in model.blocks
        ]
        handles += [
            model.module.model.embed_tokens.register_forward_hook(
                lambda _m, _a, out: parts.append(out[0, at])
            )
        ]
        handles += [norm.register_forward_pre_hook(lambda _m, a: final.append(a[0][0, at]))]
        with hooks.scoring(model):
            logits = model.module(input_ids=torch.tensor([example.ids])).logits[0, at]
        for handle in handles:
            handle.remove()
        direction = unembedding[example.answer[example.parting]] - unembedding[example.foil]
        rest = sum(float(frozen(norm, final[0], part) @ direction) for part in parts)
        difference = float(logits[example.answer[example.parting]] - logits[example.foil])
        assert found[i].sum() + rest == pytest.approx(difference, abs=TOLERANCE)


@pytest.mark.parametrize("family", tiny.ENCODERS)
def test_attribution_says_why_it_cannot_read_an_encoder(family: str) -> None:
    with pytest.raises(
        ValueError,
        match="normalises its residual stream after every layer.*method='gradient' or 'ablation'",
    ):
        values(tiny.model(family), "attribution")


def test_attribution_refuses_a_norm_that_it_does_not_know() -> None:
    norm = torch.nn.BatchNorm1d(4)
    norm.forward = lambda x: torch.tanh(x) * 3  # type: ignore[method-assign, assignment]
    with pytest.raises(ValueError, match="neither a LayerNorm nor an RMSNorm"):
        FrozenNorm.of(norm)


@pytest.mark.parametrize("method", ["ablation", "gradient", "attribution"])
def test_a_planted_head_ranks_first(method: str) -> None:
    model, task, head = planted()
    scores = hw.score(model, task, method, progress=False)
    assert scores.meta["tasks"]["copy"]["accuracy"] == 1.0
    assert scores.top("copy", 1) == [head]
    mean = np.sort(scores.reduce()[0].ravel())
    assert mean[-1] > 5 * abs(mean[:-1]).max()  # alone


@pytest.mark.parametrize(
    ("method", "family"),
    [
        *(("ablation", family) for family in tiny.FAMILIES),
        *(("gradient", family) for family in tiny.FAMILIES),
        *(("attribution", family) for family in tiny.DECODERS),  # refuses encoders
    ],
)
def test_a_batch_of_unequal_lengths_scores_as_each_prompt_alone(method: str, family: str) -> None:
    model = tiny.model(family)
    np.testing.assert_allclose(
        values(model, method, batch_size=4), values(model, method, batch_size=1), atol=TOLERANCE
    )


@pytest.mark.parametrize(
    "family", [f for f in tiny.DECODERS if f != "jamba"]
)  # a state-space layer reads padding on its left
def test_padding_on_either_side_gives_the_same_as_none(family: str) -> None:
    model = tiny.model(family)
    examples = encode(tiny.task(), model).examples
    runs = range(len(examples))

    def slopes(batch: Batch) -> torch.Tensor:
        with hooks.differentiating(model):
            gates = torch.ones(len(batch.runs), *model.shape, requires_grad=True)
            with hooks.gate(model, gates):
                return torch.autograd.grad(
                    log_probability(forward(model, batch), batch).sum(), gates
                )[0]

    alone = torch.cat([slopes(collate([i], [examples[i]], model)) for i in runs])
    for side in ("left", "right"):
        torch.testing.assert_close(
            slopes(collate(runs, examples, model, side)), alone, rtol=1e-4, atol=1e-4
        )  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("method", ["ablation", "gradient", "attribution"])
def test_sixteen_bits_give_the_same_picture(method: str, dtype: torch.dtype) -> None:
    model = hw.load(tiny.build("llama").to(dtype), tiny.tokenizer())
    low, full = values(model, method), values(tiny.model("llama"), method)
    assert low.dtype == np.float32
    assert np.corrcoef(low.ravel(), full.ravel())[0, 1] > 0.98


class Adapted(torch.nn.Linear):
    """A projection that is more than its weight, as an adapter leaves it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.tanh(self.weight).roll(1, 0).matmul(x[..., None])[..., 0]


def test_a_projection_that_is_more_than_its_weight_is_run_rather_than_read() -> None:
    module = tiny.build("llama")
    for block in module.model.layers:
        adapted = Adapted(32, 32, bias=False)
        adapted.load_state_dict(block.self_attn.o_proj.state_dict())
        block.self_attn.o_proj = adapted
    model = hw.load(module, tiny.tokenizer())
    np.testing.assert_allclose(
        values(model, "ablation"), one_forward_per_head(model, tiny.task()), atol=TOLERANCE
    )
    with pytest.raises(TypeError, match="cannot be read as plain numbers"):
        values(model, "attribution")


@pytest.mark.parametrize("where", ["self_attn", "self_attn.o_proj", "mlp"])
def test_a_users_own_hook_counts_once(where: str) -> None:
    """A user may have steered the model with hooks: ablation scores the model as it is."""
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    torch.manual_seed(3)
    steer = torch.randn(32)

    def hook(
        _m: object, _a: object, out: torch.Tensor | tuple[torch.Tensor, ...]
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return (out[0] * 1.5 + steer, *out[1:]) if isinstance(out, tuple) else out * 1.5 + steer

    for block in (model.blocks[0], model.blocks[2]):
        block.get_submodule(where).register_forward_hook(hook)
    np.testing.assert_allclose(
        values(model, "ablation"), one_forward_per_head(model, tiny.task()), atol=TOLERANCE
    )


def test_long_and_short_prompts_do_not_mix_where_rotation_depends_on_length() -> None:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [4.0] * 4,
        "original_max_position_embeddings": 18,
    }
    module = tiny.build(
        "phi3",
        rope_parameters=rope,
        max_position_embeddings=64,
        original_max_position_embeddings=18,
    )
    model = hw.load(module, tiny.tokenizer())
    assert model.rope_switch == 18
    task = hw.Task(
        "letters",
        [
            ("ab: ba, cd: dc, xyzw:", " yx"),
            ("ab: ba, cd: dc, pq:", " r"),
            ("ab: ba, cd: d", "c"),
            ("ab: ba, cd:", " dc"),
        ],
    )
    expected = one_forward_per_head(model, task)
    for size in (None, 1, 2, 4):
        np.testing.assert_allclose(
            values(model, "ablation", task, batch_size=size), expected, atol=TOLERANCE
        )
    np.testing.assert_allclose(
        values(model, "gradient", task),
        values(model, "gradient", task, batch_size=1),
        atol=TOLERANCE,
    )


def test_scoring_works_inside_inference_mode() -> None:
    model = tiny.model("llama")
    for method in ("ablation", "gradient", "attribution"):
        with torch.inference_mode():
            inside = values(model, method)
        np.testing.assert_allclose(inside, values(model, method), atol=1e-6)


def test_a_model_that_answers_otherwise_the_second_time_is_refused() -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    block, real = model.blocks[1], model.blocks[1].forward
    calls = []

    def moody(hidden: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        calls.append(1)
        return real(hidden, *args, **kwargs) * (1 if len(calls) == 1 else 1.5)

    block.forward = moody
    with pytest.raises(RuntimeError, match="two different answers to the same prompt"):
        values(model, "ablation", hw.Task("letters", [("abc", "d")]))
