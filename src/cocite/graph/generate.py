"""A web-like graph of any size, streamed straight into stored form.

    plan (``web.py``) -> in-degrees of a piece -> its in-links -> in_offsets, in_sources
                                                               -> counts of out-links, names, labels

In-links are made per destination, in order, from a counter-based hash: nothing is sorted. The
graph is a function of (nodes, links, seed); the size of pieces never changes a byte. It has exactly
the nodes and links asked for, no self-loops, no duplicates; what it looks like, and how like real
webs that is, says ``docs/generator.md``.

Memory: a few pieces; 4 bytes a host, of which there is one for 100 pages; 4 bytes a page to count
out-links, in a mapped file whose memory the system can take back; and for text names what DuckDB
takes to sort their hashes. Cost: about 80 ns a link on one core, and 0.6 us a page for text names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.graph import DEGREES, MAX_NODES, OFFSETS, SOURCES, Graph
from cocite.graph.name_files import TextPiece, write_text_names
from cocite.graph.readers.options import Progress, no_progress
from cocite.graph.web import Web, plan_web
from cocite.store import (
    ArrayWriter,
    Draft,
    Entry,
    Manifest,
    Scratch,
    check_file,
    disk,
    written_beside,
)

__all__ = ["generate_web"]

MODEL = "web 1"
"""Which model made a graph: another one, with other bytes, gets another number."""

_PAGES_PIECE = 1 << 17
_LINKS_PIECE = 1 << 21
_NAMES_PIECE = 1 << 17
_SORT_MEMORY = 128 << 20

_TOP_DOMAINS = {"com": 50, "de": 8, "edu": 6, "fr": 4, "it": 4, "net": 8, "org": 14, "uk": 6}
"""Top-level domains, ascending, and their hosts of 100."""


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
        The directory to make.
    nodes
        How many pages, 1 to 2**32 - 1.
    links
        How many links, exactly; at most nodes * ((nodes - 1) // 2). The mean decides how heavy
        the tail of in-degrees is; 3 to 30 a page look like webs.
    seed
        0 to 2**64 - 1. Equal nodes, links and seed give equal bytes.
    names
        ``text``, such as ``com,d000012,h0000098)/s0003/p017``, or ``integers``, which take no
        room and no time.
    labels
        A file to write: for every page a row of its name, a tab, and its host's topic, such as
        ``topic.3.1.7``, a leaf of a tree.
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
            path = check_file(Path(labels), overwrite)  # takes its name when the graph is whole
            beside = _Labels(stack.enter_context(written_beside(path)))
        draft = stack.enter_context(Draft(os.fspath(output), "graph", overwrite=overwrite))
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
            raise UsageError(f"{title} is {value!r}; it is a whole number")
    if not 1 <= nodes <= MAX_NODES:
        raise UsageError(f"nodes is {nodes:,}; a graph has 1 to {MAX_NODES:,}")
    most = nodes * ((nodes - 1) // 2)
    if not 0 <= links <= most:
        raise UsageError(
            f"links is {links:,}; a generated graph of {nodes:,} nodes has 0 to {most:,}. Ask for "
            "fewer links or more nodes"
        )
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed is {seed}; it is 0 to 2**64 - 1")
    if names not in ("text", "integers"):
        raise UsageError(f"names is {names!r}; it is one of text, integers")


# -- links ------------------------------------------------------------------------------


def _write_links(
    directory: Path, work: Path, web: Web, links: int, progress: Progress
) -> dict[str, Entry]:
    """Stream the links into the three arrays."""
    from cocite.kernels.links import add_counts

    edges = 0
    # In a scratch file: memory that the system can take back.
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
    """Ranges of pages with at most so many links together, or of one page."""
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
    """All names, piece by piece; labels are written on the way."""
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
    """Makes the names of ranges of pages."""

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
        from cocite.kernels.generate_text import NAME_ROOM, names

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
    from cocite.graph.tables import Tables  # DuckDB: only for those with names to sort

    with Tables(work / "tables", [], _SORT_MEMORY, 1) as tables:
        return write_text_names(directory, tables, text)


class _Labels:
    """The rows of the file of labels."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(
        self, web: Web, first: int, text: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> None:
        """Append the rows of some pages."""
        from cocite.kernels.generate_text import NAME_ROOM, labels

        out = np.empty(text.size + NAME_ROOM * ends.size, np.uint8)
        size = labels(first, web.starts, web.topics, web.order, web.branches, text, ends, out)
        disk.write(self._file, out[:size].data)
