"""Opening an index from Python."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from cocite.index import StoredIndex
from cocite.resources import Resources
from cocite.search.index import Index
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.search.remote.replicas import OnCluster
    from cocite.search.source import GivenGraph


DEFAULT_DEADLINE = 0.2
"""Seconds that remote samples have to answer."""
_COMPARED = 4 << 20
"""Bytes of an index that are compared with their checksums when it is opened: less than 1 ms."""


def open_index(
    path: str | os.PathLike[str],
    *,
    graph: GivenGraph = None,
    threads: int | None = None,
    memory: str | int | None = None,
    verify: bool = True,
    cluster: str | OnCluster | None = None,
    shards: int | None = None,
    replicas: int = 1,
    deadline: float = DEFAULT_DEADLINE,
) -> Index:
    """Open an index.

    ``path`` is the directory of an index. Or it is a stored graph, or a file of links: the default
    index of it is then built, and cached until the graph or the file changes
    (``search/cache.py``). To choose the measure and the settings, :func:`build` it.

    Refined answers, and some reasons, also read the graph it was built from, which is looked for
    where it was then, as seen from the index; ``graph`` says where it is now (of an index that was
    refreshed there may be several). What they make of it takes ``threads`` at most, and ``memory``:
    by default all cores, and half of what is available now.

    A question reads a few cache lines of each sample, so that comparing all files with their
    checksums would take many times as long as answering it. Those of 4 MiB in all, the smallest
    first, are compared when the index is opened, of a small index all; the others by
    :meth:`Index.related_all`, which reads them anyway, and by ``cocite verify``. ``verify=False``
    leaves both out.

    With a ``cluster`` (``local:N`` for N nodes on this machine, ``HOST:PORT``, ``auto``) its
    samples answer from there, in so many ``shards``, two a node by default, each on ``replicas``
    nodes, all of which see ``path``. An answer is made of what has come by the ``deadline``, in
    seconds, and :attr:`~cocite.Index.answered` says of how many samples.
    Close it (``with``, ``close()``) when done.

    Raises
    ------
    UsageError, NotAStore, WrongFormat, Damaged
    """
    held = None
    if cluster is None and kind_of(os.fspath(path)) != "index":
        from cocite.search.cache import find_or_make, is_links

        source = os.fspath(path)
        if kind_of(source) == "graph" or (isinstance(source, str) and is_links(source)):
            found = find_or_make(source, threads=threads, memory=memory)
            path, graph, held = found.index, graph or found.graph, found.temporary
    stored = StoredIndex.open(path, verify=verify).validated(_COMPARED)
    if held is not None:  # a temporary index goes with the last object that was made of it
        stored = type(stored)(replace(stored.store, home=held))
    means = Resources.checked(threads, memory)
    if cluster is not None:
        from cocite.search.remote.replicas import open_spread

        return open_spread(stored, means, graph, cluster, shards, replicas, deadline)
    return Index(stored, means, graph)
