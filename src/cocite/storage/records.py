"""An append-only record log in one file, for concurrent writers and readers.

    cocite-records 1
    00c3f6b6e1f94cbd9ac2e2f6a9f0d1b7 ["a record", "of one line"]

Each line consists of the record's XXH3-128, a space, and the record. ``append`` returns once the
record is on disk. A last line that is incomplete or contains zero bytes comes from an interrupted
write: readers ignore it, and the next ``append`` removes it. A wrong checksum in any other line is
an error.

Writers lock the file until their bytes are synced. Readers use a shared lock, so they never read
bytes that may be truncated, and detect when ``rewrite`` has replaced the file.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import xxhash

from cocite.errors import Damaged, StoreError
from cocite.storage import disk
from cocite.storage.atomic import is_still, lock, staged_file, sweep_staged, unlock

_HEADER = b"cocite-records 1\n"
_TAIL = 1 << 16
"""Bytes to read at a time when searching backward for the last line."""
_log = logging.getLogger("cocite")


class RecordLog:
    """The log at ``path``. The first record creates the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: bytes) -> int:
        """Append a record, which must not contain line breaks or zero bytes; return the end offset.
        Raises :class:`~cocite.errors.StoreError` if the file cannot be written.
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
        with closing(RecordReader(self.path)) as reader:
            return reader.new()

    def rewrite(self, change: Callable[[list[bytes]], list[bytes]]) -> None:
        """Atomically replace all records with ``change(records)``."""
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
        """Open and lock the file."""
        while True:
            try:
                disk.touch(self.path)
                file = disk.edit(self.path)
            except FileNotFoundError:  # another process replaced it
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
        """Return the end of the last complete line, after truncating the file there."""
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
                f"{self.path}: removed the last {size - end:,} bytes, an unconfirmed record of a "
                "process that was killed while writing"
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
    """An incremental reader of a log. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self.position = 0
        """File offset after the last record read."""

    def new(self) -> list[bytes]:
        """Return the records since the last call, or all records after a rewrite. Without new
        records, this takes two system calls. Raises :class:`~cocite.errors.Damaged`.
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
    """Return the length of the complete lines at the start of ``data``."""
    end = data.rfind(b"\n") + 1
    last = data.rfind(b"\n", 0, max(0, end - 1)) + 1
    return last if b"\0" in data[last:end] else end


def _records(path: Path, file: BinaryIO, begin: int) -> tuple[list[bytes], int]:
    """Return the complete records from byte ``begin`` on, and their end offset."""
    file.seek(begin)
    whole = b"".join(iter(lambda: file.read(1 << 20), b""))
    whole = whole[: _whole(whole)]
    end, found = begin + len(whole), []
    if not begin and whole and not whole.startswith(_HEADER):
        raise Damaged(
            f"{path} is not a log of records that this release can read. Move it, or choose "
            "another file"
        )
    at = begin + (0 if begin else len(_HEADER))
    for line in whole[at - begin :].split(b"\n")[:-1]:
        checksum, _, record = line.partition(b" ")
        if checksum != xxhash.xxh3_128_hexdigest(record).encode():
            raise Damaged(
                f"{path} is damaged at byte {at:,}: the checksum of a line of {len(line) + 1:,} "
                "bytes does not match. Restore the file from an intact copy; or stop all servers, "
                "remove that line, and send its links again. The other lines are valid"
            )
        found.append(record)
        at += len(line) + 1
    return found, end
