"""Related pages, similarities and reasons in one call, from any source of links.

Input other than an index is indexed in temporary directories, by the default measure, and
discarded. Build an index to ask several questions.
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
    """Return the nodes most related to ``node``, from links in memory or in any source.

    Parameters
    ----------
    links
        An index or a graph, opened or as a path; or any input of :func:`cocite.ingest`: edge lists,
        pairs, an array, a table, a sparse matrix, a graph of another library. Without an index, one
        is built for this question. To ask several questions, build it once: ``index =
        cocite.build(cocite.ingest(links))``.
    node, k
        As for :meth:`Index.related`.
    measure
        The measure of the index to build, by default ``fusion``. A given index has its own.
    side
        In a bipartite graph, the side of ``node``, such as ``"user"``; by default the right side,
        the items, unless ``node`` is named ``"user:NAME"``.
    memory, threads
        By default half of the memory that is available, and all cores.
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
    """Return how similar two nodes are, from links in memory or in any source.

    Arguments are those of :func:`related`; ``a``, ``b`` and other options, such as ``refine``,
    those of :meth:`Index.similarity`.
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
    """Return which pages make two nodes similar, from links in memory or in any source.

    Arguments are those of :func:`related`; ``a``, ``b``, ``k`` and other options those of
    :meth:`Index.why`.
    """
    index, options = _opened(links, measure, memory, threads, options)
    return index.why(_named(index, side, a), _named(index, side, b), k, **options)


def _named(index: Index, side: str | None, node: object) -> object:
    """Return a node of a side, or several, by stored name."""
    if side is None:
        return node
    sides = index.nodes.sides
    if sides is None:
        raise UsageError("the graph is not bipartite: omit side")
    if isinstance(node, list):
        return [_named(index, side, each) for each in node]
    # The right side keeps its names as they are, whatever their type.
    return sides.name(side, str(node)) if sides.named(side).start == 0 else node


def _opened(
    links: Any,
    measure: str | None,
    memory: str | int | None,
    threads: int | None,
    given: dict[str, Any],
) -> tuple[Index, dict[str, Any]]:
    """Return the given index, or one made from the input, and the options that are not for the
    links.
    """
    reading = {name: given[name] for name in IngestOptions.declared() if name in given}
    options = {name: value for name, value in given.items() if name not in reading}
    stored = isinstance(links, str | os.PathLike) and kind_of(os.fspath(links)) == "index"
    if not stored and not isinstance(links, Index):
        graph = open_graph(links, memory=memory, threads=threads, **reading)
        return build(graph, measure=measure, memory=memory, threads=threads), options
    if measure is not None:
        raise UsageError("an index has its measure: omit it, or give the graph")
    if reading:
        raise UsageError(
            f"{' and '.join(reading)}: such options are for links that are not stored yet. Omit "
            "them"
        )
    return open_index(links, memory=memory, threads=threads) if stored else links, options
