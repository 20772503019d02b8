"""Titles on their way from a reader to the tables: a file of rows that DuckDB loads.

A row a title: its place among all titles, the name of the node, the title; where a node has
several, the one with the first place stands. A reader of links that meets titles hands each over:

    job.titles.add(name, title)

Titles are trimmed, every run of blanks, line ends, control characters and signs that turn the
direction of text (``graph/unnamed.py``) in them is one blank, and one of more than 65,535 bytes is
refused. A title without anything in it is none.

Cost: a microsecond a title, constant memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from cocite.errors import InputError
from cocite.graph.unnamed import REFUSED
from cocite.store import disk

__all__ = ["TITLE_COLUMNS", "TitleFile"]

TITLE_COLUMNS = {"place": "UBIGINT", "name": "VARCHAR", "title": "VARCHAR"}
_CONTROL = re.compile(f"[{REFUSED}\u2028\u2029]+")
_MOST = 65_535
_HELD = 1 << 16
"""Bytes that are held before they are written."""


class TitleFile:
    """The titles of one run from places ``first`` on; without a ``path`` they are passed over.
    ``called`` says what the node of a name is called.
    """

    def __init__(
        self, path: Path | None = None, first: int = 0, called: Callable[[str], str] = str
    ) -> None:
        self.path, self.count, self.empty = path, 0, 0
        self._called = called
        self._place = first
        self._held = bytearray()
        self._out: BinaryIO | None = None

    def add(self, name: str, title: str) -> None:
        """The title of the node that is called so, if there is one; raises :class:`InputError`."""
        if self.path is None:
            return
        text = " ".join(_CONTROL.sub(" ", title).split())
        if not text:
            self.empty += 1
            return
        encoded = text.encode("utf-8", "replace")
        if len(encoded) > _MOST:
            raise InputError(
                f"the title of {name!r} has {len(encoded):,} bytes; a title has {_MOST:,} at most"
            )
        name = self._called(name)
        if _CONTROL.search(name):  # no node is called so
            name = _CONTROL.sub("\x1a", name)
        self._held += b"%d\t%b\t%b\n" % (self._place, name.encode("utf-8", "replace"), encoded)
        self._place += 1
        self.count += 1
        if len(self._held) >= _HELD:
            self._write()

    def _write(self) -> None:
        if self._out is None:
            assert self.path is not None
            self._out = disk.rewrite(self.path)
        disk.write(self._out, bytes(self._held))
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._held and kind is None:
            self._write()
        if self._out is not None:
            self._out.close()
            self._out = None
