"""A folder of files for people and other programs: tables, pictures, a report.

It is written beside its place and takes its name when it is whole. One of its files lists them
all: a folder may be replaced if it holds just what such a list names, so that nobody's own
files are lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cocite.errors import OutputExists, StoreError, UsageError
from cocite.store import disk
from cocite.store.beside import folder_beside

__all__ = ["check_folder", "new_folder"]


def check_folder(output: str | os.PathLike[str], contents: str, overwrite: bool) -> Path:
    """The path, if a folder may be made there; before any work is done.

    Raises :class:`~cocite.errors.OutputExists` if something is there, and ``overwrite`` is false or
    it is not a folder that :func:`new_folder` made with the same file of ``contents``.
    """
    path = Path(output)
    if not path.name:
        raise UsageError(f"{str(output)!r} names no directory that could be made")
    if not os.path.lexists(path):
        return path
    if not overwrite:
        raise OutputExists(f"{path} exists. Choose another output, or pass --overwrite")
    _check_replaceable(path, contents)
    return path


def _check_replaceable(path: Path, contents: str) -> None:
    """See that nothing of anybody else is in what would be replaced."""
    strange = {entry.name for entry in path.iterdir()} if path.is_dir() else {path.name}
    strange -= _listed(path / contents)
    if strange or path.is_symlink():
        raise OutputExists(
            f"{path} exists and holds what no earlier run has left "
            f"({', '.join(sorted(strange)[:3])}): it will not be overwritten. Choose another output"
        )


@contextmanager
def new_folder(path: Path, contents: str, facts: dict[str, Any]) -> Iterator[Path]:
    """A context in which files are written into the folder that it yields.

    At the end ``contents`` is added, JSON of ``facts`` and the list of ``files``, and the folder
    moves to ``path``, in exchange for what is there; on an error nothing is left of it. Raises
    :class:`~cocite.errors.OutputExists` if anybody else's files came to be there meanwhile.
    """
    with ExitStack() as stack:
        try:
            beside = stack.enter_context(folder_beside(path))
        except OSError as error:
            raise StoreError(
                f"{path} cannot be made: {error.strerror}. Choose another output"
            ) from error
        yield beside
        files = sorted({entry.name for entry in beside.iterdir()} | {contents})
        text = json.dumps(facts | {"files": files}, ensure_ascii=False, indent=1) + "\n"
        with disk.create_anew(beside / contents) as file:
            disk.write(file, text.encode())
        for name in files:
            with disk.edit(beside / name) as file:
                disk.sync_file(file)
        disk.sync_directory(beside)
        if os.path.lexists(path):
            _check_replaceable(path, contents)  # somebody may have put something there meanwhile
            disk.exchange(beside, path)
        else:
            disk.rename_new(beside, path)
        disk.sync_directory(path.parent)


def _listed(contents: Path) -> set[str]:
    """The names that a file of contents lists; none if it is no such file."""
    try:
        return set(json.loads(contents.read_text("utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
