"""Adjacency lists, and Common Crawl's web graphs of hosts and domains.

    Zebra: Lion Horse   0 1 2 3   a,b,c     a node per row, then its targets, separated by tabs,
                                            commas, semicolons or blanks
    0   com.example   (17)                  *vertices*.txt.gz: id, name with its labels reversed
    0   1                                   *edges*.txt.gz: ids of source and target

A node alone on a row has no links. Undirected lists that contain each link once require
``--undirected``. Adjacency lists take a microsecond per name. For web graphs, the vertex file is
next to the edge file, and ``com.example`` becomes ``example.com``. Reading edges takes as long as
reading text, plus a join. https://commoncrawl.org/web-graphs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cocite.errors import InputError, MalformedRow
from cocite.io.readers import signs
from cocite.io.readers.contract import (
    DELIMITERS,
    FormatReader,
    Found,
    Job,
    Read,
    ReadOptions,
    text_lines,
)
from cocite.io.readers.rows import LinkWriter
from cocite.io.readers.sources import Source
from cocite.io.readers.text import TextInput, load_text

_LONGEST = 1 << 28


def _read_lists(job: Job) -> Read:
    """Read all links, and each row's first name as a node."""
    by = _separator(job)
    with LinkWriter(job) as out:
        for line, names in _rows(job, by):
            if job.wanted == 1:
                for name in names:
                    out.nodes.add((name,), line)
                continue
            out.nodes.add(names[:1], line)
            for name in names[1:]:
                out.links.add((names[0], name), line)
        return out.finish(ADJACENCY_READER.title, "each row links its first node to the others")


ADJACENCY_READER = FormatReader(
    "an adjacency list",
    "a node per row, followed by its targets (a: b c, or a b c, separated by tabs, commas, "
    "semicolons or blanks); lists of undirected graphs need --undirected",
    _read_lists,
    weights=False,
)


def _separator(job: Job) -> str:
    if job.options.delimiter != "auto":
        return DELIMITERS[job.options.delimiter]
    beginning = job.source.beginning()
    rows = "".join(beginning.rows)
    return signs.separator(beginning) or next((by for by in signs.SEPARATORS if by in rows), " ")


def _rows(job: Job, by: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, names) for each row; skip blank lines and comments."""
    for line, text in text_lines(job, _LONGEST, "row"):
        if text.startswith(("%", job.options.comment or "%")):
            continue
        names = [name.strip() for name in text.split(None if by == " " else by)]
        if len(names) > 1 and not names[-1]:
            names.pop()  # rows may end with a separator
        if len(names[0]) > 1:
            names[0] = names[0].removesuffix(":")
        yield line, names


# -- common crawl ------------------------------------------------------------------------


_NAME = "array_to_string(list_reverse(string_split(b::VARCHAR, '.')), '.')"


_WITHOUT_TITLES = ReadOptions(delimiter="tab", header="no", columns=("1", "2"), comment="")


def _read_crawl(job: Job) -> Read:
    """Read an edge file as links between names, or a vertex file as nodes only."""
    nodes = "SELECT name AS a FROM reading.vertices"
    if _is_vertices(job.source):
        _load_vertices(job, [job.source])
        found = Found(job.source.label, integers=False, format=READER.title, note="vertices")
        return Read("SELECT name AS a, name AS b FROM reading.vertices LIMIT 0", found, nodes)
    _load_vertices(job, _vertices_of(job))
    edges = _load(job, job.source, "edges")
    found = edges.read_as(READER.title, "named by the vertices file next to it")
    found.integers = False
    known = "(SELECT id FROM reading.vertices)"
    lost = f"a::UBIGINT NOT IN {known} OR b::UBIGINT NOT IN {known}"
    query = f"SELECT rowid + 1, a, b FROM reading.edges WHERE {lost} ORDER BY rowid LIMIT 1"
    for row, a, b in job.run(query):
        what = "a link to or from a missing vertex"
        raise MalformedRow(
            job.source.label, int(row), what, f"{a} -> {b}", "Are both files from the same graph?"
        )
    rows = (
        "SELECT s.name AS a, t.name AS b FROM reading.edges e JOIN reading.vertices s ON s.id "
        "= e.a::UBIGINT JOIN reading.vertices t ON t.id = e.b::UBIGINT"
    )
    return Read(rows, found, nodes)


READER = FormatReader(
    "a Common Crawl web graph",
    "a Common Crawl web graph: pass edges.txt.gz, with vertices.txt.gz next to it; com.example "
    "becomes example.com",
    _read_crawl,
    weights=False,
)


def _load_vertices(job: Job, sources: list[Source]) -> None:
    job.database.execute("CREATE TABLE reading.vertices (id UBIGINT, name VARCHAR)")
    for source in sources:
        _load(job, source, "raw")
        bad = "SELECT rowid + 1, a FROM reading.raw WHERE TRY_CAST(a AS UBIGINT) IS NULL LIMIT 1"
        for row, name in job.run(bad):
            what = "the id of a vertex is not a whole number"
            raise MalformedRow(source.label, int(row), what, str(name))
        job.database.execute(
            f"INSERT INTO reading.vertices SELECT a::UBIGINT, {_NAME} FROM reading.raw"
        )
        job.database.execute("DROP TABLE reading.raw")
    twice = "SELECT id FROM reading.vertices GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1"
    for (vertex,) in job.run(twice):
        raise InputError(
            f"{sources[0].label} has vertex {vertex} more than once: pass the files of a single "
            "graph"
        )


def _is_vertices(source: Source) -> bool:
    return source.path is not None and "vertices" in source.path.name


def _vertices_of(job: Job) -> list[Source]:
    """Return the vertex files among the inputs, or else the one next to the edge file."""
    named = [Source(source.path) for source in job.inputs if _is_vertices(source)]
    if named:
        return named
    path = job.source.path
    beside = None if path is None else path.with_name(path.name.replace("edges", "vertices"))
    if beside is None or beside == path or not beside.is_file():
        raise InputError(
            f"there is no vertices file next to {job.source.label}. Pass both files: cocite "
            "ingest VERTICES EDGES -o DIR"
        )
    return [Source(Path(beside))]


def _load(job: Job, source: Source, table: str) -> TextInput:
    """Load a file's first two columns into a table of the schema ``reading``."""
    skip = job.options.bad_rows if table == "edges" else "stop"
    alone = replace(job, wanted=2, options=replace(_WITHOUT_TITLES, bad_rows=skip))
    read = load_text(alone, source, table)
    if table == "edges" and not read.integers:
        raise InputError(f"{source.label} contains vertex ids that are not whole numbers")
    return read
