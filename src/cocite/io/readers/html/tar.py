"""Members of a tar archive, one after the other, as a stream: names, links and contents.

    header of 512 bytes -> [longer name, size: of pax or GNU] -> the content, in blocks of 512

Archives come from strangers, so a member is never a file here. The standard library reads the
headers of 512 bytes; not its whole reader, which holds every header, takes as much memory as one
asks for, and reads sparse files into zeros without end. Cost: some 10 µs a member; memory for one
header, of at most :data:`_LONGEST_HEADER` bytes.
https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20
_LONGEST_HEADER = 1 << 20
"""Bytes of a header of pax or GNU: names are 4,096 at most, what else it has may be more."""
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_EMPTY = (
    *(tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE),
    *(tarfile.DIRTYPE, tarfile.FIFOTYPE),
)
"""What has no content, whatever its header says."""


class TarError(Exception):
    """What is wrong with an archive, and the byte where that is."""


class TarMember(NamedTuple):
    """A member: its ``name``; its ``kind``: "file", "folder", "symlink", "link" (of a member that
    is there before), "sparse" or "device"; where it leads, of a link; and what reads its content,
    so many bytes at a time, before the next member.
    """

    name: str
    kind: str
    target: str
    read: Callable[[int], bytes]


_KINDS = {
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "symlink",
    tarfile.LNKTYPE: "link",
    tarfile.GNUTYPE_SPARSE: "sparse",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "device",
}


def tar_members(stream: IO[bytes]) -> Iterator[TarMember]:
    """The members of an unpacked archive. Raises :class:`TarError`, also where its end is missing,
    and what reading the stream raises.
    """
    blocks = _Blocks(stream)
    told: dict[str, str] = {}
    while True:
        at, head = blocks.place, blocks.take(_BLOCK)
        if not head.strip(b"\0"):  # the mark of the end
            blocks.skip_all()
            return
        try:
            member = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise TarError(f"at byte {at:,}: {error}") from error
        if member.type == tarfile.XGLTYPE:  # of all members: no name, no size
            blocks.skip(_padded(_size(member.size, at)))
        elif member.type in _PAX:
            told |= _pax(blocks.text(_size(member.size, at, _LONGEST_HEADER)), at)
        elif member.type == tarfile.GNUTYPE_LONGNAME:
            told["path"] = _long(blocks.text(_size(member.size, at, _LONGEST_HEADER)))
        elif member.type == tarfile.GNUTYPE_LONGLINK:
            told["linkpath"] = _long(blocks.text(_size(member.size, at, _LONGEST_HEADER)))
        else:
            kind = _KINDS.get(member.type, "file")
            kind = "sparse" if any(key.startswith("GNU.sparse.") for key in told) else kind
            more = kind == "sparse" and member.type == tarfile.GNUTYPE_SPARSE and head[482]
            while more:
                more = blocks.take(_BLOCK)[504]
            size = _size(_number(told["size"], at) if "size" in told else member.size, at)
            content = _Content(blocks, 0 if member.type in _EMPTY else size)
            name = told.get("GNU.sparse.name", told.get("path", member.name))
            target = told.get("linkpath", member.linkname)
            yield TarMember(name, kind, target, content.read)
            content.pass_over()
            told = {}


def _padded(size: int) -> int:
    """With what fills the last block."""
    return -(-size // _BLOCK) * _BLOCK


def _size(size: int, at: int, most: int = 1 << 62) -> int:
    if not 0 <= size <= most:
        raise TarError(f"at byte {at:,}: a header says that {size:,} bytes follow it")
    return size


def _number(text: str, at: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise TarError(f"at byte {at:,}: a header has the size {text[:20]!r}")
    return int(text)


def _long(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _pax(content: bytes, at: int) -> dict[str, str]:
    """What a header of pax says: lines of their length, a key and a value."""
    found: dict[str, str] = {}
    place = 0
    while place < len(content) and content[place]:
        length, blank, _ = content[place : place + 20].partition(b" ")
        end = place + _number(length.decode("latin-1"), at)
        key, equals, value = content[place + len(length) + 1 : end - 1].partition(b"=")
        if not (blank and equals and content[end - 1 : end] == b"\n"):
            raise TarError(f"at byte {at:,}: a header of pax that is damaged")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        place = end
    return found


class _Blocks:
    """A stream of blocks, and the place in it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.place = stream, 0

    def take(self, size: int) -> bytes:
        """So many bytes."""
        content = self._stream.read(size)
        if len(content) < size:
            raise TarError(f"at byte {self.place:,}: its end is missing")
        self.place += size
        return content

    def text(self, size: int) -> bytes:
        """So many bytes, and what fills their last block."""
        return self.take(_padded(size))[:size]

    def skip(self, size: int) -> None:
        """Pass over so many."""
        while size:
            size -= len(self.take(min(size, _PIECE)))

    def skip_all(self) -> None:
        """Pass over the rest: damage behind the last member is damage, too."""
        while self._stream.read(_PIECE):
            pass


class _Content:
    """The content of a member."""

    def __init__(self, blocks: _Blocks, size: int) -> None:
        self._blocks, self._size, self._left = blocks, size, size

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        size = min(size, self._left)
        self._left -= size
        return self._blocks.take(size)

    def pass_over(self) -> None:
        """Go to the block behind it."""
        self._blocks.skip(self._left + _padded(self._size) - self._size)
        self._left = 0
