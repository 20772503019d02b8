"""A web-like graph of any size, streamed into its stored form.

    plan -> in-degrees of a piece -> its in-links -> in_offsets, in_sources
                                                  -> counts of out-links, names, labels

    sizes of hosts    u ** (-1 / 0.82), scaled to 100 pages per host on average, at most
                      55 sqrt(nodes): u drawn for each host
    topics            a tree, three levels deep; a host's leaf is its place in a random order of all
                      hosts, cut at leaves of rising size
    in-degrees        0.78 * u ** (-1 / alpha), with alpha such that they sum to slightly less than
                      the requested links

In-links are made for each destination, in order, from a counter-based hash. Nothing is sorted, and
the graph is a function of (nodes, links, seed). The links missing from the degrees, at most 0.3 %
on graphs that are neither tiny nor dense, are distributed evenly, so the number of links is exact.
If alpha = 4 still gives too many links, random pages lose all their in-links; if alpha = 0.5 gives
too few, the rest comes from anywhere. ``docs/generator.md`` compares it with real webs.

Memory: a few pieces; 4 bytes per host (40 during layout); 4 bytes per page to count out-links, in a
mapped file; and, for text names, what DuckDB takes to sort their hashes. Cost: about 80 ns per link
on one core, 0.2 us per page to plan, and 0.6 us per page for text names.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import gcd, isqrt
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES
from cocite.graph.graph import Graph
from cocite.graph.name_files import TextPiece, write_text_names
from cocite.graph.names import MAX_NODES
from cocite.io.readers.contract import Progress, no_progress
from cocite.progress import shows
from cocite.storage import ArrayWriter, Entry, Manifest, check_file, disk, staged_file
from cocite.storage.spool import Scratch
from cocite.storage.staging import Staging

DEPTH = 3
"""Levels of the tree of topics below its root."""

_PAGES_A_HOST = 100
_HOST_TAIL, _LARGEST_HOST = 0.82, 55
_LARGEST_DEGREE = 30
_DEGREE_SCALE = 0.78
_TAILS = 0.5, 4.0
_CLOSE = 0.003
_HOSTS_A_TOPIC, _MOST_BRANCHES = 20, 10
_TOPIC_SKEW = 1.5
_SHARE = 1 << 16
_PIECE = 1 << 18
_DOMAIN = 1 << 63
"""Domain of the generator's random keys, which walks do not use."""


@dataclass(frozen=True)
class Web:
    """A planned web: all that kernels need, in O(hosts) memory.

    ``starts`` uint32[hosts + 1]; ``order`` and ``topics`` uint32[leaves + 1]: hosts in a random
    order, and where each leaf topic begins in it; ``law`` of the in-degrees, with exponent
    ``tail``; ``keys``, ``plan``: see ``kernels/generate.py``; ``branches`` of the tree of topics.
    """

    starts: NDArray[np.uint32]
    order: NDArray[np.uint32]
    topics: NDArray[np.uint32]
    branches: int
    law: NDArray[np.float64]
    tail: float
    keys: NDArray[np.uint64]
    plan: NDArray[np.int64]

    @property
    def nodes(self) -> int:
        """Return the number of pages."""
        return int(self.starts[-1])

    @property
    def hosts(self) -> int:
        """Return the number of hosts."""
        return self.starts.size - 1

    def pages(self, first: int, count: int) -> NDArray[np.uint32]:
        """Return uint32[count, 2]: in-degrees from page ``first`` on, total and external."""
        from cocite.kernels.generate import in_degrees

        out = np.empty((count, 2), np.uint32)
        in_degrees(first, self.starts, self.law, self.keys, self.plan, out)
        return out


