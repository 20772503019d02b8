"""Hubs: pages that link to more than a fifth of all pages, or that as many link to.

An index page, a sitemap, a page that each page names at its foot: whatever is linked with all says
little of any, and may still be what most answers come of. So they are named when a graph is made
and when an index is, to be weighed or left out (``exclude.py``).

    v is a hub  if  its in-links or its out-links are more than nodes / 5,
                    LEAST at least, and twice as many as a page has on average

The second keeps quiet about small graphs, where a fifth is a handful of pages; the third about
dense ones, where all pages are linked with most.

Cost: a pass over the degrees, and a name a hub.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.graph.names import Names
from cocite.store import forget

__all__ = ["HUBS_LOG", "LEAST", "Hub", "hubs_in_words", "hubs_of"]

HUBS_LOG = "cocite.hubs"
"""The logger that tells of the hubs of a graph that is made."""
LEAST = 50
"""Links that a hub has at least."""
_SHARE = 5
"""One of so many pages is the share that a hub has more than."""
_NAMED = 3
"""So many are named in a sentence."""
_PIECE = 1 << 20
"""Nodes that are looked at at a time."""


class Hub(NamedTuple):
    """A page with its links: how many pages link to it, and how many it links to."""

    node: str
    in_links: int
    out_links: int


def hubs_of(
    in_offsets: NDArray[np.uint64], out_degrees: NDArray[np.uint32], names: Names
) -> tuple[Hub, ...]:
    """The hubs of a graph, those with the most links in one direction first, then by id.

    ``in_offsets`` is uint64[nodes + 1], ``out_degrees`` uint32[nodes], as a graph has them.
    """
    nodes = out_degrees.size
    least = max(LEAST, 2 * int(in_offsets[-1]) / max(1, nodes))
    found = []
    for low in range(0, nodes, _PIECE):
        outs = out_degrees[low : low + _PIECE].astype(np.int64)
        ins = np.diff(in_offsets[low : low + _PIECE + 1]).astype(np.int64)
        most = np.maximum(ins, outs)
        for at in np.flatnonzero((most * _SHARE > nodes) & (most >= least)).tolist():
            found.append((-int(most[at]), low + at, int(ins[at]), int(outs[at])))
        forget(in_offsets, out_degrees)
    found.sort()
    called = names.names(np.array([node for _, node, _, _ in found], np.int64))
    return tuple(
        Hub(name, into, out) for name, (_, _, into, out) in zip(called, found, strict=True)
    )


def hubs_in_words(hubs: Sequence[Hub], nodes: int) -> str:
    """``x links to 900 of the 1,000 pages, 300 link to y``: a few by name, the others counted."""
    said: list[str] = []
    for hub in hubs[:_NAMED]:
        of = "" if said else f" of the {nodes:,} pages"
        if hub.out_links >= hub.in_links:
            said.append(f"{hub.node} links to {hub.out_links:,}{of}")
        else:
            said.append(f"{hub.in_links:,}{of} link to {hub.node}")
    if len(hubs) > _NAMED:
        more = len(hubs) - _NAMED
        what = "more pages are" if more > 1 else "more page is"
        said.append(f"and {more:,} {what} linked with more than a fifth")
    return ", ".join(said)
