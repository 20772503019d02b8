"""Removal of pages or links from a stored graph, and verification of its files.

A page is removed with all links to and from it. Its neighbors remain, even without any links. The
rows are copied block by block, and the remaining ids are renumbered in order. The result is
byte-identical to a graph that never had the pages.

Removal takes one pass over the links and one over the names. It uses 9 bytes per node, 12 per
remaining name, and a block of links. Verification takes one pass over the links and two over the
names, at a few microseconds per name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UsageError
from cocite.graph.blocks import (
    DEGREES,
    OFFSETS,
    WEIGHTS,
    Links,
    are_positive,
    cut_blocks,
    link_writer,
    rows_fault,
)
from cocite.graph.graph import Graph
from cocite.graph.name_files import (
    BY_HASH,
    BY_NAME,
    DATA,
    HASHES,
    TITLES_DATA,
    VALUES,
    IntegerNames,
    TextNames,
    Titles,
    joined_names,
    name_hash,
    write_some_titles,
    write_text_names,
)
from cocite.graph.names import Names, text_of
from cocite.graph.sides import SIDES
from cocite.io.readers.contract import Progress, no_progress
from cocite.storage import Entry, Manifest, Store, evict, write_array
from cocite.storage.staging import Staging

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_NAMES = 1 << 12
"""Names to process at a time, a multiple of CODED_BLOCK."""
_PIECE, _CHECK_PIECE = 8 << 20, 1 << 16
"""Bytes of links to copy, and links to verify, at a time."""
_log = logging.getLogger("cocite")
Ids = NDArray[np.uint32]
Fault = tuple[str, str]
"""A damaged file and what is wrong with it."""


def checked_names(exclude: Iterable[object] | None) -> tuple[str, ...] | None:
    """Return the distinct names to exclude, as text, or None. Raises :class:`UsageError`."""
    if isinstance(exclude, str | bytes):
        raise UsageError("exclude is a single string; pass a list of names")
    return None if exclude is None else tuple(dict.fromkeys(map(text_of, exclude)))


def _sort_hashes(pieces: Iterator[Ids]) -> Iterator[NDArray[np.uint64]]:
    """Yield hash * 2**32 + id for all hashes, sorted in memory."""
    hashes = np.concatenate([np.empty(0, np.uint32), *pieces]).astype(np.uint64)
    yield np.sort((hashes << np.uint64(32)) | np.arange(hashes.size, dtype=np.uint64))


def write_some_names(
    directory: Path, store: Store, names: Names, ids: Ids, *, as_ingested: bool = False
) -> tuple[str, dict[str, Entry]]:
    """Write the names of ``ids``, ascending; return their format and the manifest entries.

    ``names`` are the names in ``store``. The name order is written if it differs from the id order.
    With ``as_ingested``, it is also written if the graph is bipartite or a name is a URL.
    """
    names = names.stored
    if isinstance(names, IntegerNames):
        values = names.values()[ids]
        if bool((values == np.arange(values.size, dtype=np.uint64)).all()):
            return "dense", {}
        return "integers", {VALUES: write_array(directory / VALUES, np.uint64, [values])}
    urls = as_ingested and SIDES in store.facts

    def pieces() -> Iterator[list[str]]:
        nonlocal urls
        for low in range(0, ids.size, _NAMES):
            piece = names.names(ids[low : low + _NAMES])
            urls = urls or (as_ingested and any(map(_URL.match, piece)))
            yield piece

    files = write_text_names(directory, _sort_hashes, map(joined_names, pieces()))
    if store.has(BY_NAME):
        ranked = store.array(BY_NAME)
        places = np.minimum(np.searchsorted(ids, ranked), ids.size - 1)
        order = places[ids[places] == ranked].astype(np.uint32)
        if urls or bool((order != np.arange(order.size)).any()):
            files[BY_NAME] = write_array(directory / BY_NAME, np.uint32, [order])
    return "text", files


def leave_out(
    graph: Graph, output: str, names: tuple[str, ...], *, overwrite: bool, progress: Progress
) -> Path:
    """Store ``graph`` without the pages ``names`` in the directory ``output``.

    Raises :class:`UsageError`, :class:`~cocite.errors.Damaged`,
    :class:`~cocite.errors.OutputExists` or :class:`~cocite.errors.Busy`.
    """
    graph.check()
    with Staging(output, "graph", overwrite=overwrite) as draft:
        progress("looking up the names", 0, 0)
        found = [graph.names.find(name) for name in names]
        unknown = [name for name, node in zip(names, found, strict=True) if node is None]
        keep = np.ones(graph.nodes, bool)
        keep[[node for node in found if node is not None]] = False
        ids = np.flatnonzero(keep).astype(np.uint32)
        if not ids.size:
            raise UsageError(
                f"excluding all {graph.nodes:,} pages would leave an empty graph. Exclude fewer "
                "pages"
            )
        facts: dict[str, Any] = dict(graph.store.facts)
        weights, edges, files = write_rest(draft.path, graph, keep, progress)
        progress("storing the names", 0, 0)
        kind, name_files = write_some_names(
            draft.path, graph.store, graph.names, ids, as_ingested=True
        )
        if graph.titles is not None:
            name_files |= write_some_titles(draft.path, graph.titles, ids)
            facts["titles"] = facts["titles"] | {"nodes": graph.titles.known(ids)}
        gone, links = graph.nodes - ids.size, graph.edges - edges
        before = facts.get("excluded", {"nodes": 0, "links": 0, "unknown": 0})
        counts = {"nodes": gone, "links": links, "unknown": len(unknown)}
        excluded = {key: count + before[key] for key, count in counts.items()}
        facts |= {"nodes": ids.size, "edges": edges, "names": kind, "excluded": excluded, **weights}
        if graph.names.sides is not None:
            facts[SIDES] = graph.names.sides.subset(ids).to_json()
        path = draft.publish(Manifest("graph", facts, files | name_files))
    if unknown:
        _log.warning(
            f"{len(unknown):,} of {gone + len(unknown):,} names to exclude match no page, for "
            f"example {unknown[0]!r}"
        )
    _log.info(f"excluded {gone:,} page{'s' * (gone != 1)} with {links:,} links")
    return path


def write_rest(
    directory: Path,
    graph: Graph,
    keep: NDArray[np.bool_],
    progress: Progress = no_progress,
    stays: Callable[[Ids, Ids], NDArray[np.bool_]] | None = None,
) -> tuple[dict[str, Any], int, dict[str, Entry]]:
    """Write the links among the nodes in ``keep``; return the facts about their weights, the number
    of links, and the manifest entries. ``stays`` maps targets and sources to a mask of the links
    to write.
    """
    links = Links(graph.in_offsets, graph.in_sources, graph.in_weights)
    anew = np.cumsum(keep, dtype=np.uint32) - np.uint32(1)
    degrees, weighted = np.zeros(int(keep.sum()), np.uint32), links.weights is not None
    with link_writer(directory, degrees, weighted=weighted) as out:
        for first, last in pairwise((0, *cut_blocks(links, _PIECE), links.nodes)):
            rows = links.offsets[first : last + 1].astype(np.int64)
            part = slice(int(rows[0]), int(rows[-1]))
            read = links.neighbors[part]
            here = keep[read] & np.repeat(keep[first:last], np.diff(rows))
            if stays is not None:
                targets = np.repeat(np.arange(first, last, dtype=np.uint32), np.diff(rows))
                here &= stays(targets, read)
            sums = np.concatenate([[0], np.cumsum(here)])[rows - rows[0]]
            out.add_rows(sums[:-1][keep[first:last]])
            weights = None if links.weights is None else links.weights[part][here]
            out.add_links(anew[read[here]], weights)
            links.evict()
            progress("writing the links", part.stop, links.edges)
    return out.facts, out.edges, out.files


def graph_faults(graph: Graph) -> Iterator[Fault]:
    """Yield faults in links, degrees and weights."""
    offsets, sources = graph.in_offsets, graph.in_sources
    fault = rows_fault(offsets, sources, graph.nodes)
    if fault:
        yield OFFSETS, fault
        return
    degrees = np.zeros(graph.nodes, np.uint32)
    for low in range(0, graph.edges, _CHECK_PIECE):
        np.add.at(degrees, sources[low : low + _CHECK_PIECE], np.uint32(1))
        evict(sources)
    if not np.array_equal(degrees, graph.out_degrees):
        yield DEGREES, "degrees do not match the links"
    if graph.in_weights is not None and not are_positive(graph.in_weights):
        yield WEIGHTS, "some weights are not positive and finite"


def name_faults(names: Names) -> Iterator[Fault]:
    """Yield faults in the names' text, order and hashes."""
    stored = names.stored
    if isinstance(stored, IntegerNames):
        values = stored.values()
        if not stored.dense and (values[1:] <= values[:-1]).any():
            yield VALUES, "values do not ascend"
    elif isinstance(stored, TextNames):
        try:
            yield from _text_faults(stored)
        except Damaged:
            yield DATA, "names cannot be read"


