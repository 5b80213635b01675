"""A file that only grows: records with checksums, of which a killed process can tear the last.

A record is a header of 20 bytes (magic, length and checksum of the payload, checksum of these)
and the payload. A payload is a line of JSON, then the bytes of the arrays that it lists. Nothing
in it is executed, and nothing is read that the file's own length does not cover.
"""

from __future__ import annotations

import json
import os
import struct
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headwidget.scores.file_errors import as_path, check_ordinary, explained, quoted

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Arrays = Mapping[str, npt.NDArray[Any]]

MAGIC = b"hwcp"
_HEADER = struct.Struct("<4sQI")  # magic, bytes of the payload, its checksum
_CHECK = struct.Struct("<I")  # checksum of the header
HEADER = _HEADER.size + _CHECK.size
MOST_BYTES = 2**31
"""The largest payload."""
MOST_JSON = 2**26
"""The longest line of JSON in a payload."""
SYNC_SECONDS = 1.0
"""The least time between two waits for the disk."""
_DTYPES = {"<f4": "float32", "<f8": "float64", "<i8": "int64", "|b1": "bool", "|u1": "uint8"}


@dataclass(frozen=True, eq=False)
class Entry:
    """What a record holds: its kind, facts as JSON, and arrays by name."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)

    def payload(self) -> bytes:
        """The entry as bytes; ``TypeError`` for what a journal cannot hold."""
        return b"".join(self.parts())

    def parts(self) -> list[memoryview]:
        """The same in parts: the line, and each array without a copy."""
        listed, parts = [], []
        for name, given in self.arrays.items():
            array = np.asarray(given)
            if array.dtype.newbyteorder("<").str not in _DTYPES:
                raise TypeError(
                    f"a checkpoint keeps arrays of {', '.join(_DTYPES.values())}; array {name!r} "
                    f"is of {array.dtype}: convert it."
                )
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            listed.append([name, array.dtype.str, list(array.shape)])
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        try:
            line = json.dumps({"kind": self.kind, "facts": dict(self.facts), "arrays": listed})
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(
                f"a checkpoint keeps facts as plain JSON (text, numbers, lists, dicts): {error}."
            ) from error
        return [memoryview(line.encode() + b"\n"), *parts]

    @classmethod
    def of(cls, payload: bytes) -> Entry:
        """The entry that ``payload`` holds; ``ValueError`` where it holds none."""
        end = payload.find(b"\n", 0, MOST_JSON)
        if end < 0:
            raise ValueError("a record has no line of JSON")
        try:
            line = json.loads(payload[:end].decode())
            kind, facts, listed = line["kind"], line["facts"], line["arrays"]
            arrays, start = {}, end + 1
            for name, dtype, shape in listed:
                if not isinstance(name, str) or name in arrays:
                    raise ValueError(f"an array named {name!r:.40}")
                arrays[name], start = _array(payload, start, dtype, shape)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"a record cannot be read ({error})") from error
        if not isinstance(kind, str) or not isinstance(facts, dict) or start != len(payload):
            raise ValueError("a record holds something else than it lists")
        return cls(kind, facts, arrays)


def _array(payload: bytes, start: int, dtype: Any, shape: Any) -> tuple[npt.NDArray[Any], int]:
    """An array that begins at ``start``, and where it ends."""
    is_known = isinstance(dtype, str) and dtype in _DTYPES
    if not is_known or not all(type(n) is int and 0 <= n <= MOST_BYTES for n in shape):
        raise ValueError(f"an array of {dtype!r:.20}, {shape!r:.60}")
    count = 1
    for n in shape:
        count *= n
    end = start + count * np.dtype(dtype).itemsize
    if end > len(payload):
        raise ValueError("an array is longer than its record")
    array = np.frombuffer(memoryview(payload)[start:end], dtype).reshape(shape)
    if dtype == "|b1" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of bool holds other bytes than 0 and 1")
    return array.astype(array.dtype.newbyteorder("=")), end


class Journal:
    """An open journal: what it held when it was opened, and what is appended.

    One process has it open at a time, as long as the system has locks.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path, "checkpoint is the path of a file")
        with explained(self.path, "written"):
            if self.path.exists():
                check_ordinary(self.path, self.path.stat())
            flags = (
                os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
            )
            self._file = os.open(self.path, flags, 0o666)
        self._close = weakref.finalize(self, os.close, self._file)
        self._synced = time.monotonic()
        self._end = 0
        self._lock()

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"checkpoint {quoted(self.path)}: another run writes to it; wait for that run, or "
                "give this one a path of its own."
            ) from None
        except OSError:  # no locks on this file system
            return

    # ---- reading ----

    def entries(self) -> Iterator[Entry]:
        """The records in their order; a torn last one is cut off the file.

        ``ValueError`` where the file is no journal, or is damaged before its end.
        """
        size = os.fstat(self._file).st_size
        self._end = 0
        while self._end < size:
            payload = self._payload(size - self._end)
            if payload is None:
                os.ftruncate(self._file, self._end)
                return
            try:
                yield Entry.of(payload)
            except ValueError as error:
                raise self._damaged(str(error)) from error
            self._end += HEADER + len(payload)

    def _payload(self, left: int) -> bytes | None:
        """The payload of the next record; None where the record is torn."""
        head = self._read(self._end, min(HEADER, left))
        if not MAGIC.startswith(head[: len(MAGIC)]):
            if self._end == 0:
                raise ValueError(
                    f"{quoted(self.path)} is not a checkpoint of headwidget; choose another path."
                )
            if self._only_nuls(self._end + HEADER):
                return None
            raise self._damaged("a record begins with something else")
        if left < HEADER:
            return None
        _, length, checksum = _HEADER.unpack_from(head)
        (check,) = _CHECK.unpack_from(head, _HEADER.size)
        if check != zlib.crc32(head[: _HEADER.size]) or length > MOST_BYTES:
            if self._only_nuls(self._end + HEADER):
                return None
            raise self._damaged("the checksum of a record's header is wrong")
        if HEADER + length > left:
            return None
        payload = self._read(self._end + HEADER, length)
        if zlib.crc32(payload) != checksum:
            if self._only_nuls(self._end + HEADER + length):
                return None
            raise self._damaged("the checksum of a record is wrong")
        return payload

    def _only_nuls(self, start: int) -> bool:
        """Is there nothing from here on? A machine that lost power leaves NULs at a file's end."""
        while part := self._read(start, 2**20):
            if part.strip(b"\0"):
                return False
            start += len(part)
        return True

    def _read(self, start: int, count: int) -> bytes:
        os.lseek(self._file, start, os.SEEK_SET)
        parts = []
        while count > 0 and (part := os.read(self._file, min(count, 2**24))):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _damaged(self, why: str) -> ValueError:
        return ValueError(
            f"checkpoint {quoted(self.path)} is damaged at byte {self._end}: {why}. Restore a "
            "copy, or delete it and score anew."
        )

    # ---- writing ----

    def append(self, entry: Entry) -> None:
        """Write an entry behind the last one; ``OSError`` with a sentence where that fails.

        What was written of it is then cut off again.
        """
        parts, checksum = entry.parts(), 0
        length = sum(map(len, parts))
        if length > MOST_BYTES or len(parts[0]) > MOST_JSON:
            raise OSError(f"a record of {length} bytes is too large for {quoted(self.path)}.")
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        head = _HEADER.pack(MAGIC, length, checksum)
        # the header and the line in one piece, as most records are short
        first = memoryview(head + _CHECK.pack(zlib.crc32(head)) + parts[0])
        with explained(self.path, "written"):
            try:
                os.lseek(self._file, self._end, os.SEEK_SET)
                for part in (first, *parts[1:]):
                    written = 0
                    while written < len(part):
                        written += os.write(self._file, part[written:])
                self._end += HEADER + length
            finally:
                if os.fstat(self._file).st_size > self._end:
                    os.ftruncate(self._file, self._end)
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Wait until the disk has everything; ``FileNotFoundError`` where the file is not there."""
        with explained(self.path, "written"):
            os.fsync(self._file)
        self._synced = time.monotonic()
        try:
            is_there = os.path.samestat(self.path.stat(), os.fstat(self._file))
        except OSError:
            is_there = False
        if not is_there:
            raise FileNotFoundError(f"{quoted(self.path)} was removed, or replaced, meanwhile.")

    def close(self) -> None:
        """Close the file; nothing can be appended then."""
        self._close()
