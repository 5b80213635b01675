"""Run a Python program that ends when the process that started it ends, however that ends.

``command("-m", "jupyterlab", …)`` is what to start: this file as a program. It asks the
kernel for a signal at its parent's death and then becomes the program; a server started
this way is not left behind by a worker that crashes. Elsewhere than on Linux the program
just starts.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def command(*arguments: str) -> list[str]:
    """The command that runs ``python *arguments`` for as long as this process lives."""
    return [sys.executable, "-I", __file__, str(os.getpid()), *arguments]


def _main(parent: int, arguments: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit("the process that started this one has ended")
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
