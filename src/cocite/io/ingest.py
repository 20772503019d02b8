"""Ingest: read links from files, databases or memory, and store them as a graph.

    sources -> read and clean -> load -> number the names -> sort by (destination, source)
            -> drop duplicates -> write

This module selects the sources and checks the options; ``io/pipeline.py`` does the rest. Readers
(``io/readers/``) parse and validate; DuckDB (``io/tables.py``) sorts and joins within the memory
limit.

For m links, ingest takes O(m log m) time, and temporary disk space next to the output: about twice
the decompressed input. The fast path for integers (``io/integers.py``) takes O(m) time and no disk
space.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cocite.errors import UsageError
from cocite.graph.exclude import checked_names, leave_out
from cocite.graph.graph import Graph
from cocite.graph.partitions import BlockedGraph
from cocite.graph.spelling import trimmed
from cocite.io.objects import links_of, split_objects
from cocite.io.pipeline import database_in, only_path, place_for, store
from cocite.io.readers.contract import Progress, ReadOptions, no_progress
from cocite.io.readers.sql import SqlSource
from cocite.io.remote import Sending, is_url
from cocite.options import accepts
from cocite.options.ingest import IngestOptions
from cocite.progress import shows
from cocite.resources import Resources, database_memory
from cocite.storage import Store, kind_of
from cocite.storage.atomic import staged_folder
from cocite.storage.staging import Staging

_OF_STORED = ("exclude_nodes", "overwrite")
_OF_OBJECTS = (
    *("columns", "weight_column", "count_duplicates", "undirected", "sides", "keep_self_loops"),
    *("bad_rows", "nodes", "titles", "title_columns", "bipartite", "partitions", *_OF_STORED),
)
_OF_QUERIES = (*_OF_OBJECTS, "normalize_urls", "sql", "database", "table")


@shows("reading links")
@accepts(IngestOptions)
def ingest(
    inputs: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
    options: IngestOptions | None = None,
    **given: Any,
) -> Graph:
    """Read links and store them as a graph.

    Parameters
    ----------
    inputs
        What to read; omitted with ``sql`` or ``database``. One of:

        - Files, globs, or ``-`` for standard input, plain or compressed with gzip, bzip2, xz or
          Zstandard. The format is detected from content and file extension.
        - A folder of HTML pages (or a tar or zip archive of one), of notes, of source code, or of
          the parts of a table.
        - Links in memory: pairs, triples with a weight, an array of two or three columns, a pandas,
          polars or Arrow table, a sparse matrix (``nodes`` has the names of its rows), or a
          NetworkX or igraph graph (``weight_column`` is its weight attribute). Node names may be
          any hashable values.
        - A database, as for ``database``.
        - With ``exclude_nodes`` or ``partitions``, also a single stored graph.
    output
        The directory to create, or a URL that fsspec supports (``io/remote.py``); the graph is
        uploaded once complete. The default is a temporary directory, deleted with the last object
        that uses it.
    memory
        Bytes, or text such as ``"4GB"``; by default half of the available memory.
    threads
        Threads for sorting and joining; by default all cores.
    progress
        Called with (stage, done, total).
    options, given
        The options below, as one object or by name.
    {options}

    Returns
    -------
    Graph
        The stored graph, opened. With ``partitions``, it is a
        :class:`~cocite.graph.partitions.BlockedGraph`.

    Raises
    ------
    UnrecognizedInput
        If an input is empty, ambiguous, or in an unsupported format. The message suggests a fix.
    MalformedRow, InputError
        If the input is invalid. Partial output is deleted.
    OutputExists, Busy, ResourceError, UsageError
    """
    options = IngestOptions.of(options, given)
    resources = Resources.checked(threads, memory)
    if is_url(output):
        sending = Sending(output, "graph", options.overwrite)
        here = replace(options, overwrite=True)
        means = {"memory": resources.total, "threads": resources.threads}
        ingest(inputs, sending.path, **means, progress=progress, options=here)
        return Graph.open(sending.send())
    if options.partitions is not None:
        return _ingest_partitions(inputs, output, options, resources, progress)
    names = checked_names(options.exclude_nodes)
    if names is not None:
        return _ingest_rest(inputs, output, options, resources, names, progress)
    links = _links(inputs, options, resources.memory)
    return Graph(store(links, output, options, resources, progress))


def _ingest_rest(
    inputs: Any,
    output: str | os.PathLike[str] | None,
    options: IngestOptions,
    resources: Resources,
    names: tuple[str, ...],
    progress: Progress,
) -> Graph:
    """Store a graph without the nodes ``names``; input other than a graph is stored first."""
    with ExitStack() as stack:
        whole = _stored_graph(inputs)
        if whole is not None:
            what = f"{whole.path} is a stored graph: pages can be excluded from it, but options "
            _refuse_others(options, _OF_STORED, what + "for reading links do not apply. Omit {}")
        else:
            names = tuple(map(ReadOptions.checked(options).called, map(trimmed, names)))
            place = None
            if output is not None:
                with Staging(os.fspath(output), "graph", overwrite=options.overwrite):
                    pass  # refuse an existing output before reading links
                beside = staged_folder(Path(os.fspath(output) + ".whole"))
                place = stack.enter_context(beside) / "graph"
            links = _links(inputs, options, resources.memory)
            whole = Graph(store(links, place, options, resources, progress))
        home, path = place_for(output, 2 * whole.store.nbytes, resources.memory)
        leave_out(whole, str(path), names, overwrite=options.overwrite, progress=progress)
    return Graph(replace(Store.open(path, "graph"), home=home, labels=whole.store.labels))


def _links(inputs: Any, options: IngestOptions, memory: int) -> Any:
    """Return file names, a query, or links in memory; raises :class:`UsageError`."""
    named = options.database
    if named is None and (named := database_in(inputs)):
        inputs = None
    if (options.sql, named, options.table) != (None, None, None):
        if inputs is not None:
            raise UsageError(
                "links come either from files or from a database (--sql, --database): omit one of "
                'the two. A query can read files itself, as in --sql "select src, dst from '
                "'a.parquet'\""
            )
        source = SqlSource.checked(options.sql, named, options.table, database_memory(memory))
        what = "{} applies to files only: omit it for a database"
        _refuse_others(options, _OF_QUERIES, what)
        return source
    in_memory, inputs = split_objects(inputs)
    if not in_memory:
        return inputs
    _refuse_others(options, _OF_OBJECTS, "{} applies to files only: omit it for links in memory")
    return links_of(inputs, options)


def _ingest_partitions(
    inputs: Any,
    output: str | os.PathLike[str] | None,
    options: IngestOptions,
    resources: Resources,
    progress: Progress = no_progress,
) -> BlockedGraph:
    """Store a partitioned graph in the folder ``output``."""
    if output is None:
        raise UsageError("partitions are stored in a folder: pass a folder as the output")
    from cocite.io.partitions import check_output, split

    path, blocks = check_output(output, options.overwrite), options.partitions or 1
    with ExitStack() as stack:
        graph = None if options.exclude_nodes is not None else _stored_graph(inputs)
        if graph is not None:
            what = f"{graph.path} is a stored graph, which is split unchanged: omit {{}}"
            _refuse_others(options, ("partitions", "overwrite"), what)
        else:
            folder = stack.enter_context(staged_folder(Path(os.fspath(path) + ".whole")))
            whole = replace(options, partitions=None, overwrite=False)
            given = {"memory": resources.total, "threads": resources.threads, "progress": progress}
            graph = ingest(inputs, folder / path.name, options=whole, **given)
        cutting = partial(progress, "cutting")
        split(graph, path, blocks, overwrite=options.overwrite, progress=cutting)
    return BlockedGraph.open(path)


def _refuse_others(options: IngestOptions, taken: Iterable[str], message: str) -> None:
    """Raise :class:`UsageError` if an option other than ``taken`` was changed."""
    others = [name for name in options.changed() if name not in taken]
    if others:
        raise UsageError(message.format(", ".join(others)))


def _stored_graph(inputs: Any) -> Graph | None:
    """Return the stored graph if that is the only input, else None."""
    path = only_path(inputs)
    return Graph.open(path) if path is not None and kind_of(path) == "graph" else None
