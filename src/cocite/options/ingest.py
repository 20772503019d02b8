"""Options of ingest: reading links, and storing the graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.options import Options, option


@dataclass(frozen=True)
class ReadingOptions(Options):
    """Options for reading links, in ``cocite ingest`` and all commands that accept links."""

    input_format: str = option(
        "auto", "The format of LINKS. --help-all lists the names.", metavar="NAME"
    )
    sheet: str = option(
        "",
        "The sheet of a spreadsheet that holds the links.",
        metavar="NAME",
        unset="the only one with rows",
    )
    delimiter: str = option(
        "auto",
        "The character between columns of a text file; space means a run of blanks.",
        choices=("auto", "tab", "comma", "semicolon", "pipe", "space"),
    )
    header: str = option(
        "auto", "Whether the first row names the columns.", choices=("auto", "yes", "no")
    )
    columns: Any = option(
        (),
        "The source and target columns, by name or by number (from 1).",
        metavar="SOURCE,TARGET",
        unset="columns named like source and target, or from and to; otherwise 1,2",
    )
    weight_column: str | int | None = option(
        None,
        "The column of link weights: numbers from 1e-30 to below 1e30, stored as float32. "
        "Weights of duplicate links are added.",
        metavar="TITLE|NUMBER",
        unset="none",
    )
    count_duplicates: bool = option(
        False, "Weight each link by the number of its occurrences.", unset="links have no weights"
    )
    comment: str = option(
        "#",
        'The character that begins a comment line; "" for no comments.',
        metavar="CHAR",
    )
    undirected: bool = option(False, "Store every link in both directions.")
    sides: Any = option(
        None,
        "The names of the two sides of a --bipartite table.",
        metavar="SOURCE,TARGET",
        unset="user,item",
    )
    keep_self_loops: bool = option(False, "Keep links from a node to itself.")
    bad_rows: str = option(
        "stop",
        "How to handle malformed rows. stop: fail at the first one. few: skip and count up to half "
        "of a file's rows. all: skip and count any number.",
        choices=("stop", "few", "all"),
    )
    links: str = option(
        "all",
        "Which links of HTML pages count. main ignores navigation: elements such as nav, "
        "everything outside main, and links to pages that 9 in 10 pages link to.",
        choices=("all", "main"),
    )
    link_tags: Any = option(
        ("a", "area", "frame"), "The HTML elements that count as links.", metavar="TAG,..."
    )
    site: str | None = option(
        None,
        "The URL at which a folder of HTML pages is published. Links with this URL lead into "
        "the folder.",
        metavar="URL",
        unset="the URL that its canonical links agree on",
    )
    ignore_canonical: bool = option(
        False, "Do not merge pages that declare another page as canonical."
    )
    keep_external: bool = option(
        False,
        "Add link targets outside the folder as nodes: pages of other sites, by URL; for source "
        "code, external imports.",
    )
    tags: bool = option(
        False,
        "Add the tags of Markdown notes as nodes, such as #birds, with a link from each note.",
    )
    namespaces: Any = option(
        (0,),
        "The namespaces of a MediaWiki dump whose pages are nodes, such as 0,14 for articles and "
        "categories.",
        metavar="NUMBER,...",
    )
    predicate: str | None = option(
        None,
        "The RDF predicate whose triples are links: its IRI, or the part of its IRI after the last "
        "/ or #, such as P31.",
        metavar="IRI",
        unset="all",
    )
    pages: Any = option(
        None,
        "Keep only the pages listed in this sitemap or list of URLs, for folders of HTML pages "
        "and web archives.",
        metavar="FILE",
    )
    normalize_urls: bool = option(
        False,
        "Normalize names that are URLs, so that all URLs of a page become one node: normalize "
        "host, port, dots and escapes; remove fragments and tracking parameters.",
    )


@dataclass(frozen=True)
class IngestOptions(ReadingOptions):
    """Options of ``cocite ingest``."""

    fetch: bool = option(
        False,
        "Fetch the pages listed in a sitemap or list of URLs, if robots.txt allows, with one "
        "request at a time to each host.",
    )
    delay: float = option(
        1.0, "Seconds between two requests to a host.", low=0, high=3600, metavar="SECONDS"
    )
    report: Any = option(
        None,
        "Write broken links of HTML pages and notes, and ambiguous links of notes, to this .tsv "
        "or .csv file. --overwrite replaces it.",
        metavar="FILE",
    )
    sql: str | None = option(
        None,
        "Read links from the result of this query instead of LINKS. It runs in --database, or in "
        "DuckDB, which can read files: \"select src, dst from 'clicks.parquet'\".",
        metavar="QUERY",
    )
    database: Any = option(
        None,
        "Read links from this SQLite or DuckDB file, or from postgres://USER@HOST/DATABASE, "
        "instead of LINKS: the result of --sql, or --table.",
        metavar="FILE|ADDRESS",
    )
    table: str | None = option(
        None,
        "The table of --database that holds the links.",
        metavar="NAME",
        unset="its only table",
    )
    nodes: Any = option(
        None,
        "A file with node names in its first column, to include nodes without links; in Python "
        "also a list of names. Repeatable.",
        kind=str,
        many=True,
        metavar="FILE",
    )
    titles: Any = option(
        None,
        "A table of names and titles, to show titles beside names: text with tabs or commas, "
        "Parquet, or a database table, such as 'sqlite:///site.db#pages'; in Python also a "
        "dictionary, series, pairs or data frame. Repeatable.",
        kind=str,
        many=True,
        metavar="FILE|DATABASE#TABLE",
    )
    title_columns: Any = option(
        (),
        "The columns of --titles, by name or by number (from 1).",
        metavar="NAME,TITLE",
        unset="columns named like these; otherwise 1,2",
    )
    bipartite: bool = option(
        False,
        "The two columns of LINKS hold two kinds of nodes, users and items. Only nodes of the "
        "same kind are compared. Items keep their names; users are named user:NAME.",
    )
    exclude_nodes: Any = option(
        None,
        "Remove the nodes named in this file, one per line, and all their links; useful for hubs. "
        "- reads standard input. LINKS may then be a stored graph, which is copied without these "
        "nodes.",
        kind=Path,
        metavar="FILE|-",
    )
    partitions: int | None = option(
        None,
        "Store the graph in this many partitions, one directory each, for cocite index and "
        "cocite rank with --cluster when no machine can hold the whole graph. LINKS may then be "
        "a stored graph.",
        low=1,
        high=1024,
        metavar="COUNT",
        unset="none",
    )
    overwrite: bool = option(
        False,
        "Replace an existing graph once the new one is complete. Its directory must hold nothing "
        "else.",
    )
