"""Rows of nodes: planned, made on all threads, logged, merged, and transposed.

A row depends only on the graph and the settings. So completed rows are logged, and a killed build
resumes. Rows contain the graph's node ids, so when indexes of consecutive node ranges are merged,
their rows are copied unchanged. Merging needs memory for chunks of files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.constants import Bools, Ids
from cocite.deadline import clock
from cocite.errors import ResourceError
from cocite.graph.blocks import Links, entries_of
from cocite.graph.links import least_transpose, transpose
from cocite.index.layouts.batch_maker import ArrayFiles
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.part import StoredPart
from cocite.kernels.links import add_counts
from cocite.kernels.random import scramble
from cocite.measures.evidence import floor_text
from cocite.resources import Resources, format_least, short_of
from cocite.storage import disk, evict

READ = 2 << 20
"""Number of entries to read and write at a time."""
_PILOT_SECONDS, _LEAST_PILOTS = 3, 8
_NO_IDS, _NO_VALUES = np.empty(0, np.uint32), np.empty(0, np.float32)

Rows = tuple[NDArray[np.uint64], Ids, NDArray[np.float32]]
"""(Counts, ids, values) of rows."""


def plan_rows(
    means: Resources, need: Callable[[int], int], least: int, what: str, layout: str
) -> MemoryPlan:
    """Plan as many threads as fit, given ``need(threads)`` bytes, or else one thread and scratch
    files. Raises :class:`ResourceError` if the memory is below ``least``.
    """
    for threads in range(means.threads, 0, -1):
        if need(threads) <= means.memory:
            return MemoryPlan(need(threads), threads, (), means.threads)
    if means.memory < least:
        raise ResourceError(
            f"{what} need {format_least(least)} of memory, with one thread; "
            f"{short_of(means.memory)}{floor_text(layout)}"
        )
    return MemoryPlan(means.memory, 1, (), means.threads)


def pilot(make: Callable[[range], int], nodes: int, most: int = 400) -> tuple[float, float]:
    """Return the entries and the seconds per node, from the rows of up to ``most`` nodes. ``make``
    makes the rows of a range, and returns their number of entries.
    """
    spread = np.linspace(0, nodes - 1, min(most, nodes)).astype(np.uint64)
    sample = spread[np.argsort(scramble.__wrapped__(spread))].tolist()
    make(range(sample[0], sample[0] + 1))  # loads kernels, and touches memory
    found, begin, seconds = list[int](), clock(), 0.0
    for node in sample:
        found.append(make(range(node, node + 1)))
        seconds = clock() - begin
        if seconds > _PILOT_SECONDS and len(found) >= _LEAST_PILOTS:
            break
    return sum(found) / len(found), seconds / len(found)


def empty_rows(entries: int) -> tuple[Ids, NDArray[np.float32]]:
    """Return buffers for the ids and values of rows."""
    return np.empty(entries, np.uint32), np.empty(entries, np.float32)


# -- making ------------------------------------------------------------------------------


Making = Callable[[Sequence[range]], Iterator[Rows]]
"""Makes (counts, ids, values) for node ranges, in order."""


def making(
    makers: Sequence[Callable[[range], Rows]], only: Bools | None = None, known: Links | None = None
) -> Making:
    """Return a function that makes rows with ``makers``, one per thread. With ``only``
    (bool[nodes]), other nodes' rows are empty; nonempty rows in ``known`` are reused.
    """
    if only is not None:
        kinds, more = only.astype(np.uint8), list[Callable[[range], Rows]]()
        if known is not None:
            kinds += only & (np.diff(known.offsets) > 0)
            more = [partial(rows_at, known)]
        makers = [partial(_rows_of_some, (make, *more), kinds) for make in makers]
    return partial(in_order, makers)


def logged(make: Making, step: int, nodes: int, log: Path | None) -> Generator[Rows]:
    """Yield the rows in a log, then new rows, ``step`` nodes at a time, which are appended to the
    log. If one step is enough, there is no log.
    """
    log = log if nodes > step else None
    at = end = 0
    for rows in () if log is None else _read_log(log):
        at, end = at + rows[0].size, end + 24 + 8 * (rows[0].size + rows[1].size)
        yield rows
    with ExitStack() as stack:
        file = None
        if log is not None:
            file = stack.enter_context(disk.append(log))
            disk.truncate(file, end)
        ranges = [range(low, min(low + step, nodes)) for low in range(at, nodes, step)]
        for rows in stack.enter_context(closing(make(ranges))):  # type: ignore[type-var]
            if file is not None:
                body = b"".join(each.tobytes() for each in rows)
                sizes = rows[0].size, rows[1].size, xxhash.xxh3_64_intdigest(body)
                disk.write(file, np.array(sizes, np.uint64).tobytes() + body)
            yield rows


def _read_log(log: Path) -> Iterator[Rows]:
    """Yield the intact leading records of a log. A record contains the numbers of rows and entries,
    a digest, counts, ids, and values.
    """
    with suppress(FileNotFoundError), log.open("rb") as file:
        left = log.stat().st_size
        while (left := left - 24) >= 0:
            count, size, digest = np.frombuffer(file.read(24), np.uint64).tolist()
            left -= 8 * (count + size)
            body = file.read(8 * (count + size)) if count > 0 <= left else b""
            if not body or xxhash.xxh3_64_intdigest(body) != digest:
                return
            counts, ids = np.frombuffer(body, np.uint64, count), np.frombuffer(body, np.uint32)
            ids = ids[2 * count :]
            yield counts, ids[:size], ids[size:].view(np.float32)


def _rows_of_some(
    makers: Sequence[Callable[[range], Rows]], kinds: NDArray[np.uint8], nodes: range
) -> Rows:
    """Return the counts, ids and values of a node range. ``kinds`` is 0 for empty rows, or else
    selects the maker, counted from 1.
    """
    counts, ids, values = np.zeros(len(nodes), np.uint64), [_NO_IDS], [_NO_VALUES]
    ends = np.flatnonzero(np.diff(kinds[nodes.start : nodes.stop])) + 1
    for low, high in pairwise((0, *ends.tolist(), len(nodes))):
        if kind := kinds[nodes.start + low]:
            counts[low:high], found, near = makers[kind - 1](nodes[low:high])
            ids.append(found)
            values.append(near)
    return counts, np.concatenate(ids), np.concatenate(values)


def rows_at(rows: Links, nodes: NDArray[Any] | range) -> Rows:
    """Return the counts, ids and values of the rows of ``nodes``."""
    assert rows.weights is not None
    places = np.asarray(nodes, np.int64)
    begins = rows.offsets[places]
    counts = rows.offsets[places + 1] - begins
    entries, _ = entries_of(begins, counts)
    return counts, rows.neighbors[entries], rows.weights[entries]


# -- merging and transposing -------------------------------------------------------------


def join_rows(
    files: ArrayFiles,
    parts: Sequence[StoredPart],
    nodes: int,
    names: tuple[str, str, str],
    sums: Sequence[str],
    same: Sequence[str] = (),
) -> int:
    """Write the rows of all graph nodes from parts of node ranges; return the number of families.

    ``names`` are the first part of the files' names, and the names of the ids and of the values;
    ``sums`` are arrays with a row for each node and family; ``same`` are arrays that must be equal
    in all parts. Raises :class:`Damaged`.
    """
    offsets, ids, values = (f"{names[0]}.{name}" for name in ("offsets", *names[1:]))
    for part in parts:
        part.store.require(*(part.prefix + each for each in (offsets, ids, values, *sums, *same)))
    common = {name: parts[0].array(name) for name in same}
    families = (parts[0].array(offsets).size - 1) // parts[0].nodes
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in sums}
    with files.rows_writer(*names, parts[0].array(values).dtype) as writer:
        for family, part in product(range(families), parts):
            for name, array in common.items():
                if not np.array_equal(part.array(name), array):
                    raise part.damaged_file(name)
            begins = part.array(offsets)[family * part.nodes :][: part.nodes + 1]
            arrays = part.array(ids), part.array(values)
            if (begins[1:] < begins[:-1]).any() or begins[-1] > arrays[0].size:
                raise part.damaged_file(offsets)
            writer.write(np.diff(begins), *(array[:0] for array in arrays))
            for name in sums:
                found[name].append(part.array(name)[family * part.nodes :][: part.nodes])
            for low in range(int(begins[0]), int(begins[-1]), READ):
                piece = slice(low, min(low + READ, int(begins[-1])))
                if int(arrays[0][piece].max()) >= nodes:
                    raise part.damaged_file(ids)
                writer.write(begins[:0], *(array[piece] for array in arrays))
                evict(*arrays)
    for name, pieces in found.items():
        files.write(name, pieces[0].dtype, np.concatenate(pieces))
    for name, array in common.items():
        files.write(name, array.dtype, array)
    return families


def columns_of(rows: Links, nodes: int, memory: int, directory: Path) -> Links:
    """Return the transpose of rows, for all ``nodes`` graph nodes. Evicts what it reads."""
    assert rows.weights is not None
    begin, end, offsets = int(rows.offsets[0]), int(rows.offsets[-1]), rows.offsets
    if begin or rows.nodes < nodes:
        offsets = np.full(nodes + 1, end - begin, np.uint64)
        offsets[: rows.nodes + 1] = rows.offsets - rows.offsets[0]
    rows = Links(offsets, rows.neighbors[begin:end], rows.weights[begin:end])
    counts = np.zeros(nodes, np.uint32)
    for low in range(0, rows.edges, READ):
        add_counts(rows.neighbors[low : low + READ], counts)
        evict(rows.neighbors)
    whole = rows.nbytes + 8 * nodes
    memory = max(memory - 24 * nodes - 5 * READ, least_transpose(whole))
    return transpose(rows, counts, min(memory, whole), directory)  # reading releases its memory
