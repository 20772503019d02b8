"""Formats: how to recognize each from its content, and its reader.

The first entry of :data:`FORMATS` whose sign matches applies. It has a reader (see
``io/readers/contract.py``) or, for unsupported formats, advice for the error. All other input is
text. ``--input-format`` selects a reader by its name, ``called``.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from cocite.errors import UnrecognizedInput, UsageError
from cocite.io.readers import signs
from cocite.io.readers.contract import FormatReader, ReadOptions
from cocite.io.readers.crawl.sitemap import is_list
from cocite.io.readers.html.site import folder_kind, is_vault
from cocite.io.readers.imports import is_code
from cocite.io.readers.signs import Sign, begins, begun, each, has_line, json_value, rooted, tagged
from cocite.io.readers.sources import Source, parts_in
from cocite.storage import kind_of


@dataclass(frozen=True)
class Format:
    """A format: its name in messages, its sign, and its reader, or advice if it has none.

    In the advice, ``{file}`` is the file, ``{content}`` a command that prints it, and ``{ingest}``
    a command that reads standard input. A format that is not ``sure`` applies only if no option
    describes the rows. ``called`` is the reader's name for ``--input-format``; several formats may
    share a reader.
    """

    name: str
    sign: Sign
    advice: str = ""
    reader: str = ""
    sure: bool = True
    called: str = ""


TEXT = "cocite.io.readers.text:READER"
"""The reader for all other input."""

_ROWS = "Write its links as rows of source and target, separated by tabs"
_PAJEK = (
    _ROWS + ", for example with NetworkX: nx.write_edgelist(nx.read_pajek({python}), 'links.tsv', "
    "delimiter='\\t', data=False)"
)
_NAMED = "Pass it as a database: cocite ingest --database {file} --table links -o DIR"
_RECODE = "cocite reads UTF-8. Convert it first, for example with: "
_NO_LINKS = "It is not an edge list"
_WORKS = (
    "It lists works without their citations. cocite reads those, by DOI, from OpenAlex, Crossref "
    "and Semantic Scholar (docs/how-to/citations.md)"
)


def _read(called: str, name: str, sign: Sign, reader: str, sure: bool = True) -> Format:
    """Return a format; ``reader`` is MODULE or MODULE:NAME, with the module in this folder."""
    reader = reader if ":" in reader else reader + ":READER"
    return Format(name, sign, "", f"cocite.io.readers.{reader}", sure, called)


PARQUET = _read("parquet", "Parquet", begins(b"PAR1"), "parquet")
_FOLDERS = (
    _read("html", "a folder of HTML pages", lambda beginning: False, "html.reader"),
    _read("notes", "a folder of Markdown notes", lambda beginning: False, "notes.reader"),
    _read("code", "a folder of source code", lambda beginning: False, "imports"),
)
"""Folder formats, recognized by the files in a folder (:func:`folder_format`)."""

FORMATS: tuple[Format, ...] = (
    PARQUET,
    *_FOLDERS,
    # -- by name
    _read("bvgraph", "a BVGraph", signs.webgraph, "bvgraph"),
    _read("common-crawl", "a Common Crawl web graph", signs.common_crawl, "adjacency"),
    _read("warc", "a web archive", signs.warc, "crawl.warc"),
    _read("mediawiki", "a MediaWiki dump", signs.wiki, "wiki"),
    # -- bytes
    _read("spreadsheet", "a spreadsheet", signs.spreadsheet, "spreadsheet"),
    _read("archive", "a zip archive", signs.zip_archive, "html.reader:ARCHIVE_READER"),
    _read("archive", "a tar archive", signs.tar, "html.reader:ARCHIVE_READER"),
    Format(
        "packed by 7z, rar, lz4, compress or lzip",
        begins(
            *(b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x04\x22\x4d\x18", b"\x1f\x9d", b"LZIP"),
            words=True,
        ),
        "Unpack it, and pass the files with links",
    ),
    Format("an SQLite database", begins(b"SQLite format 3\0"), _NAMED),
    Format("a DuckDB database", begins(b"DUCK", at=8, words=True), _NAMED),
    Format(
        "an Arrow, ORC, Avro or HDF5 table",
        begins(b"ARROW1", b"FEA1", b"ORC", b"Obj\x01", b"\x89HDF\r\n\x1a\n", words=True),
        "Write it as Parquet or CSV",
    ),
    Format(
        "Python or MATLAB data",
        begins(
            *(b"\x80%c" % n for n in range(2, 6)),
            *(b"\x93NUMPY", b"MATLAB 5.0 MAT-file"),
            words=True,
        ),
        _ROWS,
    ),
    Format("a PDF", begun(r"%pdf-|%!ps", table=True), _NO_LINKS),
    Format(
        "an image",
        begins(
            *(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"RIFF"),
            words=True,
        ),
        _NO_LINKS,
    ),
    Format(
        "text with columns separated by characters of code 1",
        signs.hive,
        "Replace them with tabs: {content} | tr '\\001' '\\t' | {ingest}",
    ),
    Format("binary data", signs.binary, _NO_LINKS + " in text"),
    Format(
        "text in an encoding other than UTF-8",
        signs.other_text,
        _RECODE + "{content} | iconv -f WINDOWS-1252 -t UTF-8 | {ingest}",
    ),
    # -- text
    _read("graphml", "GraphML", tagged("graphml"), "graphs.xml"),
    _read("gexf", "GEXF", tagged("gexf"), "graphs.xml:GEXF_READER"),
    Format(
        "a dump of a wiki's texts (XML)",
        tagged("mediawiki"),
        "Its links are in other files of the dump: page, pagelinks, linktarget and redirect "
        "(.sql.gz)",
    ),
    Format("an HTML page", signs.html, "To read the links of a site's pages, pass their folder"),
    _read("sitemap", "a sitemap", tagged("urlset", "sitemapindex"), "crawl.fetch"),
    _read("rdf", "RDF (XML)", rooted("RDF"), "graphs.rdf"),
    Format("XML", tagged(), _ROWS),
    _read("packages", "a package lock file", signs.lock, "packages"),
    _read(
        "node-link", "JSON of nodes and links", signs.node_link, "graphs.json_text:NODE_LINK_READER"
    ),
    _read("json-lines", "JSON lines", signs.json_rows, "graphs.json_text:LINES_READER"),
    Format("JSON", json_value, _ROWS + ", for example with jq and its @tsv"),
    _read("gml", "GML", signs.gml, "graphs.gml"),
    _read("matrix-market", "Matrix Market", begun("%%matrixmarket", table=True), "matrix_market"),
    Format(
        "Pajek",
        has_line(r"\*(?:vertices\s+\d.*|network\b[^\t]*|arcs|edges|arcslist|edgeslist|matrix)"),
        _PAJEK,
    ),
    Format(
        "Graphviz (DOT)",
        has_line(
            r'(?:strict\s+)?(?:di)?graph(?:\s+(?:"[^"]*"|\w+))?\s*\{(?:.*(?:--|->|;|\[).*)?',
            first=5,
        ),
        _ROWS + """, for example with gvpr 'E { printf("%s\\t%s\\n", tail.name, head.name) }'""",
    ),
    Format(
        "a DIMACS, GDF, graph6 or UCINET graph",
        begun(
            r"(?:c\b[^\n]*\n)*p\s+(?:sp|edge|col|max|min)\s+\d+\s+\d+|nodedef>"
            r"|>>(?:di)?(?:graph|sparse)6<<|dl\s+n\w?\s*=\s*\d+"
        ),
        _ROWS,
    ),
    _read("rdf", "RDF", signs.rdf, "graphs.rdf"),
    Format(
        "SQL",
        has_line(r"(?:create table|insert into) [^\t]*\(.*|drop table if exists [^\t]*;"),
        "Load it into a database, and print its table of links as rows",
    ),
    # -- works
    Format(
        "BibTeX",
        has_line(
            r"@(?:string|preamble|comment)\s*[{(][^\t]*|@[a-z]+\s*[{(]\s*[^\s,{}()\"]+\s*,[^\t]*"
            r"|@(?:article|book|misc|in\w+|phdthesis|techreport|online)\s*[{(]\s*"
        ),
        _WORKS,
    ),
    Format(
        "a list of works (RIS, EndNote, MEDLINE, Web of Science)",
        begun(
            r"TY  ?- ?[A-Z]{2,6}\n|%0 [A-Z][\w ]+\n%\w |PMID ?- ?\d+\n"
            r"|FN (?:Clarivate|ISI|Thomson)"
        ),
        _WORKS,
    ),
    # -- not tables
    Format(
        "a diagram (Mermaid, PlantUML)",
        begun(r"(?:graph|flowchart) (?:TD|TB|LR|RL|BT)\b|\w+Diagram\b|@start\w+\n"),
        _ROWS,
    ),
    Format(
        "a yarn or pnpm lock file",
        begun(r"(?:#[^\n]*\n)*# yarn lockfile|__metadata:\nversion:|lockfileVersion: "),
        "cocite reads package-lock.json, which npm install --package-lock-only writes",
    ),
    Format("a Bundler lock file", begun(r"(?:GEM|GIT|PATH)\nremote: "), _ROWS),
    Format(
        "a list of modules (go.sum)",
        each(r"\S+ v\S+ h1:\S+="),
        "List the dependencies with Go: go mod graph | {ingest}",
    ),
    *(
        Format(name, sign, _NO_LINKS)
        for name, sign in (
            ("a certificate or key (PEM)", begun(r"-----BEGIN [A-Z0-9 ]+-----\n")),
            ("a contacts or calendar file (vCard, iCalendar)", begun(r"BEGIN:V[A-Z]+\n")),
            ("a diff", has_line(r"diff --git \S.*|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")),
            ("a Git log", begun(r"commit [0-9a-f]{40}\b")),
            ("a subtitle file", begun(r"WEBVTT\b|\d+\n\d\d:\d\d:\d\d[,.]\d+ -->")),
            ("a variant file (VCF, GFF)", begun(r"##(?:fileformat|gff-version)\b", table=True)),
            ("a script", begun(r"#! ?/\S*bin/", table=True)),
            ("LaTeX", begun(r"\\(?:document(?:class|style)|usepackage|begin|section|chapter)\b")),
        )
    ),
    Format(
        "a log",
        each(r"(?:\w{3} +\d+ |\[?\d{4}[-/]\d\d[-/]\d\d[T ])\d\d:\d\d:\d\d(?:[.,]\d+)?.*? \S+ .*"),
        _NO_LINKS + ". If its rows are links after all, choose the separator: --delimiter",
        sure=False,
    ),
    _read("sitemap", "a list of URLs", is_list, "crawl.fetch", sure=False),
    _read(
        "adjacency",
        "an adjacency list",
        lambda beginning: signs.separator(beginning) != "",
        "adjacency:ADJACENCY_READER",
        sure=False,
    ),
)


def readers() -> dict[str, str]:
    """Map reader names to MODULE:NAME, in the order of detection."""
    return {line.called: line.reader for line in FORMATS if line.reader} | {"text": TEXT}


def reader_of(source: Source, options: ReadOptions, wanted: int = 2) -> FormatReader:
    """Return the reader for ``source`` (``wanted``: 2 for links, 1 for node names).

    Raises :class:`UnrecognizedInput` for unsupported content, and :class:`UsageError` for an
    unknown reader.
    """
    key = options.input_format, options.delimiter, options.columns_named, wanted
    known = source.reader or source.readers.get(key)
    if known is None:
        known = source.readers[key] = _found(source, options, wanted)
    return cast(FormatReader, known)


def _found(source: Source, options: ReadOptions, wanted: int) -> FormatReader:
    named = readers()
    if options.input_format not in ("auto", *named):
        raise UsageError(
            f"input_format is {options.input_format!r}; it must be one of auto, " + ", ".join(named)
        )
    if source.is_directory:
        return _of_directory(source, options)
    beginning = source.beginning()
    if options.input_format != "auto":
        return _streamed(source, reader_at(named[options.input_format]))
    delimited = wanted == 1 or options.delimiter != "auto" or bool(options.columns_named)
    lines = (line for line in FORMATS if line.sure or not delimited)
    found = next((line for line in lines if line.sign(beginning)), None)
    if found is None:
        return reader_at(TEXT)
    if found.reader:
        return _streamed(source, reader_at(found.reader))
    source.close()
    raise UnrecognizedInput(
        f"{source.label} is {found.name}{_packed(source)}, which cocite does not read. "
        + _filled(found.advice, source)
    )


def format_of(source: Source) -> Format | None:
    """Return the format of an input, or None if it is uncertain or text."""
    beginning = source.beginning()
    return next((line for line in FORMATS if line.sure and line.sign(beginning)), None)


def folder_format(folder: Path) -> str:
    """Return the name of a folder's reader (code, html or notes), or ""."""
    if not is_vault(folder) and is_code(folder):
        return "code"
    return folder_kind(folder)


