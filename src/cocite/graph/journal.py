"""Log of links that a server has accepted, but that its index does not include yet.

A record holds the links of one request in JSON: ``["a", "b"]`` or, with a weight, ``["a", "b",
2.5]``. Existing links are never added again, whatever their weight, so replaying a record is
harmless. A link leaves the log only once the graph contains it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cocite.errors import Damaged
from cocite.graph.graph import Graph
from cocite.storage.records import RecordLog


class PostedLink(NamedTuple):
    """A link between two names. Unweighted graphs ignore the weight."""

    source: str
    target: str
    weight: float = 1.0


def journal_of(index: str | os.PathLike[str]) -> Path:
    """Return the path of an index's link log."""
    return Path(os.path.abspath(index) + ".links")


def encoded_links(links: Iterable[PostedLink]) -> bytes:
    """Encode links as a record."""
    rows = [link[:2] if link.weight == 1 else link for link in links]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def decoded_links(path: Path, record: bytes) -> list[PostedLink]:
    """Decode a record; raises :class:`~cocite.errors.Damaged`."""
    try:
        return [PostedLink(str(a), str(b), *map(float, rest)) for a, b, *rest in json.loads(record)]
    except (ValueError, TypeError) as error:
        raise Damaged(f"{path} holds a record that is not a list of links: {error}") from error


def has_link(graph: Graph, link: PostedLink) -> bool:
    """Return whether the graph has ``link`` or ignores it as a self-loop."""
    if link.source == link.target and not graph.store.facts["self_loops_kept"]:
        return True
    names = graph.names.stored
    source, target = names.find(link.source), names.find(link.target)
    if source is None or target is None:
        return False
    row = graph.in_neighbors(target)
    place = int(np.searchsorted(row, source))
    return place < row.size and int(row[place]) == source


def posted_links(index: str | os.PathLike[str], graph: Graph) -> list[PostedLink]:
    """Return the distinct links in an index's log that ``graph`` lacks."""
    path = journal_of(index)
    links = (link for each in RecordLog(path).records() for link in decoded_links(path, each))
    found: dict[object, PostedLink] = {}
    for link in links:
        if not has_link(graph, link):
            both = graph.store.facts["undirected"]
            found.setdefault(frozenset(link[:2]) if both else link[:2], link)
    return list(found.values())


def drop_links(index: str | os.PathLike[str], graph: Graph) -> int:
    """Remove links that ``graph`` contains from an index's log; return how many remain."""
    path, left = journal_of(index), 0

    def without(records: list[bytes]) -> list[bytes]:
        nonlocal left
        kept = [
            [link for link in decoded_links(path, each) if not has_link(graph, link)]
            for each in records
        ]
        left = len({link[:2] for links in kept for link in links})
        return [encoded_links(links) for links in kept if links]

    RecordLog(path).rewrite(without)
    return left
