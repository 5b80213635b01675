"""16-bit on a processor that refuses AMX: an error that says what to set, and no crash."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import headwidget as hw
from headwidget.models import sixteen_bit
from tests.support import tiny

REFUSED = "processor\t: 0\nmodel name\t: Fake Xeon\nflags\t\t: fpu avx512f amx_bf16 amx_tile\n\n"
CRASHES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
CRASHES_UNLESS_LIMITED = f"""
import os, signal
if os.environ.get("{sixteen_bit.VARIABLE}") != "{sixteen_bit.LIMIT}":
    os.kill(os.getpid(), signal.SIGILL)
"""


class Machine:
    """A machine with a processor and a probe of the test's own, and a cache that is empty."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch, self.folder = monkeypatch, folder
        self.probes = 0
        run = subprocess.run

        def counted(*args: object, **kwargs: object) -> object:
            self.probes += 1
            return run(*args, **kwargs)  # type: ignore[call-overload]

        monkeypatch.setenv("HEADWIDGET_CACHE", str(folder / "cache"))
        monkeypatch.delenv(sixteen_bit.VARIABLE, raising=False)
        monkeypatch.setattr(subprocess, "run", counted)
        monkeypatch.setattr(sixteen_bit, "CPUINFO", folder / "cpuinfo")
        self.has(REFUSED)

    def has(self, cpuinfo: str) -> None:
        (self.folder / "cpuinfo").write_text(cpuinfo)

    def probe(self, code: str) -> None:
        self.monkeypatch.setattr(sixteen_bit, "PROBE", code)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    sixteen_bit._works_in_this_process.cache_clear()
    yield Machine(monkeypatch, tmp_path)
    sixteen_bit._works_in_this_process.cache_clear()


def test_a_processor_without_amx_is_not_probed(machine: Machine) -> None:
    machine.probe(CRASHES)
    machine.has(REFUSED.replace("amx_bf16 amx_tile", ""))
    assert sixteen_bit.works()
    (machine.folder / "cpuinfo").unlink()  # not Linux
    assert sixteen_bit.works()
    assert not machine.probes and not (machine.folder / "cache").exists()


@pytest.mark.parametrize(("code", "works"), [(CRASHES, False), ("", True)])
def test_the_answer_is_found_out_once(machine: Machine, code: str, works: bool) -> None:
    machine.probe(code)
    assert sixteen_bit.works() is works and sixteen_bit.main() == (not works)
    assert machine.probes == 1
    (kept,) = (machine.folder / "cache").iterdir()
    assert kept.read_text() == ("works" if works else "refused")


def test_another_processor_or_torch_or_variable_is_asked_anew(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.probe(CRASHES_UNLESS_LIMITED)
    assert not sixteen_bit.works()
    machine.has(REFUSED.replace("Fake Xeon", "Another Xeon"))
    assert not sixteen_bit.works() and machine.probes == 2
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0")
    assert not sixteen_bit.works() and machine.probes == 3
    monkeypatch.setenv(sixteen_bit.VARIABLE, sixteen_bit.LIMIT)
    assert sixteen_bit.works() and machine.probes == 4


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", f"import os; os.kill(os.getpid(), {signal.SIGKILL:d})"]
)
def test_a_probe_that_fails_in_another_way_says_nothing(machine: Machine, code: str) -> None:
    machine.probe(code)
    assert sixteen_bit.works() and sixteen_bit.works()
    assert machine.probes == 2  # nothing was kept


def test_a_probe_that_hangs_is_ended(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.probe("import time; time.sleep(60)")
    monkeypatch.setattr(sixteen_bit, "SECONDS", 0.5)
    assert sixteen_bit.works()


def test_a_cache_that_cannot_be_written_costs_only_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.folder / "file").touch()
    monkeypatch.setenv("HEADWIDGET_CACHE", str(machine.folder / "file" / "cache"))
    machine.probe(CRASHES)
    assert not sixteen_bit.works() and not sixteen_bit.works()
    assert machine.probes == 2


def test_the_real_probe_runs_through_where_16_bit_works(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sixteen_bit.VARIABLE, sixteen_bit.LIMIT)  # whatever this processor is
    assert sixteen_bit._survives() is True


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_of_16_bits_is_refused_with_what_to_set(
    machine: Machine, dtype: torch.dtype
) -> None:
    machine.probe(CRASHES)
    sentence = (
        "advertises AMX and refuses it.*ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 .*"
        "before torch is imported.*dtype=torch.float32"
    )
    with pytest.raises(RuntimeError, match=sentence):
        hw.load(tiny.build("llama").to(dtype), tiny.tokenizer())
    for name in (dtype, str(dtype).removeprefix("torch.")):
        with pytest.raises(RuntimeError, match=sentence):  # and not that there is no such folder
            hw.load("./nowhere", dtype=name, device_map="cpu")
    assert machine.probes == 1


def test_a_checkpoint_of_16_bits_is_refused_too(machine: Machine, tmp_path: Path) -> None:
    machine.probe(CRASHES)
    tiny.build("llama").to(torch.bfloat16).save_pretrained(tmp_path / "model")
    tiny.tokenizer().save_pretrained(tmp_path / "model")
    with pytest.raises(RuntimeError, match="advertises AMX"):
        hw.load(str(tmp_path / "model"), dtype="auto", device_map="cpu")
    assert hw.load(str(tmp_path / "model"), device_map="cpu").dtype == torch.float32


def test_32_bits_are_never_probed(machine: Machine) -> None:
    machine.probe(CRASHES)
    hw.load(tiny.build("llama"), tiny.tokenizer())
    hw.load(tiny.build("llama").to(torch.float64), tiny.tokenizer())
    assert not machine.probes


def test_the_variable_helps_and_comes_too_late_once_torch_is_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.probe(CRASHES_UNLESS_LIMITED)
    module = tiny.build("llama").to(torch.bfloat16)
    with pytest.raises(RuntimeError, match="restart the kernel"):
        hw.load(module, tiny.tokenizer())
    monkeypatch.setenv(sixteen_bit.VARIABLE, sixteen_bit.LIMIT)
    with pytest.raises(RuntimeError, match="restart the kernel"):
        hw.load(module, tiny.tokenizer())
    sixteen_bit._works_in_this_process.cache_clear()  # as a new process
    assert hw.load(module, tiny.tokenizer()).dtype == torch.bfloat16


def test_asking_needs_no_torch() -> None:
    code = """
import sys
from headwidget.models import sixteen_bit
sixteen_bit.works()
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    limited = {**os.environ, sixteen_bit.VARIABLE: sixteen_bit.LIMIT}
    command = [sys.executable, "-m", "headwidget.models.sixteen_bit"]
    assert subprocess.run(command, check=False, env=limited).returncode == 0
