"""Related pages in one call, of whatever holds links.

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
from cocite.store import kind_of

__all__ = ["related"]


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
    from cocite.errors import UsageError

    path = isinstance(links, str | os.PathLike)
    kind = kind_of(links) if path else None
    made = [columns or None, weight_column, undirected or None, skip_bad_rows or None]
    made += [titles, title_columns or None, bipartite or None, sides]
    stored = isinstance(links, Index | Graph) or kind is not None
    if stored and any(option is not None for option in made):
        raise UsageError(
            "columns, weight_column, undirected, bipartite, sides, skip_bad_rows, titles and "
            "title_columns are for links that are not stored yet: leave them out"
        )
    if isinstance(links, Index) or kind == "index":
        if measure is not None:
            raise UsageError("an index has its measure: leave it out, or give the graph")
        index = open_index(links, memory=memory, threads=threads) if path else links
        return index.related(node, k, **options)
    graph = links
    if not stored:
        from cocite.graph.ingest import ingest

        graph = ingest(
            links,
            columns=columns,
            weight_column=weight_column,
            undirected=undirected,
            bipartite=bipartite,
            sides=sides,
            skip_bad_rows=skip_bad_rows,
            titles=titles,
            title_columns=title_columns,
            memory=memory,
            threads=threads,
        )
    index = build(graph, measure=measure, memory=memory, threads=threads)
    return index.related(node, k, **options)
