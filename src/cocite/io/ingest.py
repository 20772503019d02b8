"""Ingest: files of links, queries, or links in memory, to a stored graph.

    sources -> read and clean -> load -> number the names -> sort by (destination, source)
            -> drop duplicates -> write

A file, a query (``io/readers/sql.py``) and an object in memory (``io/objects.py``) are all sources
with a reader. Reading and checking are the readers' (``io/readers/``, ``io/pipeline.py``),
everything between is DuckDB's (``io/tables.py``), out of core under the memory given: one way for
all of them (``io/store.py``). Here the arguments of :func:`cocite.ingest` become its options.

Cost: O(m log m) time, and temporary disk beside the output of about twice the unpacked input; the
faster path O(m) and none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cocite.errors import UsageError
from cocite.graph.exclude import leave_out
from cocite.graph.excluded import checked_names
from cocite.graph.graph import HUBS_LOG, Graph, hubs_in_words
from cocite.graph.sides import checked_sides
from cocite.io.object_kinds import TableRequest, links_of, split_objects
from cocite.io.pipeline import Query, database_in, numbers_of, refuse_given, split, weight_of
from cocite.io.publish import sent
from cocite.io.readers import PageOptions, ReadOptions
from cocite.io.readers.contract import Progress, no_progress
from cocite.io.store import StoreRequest, place_for, store, store_object
from cocite.resources import Resources, database_memory
from cocite.storage import Store, kind_of

_log = logging.getLogger(HUBS_LOG)


@sent("graph", Graph.open)
def ingest(
    inputs: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    sql: str | None = None,
    database: str | None = None,
    table: str | None = None,
    format: str = "auto",
    nodes: Any = None,
    titles: Any = None,
    title_columns: str | Iterable[str | int] = (),
    delimiter: str = "auto",
    header: str = "auto",
    columns: str | Iterable[str | int] = (),
    weight_column: str | int | None = None,
    count_duplicates: bool = False,
    comment: str = "#",
    undirected: bool = False,
    keep_self_loops: bool = False,
    skip_bad_rows: bool | str = False,
    links: str = "all",
    link_tags: str | Iterable[str] = ("a", "area", "frame"),
    site: str | None = None,
    ignore_canonical: bool = False,
    keep_external: bool = False,
    namespaces: str | Iterable[str | int] = (0,),
    sheet: str = "",
    normalize_urls: bool = False,
    pages: str | os.PathLike[str] | None = None,
    fetch: bool = False,
    delay: float = 1.0,
    report: str | os.PathLike[str] | None = None,
    exclude: Iterable[object] | None = None,
    bipartite: bool = False,
    sides: str | Iterable[str] | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> Graph:
    """Read links and store them as a graph.

    Parameters
    ----------
    inputs
        Files, globs, or ``-`` for standard input, plain or packed by gzip, bzip2, xz or Zstandard,
        told apart by what they hold and are called; or a folder of HTML pages, or a tar or zip
        archive of one. Or, together with
        ``exclude``, a stored graph, as the only one. Or what is in memory: pairs, an array, a table
        of pandas, polars or Arrow (:meth:`Graph.from_edges`), a sparse matrix, a graph of NetworkX
        or igraph. Or a database, named as for ``database``.
        Not needed with ``sql`` or ``database``.
    output
        The directory to make, or a URL that fsspec writes, where the graph comes when it is whole
        (``io/publish.py``). By default a temporary one, which goes with the last object that
        was made of it.
    sql
        A query that gives links, in the place of ``inputs``: of ``database``, or of DuckDB, which
        reads files itself, ``"select src, dst from 'clicks.parquet'"``.
    database
        A file of SQLite or DuckDB, or an address: ``sqlite:///FILE``, ``duckdb:///FILE``,
        ``postgres://USER@HOST/DATABASE``, with ``#TABLE`` behind it or not. It is only read.
    table
        The table of ``database`` that holds links, unless ``sql`` asks for them; by default its
        only one. ``columns`` and ``weight_column`` name its columns.
    format
        ``"auto"``, or what the inputs are, such as ``"text"`` or ``"graphml"``: a name of
        ``cocite ingest --from``, which :func:`cocite.io.readers.readers` returns, too.
    nodes
        Files whose first column names nodes, so that nodes without any link exist too; of what is
        in memory a list of names.
    titles
        Tables of names and titles, to be shown beside names: text (plain or packed), Parquet, or
        tables of a database, ``"sqlite:///FILE#TABLE"`` (``io/readers/titles.py``). Or
        what is in memory: a dictionary, a series, pairs, or a table of pandas, polars or Arrow. Of
        several titles of a node the first one is taken; those of names that no node has are
        counted.
    title_columns
        The columns of name and title in these, as titles or numbers from 1; by default those whose
        titles say so, such as ``name`` and ``title``, else the first two.
    delimiter
        Between columns: ``"tab"``, ``"comma"``, ``"semicolon"``, ``"pipe"``, ``"space"`` (runs of
        blanks), or ``"auto"``: found out from the first rows.
    header
        Whether the first row holds titles: ``"yes"``, ``"no"`` or ``"auto"``.
    columns
        The two columns of a link, source then target, as titles or numbers from 1, such as
        ``"from,to"`` or ``(2, 1)``; by default those whose titles say so, such as ``source`` and
        ``target`` (``io/readers/dialect.py``), else the first two.
    weight_column
        The column of the links' weights, as a title or a number from 1; by default all links count
        the same. Weights are numbers from 1e-30 to below 1e30, stored as float32; those of a link
        that is there several times are added.
    count_duplicates
        Give every link as its weight how often it is there, which is as a weight of 1 in every row;
        not together with ``weight_column``, whose weights are added anyway.
    comment
        The character that begins a comment line, ``""`` for none.
    undirected
        Store every link both ways, with its weight.
    keep_self_loops
        Keep links from a node to itself; by default they are dropped and counted.
    skip_bad_rows
        Leave malformed rows out and count them, instead of raising, if they are at most half of an
        input; ``"all"``: however many they are.
    links
        Of HTML pages: ``"all"`` links, or ``"main"``, without navigation: what stands in elements
        such as ``nav``, or beside ``main``, and links to pages that 9 in 10 pages link to.
    link_tags
        What counts as a link on an HTML page: some of ``"a"``, ``"area"`` and ``"frame"``.
    site
        The URL at which a folder of HTML pages is published, so that links by it are links inside;
        by default what the canonical links of its pages agree on.
    ignore_canonical
        Keep pages apart that say they are copies of another one, by a canonical link or by sending
        browsers there; by default they are that other page.
    keep_external
        Keep the pages outside of the folder to which its pages link, named by their URLs.
    sheet
        Of a spreadsheet: the sheet that holds the links; by default the only one with rows.
    namespaces
        Of a dump of MediaWiki: the numbers of the namespaces whose pages are nodes, such as
        ``"0,14"`` for articles and categories.
    normalize_urls
        Write names that are URLs of http and https in one way (``io/readers/contract.py``), so that
        those of one page are one node.
    pages
        A sitemap, or a list of URLs, one a line: of a folder of HTML pages or a web archive, those
        that it names are the nodes, and the links among them are read.
    fetch
        Fetch the pages that a sitemap or a list of URLs, as the input, names.
    delay
        Seconds between two requests to a host.
    report
        A file for the links that lead nowhere, a row each; replaced with ``overwrite``.
    exclude
        Names of pages that are left out, with all links to and from them, such as hubs. Other pages
        stay, even those that only these were linked with. Names of no page are counted, of which
        the logger ``cocite`` warns.
    bipartite
        The two columns are two kinds of nodes, such as users and items: each has names of its own,
        so that 1 and 1 are two nodes, and only nodes of one side are compared. Targets are called
        as they are; sources have a mark before their names, ``user:1`` (``graph/sides.py``).
        ``nodes``, ``titles`` and ``exclude`` name both sides so.
    sides
        What the two sides of a bipartite table are called, by default ``"user,item"``.
    memory
        Bytes, or text such as ``"4GB"``; by default half of what is available.
    threads
        For sorting and joining; by default all cores.
    overwrite
        Replace ``output`` if it is a store; the old one stays until the new one is whole.
    progress
        Called with (stage, done, total).

    Returns
    -------
    Graph
        The stored graph, opened.

    Raises
    ------
    UnrecognizedInput
        An input is of another format, or empty, or could be read in several ways: the message says
        what it is, and what to do.
    MalformedRow, InputError
        The input is not as it should be; nothing is left behind.
    OutputExists, Busy, ResourceError, UsageError
    """
    resources, two = Resources.checked(threads, memory), checked_sides(bipartite, sides)
    if database is None and (named := database_in(inputs)):
        database, inputs = named, None
    of_files = {
        "format": (format, "auto"),
        "delimiter": (delimiter, "auto"),
        "header": (header, "auto"),
        "comment": (comment, "#"),
        "site": (site or "", ""),
        "report": (os.fspath(report or ""), ""),
    }
    query = Query(sql, database, table).source(inputs, database_memory(resources.memory), of_files)
    in_memory, inputs = (False, query) if query else split_objects(inputs)
    if in_memory:
        of_files |= {
            "links": (links, "all"),
            "normalize_urls": ("yes" * normalize_urls, ""),
            "pages": (os.fspath(pages or ""), ""),
            "fetch": ("yes" * fetch, ""),
        }
        refuse_given("what is in memory", of_files)
        ends = tuple(columns.split(",") if isinstance(columns, str) else columns)
        given = links_of(inputs, TableRequest(ends, weight_column, nodes, two).checked())
        kept = store_object(
            given,
            output,
            undirected=undirected,
            keep_self_loops=keep_self_loops,
            count_duplicates=count_duplicates,
            skip_bad_rows=skip_bad_rows,
            resources=resources,
            overwrite=overwrite,
            progress=progress,
            exclude=exclude,
            titles=titles,
            title_columns=title_columns,
            sides=two,
        )
        return _made(kept)
    chosen, weight = split(columns), weight_of(weight_column, count_duplicates)
    if len(chosen) not in (0, 2):
        raise UsageError(
            f"columns is {','.join(chosen)}; it takes two, source and target, as in 1,2"
        )
    of_pages = PageOptions(
        *(links, split(link_tags), site or "", not ignore_canonical, keep_external),
        *(os.fspath(pages or ""), fetch, delay),
    )
    options = ReadOptions(
        *(delimiter, header, chosen, comment, skip_bad_rows, weight, format, undirected),
        *(of_pages, numbers_of(namespaces), normalize_urls, sheet, two),
        *(keep_self_loops, count_duplicates),
    )
    names = checked_names(exclude)
    stored = None if query else _stored_graph(inputs)
    if stored is not None and names is not None:
        if nodes is not None or titles is not None or options != ReadOptions():
            raise UsageError(
                f"{stored.path} is a stored graph, whose links are read as they are: pages can be "
                "left out of it, and nothing else chosen"
            )
        home, place = place_for(output, 2 * stored.store.nbytes, resources.memory)
        leave_out(stored, str(place), names, overwrite=overwrite, progress=progress)
        return _made(replace(Store.open(place, "graph"), home=home))
    request = StoreRequest.checked(
        (inputs, nodes),
        options,
        names,
        titles=titles,
        title_columns=title_columns,
        memory=resources.memory,
    )
    return _made(store(request, (output, overwrite), resources, progress, os.fspath(report or "")))


def _stored_graph(inputs: Any) -> Graph | None:
    """The stored graph that is named, alone, in the place of files of links."""
    named = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if len(named) == 1 and kind_of(os.fspath(named[0])) == "graph":
        return Graph.open(named[0])
    return None


def _made(stored: Store) -> Graph:
    """The graph that was made; what is to be known of its hubs is logged."""
    graph = Graph(stored)
    if graph.hubs:
        _log.info(
            f"{hubs_in_words(graph.hubs, graph.nodes)}: what is linked with so many tells little "
            "of any. To leave such pages out: --exclude-nodes FILE, their names one a line "
            "(exclude=); to weigh them: --hubs idf of psimrank and simrank. The default measure "
            "counts them less by itself"
        )
    return graph
