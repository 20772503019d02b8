"""Stream the members of a tar archive: names, links and contents.

Archives are untrusted: members are not extracted, and sparse files are skipped. The standard
library stops silently at a damaged or truncated header. So this module checks that at least one
block of zeros, and nothing else, follows the last member.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

_PIECE = 1 << 20
_LONGEST = 1 << 14
_ABOUT = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
"""Headers that describe the next member.

The standard library reads them in full, and before Python 3.11.10 in quadratic time, so their size
is limited.
"""


class _Header(tarfile.TarInfo):
    """A header with a limited size."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _ABOUT and self.size > _LONGEST:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes; the maximum is {_LONGEST:,}")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


class TarMember(NamedTuple):
    """A member of an archive.

    ``kind`` is "file", "folder", "symlink", "link" (to an earlier member), "sparse" or "device".
    ``target`` is a link's target. ``read`` is valid until the next member is requested.
    """

    name: str
    kind: str
    target: str
    read: Callable[[int], bytes]


_KINDS = {
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "symlink",
    tarfile.LNKTYPE: "link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "device",
}


def tar_members(stream: IO[bytes]) -> Iterator[TarMember]:
    """Yield the members of an uncompressed archive.

    Raises :class:`TarError` if the archive is damaged or its end is missing, and any error of the
    stream.
    """
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]
            kind = "sparse" if member.issparse() else _KINDS.get(member.type, "file")
            content: Any = archive.extractfile(member) if kind == "file" else io.BytesIO()
            yield TarMember(member.name, kind, member.linkname, content.read)
        below: Any = archive.fileobj
        whole = below.tell() - archive.offset == tarfile.BLOCKSIZE
        while rest := below.read(_PIECE):
            whole = whole and not rest.strip(b"\0")
        if not whole:
            raise tarfile.ReadError(f"at byte {archive.offset:,}: the end is missing or damaged")
