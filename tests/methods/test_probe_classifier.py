"""The probe's classifier: importance is what it is defined as, and training stops in time."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from headwidget.methods.probe_classifier import Classifier, Features, Training, fit


def example_probe(
    seed: int = 0, layers: int = 2, heads: int = 3, dim: int = 5, tasks: int = 4
) -> tuple[Classifier, Features, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    z = torch.randn(7, layers, heads, dim, generator=random)
    return (
        Classifier.drawn((layers, heads, dim), 6, 9, tasks, random, torch.device("cpu")),
        Features.of(z),
        torch.arange(7) % tasks,
    )


def test_importance_is_the_mean_over_units_of_slope_times_unit() -> None:
    """By autograd, from the features as they are defined.

    Each head's z beside its layer's mean, one linear map for all heads.
    """
    probe, x, task = example_probe()
    wide = torch.cat(
        [x.z, x.mean[:, :, None].expand_as(x.z)], -1
    )  # (example, layer, head, 2 * dim)
    shared = torch.cat([probe.from_head, probe.from_layer], 1)
    units = (wide @ shared.T + probe.offset).requires_grad_()
    hidden = torch.relu(units.flatten(1) @ probe.inner.T + probe.inner_offset)
    logits = hidden @ probe.outer.T + probe.outer_offset
    torch.testing.assert_close(probe.logits(x), logits)
    (slope,) = torch.autograd.grad(logits[torch.arange(7), task].sum(), units)
    torch.testing.assert_close(probe.importance(x, task), (slope * units).mean(-1).detach())


@pytest.mark.parametrize("offset", [0.0, -10.0, 10.0])
def test_importances_sum_to_the_logit_but_for_the_offsets(offset: float) -> None:
    """Exactly, wherever the ReLUs stand: some on, all off, and all on."""
    probe, x, task = example_probe()
    probe = dataclasses.replace(probe, inner_offset=probe.inner_offset + offset)
    on = probe.before_relu(probe.units(x)) > 0
    assert {0.0: bool(on.any() and not on.all()), -10.0: not on.any(), 10.0: bool(on.all())}[offset]
    logit = probe.logits(x)[torch.arange(7), task]
    rest = probe.outer_offset[task] + (probe.outer[task] * on * probe.inner_offset).sum(1)
    torch.testing.assert_close(6 * probe.importance(x, task).sum((1, 2)), logit - rest)


def test_another_order_of_heads_gives_the_scores_in_that_order() -> None:
    probe, x, task = example_probe()
    order = torch.tensor([2, 0, 1])
    inner = probe.inner.reshape(9, 2, 3, 6)[:, :, order].reshape(9, -1)
    moved = dataclasses.replace(probe, inner=inner).importance(Features.of(x.z[:, :, order]), task)
    torch.testing.assert_close(moved, probe.importance(x, task)[:, :, order])


def test_standardising_knows_the_training_examples_only() -> None:
    z = torch.randn(20, 2, 3, 4) * 5 + 3
    z[:, 0, 0, 0] = 7.0  # the same everywhere
    train = torch.arange(12)
    x = Features.of(z).standardised(train)
    assert not x.z[:, 0, 0, 0].any()
    torch.testing.assert_close(x.z[:12, 1].mean(0), torch.zeros(3, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        x.mean[:12].std(0, unbiased=False), torch.ones(2, 4), atol=1e-4, rtol=0
    )
    z[12:] *= 100
    torch.testing.assert_close(Features.of(z).standardised(train).z[:12], x.z[:12])


def test_training_stops_where_validation_is_best_and_gives_those_weights() -> None:
    random = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 2
    x = Features.of(torch.randn(60, 2, 2, 4, generator=random) + y[:, None, None, None])
    train, tell = torch.arange(40), torch.arange(40, 60)
    how = Training(8, 32, 1e-2, 200, 16)
    early, epochs = fit(x, y, train, tell, 2, how, seed=3)
    assert 1 <= epochs < 195
    exact, _ = fit(x, y, train, tell[:0], 2, dataclasses.replace(how, epochs=epochs), seed=3)
    torch.testing.assert_close(early.logits(x), exact.logits(x))
    late, all_of_them = fit(x, y, train, tell[:0], 2, how, seed=3)
    assert all_of_them == 200 and not torch.allclose(late.logits(x), exact.logits(x))
    assert torch.nn.functional.cross_entropy(
        early.logits(x.at(tell)), y[tell]
    ) < torch.nn.functional.cross_entropy(late.logits(x.at(tell)), y[tell])


def test_training_ends_when_nothing_is_left_to_learn() -> None:
    """A loss that halves for ever never stops by patience."""
    y = torch.arange(40) % 2
    x = Features.of(
        (20.0 * y[:, None, None, None] - 10).expand(40, 2, 2, 4)
        + torch.randn(40, 2, 2, 4, generator=torch.Generator().manual_seed(0))
    )
    some, rest = torch.arange(30), torch.arange(30, 40)
    how = Training(4, 16, 1e-3, 500, 8)
    _, epochs = fit(x, y, some, rest, 2, how, 0)
    _, all_epochs = fit(x, y, some, rest, 2, dataclasses.replace(how, enough=0.0), 0)
    assert epochs < 60 and all_epochs > 200
