"""Checksums of a folder's files, so that damage is noticed before a file is used.

All bytes are hashed, once in a process: a damaged bit may leave a file's size and time as
they were. sha256 reads the embedded model's 538 MB in about 0.3 seconds on a processor that
has instructions for it, and warms the disk cache for the loading that follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

FILE = "checksums.json"
"""The file that holds the sha256 of the others; written last."""
_verified: dict[Path, object] = {}
"""What the files of a folder looked like when this process found them sound."""


def sha256(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(folder: Path) -> None:
    """Write the checksums of a folder's files beside them."""
    sums = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    (folder / FILE).write_text(json.dumps(sums, indent=2), encoding="utf-8")


def damaged(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """The names of files that are missing or not as they were written.

    ``expected`` are the checksums of a folder that has none beside its files.
    """
    sums = _written(folder) or dict(expected)
    look = _look(folder, sums)
    if _verified.get(folder) == look:
        return []
    names = [name for name, digest in sums.items() if not _is_sound(folder / name, digest)]
    if not names:
        _verified[folder] = look
    return names


def _written(folder: Path) -> dict[str, str]:
    """The checksums beside the files; none where they cannot be read."""
    try:
        sums = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return sums if isinstance(sums, dict) else {}


def _look(folder: Path, sums: Mapping[str, str]) -> object:
    """What changes when a file is written anew: its place on the disk, its size and its time."""
    try:
        stats = [(folder / name).stat() for name in sums]
    except OSError:
        return object()  # equal to nothing
    return dict(sums), [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]


def _is_sound(path: Path, digest: str) -> bool:
    try:
        return sha256(path) == digest
    except OSError:
        return False
