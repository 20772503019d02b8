"""Whether the files of a graph, and of names and titles, hold what ``FORMAT.md`` says, beyond that
their checksums fit: what ``cocite verify`` goes through when all of them do.

Cost: a pass over the links, and two over the names; some microseconds a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cocite.errors import Damaged
from cocite.graph.graph import DEGREES, OFFSETS, WEIGHTS, Graph
from cocite.graph.names import (
    BY_HASH,
    BY_NAME,
    DATA,
    HASHES,
    VALUES,
    IntegerNames,
    Names,
    TextNames,
    name_hash,
)
from cocite.graph.rows import rows_fault
from cocite.graph.titles import TITLES_DATA, Titles
from cocite.store import forget

__all__ = ["graph_faults", "name_faults", "title_faults"]

Fault = tuple[str, str]
"""A file, and what is wrong with it, in words."""
_PIECE, _NAMES = 1 << 16, 1 << 12
"""Links, and names, that are looked at at a time."""


def graph_faults(graph: Graph) -> Iterator[Fault]:
    """What is wrong with links, degrees and weights."""
    offsets, sources = graph.in_offsets, graph.in_sources
    fault = rows_fault(offsets, sources, graph.nodes)
    if fault:
        yield OFFSETS, fault
        return
    degrees = np.zeros(graph.nodes, np.uint32)
    for low in range(0, graph.edges, _PIECE):
        np.add.at(degrees, sources[low : low + _PIECE], np.uint32(1))
        forget(sources)
    if not np.array_equal(degrees, graph.out_degrees):
        yield DEGREES, "degrees are not those of the links"
    weights = graph.in_weights
    for low in range(0, 0 if weights is None else weights.size, _PIECE):
        assert weights is not None
        piece = weights[low : low + _PIECE]
        if not (bool(piece.min() > 0) and bool(piece.max() < np.inf)):
            yield WEIGHTS, "there are weights that are not above 0, or no number"
            break


def name_faults(names: Names) -> Iterator[Fault]:
    """What is wrong with the names: their text, their order, and how they are found."""
    stored = names.stored
    if isinstance(stored, IntegerNames):
        values = stored.values()
        if not stored.dense and (values[1:] <= values[:-1]).any():
            yield VALUES, "numbers do not ascend"
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
        yield HASHES, "hashes do not ascend, or are of no nodes"
        return
    for low in range(0, count, _NAMES):
        part = slice(low, low + _NAMES)
        found = [name_hash(name.encode()) for name in names.names(nodes[part])]
        if found != hashes[part].tolist():
            yield HASHES, "hashes are not those of the names"
            return
    if np.bincount(nodes, minlength=count).max() > 1:
        yield BY_HASH, "a node is there twice"


def title_faults(titles: Titles | None) -> Iterator[Fault]:
    """What is wrong with titles, if there are any."""
    try:
        if titles is not None:
            for low in range(0, len(titles), _NAMES):
                titles.of(np.arange(low, min(low + _NAMES, len(titles))))
    except Damaged:
        yield TITLES_DATA, "titles cannot be read"
