"""Adjacency lists: a node a row, then those it links to.

    Zebra: Lion Horse          0 1 2 3          a,b,c

Between names stand tabs, commas, semicolons or blanks; behind the first one a colon may. A node
alone on its row is one without links to others. A list of a graph without direction names each
link once, as NetworkX writes it: that is ``--undirected``.

Cost: a microsecond a name; memory for one row.
"""

from __future__ import annotations

from collections.abc import Iterator

from cocite.errors import InputError
from cocite.graph.readers import signs
from cocite.graph.readers.clean import clean_relation, new_clean_file, relation_of
from cocite.graph.readers.options import DELIMITERS
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.rows import RowsFound, RowWriter
from cocite.graph.readers.sources import unpack_errors

__all__ = ["READER", "AdjacencyReader"]

_LONGEST = 1 << 28
_NODES = "nodes.tsv"


class AdjacencyReader:
    """Adjacency lists."""

    title = "an adjacency list"
    described = (
        "a node a row, then those it links to (a: b c, or a b c, between tabs, commas, semicolons "
        "or blanks); lists of graphs without direction need --undirected"
    )
    streams = True

    def read(self, job: Job) -> Read:
        """All links, and all nodes that begin a row."""
        if job.options.weight:
            raise InputError(
                f"{job.source.label} is an adjacency list, whose links have no weights. Leave "
                "--weight-column out"
            )
        by = _separator(job)
        with new_clean_file(job) as out, new_clean_file(job, _NODES) as other:
            links, nodes = RowWriter(job, out, job.wanted), RowWriter(job, other, 1)
            for line, names in _rows(job, by):
                nodes.add(names[:1], line)
                for name in names[1:]:
                    if job.wanted == 2:
                        links.add((names[0], name), line)
                    else:
                        links.add((name,), line)
            read, heads = links.finish(), nodes.finish()
        found = RowsFound.of(read, self.title, "each row links its first node to the others")
        found.integers = read.integers and heads.integers
        kind = "UBIGINT" if found.integers else "VARCHAR"
        rows = clean_relation(job, found.integers)
        named = relation_of(job, {"a": kind}, _NODES)
        if job.wanted == 1:
            found.rows += heads.rows
            return Read(f"{rows} UNION ALL {named}", found)
        return Read(rows, found, named)


READER = AdjacencyReader()


def _separator(job: Job) -> str:
    if job.options.delimiter != "auto":
        return DELIMITERS[job.options.delimiter]
    beginning = job.source.beginning()
    rows = "".join(beginning.rows)
    return signs.separator(beginning) or next((by for by in signs.SEPARATORS if by in rows), " ")


def _rows(job: Job, by: str) -> Iterator[tuple[int, list[str]]]:
    """(line, names) of each row that is neither blank nor a comment."""
    stream, raw = job.source.open()
    try:
        line = 0
        while data := stream.readline(_LONGEST):
            line += 1
            if line % 4096 == 0:
                job.progress("reading " + job.source.short, raw.tell(), job.source.nbytes)
            if len(data) == _LONGEST:
                raise InputError(
                    f"{job.source.label}:{line}: a row of more than {_LONGEST:,} bytes"
                )
            text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").strip()
            if not text or text.startswith(("%", job.options.comment or "%")):
                continue
            names = [name.strip() for name in text.split(None if by == " " else by)]
            if len(names) > 1 and not names[-1]:
                names.pop()  # as rows may end with what stands between names
            if len(names[0]) > 1:
                names[0] = names[0].removesuffix(":")
            yield line, names
    except unpack_errors() as error:
        raise InputError(f"{job.source.label} cannot be read to its end: {error}") from error
    finally:
        stream.close()
        raw.close()
