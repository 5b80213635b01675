"""The embedded model gives the logits of transformers' own reading of the same file.

What cannot be downloaded is said in a sentence.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import headwidget as hw
from headwidget.models import embedded


def test_it_is_a_real_language_model() -> None:
    model = hw.load()
    assert (model.shape, model.n_kv_heads, model.head_dim, model.dtype) == (
        (30, 9),
        3,
        64,
        torch.float32,
    )
    ids = model.tokenizer("The capital of France is", return_tensors="pt").input_ids
    assert ids.tolist() == [[504, 3575, 282, 4649, 314]]  # no token is added
    with torch.no_grad():
        assert model.tokenizer.decode(model.module(ids).logits[0, -1].argmax()) == " Paris"
    assert model.tokenizer.tokenize("12 + 5") == ["1", "2", "Ġ+", "Ġ", "5"]  # every digit a token


@pytest.mark.slow
def test_converting_anew_gives_what_transformers_reads_from_the_same_file(tmp_path: Path) -> None:
    gguf = embedded._gguf(tmp_path)
    embedded.convert(gguf, tmp_path / "made")
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    theirs = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name)
    ids = torch.randint(0, 49152, (2, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, theirs(ids).logits, rtol=0, atol=1e-4)
    ours_tokens, their_tokens = (
        AutoTokenizer.from_pretrained(tmp_path / "made"),
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name),
    )
    text = (
        "Hello world, it's a nice day! I don't know; 你好  two spaces"
        "\n\nnewline\ttab 😀 <|im_start|>"
    )
    assert ours_tokens(text).input_ids == their_tokens(text).input_ids
    assert ours_tokens.decode(ours_tokens(text).input_ids) == text
    ours.half()  # nothing of a quantizer is left
    ours.save_pretrained(tmp_path / "again")


def test_offline_without_it_is_a_sentence_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWIDGET_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        RuntimeError,
        match=r"could not be downloaded.*run `python -m headwidget\.models\.embedded` once; "
        "or load a model of your own",
    ):
        hw.load()
    assert list(tmp_path.iterdir()) == []  # nothing half-made is left


def test_a_file_with_another_sum_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"not it")
    with pytest.raises(
        RuntimeError, match=r"x\.whl is not the file headwidget knows.*it was not used"
    ):
        embedded._check(tmp_path / "x.whl", embedded.WHEEL_SHA256)
