"""Which files a store has, and what each of them is: declared as ``FORMAT.md`` writes it, compared
with the manifest when a store is opened.

    "<u4[E]"          32-bit numbers; E is a size that all files of one group have in common
    "<u8[n + 1]"      one more than n
    "<f4[n, 6]"       six values for each of n

Kernels take arrays as they come: a file of another dtype, or one that is too short, would lead them
out of it. So no store is opened with a file that is not declared, or not as declared.

Cost: none but the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from cocite.errors import Damaged
from cocite.store.arrays import Entry

__all__ = ["DeclaredFiles"]

_DECLARED = re.compile(r"([|<][a-z][0-9])\[([^\]]+)\]")
_SIZE = re.compile(r"([A-Za-z]*)(?: \+ )?([0-9]*)")
_REBUILD = "Copy the directory again from where it was whole, or build it again"


class DeclaredFiles:
    """The files of a manifest, of which those that are declared are taken one group after another.

    Everything raises :class:`Damaged`.
    """

    def __init__(self, path: Path, files: Mapping[str, Entry]) -> None:
        self._path, self._left = path, dict(files)

    def take(
        self,
        declared: Mapping[str, str],
        sizes: Mapping[str, int],
        prefix: str = "",
        optional: Collection[str] = (),
    ) -> None:
        """See that the files of a group are there, with these ``sizes`` and any others that go
        together; ``prefix`` stands before their names.
        """
        known = dict(sizes)
        for name, form in declared.items():
            if name in optional and prefix + name not in self._left:
                continue
            self._compare(prefix + name, form, known)

    def starting(self, prefix: str) -> list[str]:
        """The names of those that are left which begin so."""
        return sorted(name for name in self._left if name.startswith(prefix))

    def take_all(self, names: Iterable[str], form: str) -> None:
        """See that each of some files has a form, each with sizes of its own."""
        for name in names:
            self._compare(name, form, {})

    def no_more(self) -> None:
        """See that all were taken."""
        if self._left:
            raise Damaged(
                f"{self._path}: its manifest names {min(self._left)}, which does not belong in it. "
                f"{_REBUILD}"
            )

    def _compare(self, name: str, form: str, known: dict[str, int]) -> None:
        entry = self._left.pop(name, None)
        if entry is None:
            raise Damaged(f"{self._path} has no {name} in its manifest. {_REBUILD}")
        match = _DECLARED.fullmatch(form)
        assert match is not None
        dtype, sizes = match[1], match[2].split(", ")
        fine = entry.dtype == dtype and len(entry.shape) == len(sizes)
        if not fine or not all(map(_fits, entry.shape, sizes, [known] * len(sizes))):
            told = ", ".join(map(str, entry.shape))
            having = ", ".join(f"{size} = {value}" for size, value in known.items() if size in form)
            raise Damaged(
                f"{self._path}: {name} is {entry.dtype}[{told}] by its manifest; it is {form}"
                + (f" with {having}. " if having else ". ")
                + _REBUILD
            )


def _fits(found: int, size: str, known: dict[str, int]) -> bool:
    """Whether a size is as declared; one that was not known is from now on."""
    match = _SIZE.fullmatch(size)
    assert match is not None
    name, more = match[1], int(match[2] or 0)
    return found == (known.setdefault(name, found - more) + more if name else more)
