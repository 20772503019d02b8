"""Texts of pages: a folder, a tar archive or a table, each text under the name of its node.

A text at a time is in memory; the order is that of the files' names, of the archive or the table.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cocite.errors import InputError
from cocite.graph.readers.columns import LONGEST, read_columns

if TYPE_CHECKING:
    from cocite.graph.names import Names

__all__ = ["texts_of"]


def texts_of(
    path: Path,
    names: Names,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stranger: Callable[[str], None] = lambda name: None,
) -> Iterator[tuple[int, str]]:
    """The texts of nodes, with their ids.

    Parameters
    ----------
    path
        A folder or a tar archive (packed or not) with one file a text, which is called as the node
        is, with or without an ending such as ``.txt``; or a table of names and texts (tabs, commas
        in ``.csv``, or Parquet).
    names
        Of the graph's nodes; texts of others are passed over.
    progress
        Called with (texts found, 0).
    stranger
        Called with what each text is called that is passed over.

    Raises
    ------
    InputError
        If it cannot be read, or has no text of any node.
    """
    found = 0
    for name, text in _named_texts(path):
        node = names.find(name)
        if node is None and "." in name:
            node = names.find(name.rsplit(".", 1)[0])
        if node is not None:
            found += 1
            yield node, text
            progress(found, 0)
        else:
            stranger(name)
    if not found:
        raise InputError(f"{path} has no text that is called as a node of the graph is")


def _named_texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                with file.open("rb") as opened:
                    yield file.name, _text(opened, str(file))
        return
    if not path.is_file():
        raise InputError(f"{path} is not there; texts are a folder, a tar archive or a table")
    if not tarfile.is_tarfile(path):
        yield from read_columns(path)
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    name = member.name.rsplit("/", 1)[-1]
                    yield name, _text(content, f"{member.name} in {path}")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error


def _text(file: IO[bytes], label: str) -> str:
    """All of a file; raises :class:`InputError` for one that is longer than any text."""
    content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InputError(
            f"{label} has more than {LONGEST:,} bytes, the most that a text has. Cut it, or leave "
            "it out"
        )
    return content.decode("utf-8", errors="replace")
