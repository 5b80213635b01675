"""Build hook: makes headwidget/static/ from js/ with npm.

Nothing is built where the bundle is newer than its sources, as in the sdist, which needs no node.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def is_built(root: Path) -> bool:
    """Is the bundle newer than its sources, and not one of ``npm run dev``, with a source map?"""
    bundle = root / "headwidget" / "static" / "widget.js"
    if not bundle.is_file() or b"sourceMappingURL=" in bundle.read_bytes():
        return False
    sources = [path for path in (root / "js").rglob("*") if path.is_file()]
    if (root / "package.json").exists():
        sources.append(root / "package.json")
    built = bundle.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in sources)


class FrontEnd(BuildHookInterface):
    """Called by hatchling for the wheel, the sdist and ``pip install -e .``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build when a source is newer than the bundle."""
        root = Path(self.root)
        if is_built(root):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(
                "building headwidget's front end needs node >= 20 with npm; "
                "install it, or install headwidget from its wheel."
            )
        if not (root / "node_modules").is_dir():
            subprocess.run([npm, "ci", "--no-fund", "--no-audit"], cwd=root, check=True)
        subprocess.run([npm, "run", "build"], cwd=root, check=True)
