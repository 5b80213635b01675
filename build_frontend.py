"""Build hook: makes headwidget/static/ from js/ with npm, unless what is there is newer than its sources (as it is in the sdist, which needs no node)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FrontEnd(BuildHookInterface):
    """Called by hatchling for the wheel, the sdist and ``pip install -e .``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build when a source is newer than the bundle."""
        root = Path(self.root)
        built = root / "headwidget" / "static" / "widget.js"
        sources = [p for p in (root / "js").rglob("*") if p.is_file()] + [root / "package.json"]
        if built.is_file() and all(
            p.stat().st_mtime <= built.stat().st_mtime for p in sources if p.exists()
        ):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(
                "building headwidget's front end needs node >= 20 with npm; install it, or install headwidget from its wheel."
            )
        if not (root / "node_modules").is_dir():
            subprocess.run([npm, "ci", "--no-fund", "--no-audit"], cwd=root, check=True)
        subprocess.run([npm, "run", "build"], cwd=root, check=True)