def plan_web(nodes: int, links: int, seed: int) -> Web:
    """Plan a web of ``nodes`` pages and exactly ``links`` links."""
    from cocite.kernels.generate import KEYS, PLAN_WORDS
    from cocite.kernels.random import draw_key, empty_order, make_order

    key = [draw_key(np.uint64(seed), np.uint64(_DOMAIN), np.uint64(i)) for i in range(KEYS + 2)]
    starts = _host_starts(nodes, np.uint64(key[KEYS]))
    hosts = starts.size - 1
    order = empty_order()
    make_order(np.uint64(key[KEYS + 1]), np.uint64(max(2, (hosts - 1).bit_length())), order)
    branches = min(_MOST_BRANCHES, max(2, round((hosts / _HOSTS_A_TOPIC) ** (1 / DEPTH))))
    leaves = branches**DEPTH
    topics = [round(hosts * (leaf / leaves) ** _TOPIC_SKEW) for leaf in range(leaves + 1)]
    plan = np.zeros(PLAN_WORDS, np.int64)
    plan[:] = nodes, (nodes - 1) // 2, _LARGEST_DEGREE * isqrt(nodes), _SHARE, 0, 0, _stride(nodes)
    keys = np.array(key[:KEYS], np.uint64)
    tail, linked, found = _fit(links, starts, keys, plan)
    each, rest = divmod(links - found, nodes)
    plan[3:6] = linked, each, rest
    return Web(starts, order, np.array(topics, np.uint32), branches, _law(tail), tail, keys, plan)


def _law(tail: float, scale: float = _DEGREE_SCALE) -> NDArray[np.float64]:
    """Return scale * u ** (-1 / tail) as a table, by Python's powers: the same on all machines."""
    from cocite.kernels.generate import CELLS, LEVELS

    inside = [(1 + cell / CELLS) ** (-1 / tail) for cell in range(CELLS + 1)]
    outside = [scale * 2.0 ** ((level + 1) / tail) for level in range(LEVELS)]
    return np.outer(outside, inside)


