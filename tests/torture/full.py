"""Disks that are full: every operation (``operations.py``) on a disk with too little room, at many
sizes.

The command fails with exit code 1 and says where, and how much is free; what was there before it is
there and whole; nothing of it is left but what the next run goes on from. Then there is room, and
the same command ends with the very bytes, and leaves nothing else.

The disk is one in memory (tmpfs) in a space of mounts of its own, which goes with its process; a
file fills it, all but so many bytes. Who may not mount has limits of the size of a file instead.
"""

import ctypes
import os
import random
import resource
import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.kills import differences, wrong_after
from tests.torture.operations import OPERATIONS, Prepared, contents, prepared
from tests.torture.results import Given, Row
from tests.torture.shim import value_apart

_NEW_MOUNTS, _PRIVATE = 0x20000, 0x44000
_DISK = 128 << 20
_BROKEN = 71
"""What a traceback exits with."""
_SIZES = [0, *(4096 << n for n in range(14))]
"""Bytes that are free, from few on until they suffice; then as many sizes between, drawn."""


def fill_disks(given: Given) -> dict[str, Row]:
    """Run all operations on disks that are full, in a process of its own."""
    code, rows = value_apart(lambda: (0, _fill_all(given, given.folder / "full")))
    assert code == 0, f"exit code {code}"
    return rows or {}


def _fill_all(given: Given, folder: Path) -> dict[str, Row]:
    place = folder / "disk"
    place.mkdir(parents=True)
    mounted = _mount(place)

    def fillings(name: str, row: Row) -> Iterator[bool]:
        told, chance = prepared(OPERATIONS[name], folder / name), random.Random(given.seed)
        some = [0, *sorted(chance.sample(_SIZES[1:], given.count(len(_SIZES)) - 1))]
        for short in _fill(told, place, mounted, some, chance, row):
            row.seen["by a disk" if mounted else "by a limit"] = row.injected
            yield short

    return given.in_turns(OPERATIONS, fillings)


def _mount(place: Path) -> bool:
    """Mount a disk there, that only this process and those it starts see; False if it may not."""
    system = ctypes.CDLL(None, use_errno=True)
    return not (
        system.unshare(_NEW_MOUNTS)
        or system.mount(b"none", b"/", None, _PRIVATE, None)
        or system.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=%d" % _DISK)
    )


def _fill(
    told: Prepared, place: Path, mounted: bool, sizes: list[int], chance: random.Random, row: Row
) -> Iterator[bool]:
    """Run it with so little room, from the smallest size on; then with as many sizes between none
    and what sufficed. Yields whether it was short of it.
    """
    enough, wanted = sizes[-1], len(sizes)
    for size in sizes:
        if not _is_short(told, place, mounted, size, row):
            enough = size
            break
        yield True
    for _ in range(wanted if enough else 0):
        yield _is_short(told, place, mounted, chance.randrange(0, enough, 512), row)


def _is_short(told: Prepared, place: Path, mounted: bool, free: int, row: Row) -> bool:
    """Run it with ``free`` bytes, count what came of it; False if that was enough."""
    folder = told.copy(place / "x")
    with _filled(place, free if mounted else None):
        code, said = _run(told, folder, None if mounted else free)
    if code == 0:
        wrong = "; ".join(differences(contents(folder) or {}, contents(told.after) or {}))
        if wrong:
            row.add(f"{free:,} bytes free", wrong)
    else:
        row.add(f"{free:,} bytes free", _wrong(told, folder, code, said, row), told=True)
    shutil.rmtree(folder)
    return code != 0


@contextmanager
def _filled(place: Path, free: int | None) -> Iterator[None]:
    """A context in which a disk has so many bytes free."""
    ballast = place / "ballast"
    if free is not None:
        found = os.statvfs(place)
        most = found.f_bavail * found.f_frsize
        with ballast.open("wb") as file:
            if most > free:
                os.posix_fallocate(file.fileno(), 0, most - free)
    yield
    ballast.unlink(missing_ok=True)


def _run(told: Prepared, folder: Path, limit: int | None) -> tuple[int, str]:
    """The exit code, and what it says; no file may be longer than a ``limit``."""

    def run() -> tuple[int, str]:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            code, said = told.operation.tell(folder)
        except Exception:
            code, said = _BROKEN, traceback.format_exc()
        return code, said[-10_000:]

    code, said = value_apart(run)
    return code, said or ""


def _wrong(told: Prepared, folder: Path, code: int, said: str, row: Row) -> str:
    """What is wrong with how a command failed, and with what it left."""
    said = said.strip()[-400:]
    if code != 1:
        return f"exit code {code}: {said}"
    if str(folder) not in said:
        return f"no place is told: {said}"
    if " free" not in said:
        return f"it is not told how much is free: {said}"
    found, before = (contents(path) or {} for path in (folder, told.before))
    kept = {name: data for name, data in found.items() if ".building/" not in name}
    if wrong := "; ".join(differences(kept, before)):
        return f"{wrong}, as it said: {said}"
    return (wrong := wrong_after(told, folder, row)) and f"{wrong}; it had said: {said}"
