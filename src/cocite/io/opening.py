"""Open a graph from any source of links: a stored graph, files, or objects in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cocite.errors import UsageError
from cocite.graph.graph import Graph
from cocite.storage import kind_of


def open_graph(
    links: Any,
    *,
    verify: bool = True,
    memory: str | int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Graph:
    """Open a stored graph, or store links as a graph and open that.

    Parameters
    ----------
    links
        A graph; the path or URL of a stored graph; or any input of :func:`cocite.ingest`: files, a
        database, pairs, an array, a pandas, polars or Arrow table, a sparse matrix, or a NetworkX
        or igraph graph. Input that is not stored yet goes into a temporary directory, deleted with
        the last object that uses it.
    verify
        Verify the checksums of a stored graph before its first use.
    memory, threads
        By default half of the available memory, and all cores.
    options
        Other options of :func:`cocite.ingest`, for input that is not yet stored.

    Raises
    ------
    UsageError, InputError, ResourceError, StoreError
    """
    stored = isinstance(links, Graph) or _is_store(links)
    given = [name for name, value in options.items() if is_set(value)]
    if stored and given:
        raise UsageError(
            f"options for reading links do not apply to a stored graph; omit {' and '.join(given)}"
        )
    if isinstance(links, Graph):
        return links
    if stored:
        return Graph.open(links, verify=verify)
    from cocite.io.ingest import ingest  # loads the readers

    return ingest(links, memory=memory, threads=threads, **options)


def _is_store(links: Any) -> bool:
    """Return whether a path or URL must be opened as a store, even if that fails."""
    if not isinstance(links, str | os.PathLike):
        return False
    from cocite.io.database import is_address
    from cocite.io.readers.formats import holds_links
    from cocite.io.remote import is_url

    text = os.fspath(links)
    if is_url(text) or kind_of(text) is not None:
        return not is_address(text)
    return os.path.isdir(text) and not holds_links(Path(text))


def is_set(value: Any) -> bool:
    """Return whether an option was set, without comparing tables element by element."""
    return not (value is None or value is False or (isinstance(value, tuple) and not value))
