"""Threads and memory budgets of a run; sizes and times as text.

Entry points measure the available memory once and pass :class:`Resources` down. The default budget
is half of the available memory: the minimum of what the machine can allocate without swapping, what
the cgroup limit leaves, and what the address space limit (``ulimit -v``) leaves.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from cocite.errors import ResourceError, UsageError

PROCESS_MEMORY = 52_000_000
"""Memory of a process without data: Python, NumPy, kernels and code. Tests measure it."""
_reserved: ContextVar[int] = ContextVar("reserved", default=0)
READERS_MEMORY = 116_000_000
"""Additional memory for the code of DuckDB and of file readers."""
_DATABASE, _LEAST_DATABASE = READERS_MEMORY + (80 << 20), 80 << 20
"""Memory of an ingest beyond DuckDB's limit, including buffered rows; minimum limit for DuckDB."""
_MAPPED = 500 << 20
"""Address space that libraries and thread stacks reserve but hardly use."""
_UNLOADED = "failed to map segment", "cannot allocate memory"
"""Messages of the dynamic loader if a library does not fit into memory."""

MOST_THREADS = 1024
"""Maximum number of threads: more than machines have cores, but fewer than systems allow."""

_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of malloc.h."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_STATUS = Path("/proc/self/status")
_OWN_GROUPS, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_VERSION_2 = "memory.max", "memory.current", "inactive_file"
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?|)b?\s*", re.IGNORECASE)


def parse_size(text: str | int) -> int:
    """Parse a size: ``600MB``, ``1.5 GiB``, ``4g`` or a number of bytes; raises :class:`UsageError`
    if it is invalid or below 1 byte.
    """
    match = _SIZE.fullmatch(str(text))
    unit = match[2].lower() if match else ""
    size = float(match[1]) * (_UNITS | _BINARY_UNITS)[unit] if match else 0.0
    if not 1 <= size < 2**63:
        raise UsageError(f"{text!r} is not a size; write a size like 600MB, 4GB or 1.5GiB")
    return int(size)


def format_size(size: float) -> str:
    """Format bytes in powers of 1000: ``1.4 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.5 else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def format_total(size: float) -> str:
    """Format the total memory of a process with ``size`` bytes of data."""
    return format_size(size + _base())


def format_least(size: int) -> str:
    """Format the smallest ``--memory`` for ``size`` bytes of data, rounded up."""
    size += _base()
    unit = 10 ** max(0, len(str(size)) - 3)
    return format_size(-(-size // unit) * unit)


def format_time(seconds: float) -> str:
    """Format seconds: ``3.1 s``, ``12 min``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def available() -> int:
    """Return the available memory in bytes, within all limits."""
    limits = [_machine_available(), *_control_group_available(), *_addresses_available()]
    return max(0, min(limits))


def give_back_at_once() -> None:
    """Make glibc return freed arrays to the system at once, for the whole process.

    By default, malloc keeps freed blocks of up to 32 MB, so builds need 20% more memory.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def resident() -> int:
    """Return the process's memory in bytes, including mapped files; 0 if unknown."""
    return _status("VmRSS:")


@contextmanager
def reserve(size: int) -> Iterator[None]:
    """Subtract ``size`` bytes from budgets, and add them to sizes in messages."""
    token = _reserved.set(_reserved.get() + size)
    try:
        yield
    finally:
        _reserved.reset(token)


def _base() -> int:
    return PROCESS_MEMORY + _reserved.get()


def require(needed: int, memory: int, what: str) -> None:
    """Raise :class:`ResourceError` if ``needed`` bytes for ``what`` exceed ``memory``."""
    if needed > memory:
        raise ResourceError(f"{what} needs {format_least(needed)} of memory; {short_of(memory)}")


def _status(name: str) -> int:
    try:
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    return 0


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_threads(threads: int | None) -> int:
    """Return ``threads``, by default all cores; raises :class:`UsageError`."""
    if threads is None:
        return min(cores(), MOST_THREADS)
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        raise UsageError(
            f"threads is {threads!r}; it must be a whole number from 1 to {MOST_THREADS:,}. More "
            f"threads than cores (here: {cores()}) do not help"
        )
    return threads


def budget(memory: str | int | None) -> int:
    """Return the bytes for data: ``memory``, by default half of what is available, minus
    PROCESS_MEMORY.

    Raises :class:`UsageError` for an invalid size, and :class:`ResourceError` if no memory is
    available or ``memory`` exceeds the address space.
    """
    if memory is None:
        left = available() // 2
        if left == 0:
            by = "the address space (ulimit -v)" if _addresses() else "the memory of the system"
            raise ResourceError(f"no memory is available: {by} is exhausted. Raise the limit")
        return max(0, left - _base())
    given = parse_size(memory)
    for left in _addresses_available():
        if given > left:
            raise ResourceError(
                f"--memory (memory=...) is {format_size(given)}; the address space limit (ulimit "
                f"-v) leaves {format_size(max(left, 0))}. Raise the limit, or reduce --memory"
            )
    return max(0, given - _base())


