"""What cannot be loaded is said in our own words, with what to do; no code in it is run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import headwidget as hw
from tests.support import tiny


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    tiny.build("llama").save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A model's folder of this test's own."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def configure(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def without(*names: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return damage


def truncated(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def adapter(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


def gguf(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "small.Q4_1.gguf").write_bytes(b"GGUF")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no configuration": (without("config.json"), "has no config.json, so it is no folder of a"),
    "half a configuration": (truncated("config.json"), r"config.json' is damaged \(.+\): download"),
    "a configuration that is a list": (
        lambda folder: folder.joinpath("config.json").write_text("[]"),
        "config.json' names no model_type",
    ),
    "a configuration with wrong types": (
        lambda folder: configure(folder, num_hidden_layers="two"),
        "the configuration of .+ could not be read .*'num_hidden_layers' expected int",
    ),
    "an adapter": (adapter, r"holds an adapter and no model: .*hw.load\(model, tokenizer\)"),
    "a GGUF file": (gguf, r"but a GGUF file: hw.load\(.+, gguf_file='small.Q4_1.gguf'\)"),
    "no weights": (without("model.safetensors"), "the weights of .+ could not be read .*no file"),
    "half the weights": (truncated("model.safetensors"), "the weights of .+ could not be read"),
    "other shapes": (
        lambda folder: configure(folder, hidden_size=64),
        "the weights of .+ do not have the shapes that its config.json says",
    ),
    "no tokenizer": (
        without("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
        r"its tokenizer could not be .* Give one: hw.load\(.+, AutoTokenizer",
    ),
    "half a tokenizer": (truncated("tokenizer.json"), "its tokenizer could not be .* Give one"),
    "an unknown type": (
        lambda folder: configure(folder, model_type="quantum"),
        "transformers .+ does not know its model type. Upgrade transformers",
    ),
    "a model of pictures": (
        lambda folder: configure(folder, model_type="vit"),
        "is a model of type 'vit', which transformers loads as no language model",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_folder_that_cannot_be_loaded_gets_a_sentence(folder: Path, name: str) -> None:
    damage, sentence = DAMAGES[name]
    damage(folder)
    with pytest.raises((ValueError, OSError), match=sentence) as raised:
        hw.load(folder)
    assert str(raised.value).endswith(".") and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "quantisation",
    [
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"quant_method": "hqq", "quant_config": {}},
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}},
        {"quant_method": "torchao", "quant_type": "int8_weight_only"},
    ],
    ids=lambda quantisation: str(quantisation["quant_method"]),
)
def test_a_quantised_checkpoint_that_cannot_be_read_here_is_named(
    folder: Path, quantisation: dict[str, Any]
) -> None:
    configure(folder, quantization_config=quantisation)
    method = quantisation["quant_method"]
    with pytest.raises(
        (ImportError, ValueError),
        match=rf"is quantised \({method}\) and could not be loaded here \(.+\)\. Install what",
    ):
        hw.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_is_answered_with_its_folder(saved: Path, name: str) -> None:
    with pytest.raises(NotADirectoryError, match="is a file; hw.load takes the folder") as raised:
        hw.load(saved / name)
    assert f"hw.load({str(saved)!r})" in str(raised.value)
    lone = saved / "small.gguf"
    lone.write_bytes(b"GGUF")
    with pytest.raises(NotADirectoryError, match=r", gguf_file='small.gguf'\)"):
        hw.load(str(lone))
    lone.unlink()


@pytest.mark.parametrize("name", [".", "config.json"])
def test_what_may_not_be_read_is_said(folder: Path, name: str) -> None:
    (folder / name).chmod(0)
    is_root = os.geteuid() == 0
    try:
        if is_root:  # who may read everything
            os.seteuid(65534)
        with pytest.raises(PermissionError, match="cannot be read .Permission denied.; check the"):
            hw.load(folder)
    finally:
        if is_root:
            os.seteuid(0)
        (folder / name).chmod(0o700)


def test_a_name_that_is_too_long_is_said() -> None:
    with pytest.raises(OSError, match=r"^'x{200}' cannot be read \(File name too long\)"):
        hw.load("x" * 5000)


def test_a_folder_at_home_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert hw.load("~/model").shape == (3, 4)


@pytest.mark.parametrize("dtype", ["float31", "int8", torch.int8, 7, "nn", ["float32"], True])
def test_a_dtype_that_weights_cannot_have_is_refused(saved: Path, dtype: Any) -> None:
    with pytest.raises(ValueError, match="dtype is a floating-point type of torch, such as"):
        hw.load(saved, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "torch.float64", torch.float64])
def test_a_dtype_may_be_a_name(saved: Path, dtype: Any) -> None:
    assert hw.load(saved, dtype=dtype).dtype == torch.float64


@pytest.mark.parametrize("place", ["cuda:99", 99, torch.device("cuda:99"), {"": "cuda:99"}])
def test_a_device_that_is_not_here_is_refused(saved: Path, place: Any) -> None:
    with pytest.raises(ValueError, match="device_map asks for .*99.+ here; leave it out, or use"):
        hw.load(saved, device_map=place)


@pytest.mark.parametrize("place", ["cuda", "cuda:0", 0, {"": "cuda"}])
def test_a_gpu_where_there_is_none_is_refused(
    saved: Path, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)  # also where there is one
    with pytest.raises(ValueError, match="sees no such devices here; leave it out, or use device"):
        hw.load(saved, device_map=place)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("gpu", "device_map is a device such as 'cpu' or 'cuda:0', 'auto'"),
        ("meta", "device_map 'meta' loads no weights"),
    ],
)
def test_what_is_no_device_is_refused(saved: Path, place: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        hw.load(saved, device_map=place)


def test_a_name_in_place_of_a_tokenizer_is_refused(saved: Path) -> None:
    with pytest.raises(TypeError, match="the tokenizer must be one.*got a str"):
        hw.load(saved, "gpt2")


# ---- code that comes with a model ----

CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
Path({marker!r}).write_text("it was run")
class OwnConfig(LlamaConfig):
    model_type = {kind!r}
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
class OwnTokenizer(PreTrainedTokenizerFast):
    pass
"""


@pytest.fixture
def marker(folder: Path, tmp_path: Path) -> Path:
    """A file that the code of the model's folder writes when it is run."""
    path = tmp_path / "marker"
    kind = f"own{os.getpid()}"
    (folder / "own.py").write_text(CODE.format(marker=str(path), kind=kind))
    classes = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    configure(folder, model_type=kind, auto_map=classes)
    return path


@pytest.mark.parametrize("options", [{}, {"trust_remote_code": None}, {"trust_remote_code": False}])
def test_code_in_a_folder_is_not_run_unless_it_is_trusted(
    folder: Path, marker: Path, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="brings code of its own, which was not run") as raised:
        hw.load(folder, **options)
    assert f"hw.load({str(folder)!r}, trust_remote_code=True)" in str(raised.value)
    assert not marker.exists() and "[y/N]" not in capsys.readouterr().out


def test_code_of_a_tokenizer_is_not_run_either(folder: Path, marker: Path) -> None:
    configure(folder, model_type="llama", auto_map={})
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    own = {"auto_map": {"AutoTokenizer": [None, "own.OwnTokenizer"]}, "tokenizer_class": "Own"}
    path.write_text(json.dumps({**settings, **own}))
    try:
        hw.load(folder)
    except ValueError as error:
        assert "brings code of its own" in str(error)
    assert not marker.exists()


def test_code_that_is_trusted_is_run(folder: Path, marker: Path) -> None:
    assert not hw.load(folder, trust_remote_code=True).family.table
    assert marker.exists()
