"""Options of ingest: how links are read, and how the graph is stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.options import Options, option


@dataclass(frozen=True)
class ReadingOptions(Options):
    """How links are read: of ``cocite ingest``, and of all commands that take links directly."""

    input_format: str = option(
        "auto", "What LINKS are, by a name: --help-all lists them.", metavar="NAME"
    )
    sheet: str = option(
        "",
        "The sheet of a spreadsheet that holds the links.",
        metavar="NAME",
        unset="the only one with rows",
    )
    delimiter: str = option(
        "auto",
        "Between columns, in a text; space is a run of blanks.",
        choices=("auto", "tab", "comma", "semicolon", "pipe", "space"),
    )
    header: str = option(
        "auto", "Whether the first row names the columns.", choices=("auto", "yes", "no")
    )
    columns: Any = option(
        (),
        "The columns of source and target, by their names or by numbers from 1.",
        metavar="SOURCE,TARGET",
        unset="those whose names say so, such as source and target, or from and to; else 1,2",
    )
    weight_column: str | int | None = option(
        None,
        "The column of the links' weights, numbers from 1e-30 to below 1e30, stored as float32. "
        "Weights of duplicate links are added up.",
        metavar="TITLE|NUMBER",
        unset="none",
    )
    count_duplicates: bool = option(
        False, "Give every link as its weight how often it is there.", unset="links have no weights"
    )
    comment: str = option(
        "#",
        "The character that begins a comment line; empty if there are no comments.",
        metavar="CHAR",
    )
    undirected: bool = option(False, "Store every link in both directions.")
    sides: Any = option(
        None,
        "What the two kinds of a --bipartite table are called.",
        metavar="SOURCE,TARGET",
        unset="user,item",
    )
    keep_self_loops: bool = option(False, "Keep links from a node to itself.")
    bad_rows: str = option(
        "stop",
        "What becomes of malformed rows: stop at the first; leave them out and count them if they "
        "are few, half of a file at most; or all of them, however many they are.",
        choices=("stop", "few", "all"),
    )
    links: str = option(
        "all",
        "Of HTML pages: all links, or main, without the navigation that stands on every page: what "
        "stands in elements such as nav, or outside main, and links that 9 in 10 pages have.",
        choices=("all", "main"),
    )
    link_tags: Any = option(
        ("a", "area", "frame"), "What counts as a link, in HTML.", metavar="TAG,..."
    )
    site: str | None = option(
        None,
        "Where a folder of HTML pages is published, so that links by that URL lead into it.",
        metavar="URL",
        unset="what its canonical links agree on",
    )
    ignore_canonical: bool = option(
        False, "Keep copies of a page apart, though they say what page they are copies of."
    )
    keep_external: bool = option(
        False,
        "Keep the pages outside a folder that it links to, by their URLs; of source code what it "
        "imports from elsewhere.",
    )
    tags: bool = option(
        False, "Of Markdown notes: make their tags nodes, too, such as #birds, that notes link to."
    )
    namespaces: Any = option(
        (0,),
        "Namespaces of a wiki whose pages are nodes: of a dump of MediaWiki, such as 0,14 for "
        "articles and categories.",
        metavar="NUMBER,...",
    )
    predicate: str | None = option(
        None,
        "Of RDF: the predicate whose triples are links, by its IRI or by what stands behind the "
        "last / or # of it, such as P31.",
        metavar="IRI",
        unset="all",
    )
    pages: Any = option(
        None,
        "Take only the pages that this sitemap or list of URLs names: of a folder of HTML pages or "
        "a web archive.",
        metavar="FILE",
    )
    normalize_urls: bool = option(
        False,
        "Write names that are URLs in one way, so that those of one page are one node: host, port, "
        "dots, escapes, no fragment, no parameters of trackers.",
    )


@dataclass(frozen=True)
class IngestOptions(ReadingOptions):
    """What ``cocite ingest`` takes beside its inputs."""

    fetch: bool = option(
        False,
        "Fetch the pages that a sitemap or a list of URLs names: those that robots.txt allows, one "
        "at a time of each host.",
    )
    delay: float = option(
        1.0, "Seconds between two requests to a host.", low=0, high=3600, metavar="SECONDS"
    )
    report: Any = option(
        None,
        "List the links of HTML pages and notes that lead nowhere, and those of notes that could "
        "lead to several (.tsv or .csv); replaced with --overwrite.",
        metavar="FILE",
    )
    sql: str | None = option(
        None,
        "What a query gives, in the place of LINKS: of --database, or of DuckDB, which reads files "
        "by itself: \"select src, dst from 'clicks.parquet'\".",
        metavar="QUERY",
    )
    database: Any = option(
        None,
        "A file of SQLite or DuckDB, or postgres://USER@HOST/DATABASE, that is read in the place "
        "of LINKS: by --sql, or its --table.",
        metavar="FILE|ADDRESS",
    )
    table: str | None = option(
        None, "The table of --database that holds the links.", metavar="NAME", unset="its only one"
    )
    nodes: Any = option(
        None,
        "A file with names of nodes in its first column, to have nodes without links, too; of "
        "what is in memory a list of names. Repeatable.",
        kind=str,
        many=True,
        metavar="FILE",
    )
    titles: Any = option(
        None,
        "A table of names and titles, which are shown beside names: text with tabs or commas, "
        "Parquet, or a table of a database, such as 'sqlite:///site.db#pages'; of what is in "
        "memory a dictionary, a series, pairs or a data frame. Repeatable.",
        kind=str,
        many=True,
        metavar="FILE|DATABASE#TABLE",
    )
    title_columns: Any = option(
        (),
        "The columns of these, by their names or by numbers from 1.",
        metavar="NAME,TITLE",
        unset="those whose names say so; else 1,2",
    )
    bipartite: bool = option(
        False,
        "The two columns of LINKS are two kinds of nodes, users and items; only nodes of one kind "
        "are compared. Items keep their names, and a user is named user:NAME.",
    )
    exclude_nodes: Any = option(
        None,
        "Leave out the nodes that are named in this file, one a line, with all links to and from "
        "them: hubs that are linked with all, for one. - reads standard input. LINKS may be a "
        "stored graph then, of which one without them is made.",
        kind=Path,
        metavar="FILE|-",
    )
    partitions: int | None = option(
        None,
        "Store the graph in so many partitions, a directory each, for runs on a cluster of which "
        "no machine holds all: cocite index and cocite rank with --cluster. LINKS may be a stored "
        "graph, which is cut.",
        low=1,
        high=1024,
        metavar="COUNT",
        unset="in one piece",
    )
    overwrite: bool = option(
        False,
        "Replace an existing graph, if its directory holds nothing else. It stays until the new "
        "one is complete.",
    )
