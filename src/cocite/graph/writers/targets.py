"""Where a result goes: a file, here or at a URL, whose kind its name tells, or what is said.

All that verbs write goes to a :class:`Target`, which is made before any work is done, so that what
cannot be written is refused then.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.copies import Remote, bare, is_url
from cocite.database import is_address
from cocite.errors import OutputExists, UsageError
from cocite.graph.writers.writer import ArrayFile, Columns, TableFile, Types
from cocite.store import check_file, written_beside

__all__ = ["FileTarget", "Target", "file_target"]


class Target(ABC):
    """Where a table may go; ``label`` is what it is called in messages."""

    label: str

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes that writing takes, whatever the size."""

    def expect(self, types: Types) -> None:  # noqa: B027 - files take any
        """See that a table of these columns can be written, before any work is done."""

    @abstractmethod
    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """Write pieces of equally long columns; ``types`` names them and their SQL types.

        Nothing of it is there until all of it is. Returns its bytes, None if they are not known.
        ``folder``, on the same disk, is where a file grows.
        """


@dataclass(frozen=True)
class FileTarget(Target):
    """A file, and what writes it."""

    path: Path
    writer: TableFile | ArrayFile

    @property
    def label(self) -> str:  # type: ignore[override]
        """Its path."""
        return str(self.path)

    @property
    def is_array(self) -> bool:
        """Whether it holds numbers by id, and no names."""
        return isinstance(self.writer, ArrayFile)

    @property
    def memory(self) -> int:
        """Of its writer."""
        return self.writer.memory if isinstance(self.writer, TableFile) else 0

    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """The file has its name when it is whole."""
        assert isinstance(self.writer, TableFile)
        with written_beside(self.path, folder) as file:
            self.writer.write(Path(file.name), pieces, types)
            return Path(file.name).stat().st_size

    def write_array(
        self, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        """Write an array of that type and shape; the pieces are its elements in their order."""
        assert isinstance(self.writer, ArrayFile)
        with written_beside(self.path) as file:
            self.writer.write(Path(file.name), pieces, dtype, shape)


@dataclass(frozen=True)
class SentFile(FileTarget):
    """A file at a ``url``: written here, in a temporary directory, then sent whole."""

    url: str

    @property
    def label(self) -> str:  # type: ignore[override]
        """Its URL, without a password."""
        return bare(self.url)

    def _folder(self) -> Remote:
        return Remote(self.url.rpartition("/")[0])

    def checked(self, overwrite: bool) -> SentFile:
        """See that nothing is there, or that it may be replaced."""
        if not overwrite and self._folder().has(self.path.name):
            raise OutputExists(
                f"{self.label} exists. Choose another output, or pass --overwrite (overwrite=True) "
                "to replace it when the new one is complete"
            )
        return self

    @contextmanager
    def _sent(self) -> Iterator[FileTarget]:
        with TemporaryDirectory(prefix="cocite-") as folder:
            here = Path(folder, self.path.name)
            yield FileTarget(here, self.writer)
            self._folder().put_whole(here, self.path.name)

    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """The file has its name there when it is whole."""
        with self._sent() as here:
            return here.write_table(pieces, types)

    def write_array(
        self, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        """The same of an array."""
        with self._sent() as here:
            here.write_array(pieces, dtype, shape)


def name_at(url: str) -> str:
    """The name of the file at a URL; raises :class:`UsageError` for one that leads elsewhere."""
    name = url.rpartition("/")[2]
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise UsageError(
            f"{bare(url)} names no file that could be written: of a URL a name has letters, "
            "digits, -, _ and . only"
        )
    return name


def file_target(
    output: str | os.PathLike[str],
    writers: dict[str, TableFile | ArrayFile],
    *,
    kind: str | None = None,
    overwrite: bool = False,
    safe: bool = False,
) -> FileTarget:
    """A file of the ``kind`` that is named, or by the ending of its name, among ``writers`` by
    ending; ``safe`` for spreadsheets or not; before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    url = os.fspath(output)
    path = Path(name_at(url)) if is_url(url) and not is_address(url) else Path(output)
    if is_address(os.fspath(output)):
        raise UsageError("a database is no file: name it by --to (to=), and no --output")
    ending = path.suffix if kind is None else f".{kind.lower()}"
    writer = writers.get(ending)
    if writer is None and kind is not None:
        kinds = ", ".join(each.removeprefix(".") for each in writers)
        raise UsageError(f"kind is {kind!r}; it is one of {kinds}")
    if writer is None:
        raise UsageError(
            f"{path} ends in {path.suffix!r}; it ends in one of {', '.join(writers)}. Or say what "
            "it is with --kind (kind=)"
        )
    if isinstance(writer, TableFile):
        writer.ready()
        writer = writer.safe or writer if safe else writer
    if is_url(url):
        return SentFile(path, writer, url).checked(overwrite)
    return FileTarget(check_file(path, overwrite), writer)
