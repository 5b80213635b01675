"""Whether 16-bit matrices can be multiplied here, found out in a throw-away process.

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
TRIAL = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    torch.nn.Linear(64, 64, dtype=dtype)(torch.ones(32, 64, dtype=dtype))
"""


def works() -> bool:
    """False where a 16-bit linear layer kills its process. Imports no torch in this one."""
    if not CPUINFO.exists() or "amx" not in CPUINFO.read_text():
        return True
    trial = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, check=False)
    return trial.returncode >= 0  # below zero: ended by a signal


def limit_where_it_does_not_work() -> None:
    """Set the limit for this process and all that it starts, where 16-bit needs one."""
    if VARIABLE not in os.environ and not works():
        os.environ[VARIABLE] = LIMIT
