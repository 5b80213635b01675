"""A user who may not do everything: permissions do not bind root, who runs tests in containers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[Path]:
    """Be an ordinary user, with a folder that this user owns."""
    root = os.geteuid() == 0
    # pytest's own folders are closed to other users
    with tempfile.TemporaryDirectory(prefix="headwidget-tests-") as name:
        if root:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
