"""Full disks: every operation (``operations.py``) with too little space, of many sizes.

The command fails with exit code 1, and reports the directory and the free space; existing files
stay intact; it leaves only files from which the next run resumes. Then there is space, and the same
command writes the same bytes and leaves nothing else.

The disk is in memory (tmpfs) in a mount namespace, which ends with its process; a file fills it but
for the free bytes. Without permission to mount, the file size is limited instead.
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
"""The exit code after a traceback."""
_SIZES = [0, *(4096 << n for n in range(14))]
"""Free bytes, in ascending order until they suffice; then as many random sizes below."""


def fill_disks(given: Given) -> dict[str, Row]:
    """Run all operations on full disks, in a separate process."""
    code, rows = value_apart(lambda: (0, _fill_all(given, given.folder / "full")))
    assert code == 0, f"exit code {code}"
    return rows or {}


def _fill_all(given: Given, folder: Path) -> dict[str, Row]:
    place = folder / "disk"
    place.mkdir(parents=True)
    mounted = _mount(place)

    def fillings(name: str, row: Row) -> Iterator[bool]:
        target, chance = prepared(OPERATIONS[name], folder / name), random.Random(given.seed)
        sizes = [0, *sorted(chance.sample(_SIZES[1:], given.count(len(_SIZES)) - 1))]
        for short in _fill(target, place, mounted, sizes, chance, row):
            row.seen["by a disk" if mounted else "by a limit"] = row.injected
            yield short

    return given.in_turns(OPERATIONS, fillings)


def _mount(place: Path) -> bool:
    """Mount a disk that only this process and its children see; False if not permitted."""
    system = ctypes.CDLL(None, use_errno=True)
    return not (
        system.unshare(_NEW_MOUNTS)
        or system.mount(b"none", b"/", None, _PRIVATE, None)
        or system.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=%d" % _DISK)
    )


def _fill(
    target: Prepared, place: Path, mounted: bool, sizes: list[int], chance: random.Random, row: Row
) -> Iterator[bool]:
    """Run it with too little space, from the smallest size on; then with as many random sizes below
    the one that sufficed. Yield whether space was short.
    """
    enough, count = sizes[-1], len(sizes)
    for size in sizes:
        if not _is_short(target, place, mounted, size, row):
            enough = size
            break
        yield True
    for _ in range(count if enough else 0):
        yield _is_short(target, place, mounted, chance.randrange(0, enough, 512), row)


def _is_short(target: Prepared, place: Path, mounted: bool, free: int, row: Row) -> bool:
    """Run it with ``free`` bytes, and count the outcome; False if that was enough."""
    folder = target.copy(place / "x")
    with _filled(place, free if mounted else None):
        code, stderr = _run(target, folder, None if mounted else free)
    if code == 0:
        wrong = "; ".join(differences(contents(folder) or {}, contents(target.after) or {}))
        if wrong:
            row.add(f"{free:,} bytes free", wrong)
    else:
        row.add(f"{free:,} bytes free", _wrong(target, folder, code, stderr, row), reported=True)
    shutil.rmtree(folder)
    return code != 0


@contextmanager
def _filled(place: Path, free: int | None) -> Iterator[None]:
    """Fill a disk, except for ``free`` bytes."""
    ballast = place / "ballast"
    if free is not None:
        status = os.statvfs(place)
        available = status.f_bavail * status.f_frsize
        with ballast.open("wb") as file:
            if available > free:
                os.posix_fallocate(file.fileno(), 0, available - free)
    yield
    ballast.unlink(missing_ok=True)


def _run(target: Prepared, folder: Path, limit: int | None) -> tuple[int, str]:
    """The exit code and stderr; no file may be longer than ``limit``."""

    def run() -> tuple[int, str]:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            code, stderr = target.operation.run_with_stderr(folder)
        except Exception:
            code, stderr = _BROKEN, traceback.format_exc()
        return code, stderr[-10_000:]

    code, stderr = value_apart(run)
    return code, stderr or ""


def _wrong(target: Prepared, folder: Path, code: int, stderr: str, row: Row) -> str:
    """What is wrong with the failure of a command and the files it left."""
    stderr = stderr.strip()[-400:]
    if code != 1:
        return f"exit code {code}: {stderr}"
    if str(folder) not in stderr:
        return f"no directory is reported: {stderr}"
    if " free" not in stderr:
        return f"no free space is reported: {stderr}"
    actual, before = (contents(path) or {} for path in (folder, target.before))
    outputs = {name: data for name, data in actual.items() if ".building/" not in name}
    if wrong := "; ".join(differences(outputs, before)):
        return f"{wrong}; stderr: {stderr}"
    return (wrong := wrong_after(target, folder, row)) and f"{wrong}; stderr: {stderr}"
