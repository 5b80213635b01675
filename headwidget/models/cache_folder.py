"""headwidget's cache folder: the embedded model, and what was found out about the processor."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$HEADWIDGET_CACHE``, else the platform's own folder for caches."""
    if chosen := os.environ.get("HEADWIDGET_CACHE"):
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("headwidget", appauthor=False))
