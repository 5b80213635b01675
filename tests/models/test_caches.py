"""Key-value caches: a prefix is kept once, and every batch goes on from it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import headwidget as hw
from headwidget.models import hooks
from headwidget.models.caches import PrefixCache, everything_kept, kept_in, nothing_kept
from tests.support import tiny


def update(cache: PrefixCache, rows: list[float], length: int, layer: int = 0) -> Tensor:
    """The keys that an update of ``length`` tokens is answered with; row i holds rows[i]."""
    key = torch.tensor(rows)[:, None, None, None].expand(-1, 2, length, 3)
    keys, values = cache.update(key, -key, layer)
    assert torch.equal(keys, -values)
    return keys[:, 0, :, 0]  # (batch, seq)


def test_the_first_update_is_kept_and_no_later_one() -> None:
    cache = PrefixCache()
    assert update(cache, [1.0], 2).tolist() == [[1, 1]]
    for _ in range(2):
        assert update(cache, [5.0], 1).tolist() == [[1, 1, 5]]
        assert cache.get_seq_length() == 2
    assert update(cache, [7.0], 1, layer=3).tolist() == [[7]]  # another layer's prefix


def test_each_row_goes_on_as_neighbouring_rows_of_the_batch() -> None:
    cache = PrefixCache()
    update(cache, [1.0, 2.0], 1)
    assert update(cache, [5.0, 6.0, 7.0, 8.0], 1).tolist() == [[1, 5], [1, 6], [2, 7], [2, 8]]


def test_one_row_may_go_on_as_the_whole_batch() -> None:
    cache = PrefixCache()
    update(cache, [1.0, 2.0], 1)
    cache.row = 1
    assert update(cache, [5.0, 6.0, 7.0], 1).tolist() == [[2, 5], [2, 6], [2, 7]]


def test_gradients_reach_the_prefix() -> None:
    cache = PrefixCache()
    prefix = torch.ones(1, 1, 1, 1, requires_grad=True)
    cache.update(prefix, prefix, 0)
    keys, _ = cache.update(torch.ones(3, 1, 1, 1), torch.ones(3, 1, 1, 1), 0)
    keys.sum().backward()
    assert prefix.grad is not None and prefix.grad.item() == 3


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2", "bloom", "jamba", "bert"])
def test_what_a_forward_keeps_changes_no_logit(family: str) -> None:
    model = tiny.model(family)
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 10, 11]])
    with hooks.scoring(model):
        plain = model.module(input_ids=ids, **nothing_kept(model)).logits
        assert model.can_share_prefix == (family not in ("jamba", "bert"))
        assert model.hybrid == (family == "jamba")
        if not model.can_share_prefix:
            return
        past = PrefixCache()
        model.module(input_ids=ids[:1, :3], **kept_in(past))
        ends = [model.module(input_ids=ids[:, 3:], **kept_in(past)).logits for _ in range(2)]
        grown = everything_kept()
        steps = [model.module(input_ids=ids[:, i : i + 1], **grown).logits for i in range(5)]
    for end in ends:
        torch.testing.assert_close(end, plain[:, 3:], rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.cat(steps, 1), plain, rtol=0, atol=1e-5)


def test_longrope_switches_behind_its_original_length() -> None:
    model = tiny.model("llama")
    assert model.rope_switch is None and not model.switches_rope(10**6)
    other = hw.load(tiny.build("llama"), tiny.tokenizer())
    other.rope_switch = 18
    assert not other.switches_rope(18) and other.switches_rope(19)