def note_low_memory(error: BaseException) -> str:
    """Return advice if the error is due to a lack of memory; "" otherwise."""
    words = str(error).lower()
    unloaded = isinstance(error, ImportError | OSError) and any(w in words for w in _UNLOADED)
    number = error.errno if isinstance(error, OSError) else None
    if not (isinstance(error, MemoryError) or unloaded or number == errno.ENOMEM):
        return ""
    limit = "; the address space limit (ulimit -v) may be too low" if _addresses() else ""
    return f"out of memory: {format_size(available())} is free{limit}. Reduce --memory (memory=...)"


LEAST_INGEST = _DATABASE + _LEAST_DATABASE
"""The smallest memory budget of an ingest."""


def database_memory(memory: int) -> int:
    """Return DuckDB's limit in a run with ``memory`` bytes for data."""
    return max(memory - _DATABASE, _LEAST_DATABASE)


def short_of(memory: int) -> str:
    """Return the end of a message that a budget of ``memory`` bytes is too small."""
    return (
        f"the limit is {format_total(memory)}, and {format_size(available())} is free. Raise "
        "the limit with --memory (memory=...)"
    )


def _machine_available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux: use the machine's total memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _addresses() -> list[int]:
    """Return the address space limit in bytes; [] if there is none."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return []

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if limit == resource.RLIM_INFINITY else [limit]


def _addresses_available() -> list[int]:
    """Return the address space left for data, once all libraries are loaded."""
    kernels = sys.modules.get("cocite.kernels._kernel")
    loaded = _MAPPED if kernels and kernels.library.cache_info().currsize else 0
    return [limit - _status("VmSize:") - _MAPPED + loaded for limit in _addresses()]


def _control_group_available() -> list[int]:
    """Return the memory left in this process's cgroups; file cache counts as free."""
    found = []
    for group, (limit, usage, cache) in _control_groups():
        try:
            allowed = (group / limit).read_text(encoding="ascii").strip()
            used = int((group / usage).read_text(encoding="ascii"))
            stat = (group / "memory.stat").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if allowed != "max":
            cached = int(stat[stat.index(cache) + 1]) if cache in stat else 0
            found.append(int(allowed) - used + cached)
    return found


def _control_groups() -> list[tuple[Path, tuple[str, str, str]]]:
    """Return (directory, file names of limit, usage and cache) for each cgroup, outermost last."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if number == "0":
            root, files = _GROUPS, _VERSION_2
        elif "memory" in controllers.split(","):
            root, files = _GROUPS / "memory", _VERSION_1
        else:
            continue
        group = root / name.lstrip("/")
        found += [(above, files) for above in (group, *group.parents) if above.is_relative_to(root)]
    return found


@dataclass(frozen=True)
class Resources:
    """Limits of a run.

    ``memory`` is the memory for data, in bytes; ``total``, like ``--memory``, adds the memory of
    the process itself. Builds save after every ``shard`` samples. The graph is divided into
    ``blocks`` blocks, one in memory at a time; if ``external``, other state is on disk. ``disk`` is
    the disk space for scratch files, in bytes, or 0 if unknown.
    """

    threads: int
    memory: int
    shard: int | None = None
    blocks: int | None = None
    external: bool = False
    disk: int = 0

    @classmethod
    def checked(
        cls,
        threads: int | None = None,
        memory: str | int | None = None,
        shard: int | None = None,
        blocks: int | None = None,
        external: bool = False,
    ) -> Resources:
        """Return resources, by default all cores and half of the available memory.

        Raises :class:`UsageError` for an invalid value.
        """
        _check("shard", shard, "number of samples")
        _check("blocks", blocks, "whole number")
        return cls(checked_threads(threads), budget(memory), shard, blocks, external)

    @property
    def total(self) -> int:
        """Return the corresponding ``--memory``."""
        return self.memory + _base()

    @property
    def cut(self) -> bool:
        """Return whether an option divides the work; only sampled builds support such options."""
        return self.shard is not None or self.blocks is not None or self.external

    def up_to(self, threads: int) -> Resources:
        """Return a copy with at most ``threads`` threads."""
        return replace(self, threads=min(self.threads, threads))


def _check(name: str, value: int | None, what: str) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise UsageError(f"{name} is {value!r}; it must be a {what}, 1 or more")
