"""A log of records in one file, which several processes append to and read at the same time.

    cocite-records 1
    00c3f6b6e1f94cbd9ac2e2f6a9f0d1b7 ["a record", "of one line"]

Each record is a line: its XXH3-128, a blank, the record. It is on disk when ``append`` returns. A
last line that is incomplete, or has zeros in it, was interrupted: readers ignore it, and the next
append truncates it. Any other line with a wrong checksum is an error, as records after it are
valid.

Writers lock the file until their bytes are synced, and readers share the lock, so nothing is read
that might be truncated. ``rewrite`` gives the name to a new file; processes with the old one open
notice that.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import xxhash

from cocite.errors import Damaged, StoreError
from cocite.storage import disk
from cocite.storage.atomic import is_still, lock, staged_file, sweep_staged, unlock

_HEADER = b"cocite-records 1\n"
_TAIL = 1 << 16
"""Bytes to read at a time when searching for the last line."""
_log = logging.getLogger("cocite")


class RecordLog:
    """The log at ``path``, created with its first record."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: bytes) -> int:
        """Add a record, which must not contain a line end; return the byte at which it ends. Raises
        :class:`~cocite.errors.StoreError` if it cannot be written.
        """
        with self._locked() as file:
            size = self._end(file)
            try:
                disk.write(file, line := _line(record))
                disk.sync_file(file)
            except BaseException:
                with suppress(OSError):
                    disk.truncate(file, size)
                raise
            return size + len(line)

    def records(self) -> list[bytes]:
        """Return all records; raises :class:`~cocite.errors.Damaged`."""
        reader = RecordReader(self.path)
        try:
            return reader.new()
        finally:
            reader.close()

    def rewrite(self, change: Callable[[list[bytes]], list[bytes]]) -> None:
        """Replace all records atomically by what ``change`` returns for them."""
        if not self.path.exists():
            return
        sweep_staged(self.path)
        with self._locked() as file:
            records = _records(self.path, file, 0)[0]
            left = change(records)
            if left != records:
                with staged_file(self.path) as new:
                    disk.write(new, _HEADER + b"".join(map(_line, left)))

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open the file and lock it."""
        while True:
            try:
                disk.touch(self.path)
                file = disk.edit(self.path)
            except FileNotFoundError:  # it was replaced meanwhile
                if self.path.parent.is_dir():
                    continue
                raise
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
            with file:
                lock(file.fileno(), wait=True)
                if is_still(self.path, file.fileno()):
                    yield file
                    return

    def _end(self, file: BinaryIO) -> int:
        """Return the end of the last complete line; truncate what follows."""
        size = at = file.seek(0, os.SEEK_END)
        tail = b""
        while at and tail.count(b"\n") < 2:
            begin = max(0, at - _TAIL)
            file.seek(begin)
            tail = file.read(at - begin) + tail
            at = begin
        end = at + _whole(tail)
        if end < size:
            _log.warning(
                f"{self.path}: its last {size - end:,} bytes are a record whose writer was killed "
                "before it was stored, and was not confirmed: they are cut off"
            )
            disk.truncate(file, end)
        if not end:
            disk.write(file, _HEADER)
            disk.sync_file(file)
            disk.sync_directory(self.path.parent)
            end = len(_HEADER)
        file.seek(end)
        return end


class RecordReader:
    """Reads the records of a log as they arrive; for one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self.position = 0
        """The position after the last record read."""

    def new(self) -> list[bytes]:
        """Return records added since the last call; all records if the log was rewritten. Takes two
        system calls if there are none. Raises :class:`~cocite.errors.Damaged`.
        """
        if self._file is None or not is_still(self.path, self._file.fileno()):
            self.close()
            try:
                self._file = self.path.open("rb", buffering=0)
            except FileNotFoundError:
                return []
        if os.fstat(self._file.fileno()).st_size <= self.position:
            return []
        lock(self._file.fileno(), shared=True, wait=True)
        try:
            found, self.position = _records(self.path, self._file, self.position)
        except Damaged:
            self.close()
            raise
        unlock(self._file.fileno())
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file, self.position = None, 0


def _line(record: bytes) -> bytes:
    assert not {*b"\n\0"} & {*record}
    return b"%s %s\n" % (xxhash.xxh3_128_hexdigest(record).encode(), record)


def _whole(data: bytes) -> int:
    """Return how many bytes are complete lines."""
    end = data.rfind(b"\n") + 1
    last = data.rfind(b"\n", 0, max(0, end - 1)) + 1
    return last if b"\0" in data[last:end] else end


def _records(path: Path, file: BinaryIO, begin: int) -> tuple[list[bytes], int]:
    """Return the records of complete lines from a byte on, and the end of the last one."""
    file.seek(begin)
    whole = b"".join(iter(lambda: file.read(1 << 20), b""))
    whole = whole[: _whole(whole)]
    end, found = begin + len(whole), []
    if not begin and whole and not whole.startswith(_HEADER):
        raise Damaged(
            f"{path} is not a log of records that this release reads. Move it away, or name another"
        )
    at = begin + (0 if begin else len(_HEADER))
    for line in whole[at - begin :].split(b"\n")[:-1]:
        checksum, _, record = line.partition(b" ")
        if checksum != xxhash.xxh3_128_hexdigest(record).encode():
            raise Damaged(
                f"{path} is damaged at byte {at:,}: a line of {len(line) + 1:,} bytes has another "
                "checksum. Copy it from where it is whole; or end all servers, remove that line, "
                "and send again what it held. All other lines count"
            )
        found.append(record)
        at += len(line) + 1
    return found, end
