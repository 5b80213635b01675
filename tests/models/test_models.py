"""Loading: the table is checked against the live model; what cannot be scored is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import headwidget as hw
from headwidget.models import families
from tests.support import tiny


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_gives_its_heads(family: str) -> None:
    model = tiny.model(family)
    text = model.config.get_text_config()
    hybrid = family == "jamba"
    assert model.shape == (2 if hybrid else text.num_hidden_layers, 4)
    assert [layer.index for layer in model.layers] == ([0, 2] if hybrid else [0, 1, 2])
    assert model.n_kv_heads == (
        4 if family in ("phi", "gpt2", "gptj", "gpt_neox", "opt", "bloom", "bert", "roberta") else 2
    )
    assert model.layers[0].w_o().shape == (4, model.head_dim, text.hidden_size)


def test_the_table_has_a_tiny_model_for_each_family() -> None:
    assert set(tiny.FAMILIES) == set(families.FAMILIES) - {
        "my_llama"
    }  # the one that register's doctest adds


def test_a_registered_family_is_not_looked_for() -> None:
    module = tiny.build("llama")
    module.config.model_type = "zebra"
    hw.register(families.Family("zebra", blocks="model.layers"))
    try:
        model = hw.load(module, tiny.tokenizer())
    finally:
        del families.FAMILIES["zebra"]
    assert model.shape == (3, 4) and model.family.table


def test_a_fused_projection_is_named() -> None:
    module = tiny.build("llama")
    module.model.layers[1].self_attn.o_proj = nn.Linear(80, 32)
    with pytest.raises(
        ValueError,
        match=r"model\.layers\.1\.self_attn\.o_proj \(Linear\) takes 80 numbers in, "
        "not 4 heads x 8 = 32",
    ):
        hw.load(module, tiny.tokenizer())
    del module.model.layers[1].self_attn.o_proj
    with pytest.raises(
        ValueError, match=r"model\.layers\.1\.self_attn \(LlamaAttention\) has no output projection"
    ):
        hw.load(module, tiny.tokenizer())


def test_a_model_without_a_language_model_head_is_refused() -> None:
    with pytest.raises(
        ValueError, match="LlamaModel has no list of layers at 'model.layers'.*language-model head"
    ):
        hw.load(tiny.build("llama").model, tiny.tokenizer())


def test_a_model_without_any_attention_is_refused() -> None:
    family = replace(families.FAMILIES["llama"], name="none", attention="nowhere")
    module = tiny.build("llama")
    module.config.model_type = "none"
    hw.register(family)
    try:
        with pytest.raises(
            ValueError,
            match=r"no layer of LlamaForCausalLM has attention at model\.layers\.\*\.nowhere",
        ):
            hw.load(module, tiny.tokenizer())
    finally:
        del families.FAMILIES["none"]


def test_a_decoder_made_of_an_encoder_is_a_decoder() -> None:
    config = tiny.build("bert", is_decoder=True).config
    model = hw.load(transformers.BertLMHeadModel(config).eval(), tiny.tokenizer())
    assert not model.encoder and not model.family.table


def test_a_tokenizer_of_another_model_is_refused_before_any_forward() -> None:
    module = tiny.build("llama", vocab_size=40)
    with pytest.raises(
        ValueError,
        match=r"the tokenizer gives token \d+, but .* has 40; is it this model's tokenizer",
    ):
        hw.score(hw.load(module, tiny.tokenizer()), tiny.task())


def test_load_says_what_it_takes() -> None:
    with pytest.raises(ValueError, match="already loaded"):
        hw.load(tiny.model("llama"), dtype=torch.float16)
    with pytest.raises(
        ValueError, match=r"needs the model's tokenizer too: hw.load\(model, tokenizer\)"
    ):
        hw.load(tiny.build("llama"))
    with pytest.raises(TypeError, match="got a int"):
        hw.load(3)
    with pytest.raises(TypeError, match="the tokenizer must be one.*got a str"):
        hw.load(tiny.build("llama"), "gpt2")
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'devicemap'.*hw.load takes dtype, device_map"
    ):
        hw.load(devicemap="auto")
    with pytest.raises(TypeError, match="hw.register takes a family"):
        hw.register("llama")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="already loaded"):
        hw.load(tiny.build("llama"), tiny.tokenizer(), dtype=torch.float16)


def test_an_unreachable_model_gives_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # huggingface_hub retries for 23 s
    with pytest.raises(
        OSError, match=r"could not be loaded from the hub.*hw.load\(\) for the embedded model"
    ) as caught:
        hw.load("no/such-model-on-any-hub")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["./nomodel", "no/such/folder/at/all", Path("/nowhere")])
def test_a_folder_that_is_not_there_is_said_at_once(name: str | Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        hw.load(name)


def test_a_folder_is_loaded_with_the_dtype_asked_for(tmp_path: Path) -> None:
    tiny.build("llama").save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    assert hw.load(tmp_path).dtype == torch.float32
    assert hw.load(str(tmp_path), dtype=torch.bfloat16, device_map="cpu").dtype == torch.bfloat16


def test_a_folder_sharded_by_device_map_scores_as_it_does_whole(tmp_path: Path) -> None:
    tiny.build("llama").save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    whole = hw.load(tmp_path)
    places = {
        "model.embed_tokens": "cpu",
        "model.layers.0": "cpu",
        "model.layers.1": "disk",
        "model.layers.2": "cpu",
    }
    places |= {"model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "cpu"}
    spread = hw.load(tmp_path, device_map=places, offload_folder=tmp_path / "offload")
    assert spread.layers[1].projection.weight.is_meta  # accelerate brings it in when the layer runs
    for method in ("ablation", "gradient"):
        ours, theirs = (
            hw.score(m, tiny.task(), method, progress=False).values("letters")
            for m in (whole, spread)
        )
        assert abs(ours - theirs).max() < 1e-5
    with pytest.raises(TypeError, match="offloaded to disk"):
        hw.score(spread, tiny.task(), "attribution", progress=False)


def test_missing_weights_are_refused_rather_than_made_up(tmp_path: Path) -> None:
    tiny.build("bert").bert.save_pretrained(
        tmp_path
    )  # an encoder saved without its masked-token head
    tiny.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match=r"lacks \d+ of BertForMaskedLM's weights.*every score noise"
    ):
        hw.load(tmp_path)


def test_remote_code_is_never_trusted_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiny.build("llama").save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    seen: dict[str, Any] = {}
    for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"):
        auto = getattr(transformers, name)

        def spy(*a: Any, name: str = name, real: Any = auto.from_pretrained, **k: Any) -> Any:
            seen.setdefault(name, k)
            return real(*a, **k)

        monkeypatch.setattr(auto, "from_pretrained", spy)
    hw.load(tmp_path)
    trusted = {name: keywords["trust_remote_code"] for name, keywords in seen.items()}
    assert trusted == dict.fromkeys(("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"), False)


def test_quantised_weights_are_named_where_they_cannot_be_read() -> None:
    model = hw.load(tiny.build("llama"), tiny.tokenizer())
    with torch.no_grad():
        model.layers[0].projection.weight = nn.Parameter(
            torch.zeros(32, 16, dtype=torch.uint8), requires_grad=False
        )
    with pytest.raises(
        TypeError,
        match=r"model\.layers\.0\.self_attn\.o_proj is a Linear whose weight cannot be read "
        "as plain numbers.*'gradient' or 'ablation'",
    ):
        model.layers[0].w_o()


def test_fingerprints_tell_a_tuned_model_from_its_base() -> None:
    base, tuned = (hw.load(tiny.build("llama"), tiny.tokenizer()) for _ in range(2))
    assert base.fingerprint() == tuned.fingerprint()
    with torch.no_grad():
        tuned.blocks[2].mlp.up_proj.weight += 1e-3
    assert base.fingerprint() != tuned.fingerprint()
