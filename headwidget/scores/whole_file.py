"""Files that are written whole or not at all: filled in a folder beside the target, then renamed.

The folder is ``.name.token.part``. A save holds a lock on the file ``lock`` in it, which the
system releases when the process ends, however it ends. So a later save of the same target can
tell what a killed one left from one that is under way, and removes it. Where locks are not
supported (Windows, some network file systems), nothing is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwidget.scores.file_errors import as_path, check_ordinary, explained

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCK, _CONTENT = "lock", "content"
_MOST_BYTES = 200
"""The most bytes of the target's name in the folder's, which file systems limit to 255."""
_ATTEMPTS = 100


def write_whole(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a file beside ``path``, then rename it to ``path``. Gives the path back.

    So ``path`` holds the old file or the whole new one, never a part, also after a power cut.
    A symbolic link stays one: the file that it leads to is replaced. An old file's permissions
    are kept; a new file has those that ``open`` would give it.
    """
    asked = as_path(path, "a file is written to a path")
    target = Path(os.path.realpath(asked))
    with explained(target, "written"):
        old = _status(target)
        if old is not None:
            check_ordinary(asked, old)
        _remove_leftovers(target)
        with _part_folder(target) as (folder, mode):
            temporary = folder / _CONTENT
            write(temporary)
            _set_permissions(temporary, old, mode)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
        _sync_folder(target.parent)
    return asked


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _set_permissions(temporary: Path, old: os.stat_result | None, mode: int) -> None:
    """Those of the old file, where there is one, with its owner and group where that is allowed."""
    if old is not None and hasattr(os, "chown"):
        for owner in (old.st_uid, -1):  # the group alone, for those who may not give files away
            with suppress(OSError):
                os.chown(temporary, owner, old.st_gid)
                break
    temporary.chmod(mode if old is None else stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Let the new name reach the disk."""
    with suppress(OSError):  # not every system can; the file is in place in any case
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- the folder of a save, and what killed ones left ----


@contextmanager
def _part_folder(target: Path) -> Iterator[tuple[Path, int]]:
    """A locked folder for one save, and the permissions that a new file has there."""
    folder, handle = _locked_folder(target)
    try:
        yield folder, stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked_folder(target: Path) -> tuple[Path, int]:
    """A new folder and the handle of its lock."""
    for _ in range(_ATTEMPTS):
        folder = target.parent / f".{_stem(target)}.{secrets.token_hex(4)}.part"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            handle = _locked(folder / _LOCK)
            if handle is not None:
                return folder, handle
    raise OSError(f"no folder for writing {target.name!r} could be made beside it.")


def _locked(lock: Path) -> int | None:
    """The handle of a new file that this save has locked; None where another one removed it."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileNotFoundError:
        return None
    try:
        taken = _take(handle)
    except OSError:  # no locks here, so that no save is taken for a leftover
        taken = True
    # Between making and locking it, another save may have taken the folder for a leftover.
    if taken and lock.exists():
        return handle
    os.close(handle)
    return None


def _take(handle: int) -> bool:
    """Lock a file unless somebody else has; an error where there are no locks."""
    if fcntl is None:
        raise OSError("this system has no locks.")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove what killed saves of the same target left."""
    pattern = re.compile(rf"\.{re.escape(_stem(target))}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):  # a folder that may be written to, but not listed
        for folder in target.parent.iterdir():
            if pattern.fullmatch(folder.name):
                _remove_if_dead(folder)


def _remove_if_dead(folder: Path) -> None:
    """Remove the folder of a save unless it is under way, somebody else's or gone by now."""
    with suppress(OSError):
        try:
            handle = os.open(folder / _LOCK, os.O_RDWR)
        except FileNotFoundError:  # killed before it had a lock; a folder with content stays
            folder.rmdir()
            return
        try:
            if _take(handle):
                shutil.rmtree(folder)
        finally:
            os.close(handle)


def _stem(target: Path) -> str:
    return os.fsencode(target.name)[:_MOST_BYTES].decode(errors="ignore")
