"""Does 16-bit arithmetic work on this processor? Tried once, in a child process.

Some virtual machines advertise AMX and refuse it. There a bfloat16 linear layer on the CPU
ends the process with an illegal instruction, whoever calls it. Limiting oneDNN to AVX-512
(``ONEDNN_MAX_CPU_ISA``) prevents that, if it is set before torch is imported. So this module
imports no torch: ``python -m headwidget.models.sixteen_bit`` exits with 0 where 16-bit works
and with 1 where it does not.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwidget.models.cache_folder import cache_folder
from headwidget.scores.files import write_whole

if TYPE_CHECKING:
    from torch import nn

VARIABLE, LIMIT = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16"
CPUINFO = Path("/proc/cpuinfo")
SECONDS = 120
"""The probe may take this long: it imports torch."""

PROBE = """
import resource, torch
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for dtype in (torch.bfloat16, torch.float16):
    layer = torch.nn.Linear(128, 128, dtype=dtype)
    try:
        layer(torch.ones(32, 128, dtype=dtype)).sum().backward()
    except RuntimeError:  # not implemented for this dtype, which ends no process
        pass
"""
"""Code for the child process; it crashes where 16-bit is refused."""

_CRASH_SIGNALS = (signal.SIGILL, signal.SIGSEGV, getattr(signal, "SIGBUS", signal.SIGSEGV))


def works() -> bool:
    """Can 16-bit layers run on this machine's CPU, with the environment as it is?

    Only a processor that advertises AMX is tried, in a child process. The answer is kept in
    headwidget's cache folder, for this processor, kernel, torch and ``ONEDNN_MAX_CPU_ISA``.

    >>> import headwidget.models.sixteen_bit
    >>> headwidget.models.sixteen_bit.works() in (True, False)
    True
    """
    processor = _processor()
    if "amx_" not in processor:
        return True
    file = cache_folder() / f"sixteen-bit-{_key(processor)}.txt"
    try:
        return file.read_text() == "works"
    except OSError:  # not tried yet
        pass
    survived = _survives()
    if survived is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            verdict = "works" if survived else "refused"
            write_whole(file, lambda temporary: temporary.write_text(verdict))
        except OSError:  # a cache that cannot be written costs the next process a probe
            pass
    return survived is not False


def check(module: nn.Module) -> None:
    """Refuse a module with 16-bit weights on the CPU where running it would end the process."""
    if any(_is_sixteen_bit(parameter) for parameter in module.parameters()):
        refuse_where_unsupported()


def refuse_where_unsupported() -> None:
    """Raise an error that says what to set, where 16-bit does not work."""
    if not _works_in_this_process():
        raise RuntimeError(
            "this processor advertises AMX and refuses it: a 16-bit model on the CPU would end "
            f"the process with an illegal instruction. Set {VARIABLE}={LIMIT} in the environment "
            "before torch is imported (in a notebook: restart the kernel first), or load the "
            "model with dtype=torch.float32."
        )


@functools.cache
def _works_in_this_process() -> bool:
    """The first answer holds: torch is imported by now and does not read the variable again."""
    return works()


def _is_sixteen_bit(parameter: nn.Parameter) -> bool:
    on_cpu = parameter.device.type == "cpu"
    return on_cpu and parameter.is_floating_point() and parameter.element_size() == 2


def _processor() -> str:
    """The first processor of /proc/cpuinfo: model, flags, microcode; empty without such a file."""
    try:
        lines = CPUINFO.read_text(errors="replace").split("\n\n")[0].splitlines()
    except OSError:  # not Linux
        return ""
    names = ("model name", "flags", "microcode")
    return "\n".join(line for line in lines if line.split(":")[0].strip() in names)


def _key(processor: str) -> str:
    """What the answer depends on, as a short hash."""
    torch_version = importlib.metadata.version("torch")
    variable = os.environ.get(VARIABLE, "")
    facts = "\n".join([processor, platform.release(), torch_version, variable])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def _survives() -> bool | None:
    """Does a process survive 16-bit layers? None where the probe failed in another way."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if -done.returncode in _CRASH_SIGNALS:
        return False
    return True if done.returncode == 0 else None


def main() -> int:
    """The exit code of ``python -m headwidget.models.sixteen_bit``."""
    return 0 if works() else 1


if __name__ == "__main__":
    sys.exit(main())
