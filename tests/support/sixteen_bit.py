"""The environment that tests need where the processor refuses 16-bit arithmetic.

Some virtual machines advertise AMX and refuse it: a bfloat16 linear layer then kills the
process with an illegal instruction. There the tests run with oneDNN limited, which has
to be in the environment before torch is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VARIABLE, LIMIT = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16"
CPUINFO = Path("/proc/cpuinfo")
TRIAL = [sys.executable, "-m", "headwidget.models.sixteen_bit"]
"""Exits with 0 where 16-bit works. A process of its own: this one must not import torch yet."""


def works() -> bool:
    """Can 16-bit layers run here? Only a processor that advertises AMX is tried."""
    if not CPUINFO.exists() or "amx_" not in CPUINFO.read_text():
        return True
    return subprocess.run(TRIAL, capture_output=True, check=False).returncode == 0


def limit_where_it_does_not_work() -> None:
    """Set the limit for this process and all that it starts, where 16-bit needs one."""
    if VARIABLE not in os.environ and not works():
        os.environ[VARIABLE] = LIMIT