def holds_links(folder: Path) -> bool:
    """Return whether a folder has a reader, or consists of parts of a table."""
    return bool(folder_format(folder) or parts_in(folder))


def _streamed(source: Source, reader: FormatReader) -> FormatReader:
    """Return the reader; raise an error if it cannot read ``source`` as a stream."""
    packed = source.packed
    if reader.streams or not (source.is_pipe or packed):
        return reader
    source.close()
    if not packed:
        raise UnrecognizedInput(
            f"{source.label} is {reader.title}, which cannot be read as a stream: pass the file "
            "itself"
        )
    raise UnrecognizedInput(
        f"{source.label} is {reader.title}{_packed(source)}, which must be unpacked first: "
        f"{source.printed_by} > unpacked"
    )


def _packed(source: Source) -> str:
    packed = source.beginning().packed
    return f" (packed by {packed})" if packed else ""


def reader_at(place: str) -> FormatReader:
    """Return the reader at ``module:name``."""
    module, _, name = place.partition(":")
    return cast(FormatReader, getattr(import_module(module), name))


def _filled(advice: str, source: Source) -> str:
    """Insert a source's file and commands into advice."""
    file = "FILE" if source.path is None else str(source.path)
    commands = {
        "{file}": file if source.path is None else shlex.quote(file),
        "{python}": repr(file),
        "{content}": source.printed_by,
        "{ingest}": "cocite ingest - -o DIR",
    }
    for mark, command in commands.items():
        advice = advice.replace(mark, command)
    return advice


def _of_directory(source: Source, options: ReadOptions) -> FormatReader:
    path = source.path
    assert path is not None
    kind = kind_of(path)
    if kind == "graph":
        raise UnrecognizedInput(
            f"{path} is already a stored graph. Index it (cocite index {path} -o DIR) or query it "
            f"(cocite related {path} PAGE). To create a graph without some of its pages, use "
            f"cocite ingest {path} -o DIR --exclude-nodes FILE"
        )
    if kind is not None:
        raise UnrecognizedInput(
            f"{path} is a stored cocite {kind}. Query it: cocite related {path} PAGE"
        )
    called = folder_format(path) if options.input_format == "auto" else options.input_format
    found = next((each for each in _FOLDERS if each.called == called), None)
    if found is not None:
        return reader_at(found.reader)
    raise UnrecognizedInput(
        f"{path} is a directory without HTML pages or notes; pass its edge lists, such as "
        f"'{path}/*'"
    )
