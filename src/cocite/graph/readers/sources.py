"""What the user named as input: files, globs, standard input; plain or packed.

Compression is recognised by the first bytes of the content, never by the name.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from cocite.errors import InputError, UsageError

__all__ = ["Source", "expand", "unpack_errors"]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Source:
    """One input: ``path`` is None for standard input. A pipe is opened once, by whoever looks at it
    first, and what was looked at is still there to be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._begun: io.BufferedReader | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return "standard input" if self.path is None else str(self.path)

    @property
    def short(self) -> str:
        """The same without the folder, for where there is little room."""
        return self.label if self.path is None else self.path.name

    @property
    def nbytes(self) -> int:
        """Size as stored; 0 where it is not known."""
        return self.path.stat().st_size if self.path is not None else 0

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.path is not None and self.path.is_dir()

    @property
    def is_pipe(self) -> bool:
        """Whether it can be read once only, and from the front."""
        return self.path is None or not (self.path.is_file() or self.path.is_dir())

    def head(self, size: int = 16) -> bytes:
        """The first bytes as they are stored, packed or not; none of a directory."""
        if self.is_directory:
            return b""
        try:
            raw = self._raw()
            found = raw.peek(size)[:size]
        except OSError as error:
            raise InputError(f"{self.label} cannot be read: {error.strerror}") from error
        if not self.is_pipe:
            self.close()
        return found

    def close(self) -> None:
        """Give back what :meth:`head` opened."""
        if self._begun is not None:
            self._begun.close()
            self._begun = None

    def _raw(self) -> io.BufferedReader:
        if self._begun is None:
            inner = sys.stdin.buffer if self.path is None else self.path.open("rb")
            self._begun = io.BufferedReader(cast(Any, _Counted(inner)), 1 << 20)
        return self._begun

    def open(self) -> tuple[IO[bytes], BinaryIO]:
        """(unpacked stream, the raw stream below it, whose ``tell`` shows progress)."""
        raw, self._begun = self._raw(), None
        counted = cast(BinaryIO, raw.raw)
        magic = raw.peek(4)[:4]
        if magic.startswith(_GZIP):
            return cast(IO[bytes], gzip.GzipFile(fileobj=raw)), counted
        if magic.startswith(_ZSTD):
            return cast(IO[bytes], _zstd().ZstdFile(raw)), counted
        if magic.startswith((b"\xff\xfe", b"\xfe\xff")):
            counted.close()
            raise InputError(
                f"{self.label} is UTF-16 text; cocite reads UTF-8. Convert it first, for "
                "example with: iconv -f UTF-16 -t UTF-8"
            )
        return raw, counted


class _Counted(io.RawIOBase):
    """A raw stream that counts what was read, for inputs that cannot tell."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        return len(data)

    def tell(self) -> int:
        return self._count

    def close(self) -> None:
        if self._inner is not sys.stdin.buffer:
            self._inner.close()
        super().close()


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def unpack_errors() -> tuple[type[Exception], ...]:
    """What reading an unpacked stream raises if the packed one is cut or damaged."""
    return (EOFError, OSError, zlib.error, _zstd().ZstdError)


def expand(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Source]:
    """The inputs, globs expanded in sorted order; ``-`` is standard input.

    Raises :class:`UsageError` if there is none and :class:`InputError` for one that is missing.
    """
    if isinstance(inputs, str | os.PathLike):
        inputs = [inputs]
    sources: list[Source] = []
    inputs = list(inputs)
    if not all(isinstance(entry, str | os.PathLike) for entry in inputs):
        raise UsageError(
            "inputs are paths of files; to store pairs that are in memory, write them to a file "
            "first, one link a line"
        )
    for name in [os.fspath(entry) for entry in inputs]:
        if name == "-":
            sources.append(Source(None))
            continue
        exists = os.path.exists(name)  # Path.exists raises for over-long names
        matches = [name] if exists else sorted(glob.glob(name, recursive=True))
        if not matches:
            raise InputError(f"{name}: no such file, and no file matches it as a pattern")
        for match in matches:
            if os.fsencode(match).decode(errors="replace") != match:
                raise InputError(f"{match!r}: the file's name is not UTF-8. Rename it")
            sources.append(Source(Path(match)))
    if not sources:
        raise UsageError("no input: name files of links, or - for standard input")
    if [source.path for source in sources].count(None) > 1:
        raise UsageError("standard input (-) is named twice")
    return sources