def _host_starts(nodes: int, key: np.uint64) -> NDArray[np.uint32]:
    """Return where each host begins, and ``nodes``; a host has at least one page."""
    from cocite.kernels.generate import heavy_tailed

    sizes = np.empty(max(1, nodes // _PAGES_A_HOST), np.float64)
    heavy_tailed(key, _law(_HOST_TAIL, 1.0), sizes)
    largest = _LARGEST_HOST * isqrt(nodes)
    for _ in range(8):  # truncating the largest makes all others larger, including these
        sizes = np.minimum(sizes, largest / nodes * sizes.cumsum()[-1])
    ends = sizes.cumsum()
    starts = (ends * (nodes / ends[-1])).astype(np.int64)
    starts[-1] = nodes
    return np.unique(np.append(0, starts)).astype(np.uint32)


def _stride(nodes: int) -> int:
    """Return about nodes / golden ratio, coprime to nodes: its multiples reach all nodes."""
    stride = round(nodes * 0.6180339887498949) % max(nodes, 1)
    while gcd(stride, nodes) != 1:
        stride += 1
    return stride


def _fit(
    links: int, starts: NDArray[np.uint32], keys: NDArray[np.uint64], plan: NDArray[np.int64]
) -> tuple[float, int, int]:
    """Return the tail, the pages of 2**16 with in-links, and at most the wanted links."""

    def total(tail: float, linked: int) -> int:
        from cocite.kernels.generate import in_degrees

        law, nodes, found = _law(tail), int(starts[-1]), 0
        plan[3] = linked
        for first in range(0, nodes, _PIECE):
            out = np.empty((min(_PIECE, nodes - first), 2), np.uint32)
            found += int(in_degrees(first, starts, law, keys, plan, out))
        return found

    heavy, light = _TAILS
    found = total(light, _SHARE)
    if found > links:
        few = bisect_right(range(1, _SHARE), links, key=lambda linked: total(light, linked))
        return light, few, total(light, few)
    for _ in range(40):
        if links - found <= _CLOSE * links:
            break
        tail = (heavy + light) / 2
        made = total(tail, _SHARE)
        if made <= links:
            light, found = tail, made
        else:
            heavy = tail
    return light, _SHARE, found


MODEL = "web 1"
"""Version of the model: changes with the bytes of its graphs."""

_PAGES_PIECE = 1 << 17
_LINKS_PIECE = 1 << 21
_NAMES_PIECE = 1 << 17
_SORT_MEMORY = 128 << 20

_TOP_DOMAINS = {"com": 50, "de": 8, "edu": 6, "fr": 4, "it": 4, "net": 8, "org": 14, "uk": 6}
"""Top-level domains, ascending, with their hosts out of 100."""


@shows("making a web")
def generate_web(
    output: str | os.PathLike[str],
    *,
    nodes: int,
    links: int,
    seed: int = 0,
    names: str = "text",
    labels: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> Graph:
    """Make a web-like graph and store it.

    Parameters
    ----------
    output
        The directory to create.
    nodes
        Number of pages, 1 to 2**32 - 1.
    links
        Exact number of links, at most nodes * ((nodes - 1) // 2). The mean degree sets the tail of
        in-degrees; 3 to 30 links per page resemble the web.
    seed
        0 to 2**64 - 1. Equal nodes, links and seed give equal bytes.
    names
        ``text``, such as ``com,d000012,h0000098)/s0003/p017``, or ``integers``, which need no space
        or time.
    labels
        A file to write: for each page its name, a tab, and the topic of its host, such as
        ``topic.3.1.7``.
    overwrite
        Replace ``output`` if it is a store, and ``labels`` if it is a file.
    progress
        Called with (stage, done, total).

    Returns
    -------
    Graph
        The stored graph, opened.

    Raises
    ------
    UsageError, OutputExists, Busy, ResourceError
        Nothing is left behind.
    """
    _check(nodes, links, seed, names)
    with ExitStack() as stack:
        beside = None
        if labels is not None:
            path = check_file(Path(labels), overwrite)  # gets its name when the graph is complete
            beside = _Labels(stack.enter_context(staged_file(path)))
        draft = stack.enter_context(Staging(os.fspath(output), "graph", overwrite=overwrite))
        progress("planning the web", 0, 0)
        web = plan_web(nodes, links, seed)
        work = draft.path / "work"
        disk.make_own_folder(work)
        files = _write_links(draft.path, work, web, links, progress)
        text = _text_names(web, names, beside, progress)
        if names == "text":
            files |= _write_names(draft.path, work, text)
        elif beside is not None:
            for _ in text:
                pass
        facts: dict[str, Any] = {
            "nodes": nodes,
            "edges": links,
            "names": "text" if names == "text" else "dense",
            "rows": links,
            "undirected": False,
            "self_loops_kept": False,
            "dropped": {"duplicates": 0, "self_loops": 0, "bad_rows": 0},
            "sources": [],
            "generated": {"model": MODEL, "seed": seed, "hosts": web.hosts, "tail": web.tail},
        }
        return Graph.open(draft.publish(Manifest("graph", facts, files)))


def _check(nodes: int, links: int, seed: int, names: str) -> None:
    for title, value in (("nodes", nodes), ("links", links), ("seed", seed)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{title} is {value!r}; it must be a whole number")
    if not 1 <= nodes <= MAX_NODES:
        raise UsageError(f"nodes is {nodes:,}; a graph has 1 to {MAX_NODES:,}")
    most = nodes * ((nodes - 1) // 2)
    if not 0 <= links <= most:
        raise UsageError(
            f"links is {links:,}; a generated graph of {nodes:,} nodes has 0 to {most:,}. Ask for "
            "fewer links or more nodes"
        )
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed is {seed}; it must be 0 to 2**64 - 1")
    if names not in ("text", "integers"):
        raise UsageError(f"names is {names!r}; it must be one of text, integers")


# -- links ------------------------------------------------------------------------------


def _write_links(
    directory: Path, work: Path, web: Web, links: int, progress: Progress
) -> dict[str, Entry]:
    """Stream the links into the three arrays."""
    from cocite.kernels.links import add_counts

    edges = 0
    # In a scratch file, which the system can reclaim from memory.
    counts = Scratch(work).zeros(web.nodes, np.uint32)
    with (
        ArrayWriter(directory / OFFSETS, np.uint64) as offsets,
        ArrayWriter(directory / SOURCES, np.uint32) as sources,
    ):
        offsets.write(np.zeros(1, np.uint64))
        progress("linking pages", 0, links)
        for first in range(0, web.nodes, _PAGES_PIECE):
            pages = web.pages(first, min(_PAGES_PIECE, web.nodes - first))
            ends = pages[:, 0].cumsum(dtype=np.uint64)
            offsets.write(ends + np.uint64(edges))
            for low, high in _cuts(ends):
                piece = _in_links(web, first + low, pages[low:high])
                sources.write(piece)
                add_counts(piece, counts)
                edges += piece.size
                progress("linking pages", edges, links)
        with ArrayWriter(directory / DEGREES, np.uint32) as degrees:
            for first in range(0, web.nodes, _LINKS_PIECE):
                degrees.write(counts[first : first + _LINKS_PIECE])
    return {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: degrees.finished}


def _cuts(ends: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of pages with at most the links of a piece in total, or of one page."""
    low, done = 0, 0
    while low < ends.size:
        high = int(np.searchsorted(ends, np.uint64(done + _LINKS_PIECE), side="right"))
        high = max(high, low + 1)
        yield low, high
        low, done = high, int(ends[high - 1])


def _in_links(web: Web, first: int, pages: NDArray[np.uint32]) -> NDArray[np.uint32]:
    from cocite.kernels.generate import in_links

    out = np.empty(int(pages[:, 0].sum(dtype=np.uint64)), np.uint32)
    in_links(first, pages, web.starts, web.topics, web.order, web.keys, web.plan, out)
    return out


# -- names and labels -------------------------------------------------------------------


def _text_names(
    web: Web, kind: str, labels: _Labels | None, progress: Progress
) -> Iterator[TextPiece]:
    """Yield all names, piece by piece; write labels on the way."""
    progress("naming pages", 0, web.nodes)
    make = _NameMaker(web)
    for first in range(0, web.nodes, _NAMES_PIECE):
        count = min(_NAMES_PIECE, web.nodes - first)
        text, ends = make(first, count) if kind == "text" else _decimals(first, count)
        if labels is not None:
            labels.write(web, first, text, ends)
        yield text, ends
        progress("naming pages", first + count, web.nodes)


class _NameMaker:
    """Makes names for ranges of pages."""

    def __init__(self, web: Web) -> None:
        self._web = web
        width = max(map(len, _TOP_DOMAINS))
        padded = [[*name.encode(), *bytes(width - len(name))] for name in _TOP_DOMAINS]
        self._tops = np.array(padded, np.uint8)
        shares = np.cumsum([0, *_TOP_DOMAINS.values()])
        self._domains = web.hosts * shares // shares[-1]
        sections = int(np.diff(web.starts).max()) // 8
        self._digits = np.array(
            [len(str(number)) for number in (web.hosts // 8, web.hosts, sections)], np.int64
        )

    def __call__(self, first: int, count: int) -> TextPiece:
        from cocite.kernels.generate import NAME_ROOM, names

        web = self._web
        ends, out = np.empty(count, np.uint64), np.empty(NAME_ROOM * count, np.uint8)
        size = names(
            first, web.starts, web.keys, self._domains, self._tops, self._digits, ends, out
        )
        return out[:size], ends


def _decimals(first: int, count: int) -> TextPiece:
    encoded = [b"%d" % node for node in range(first, first + count)]
    ends = np.cumsum([len(name) for name in encoded]).astype(np.uint64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _write_names(directory: Path, work: Path, text: Iterator[TextPiece]) -> dict[str, Entry]:
    from cocite.io.tables import Tables  # DuckDB is needed only to sort names

    with Tables(work / "tables", [], _SORT_MEMORY, 1) as tables:
        return write_text_names(directory, tables.sort_hashes, text)


class _Labels:
    """Writer of the file of labels."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(
        self, web: Web, first: int, text: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> None:
        """Append the rows of some pages."""
        from cocite.kernels.generate import NAME_ROOM, labels

        out = np.empty(text.size + NAME_ROOM * ends.size, np.uint8)
        size = labels(first, web.starts, web.topics, web.order, web.branches, text, ends, out)
        disk.write(self._file, out[:size].data)
