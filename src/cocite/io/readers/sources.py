"""Inputs: files, globs and standard input, plain or compressed.

Compression (gzip, bzip2, xz, Zstandard) and UTF-16 are recognized by the first bytes, never by the
name; UTF-16 is converted to UTF-8. Formats are detected in the decompressed beginning of an input
(:class:`Beginning`), which can be read again afterwards, even from a pipe.

An input may decompress to at most :data:`MOST_RATIO` times its size, or :data:`ALWAYS_UNPACKED`
bytes if that is more; reading beyond raises an error. Decompression takes at most a few hundred
megabytes of memory, so xz with a larger dictionary is refused.
"""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import io
import lzma
import os
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from cocite.errors import InputError, UsageError
from cocite.resources import format_size

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def encoding_of(content: bytes) -> str:
    """Return "UTF-16" if the content begins with a UTF-16 byte order mark, else ""."""
    return "UTF-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else ""


def bad_lines(content: bytes, whole: bool, bad: re.Pattern[bytes] | None) -> bool:
    """Return whether most lines contain the pattern ``bad`` or, if that is None, are not UTF-8."""
    if not bad.search(content) if bad else is_utf8(content):
        return False  # the usual case, which needs no splitting
    lines = [line for line in re.split(b"\r\n|\n|\r", content) if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()
    wrong = sum(bool(bad.search(line)) if bad else not is_utf8(line) for line in lines)
    return wrong * 2 > len(lines)


def is_utf8(line: bytes) -> bool:
    """Return whether ``line`` is valid UTF-8."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Pieces(io.RawIOBase):
    """A stream of bytes from an iterator; closing it also closes the stream ``below``."""

    def __init__(self, pieces: Iterator[bytes], below: Any) -> None:
        self._pieces, self._below = pieces, below
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; none at the end."""
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the underlying stream as well."""
        self._below.close()
        super().close()


def rejoined(begun: bytes, stream: Any, damage: Exception | None = None) -> Iterator[bytes]:
    """Yield the bytes ``begun``; then raise ``damage``, or yield the rest of the stream."""
    yield begun
    if damage is not None:
        raise damage
    while piece := stream.read1(_STEP):
        yield piece


def _recoded(stream: Any, encoding: str) -> Iterator[bytes]:
    """Convert a stream to UTF-8; unpaired surrogates make their rows malformed."""
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    data = b"-"
    while data:
        data = stream.read(1 << 16)
        try:
            yield decoder.decode(data, not data).encode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # cut within a character
            yield b"\xff"


def _unxz(packed: io.BufferedReader) -> Iterator[bytes]:
    """Decompress xz within a memory limit, which :class:`lzma.LZMAFile` lacks."""
    rest = packed.read1(1 << 16)
    while rest:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not unpacker.eof:
            if unpacker.needs_input and not rest and not (rest := packed.read1(1 << 16)):
                raise EOFError("it ends before its end-of-stream marker")
            yield unpacker.decompress(rest, 1 << 17)
            rest = b""
        rest = unpacker.unused_data.lstrip(b"\0")  # more may follow, after zeros
        while not rest and (piece := packed.read1(_STEP)):
            rest = piece.lstrip(b"\0")


class Counted(io.RawIOBase):
    """A stream that counts bytes and calls ``check`` with the count.

    Bytes are read directly into the caller's buffer, because a copy would add a third to the time.
    """

    def __init__(self, inner: Any, check: Callable[[int], None] = lambda count: None) -> None:
        self._inner, self._check, self._count = inner, check, 0
        self._read = getattr(inner, "readinto1", inner.readinto)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; none at the end."""
        size: int = self._read(buffer)
        self._count += size
        self._check(self._count)
        return size

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._count

    def close(self) -> None:
        """Close the underlying stream as well, unless it is standard input."""
        if self._inner is not sys.stdin.buffer:
            self._inner.close()
        super().close()


LOOK = 1 << 16
"""Number of decompressed bytes in which to detect the format."""
_STEP = 1 << 13
MOST_RATIO = 200
"""Maximum compression ratio; links and pages have ratios of 3 to 50."""
ALWAYS_UNPACKED = 1 << 28
"""Decompressed size in bytes that is allowed for any input."""
_XZ_MEMORY = 256 << 20
"""Memory for decompressing xz; ``xz -9`` needs 65 MiB."""


@dataclass(frozen=True)
class _Packing:
    """A compression: its signature, a function that opens it, and a shell command."""

    begins: re.Pattern[bytes]
    open: Callable[[io.BufferedReader], Any]
    command: str


PACKED = {
    "gzip": _Packing(re.compile(rb"\x1f\x8b"), lambda raw: gzip.GzipFile(fileobj=raw), "gzip -dc"),
    "Zstandard": _Packing(
        re.compile(rb"\x28\xb5\x2f\xfd"), lambda raw: zstd().ZstdFile(raw), "zstd -dc"
    ),
    "bzip2": _Packing(re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.BZ2File, "bzip2 -dc"),
    "xz": _Packing(
        re.compile(rb"\xfd7zXZ\x00"),
        lambda raw: io.BufferedReader(Pieces(_unxz(raw), raw), 1 << 17),
        "xz -dc",
    ),
}
"""Supported compressions by name."""


def lines_of(text: str) -> list[str]:
    """Split a text into lines, which end with LF, CR or CRLF."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


@dataclass(frozen=True)
class Beginning:
    """The decompressed beginning of an input.

    ``whole`` says whether ``content`` is the entire input. ``packed`` is the compression, or "";
    ``path`` is a file's path; ``encoding`` is UTF-16 or "".
    """

    content: bytes
    whole: bool = True
    packed: str = ""
    path: Path | None = None
    encoding: str = ""

    @cached_property
    def text(self) -> str:
        """Return the content decoded as UTF-8, without a byte order mark."""
        return self.content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")

    @cached_property
    def lines(self) -> list[str]:
        """Return the nonblank lines, stripped, without the last one if it may be cut."""
        lines = lines_of(self.text)
        if not self.whole and len(lines) > 1:
            lines.pop()
        return [line for line in map(str.strip, lines) if line]

    @cached_property
    def rows(self) -> list[str]:
        """Return the lines that are not comments (# or %)."""
        return [line for line in self.lines if not line.startswith(("#", "%"))]


_SIZES = 20
"""Maximum ratio of a graph's stored size to the size of its input file."""


class Source:
    """One input; standard input if ``path`` is None. A pipe is examined and read only once."""

    def __init__(self, path: Path | None, label: str = "") -> None:
        self.path = path
        self.label = label or ("standard input" if path is None else str(path))
        """The name in messages."""
        self.shared = False
        self._beginning: Beginning | None = None
        self.reader: Any = None
        """The reader, if known in advance."""
        self.readers: dict[Any, Any] = {}
        """Detected readers, by options (``io/readers/formats.py``)."""
        self._begun: tuple[IO[bytes], BinaryIO] | None = None

    @property
    def is_stdin(self) -> bool:
        """Return whether the source is standard input."""
        return self.path is None and self.is_pipe

    @property
    def short(self) -> str:
        """Return the label without the folder, unless several inputs have that name."""
        return self.label if self.path is None or self.shared else self.path.name or self.label

    @property
    def printed_by(self) -> str:
        """Return the shell command that prints the content, for messages."""
        packed = self.packed
        file = "FILE" if self.path is None else shlex.quote(str(self.path))
        return f"{PACKED[packed].command if packed else 'cat'} {file}"

    @cached_property
    def nbytes(self) -> int:
        """Return the stored size in bytes; 0 if unknown."""
        return self.path.stat().st_size if self.path is not None else 0

    @cached_property
    def most_stored(self) -> int | None:
        """Return an upper bound on the stored size in bytes, or None if unknown."""
        if self.path is None or self.is_pipe or self.is_directory or self.packed:
            return None
        return _SIZES * self.nbytes

    @cached_property
    def is_directory(self) -> bool:
        """Return whether the path is a directory."""
        return self.path is not None and self.path.is_dir()

    @cached_property
    def is_pipe(self) -> bool:
        """Return whether the input can be read only once."""
        return self.path is None or not (self.is_directory or self.path.is_file())

    def beginning(self) -> Beginning:
        """Return the first :data:`LOOK` bytes, decompressed, up to any damage."""
        if self._beginning is None:
            self._beginning = self._look()
            self.encoding, self.packed = self._beginning.encoding, self._beginning.packed
        return self._beginning

    @cached_property
    def encoding(self) -> str:
        """Return UTF-16, or "" for other encodings."""
        return self.beginning().encoding

    @cached_property
    def packed(self) -> str:
        """Return the compression, or ""."""
        return self.beginning().packed

    def evict(self) -> None:
        """Free the examined bytes, unless they are from a pipe."""
        if self._begun is None:
            self._beginning = None

    def _look(self) -> Beginning:
        if self.is_directory:
            return Beginning(b"")
        try:
            stream, raw, packed = self._unpacked()
        except OSError as error:
            raise InputError(f"{self.label} cannot be read: {error.strerror}") from error
        content, damage = b"", None
        try:
            while len(content) < LOOK and (piece := stream.read1(_STEP)):
                content += piece
        except unpack_errors() as error:
            damage = error
        if self.is_pipe:
            rest = Pieces(rejoined(content, stream, damage), stream)
            self._begun = cast(IO[bytes], io.BufferedReader(rest, 1 << 20)), raw
        else:
            stream.close()
            raw.close()
        whole = len(content) < LOOK
        encoding = encoding_of(content)
        if encoding:
            content = content[:LOOK].decode(encoding, "replace").encode("utf-8", "replace")
        return Beginning(content[:LOOK], whole, packed, self.path, encoding)

    def close(self) -> None:
        """Close a pipe opened by :meth:`beginning`."""
        if self._begun is not None:
            for stream in self._begun:
                stream.close()
            self._begun = None

    def _unpacked(self) -> tuple[Any, BinaryIO, str]:
        """Return a buffered stream of the content, the raw stream, and the compression."""
        inner = sys.stdin.buffer if self.path is None else self.path.open("rb", buffering=0)
        counted = Counted(inner)
        raw = io.BufferedReader(cast(Any, counted), 1 << 20)
        head = raw.peek(16)
        if len(head) < 16:  # perhaps a pipe that delivers little at a time
            raw = io.BufferedReader(Pieces(rejoined(raw.read(16), raw), raw), 1 << 20)
            head = raw.peek(16)
        for name, packing in PACKED.items():
            if packing.begins.match(head):
                bounded = Counted(packing.open(raw), partial(self._check_unpacked, counted))
                stream = io.BufferedReader(cast(Any, bounded), 1 << 17)
                return stream, cast(BinaryIO, counted), name
        return raw, cast(BinaryIO, counted), ""

    def _check_unpacked(self, packed: Counted, count: int) -> None:
        """Raise :class:`InputError` if decompressed data exceeds the limit."""
        if count > ALWAYS_UNPACKED:
            whole = 0 if self.is_pipe else self.nbytes
            most = most_unpacked(max(whole, packed.tell()))
            if count > most:
                raise unpacks_to_more(self, most, PACKED[self.packed].command)

    def open(self) -> tuple[IO[bytes], BinaryIO]:
        """Return (decompressed stream, raw stream); ``tell`` of the latter shows progress."""
        encoding = "" if self.is_directory else self.encoding
        if self._begun is not None:
            (stream, raw), self._begun = self._begun, None
        else:
            stream, raw, _ = self._unpacked()
        if encoding:
            recoded = Pieces(_recoded(stream, encoding), stream)
            stream = cast(IO[bytes], io.BufferedReader(recoded, 1 << 20))
        return stream, raw

    @contextmanager
    def reading(self) -> Iterator[tuple[IO[bytes], BinaryIO]]:
        """Open the source for the context; convert decompression errors to InputError."""
        stream, raw = self.open()
        try:
            yield stream, raw
        except unpack_errors() as error:
            raise InputError(f"{self.label} cannot be read to its end: {error}") from error
        finally:
            stream.close()
            raw.close()


def most_unpacked(nbytes: int) -> int:
    """Return the maximum decompressed size of ``nbytes`` bytes."""
    return max(ALWAYS_UNPACKED, MOST_RATIO * nbytes)


def unpacks_to_more(source: Source, most: int, command: str) -> InputError:
    """Return the error for an input that exceeds ``most`` decompressed bytes."""
    file = "FILE" if source.path is None else shlex.quote(str(source.path))
    return InputError(
        f"{source.label} unpacks to more than {format_size(most)}. The limit is {MOST_RATIO} times "
        f"the compressed size, but at least {format_size(ALWAYS_UNPACKED)}. If you trust the "
        f"input, unpack it first: {command} {file}"
    )


def zstd() -> Any:
    """Return Python's Zstandard module, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd as found
    else:
        from backports import zstd as found
    return found


def unpack_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions for truncated or damaged compressed data."""
    return (EOFError, OSError, zlib.error, lzma.LZMAError, zstd().ZstdError)


def _pair(name: str) -> list[str]:
    """Return [NAME.graph] if both NAME.graph and NAME.properties exist, else []."""
    both = [name + ".graph", name + ".properties"]
    return both[:1] if all(map(os.path.isfile, both)) else []


_PART = re.compile(r"part[-_][\w.-]+")
_BESIDE = re.compile(r"[._].*|manifest|(?:readme|license|release_notes)(?:\.\w+)?", re.I)


def parts_in(folder: str | os.PathLike[str]) -> list[str]:
    """Return a folder's sorted files if all are parts of a table, as from OpenAlex or Spark."""
    found: list[str] = []
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        parts = sorted(name for name in names if not _BESIDE.fullmatch(name))
        if not all(map(_PART.fullmatch, parts)):
            return []
        found += [os.path.join(above, name) for name in parts]
    return found


def expand(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Return the inputs as sources, with globs and folders of parts expanded in sorted order.

    ``-`` is standard input. Raises :class:`UsageError` without inputs, and :class:`InputError` for
    a missing file.
    """
    inputs = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    sources: list[Source] = []
    if not all(isinstance(entry, str | os.PathLike) for entry in inputs):
        raise UsageError("inputs mix paths of files with links in memory: pass only one of the two")
    for name in [os.fspath(entry) for entry in inputs]:
        if name == "-":
            sources.append(Source(None))
            continue
        if os.path.exists(name):  # Path.exists raises for over-long names
            matches = (os.path.isdir(name) and parts_in(name)) or [name]
        else:
            matches = sorted(glob.glob(name, recursive=True)) or _pair(name)
        if not matches:
            raise InputError(f"{name}: no such file, and no file matches it as a pattern")
        for match in matches:
            if os.fsencode(match).decode(errors="replace") != match:
                raise InputError(f"{match!r}: the file name is not UTF-8. Rename the file")
            sources.append(Source(Path(match)))
    if not sources:
        raise UsageError("there is no input: pass edge lists, or - for standard input")
    if [source.path for source in sources].count(None) > 1:
        raise UsageError("standard input (-) is given twice: pass it once")
    often = Counter(source.short for source in sources)
    for source in sources:
        source.shared = often[source.short] > 1
    return sources
