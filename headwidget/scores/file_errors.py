"""What went wrong with a file, as a sentence; and checks of a path before it is read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_MOST_LETTERS = 200
"""The most letters of a path that a sentence quotes."""
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_TOO_LARGE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def as_path(path: object, what: str) -> Path:
    """``path`` as a Path; ``what`` begins the sentence where it is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{what}; got a {type(path).__name__}.")
    as_text = os.fspath(path)
    if not isinstance(as_text, str):
        raise TypeError(f"{what} as text; got bytes.")
    try:
        fits = "\0" not in as_text and os.fsencode(as_text) is not None
    except UnicodeEncodeError:
        fits = False
    if not as_text or not fits:
        raise ValueError(f"{quoted(as_text)} cannot be the path of a file.")
    return Path(as_text)


def check_readable(path: Path) -> None:
    """Refuse what is not an ordinary file or may not be read, and never wait for a pipe."""
    with explained(path, "read"):
        check_ordinary(path, path.stat())
        with path.open("rb"):
            pass


def check_ordinary(path: Path, status: os.stat_result) -> None:
    """Refuse folders, pipes, sockets and devices."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "special")
    error = IsADirectoryError if stat.S_ISDIR(status.st_mode) else OSError
    raise error(f"{quoted(path)} is {kind}, not a file; give the path of a file.")


@contextmanager
def explained(path: Path, done: str) -> Iterator[None]:
    """Turn an error of the system into a sentence about ``path``; ``done`` is "read" or "written".

    The error keeps its class and number.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence already
            raise
        explanation = type(error)(_sentence(path, done, error))
        explanation.errno = error.errno
        raise explanation from error


def _sentence(path: Path, done: str, error: OSError) -> str:
    number, reason = error.errno, (error.strerror or str(error)).lower()
    cannot = f"{quoted(path)} cannot be {done}"
    if number in (errno.ENOENT, errno.ENOTDIR):
        return _missing(path, done)
    if number == errno.ENAMETOOLONG:
        return f"{cannot}: its path of {len(str(path))} characters is too long for this system."
    if number == errno.ELOOP:
        return f"{cannot}: its symbolic links lead in a circle."
    if number in _REFUSED and done == "written":
        return (
            f"{cannot}: its folder may not be written to ({reason}); "
            "choose another, or ask for the permission."
        )
    if number in _REFUSED:
        return f"{cannot}: {reason}; ask its owner for the permission."
    if number in _TOO_LARGE:
        return f"{cannot}: {reason}; free some space, or choose another place."
    return f"{cannot}: {reason}."


def _missing(path: Path, done: str) -> str:
    """Which part of a path is not there."""
    for folder in reversed(path.parents):
        if folder.exists() and not folder.is_dir():
            return f"{quoted(path)} cannot be {done}: {quoted(folder)} is a file, not a folder."
    if done == "read":
        return f"there is no file {quoted(path)}."
    return (
        f"the folder {quoted(path.parent)} does not exist; make it first, "
        f"then write {quoted(path.name)} there."
    )


def quoted(path: str | Path) -> str:
    """A path in quotation marks; of a very long one, the end."""
    letters = str(path)
    return repr(letters if len(letters) <= _MOST_LETTERS else "…" + letters[-_MOST_LETTERS:])
