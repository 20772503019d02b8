"""The texts that a part of an index is made of: files, or what an older index holds of them.

Files are named once, when a build begins. They are read when a part first needs them, and what was
counted is kept for as long as the build lasts, as parts are planned before they are made. What they
are called, how large they are and when they changed last makes their ``digest``: a build that goes
on after an interruption does so with the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import InputError


class TextFiles:
    """A folder, an archive or a table (``io/readers/tables.py``)."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`InputError` if there is no such file."""
        if not path.exists():
            raise InputError(
                f"{path} does not exist; texts must be a folder, a tar archive or a table"
            )
        self.path = path
        self.counted: Any = None
        """What was counted of them, by whoever did."""

    @property
    def digest(self) -> str:
        """Of names, sizes and times of the files."""
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        found = xxhash.xxh3_128(str(self.path.resolve()).encode(errors="surrogateescape"))
        for file in files:
            facts = file.stat()
            told = f"{file.name}\n{facts.st_size}\n{facts.st_mtime_ns}\n"
            found.update(told.encode(errors="surrogateescape"))
        return found.hexdigest()


@dataclass(frozen=True)
class OldTexts:
    """The texts of an index, for its refresh: its arrays by prefix of a part and name; ``ids``
    returns the current id of each old page, uint32[old nodes], NOWHERE for removed ones.
    """

    arrays: Callable[[str, str], NDArray[Any]]
    ids: Callable[[], NDArray[np.uint32]]


Texts = TextFiles | OldTexts
