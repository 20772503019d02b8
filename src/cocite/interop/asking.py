"""Related pages, similarities and reasons in one call, of whatever holds links.

What is no index is made one: in temporary directories, by the default measure, and forgotten. Who
asks more than once keeps the index.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from cocite.graph import Graph
from cocite.query import Index, build, open_index
from cocite.query.hits import Hits
from cocite.query.scores import Score
from cocite.query.why import Why
from cocite.store import kind_of

__all__ = ["related", "similarity", "why"]


def related(
    links: Any,
    node: object,
    k: int = 20,
    *,
    measure: str | None = None,
    columns: Sequence[str | int] = (),
    weight_column: str | int | None = None,
    undirected: bool = False,
    bipartite: bool = False,
    sides: str | Sequence[str] | None = None,
    skip_bad_rows: bool | str = False,
    titles: Any = None,
    title_columns: Sequence[str | int] = (),
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Hits:
    """The nodes most related to ``node``, of links in memory or anywhere.

    Parameters
    ----------
    links
        An index, opened or as a path; a graph, likewise; or what :func:`cocite.ingest` takes: files
        of links, pairs, an array, a table, a sparse matrix, a graph of another library. Of all but
        an index one is built for this question: to ask several, build it once
        (``index = cocite.build(cocite.ingest(links))``).
    node, k
        As for :meth:`Index.related`.
    measure
        What the index is made of, by default ``neighbourhood``; an index has one.
    columns, weight_column, undirected, bipartite, sides, skip_bad_rows, titles, title_columns
        As for :func:`cocite.ingest`, of what it takes. Of what is ``bipartite`` an item is asked
        for by its name, a user as ``"user:NAME"``.
    memory, threads
        By default half of the memory that is available, and all cores.
    options
        What else :meth:`Index.related` takes, such as ``prefix`` or ``min_score``.

    Returns
    -------
    Hits
        A list, and a table.

    Raises
    ------
    UnknownNode, UsageError, InputError, ResourceError, StoreError
    """
    of_links = {
        "columns": columns,
        "weight_column": weight_column,
        "undirected": undirected,
        "bipartite": bipartite,
        "sides": sides,
        "skip_bad_rows": skip_bad_rows,
        "titles": titles,
        "title_columns": title_columns,
    }
    return _index(links, measure, memory, threads, of_links).related(node, k, **options)


def similarity(
    links: Any,
    a: object,
    b: object,
    *,
    measure: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Score:
    """How similar two nodes are, by links in memory or anywhere.

    Parameters
    ----------
    links, measure, memory, threads
        As for :func:`related`.
    a, b
        As for :meth:`Index.similarity`.
    options
        Of the links what :func:`related` takes, such as ``columns`` or ``bipartite``, and what else
        :meth:`Index.similarity` takes, such as ``refine``.

    Returns
    -------
    Score

    Raises
    ------
    UnknownNode, UsageError, InputError, ResourceError, StoreError
    """
    of_links = _of_links(options)
    return _index(links, measure, memory, threads, of_links).similarity(a, b, **options)


def why(
    links: Any,
    a: object,
    b: object,
    k: int = 10,
    *,
    measure: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Why:
    """Which pages make two nodes similar, by links in memory or anywhere.

    Parameters
    ----------
    links, measure, memory, threads
        As for :func:`related`.
    a, b, k
        As for :meth:`Index.why`.
    options
        Of the links what :func:`related` takes, such as ``columns`` or ``bipartite``, and what else
        :meth:`Index.why` takes.

    Returns
    -------
    Why

    Raises
    ------
    UnknownNode, UsageError, InputError, ResourceError, StoreError
    """
    of_links = _of_links(options)
    return _index(links, measure, memory, threads, of_links).why(a, b, k, **options)


_OF_LINKS = (
    *("columns", "weight_column", "undirected", "bipartite", "sides", "skip_bad_rows"),
    *("titles", "title_columns"),
)


def _of_links(options: dict[str, Any]) -> dict[str, Any]:
    """What is said of the links, taken out of the options."""
    return {name: options.pop(name) for name in _OF_LINKS if name in options}


def _index(
    links: Any,
    measure: str | None,
    memory: str | int | None,
    threads: int | None,
    of_links: dict[str, Any],
) -> Index:
    """What answers: the index itself, or one that is made of what is no index."""
    from cocite.errors import UsageError

    path = isinstance(links, str | os.PathLike)
    kind = kind_of(links) if path else None
    said = any(  # a table is not compared: it would answer cell by cell
        value is not None and value is not False and not (isinstance(value, tuple) and not value)
        for value in of_links.values()
    )
    if (isinstance(links, Index | Graph) or kind is not None) and said:
        *others, last = _OF_LINKS
        raise UsageError(
            f"{', '.join(others)} and {last} are for links that are not stored yet: leave them out"
        )
    if isinstance(links, Index) or kind == "index":
        if measure is not None:
            raise UsageError("an index has its measure: leave it out, or give the graph")
        found: Index = open_index(links, memory=memory, threads=threads) if path else links
        return found
    graph = links
    if not (isinstance(links, Graph) or kind is not None):
        from cocite.graph.ingest import ingest

        graph = ingest(links, memory=memory, threads=threads, **of_links)
    return build(graph, measure=measure, memory=memory, threads=threads)