def _text_faults(names: TextNames) -> Iterator[Fault]:
    count = len(names)
    before = b""
    for low in range(0, count, _NAMES):
        ranks = np.arange(low, min(low + _NAMES, count))
        called = [name.encode() for name in names.names(names.ranked(ranks))]
        if any(a >= b for a, b in pairwise((before, *called))):
            yield (BY_NAME if names.has_order else DATA), "names do not ascend"
            return
        before = called[-1]
    try:
        hashes, nodes = names.by_hash()
    except Damaged:
        yield HASHES, "hashes do not ascend, or belong to no node"
        return
    for low in range(0, count, _NAMES):
        part = slice(low, low + _NAMES)
        found = [name_hash(name.encode()) for name in names.names(nodes[part])]
        if found != hashes[part].tolist():
            yield HASHES, "hashes do not match the names"
            return
    if np.bincount(nodes, minlength=count).max() > 1:
        yield BY_HASH, "a node occurs twice"


def title_faults(titles: Titles | None) -> Iterator[Fault]:
    """Yield faults in the titles."""
    try:
        if titles is not None:
            for low in range(0, len(titles), _NAMES):
                titles.of(np.arange(low, min(low + _NAMES, len(titles))))
    except Damaged:
        yield TITLES_DATA, "titles cannot be read"
