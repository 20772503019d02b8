"""One-call queries: related nodes, similarities and reasons, from any source of links.

Unless the input is an index, each call builds one in temporary directories, and then deletes it.
"""

from __future__ import annotations

import os
from typing import Any

from cocite.errors import UsageError
from cocite.io.opening import open_graph
from cocite.options.ingest import IngestOptions
from cocite.options.query import DEFAULT_K, DEFAULT_REASONS
from cocite.progress import shows
from cocite.search import Index, build, open_index
from cocite.search.explainer import Why
from cocite.search.hits import Hits, Score
from cocite.storage import kind_of


@shows("relating a node")
def related(
    links: Any,
    node: object,
    k: int = DEFAULT_K,
    *,
    measure: str | None = None,
    side: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Hits:
    """Return the nodes most related to ``node`` in an index, a graph, or any source of links.

    Parameters
    ----------
    links
        An index or a graph, opened or as a path; or any input of :func:`cocite.ingest`: edge lists,
        pairs, an array, a table, a sparse matrix, or another library's graph. Unless ``links`` is
        an index, each call builds one. For several queries, build the index once: ``index =
        cocite.build(cocite.ingest(links))``.
    node, k
        As for :meth:`Index.related`.
    measure
        Measure of the index to build, by default ``fusion``. Not allowed with an index.
    side
        Side of ``node`` in a bipartite graph, such as ``"user"``. By default, ``node`` is on the
        right side (the items), unless its name is of the form ``"user:NAME"``.
    memory, threads
        By default half of the available memory, and all cores.
    options
        Options of :func:`cocite.ingest`, such as ``columns`` or ``bipartite``, and of
        :meth:`Index.related`, such as ``prefix`` or ``min_score``.

    Raises
    ------
    UnknownNode, UsageError, InputError, ResourceError, StoreError
    """
    index, options = _opened(links, measure, memory, threads, options)
    return index.related(_named(index, side, node), k, **options)


@shows("comparing two nodes")
def similarity(
    links: Any,
    a: object,
    b: object,
    *,
    side: str | None = None,
    measure: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Score:
    """Return the similarity of two nodes in an index, a graph, or any source of links.

    ``links``, ``side``, ``measure``, ``memory`` and ``threads`` are as for :func:`related`; ``a``,
    ``b`` and other options, such as ``refine``, as for :meth:`Index.similarity`.
    """
    index, options = _opened(links, measure, memory, threads, options)
    return index.similarity(_named(index, side, a), _named(index, side, b), **options)


@shows("comparing two nodes")
def why(
    links: Any,
    a: object,
    b: object,
    k: int = DEFAULT_REASONS,
    *,
    side: str | None = None,
    measure: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Why:
    """Return the pages that make two nodes similar, from an index or any source of links.

    ``links``, ``side``, ``measure``, ``memory`` and ``threads`` are as for :func:`related`; ``a``,
    ``b``, ``k`` and other options as for :meth:`Index.why`.
    """
    index, options = _opened(links, measure, memory, threads, options)
    return index.why(_named(index, side, a), _named(index, side, b), k, **options)


def _named(index: Index, side: str | None, node: object) -> object:
    """Return the stored name of a node, or of a list of nodes, on ``side``."""
    if side is None:
        return node
    sides = index.nodes.sides
    if sides is None:
        raise UsageError("the graph is not bipartite: omit side")
    if isinstance(node, list):
        return [_named(index, side, each) for each in node]
    # Names on the right side have no prefix, and may be of any type.
    return sides.name(side, str(node)) if sides.named(side).start == 0 else node


def _opened(
    links: Any,
    measure: str | None,
    memory: str | int | None,
    threads: int | None,
    given: dict[str, Any],
) -> tuple[Index, dict[str, Any]]:
    """Return the index of ``links``, built if necessary, and the options for queries."""
    reading = {name: given[name] for name in IngestOptions.declared() if name in given}
    options = {name: value for name, value in given.items() if name not in reading}
    stored = isinstance(links, str | os.PathLike) and kind_of(os.fspath(links)) == "index"
    if not stored and not isinstance(links, Index):
        graph = open_graph(links, memory=memory, threads=threads, **reading)
        return build(graph, measure=measure, memory=memory, threads=threads), options
    if measure is not None:
        raise UsageError(
            "an index has a measure of its own: omit measure, or pass the graph instead of the "
            "index"
        )
    if reading:
        raise UsageError(
            "the input is an index, so options for reading links do not apply: omit "
            + " and ".join(reading)
        )
    return open_index(links, memory=memory, threads=threads) if stored else links, options
