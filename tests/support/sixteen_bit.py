"""The environment that tests need where the processor refuses 16-bit arithmetic.

There the tests run with oneDNN limited, which has to be in the environment before torch is
imported. ``headwidget.models.sixteen_bit`` says why, and imports no torch.
"""

from __future__ import annotations

import os

from headwidget.models.sixteen_bit import LIMIT, VARIABLE, works


def limit_where_it_does_not_work() -> None:
    """Set the limit for this process and all that it starts, where 16-bit needs one."""
    if VARIABLE not in os.environ and not works():
        os.environ[VARIABLE] = LIMIT
