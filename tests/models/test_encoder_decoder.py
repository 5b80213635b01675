"""Encoder-decoder models: three sections of rows, each number equal to a plain loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import headwidget as hw
from headwidget.display import wire
from headwidget.models import attention
from headwidget.scores import provenance
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import encode
from tests.support import every_family, tiny
from tests.support.plain import ablation_by_loop, log_p, slopes_by_steps

FAMILIES = ("t5", "bart", "marian", "t5gemma")
TASK = hw.Task("letters", [("the cat", "ma", "me"), ("ab", "cde"), ("a longer one", "x")])
SECTIONS = (("encoder", 4), ("decoder", 4), ("cross", 4))


def model(family: str = "t5") -> hw.Model:
    module = every_family.build(family, "encoder-decoder")
    # T5's norms compute in float32, whatever its weights are
    return hw.load(module.float() if family == "t5" else module.double(), tiny.tokenizer())


@pytest.fixture(params=FAMILIES)
def of_family(request: pytest.FixtureRequest) -> hw.Model:
    return model(request.param)


def test_rows_are_encoder_decoder_and_cross_attention(of_family: hw.Model) -> None:
    assert of_family.shape == (12, 4) and of_family.sections == SECTIONS
    names = [layer.name for layer in of_family.layers]
    assert all("encoder" in name for name in names[:4])
    assert all("decoder" in name for name in names[4:])
    cross = ("EncDec", "encoder_attn", "cross_attn")
    assert [any(word in name for word in cross) for name in names] == [False] * 8 + [True] * 4
    assert "cross-attention: rows 8 to 11" in of_family.describe()
    assert of_family.describe().endswith("the decoder's next token")


@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_ablation_is_one_forward_a_head(of_family: hw.Model, replace: str) -> None:
    ours = hw.score(of_family, TASK, "ablation", replace=replace, progress=False)
    expected = ablation_by_loop(of_family, TASK, replace=replace)
    np.testing.assert_allclose(ours.values("letters"), expected, rtol=1e-3, atol=1e-5)
    assert (np.abs(expected).max(axis=(0, 2)) > 1e-4).all(), "every layer must matter"


def test_gradient_is_the_slope(of_family: hw.Model) -> None:
    ours = hw.score(of_family, TASK, "gradient", progress=False).values("letters")
    expected = slopes_by_steps(
        of_family, TASK, step=1e-2 if of_family.dtype == torch.float32 else 1e-4
    )
    np.testing.assert_allclose(ours, expected, rtol=2e-2, atol=5e-3 * np.abs(expected).max())


def test_gates_are_forwards_with_the_heads_off() -> None:
    t5, heads = model(), [(1, 2), (5, 0), (10, 3)]
    gates = np.ones((1, 12, 4), np.float32)
    for row, head in heads:
        gates[0, row, head] = 0
    examples = encode(TASK, t5).examples
    ours = np.zeros(len(examples))
    for landed in gated_forward.run(t5, examples, gates):
        ours[list(landed.runs)] = landed.values[0, :, 0]

    def off(row: int) -> Any:
        numbers = [head for layer, head in heads if layer == row]

        def change(z: torch.Tensor, _: Any) -> torch.Tensor:
            z = z.clone()
            z[:, :, numbers] = 0
            return z

        return change

    changes = {row: off(row) for row, _ in heads}
    expected = [log_p(t5, example, changes) for example in examples]
    np.testing.assert_allclose(ours, expected, rtol=1e-4)


def test_knockout_runs_and_keeps_the_control() -> None:
    t5 = model()
    scores = hw.score(t5, TASK, "ablation", progress=False)
    effect = hw.knockout(t5, scores, TASK, progress=False, draws=2)
    assert np.isfinite(effect.summary()[["top", "control"]]).all(axis=None)


def test_gating_fits_its_gates() -> None:
    scores = hw.score(model(), TASK, "gating", updates=2, fits=2, progress=False)
    assert scores.shape == (12, 4) and np.isfinite(scores.values("letters")).all()


def test_an_answers_special_tokens_are_fed_and_not_scored() -> None:
    t5 = model()
    (plain,) = encode(hw.Task("t", [("ab", "cd")]), t5).examples
    (begun,) = encode(hw.Task("t", [("ab", "<mask>cd")]), t5).examples
    assert begun.answer == plain.answer and len(begun.ids) == len(plain.ids) + 1
    assert begun.at == tuple(place + 1 for place in plain.at)
    assert plain.ids[0] == 2 and plain.at[0] == 0  # the decoder's start


def test_a_forced_token_follows_the_start() -> None:
    bart = model("bart")
    bart.module.generation_config.forced_bos_token_id = 7
    try:
        (example,) = encode(hw.Task("t", [("ab", "cd")]), bart).examples
    finally:
        bart.module.generation_config.forced_bos_token_id = None
    assert example.ids[:2] == (2, 7) and example.at[0] == 1


def test_a_decoder_without_a_start_is_refused() -> None:
    t5 = model()
    t5.config.decoder_start_token_id, t5.config.bos_token_id = None, None
    try:
        with pytest.raises(ValueError, match="which token its decoder begins with"):
            hw.score(t5, TASK, "gradient", progress=False)
    finally:
        t5.config.decoder_start_token_id = 2


@pytest.mark.parametrize("example", [("ab", "<mask>"), ("ab", "<mask>c", "d")])
def test_examples_that_cannot_be_scored_are_refused(example: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="task 't', example 0: .*(nothing|begin both alike)"):
        hw.score(model(), hw.Task("t", [example]), "gradient", progress=False)


@pytest.mark.parametrize("method", ["attribution", "relations", "patterns", "probe"])
def test_methods_of_one_stream_refuse_by_name(method: str) -> None:
    with pytest.raises(ValueError, match=f"{method} .* is an encoder-decoder model; use"):
        hw.score(model(), TASK, method, progress=False)


def test_the_answers_position_is_not_one_of_the_encoders() -> None:
    with pytest.raises(ValueError, match="encoder of .* has no such position"):
        hw.score(model(), TASK, "ablation", where="last", progress=False)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_attention_weights_are_those_of_eager_attention(family: str) -> None:
    network = model(family)
    ids = {
        "input_ids": torch.tensor([[70, 71, 72, 73]]),
        "decoder_input_ids": torch.tensor([[2, 75]]),
    }
    ours = [attention.weights(network, ids, row) for row in range(12)]
    network.module.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            out = network.module(**ids, output_attentions=True)
    finally:
        network.module.set_attn_implementation("sdpa")
    theirs = [*out.encoder_attentions, *out.decoder_attentions, *out.cross_attentions]
    assert [w.shape[2:] for w in ours] == [(4, 4)] * 4 + [(2, 2)] * 4 + [(2, 4)] * 4
    for mine, expected in zip(ours, theirs):
        torch.testing.assert_close(mine.double(), expected.double(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="give both"):
        attention.weights(network, [70, 71], 0)


def test_sections_travel_with_the_scores(tmp_path: Path) -> None:
    scores = hw.score(model(), TASK, "gradient", progress=False)
    scores.save(tmp_path / "t5.safetensors")
    again = hw.open(tmp_path / "t5.safetensors")
    labels = [*(f"{section}{i}" for section in "EDC" for i in range(4))]
    assert provenance.layer_labels(again) == labels
    assert provenance.head_name(again, 5, 3) == "D1 H3"
    assert list(again.to_pandas()["layer_name"].unique()) == labels
    header, _ = wire.encode(again)
    assert header["sections"] == SECTIONS
    assert header["axes"] == ["Encoder, decoder, cross", "Head"]
    assert len(again.figure().axes) > 0


def test_the_lab_scores_and_says_why_it_reads_no_prompt() -> None:
    lab = hw.live(model(), TASK)
    try:
        assert lab.run(method="gradient").wait(60) and lab.state == "done"
        assert lab.shown.record.sections == SECTIONS
        lab.prompt = "ab"
        lab.wait(60)
        assert "answers a prompt with a decoder" in lab._reading["error"]
    finally:
        lab.close()


class WithoutMask(transformers.BartForConditionalGeneration):
    """Does not heed its mask, so padding changes what it answers."""

    def forward(
        self, attention_mask: Any = None, decoder_input_ids: Any = None, **inputs: Any
    ) -> Any:
        return super().forward(decoder_input_ids=decoder_input_ids, **inputs)


def test_padding_of_the_source_is_tried_however_long_the_answers_are() -> None:
    bart = every_family.build("bart", "encoder-decoder").float()
    module = WithoutMask(bart.config)
    module.load_state_dict(bart.state_dict())
    network = hw.load(module.eval(), tiny.tokenizer())
    task = hw.Task("letters", [("abcdefghij", "x"), ("ab", "cdefghijklmnopqrst")])
    ours = hw.score(network, task, "ablation", progress=False).values("letters")
    assert network.batch_dependent
    expected = ablation_by_loop(network, task)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)


def two_models(**decoder: Any) -> Any:
    """An encoder and a decoder with configurations of their own."""
    sizes = {"vocab_size": tiny.VOCABULARY, "hidden_size": 32, "intermediate_size": 48}
    settings = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.BertConfig(
            **sizes, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=16
        ),
        transformers.BertConfig(
            **sizes, num_hidden_layers=2, is_decoder=True, add_cross_attention=True, **decoder
        ),
    )
    settings.decoder_start_token_id, settings.pad_token_id = 2, 0
    torch.manual_seed(0)
    module = transformers.EncoderDecoderModel(config=settings).eval()
    every_family._draw(module)
    return module


def test_an_encoder_and_a_decoder_of_two_models() -> None:
    network = hw.load(two_models(num_attention_heads=4), tiny.tokenizer())
    assert network.sections == (("encoder", 3), ("decoder", 2), ("cross", 2))
    ours = hw.score(network, TASK, "ablation", progress=False).values("letters")
    np.testing.assert_allclose(ours, ablation_by_loop(network, TASK), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="20 tokens, but the encoder of .* reads at most 16"):
        hw.score(network, hw.Task("t", [("x" * 20, "y")]), "gradient", progress=False)


def test_unequal_numbers_of_heads_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="has 2 heads and .* 4; headwidget scores models"):
        hw.load(two_models(num_attention_heads=2), tiny.tokenizer())


def test_several_starts_are_refused_and_a_forced_token_is_fed_once() -> None:
    bart = model("bart")
    settings = bart.module.generation_config
    mask = bart.tokenizer.mask_token_id
    try:
        settings.forced_bos_token_id = mask
        (example,) = encode(hw.Task("t", [("ab", "<mask>cd")]), bart).examples
        assert example.ids[:2] == (2, mask) and mask not in example.ids[2:]
        settings.forced_bos_token_id = None
        settings.decoder_start_token_id = [2, 3]
        with pytest.raises(ValueError, match="several tokens as decoder_start_token_id"):
            encode(hw.Task("t", [("ab", "cd")]), bart)
    finally:
        settings.forced_bos_token_id, settings.decoder_start_token_id = None, None


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_model_is_loaded_whole_by_its_folder(family: str, tmp_path: Path) -> None:
    every_family.build(family, "encoder-decoder").save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    loaded = hw.load(tmp_path)
    assert loaded.encoder_decoder and loaded.sections == SECTIONS
    assert type(loaded.module) is type(every_family.build(family, "encoder-decoder"))


def test_a_decoder_that_was_saved_alone_is_loaded_alone(tmp_path: Path) -> None:
    every_family.build("bart", "causal").save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    assert type(hw.load(tmp_path).module).__name__ == "BartForCausalLM"


def test_stacks_of_other_sizes_are_not_laid_on_each_other() -> None:
    whole = hw.score(model("t5"), TASK, "gradient", progress=False)
    decoder = hw.load(every_family.build("granite"), tiny.tokenizer())
    alone = hw.score(decoder, TASK, "gradient", progress=False)
    same = hw.difference(whole, whole, names=("a", "b"))
    assert same.shape == whole.shape
    with pytest.raises(ValueError, match="4 encoder . 4 decoder . 4 cross, and .* one stack"):
        hw.difference(whole, alone)


def test_a_head_is_called_as_the_maps_call_it() -> None:
    scores = hw.score(model("t5"), TASK, "gradient", progress=False)
    assert hw.describe(scores, 4, 1).startswith("Head 4.1 (D0 H1), of 48")
    assert "decoder: rows 4 to 7, called D0 to D3" in model("t5").describe()


def test_an_answer_that_the_tokenizer_does_not_know_is_refused() -> None:
    words = Tokenizer(WordLevel({"<unk>": 0, "the": 1, "cat": 2, "<pad>": 3}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", pad_token="<pad>"
    )
    t5 = hw.load(model("t5").module, tokenizer)
    llama = hw.load(tiny.build("llama"), tokenizer)
    for loaded in (t5, llama):
        assert encode(hw.Task("t", [("the", "cat")]), loaded).examples
        for answer, foil in (("zebra", "cat"), ("cat", "zebra"), ("the zebra", "cat")):
            with pytest.raises(ValueError, match="a piece that the tokenizer does not know"):
                encode(hw.Task("t", [("the", answer, foil)]), loaded)
