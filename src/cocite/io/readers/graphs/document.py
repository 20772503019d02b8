"""Graphs of nodes with ids and labels, and links between ids: what GraphML, GEXF, GML and node-link
JSON have in common.

A reader pushes nodes and links as it meets them, in any order, each with its line. They are written
to clean files, and DuckDB joins them, so that memory does not grow with the nodes.

Nodes are *named* by their labels where every node has one and no two have the same, as people look
for these; else by their ids, and labels are titles. A link without direction is two links. A link
to an id that no node has is malformed, unless there are no nodes at all.

Cost: some microseconds a node and link, and one join.
"""

from __future__ import annotations

import re
from typing import Self

from cocite.errors import InputError, MalformedRow
from cocite.graph.spelling import REFUSED
from cocite.io.readers.contract import Job, Read
from cocite.io.readers.rows import NODES, LinkWriter, RowsFound
from cocite.io.readers.text import TextInput, relation_of

_LONGEST = 65_535
_REFUSED = re.compile(f"[{REFUSED}]")
_BOTH = "links without direction are stored both ways"


class GraphWriter:
    """What a reader pushes nodes and links to; to be used as a context."""

    def __init__(self, job: Job, title: str) -> None:
        self._job, self._title = job, title
        self.weighted = bool(job.options.weight) and job.wanted == 2
        self._rows = LinkWriter(job, weighted=self.weighted, more=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._rows.__exit__(*error)

    def node(self, name: str, label: str | None, line: int) -> None:
        """A node by its id, and its label if it has one."""
        self._rows.nodes.add((name, _one_line(label), str(line)), line)

    def link(self, source: str, target: str, weight: str, both: bool, line: int) -> None:
        """A link between ids, with its weight if those are asked for; ``both`` ways or not."""
        if self._job.wanted == 2:
            ends = (source, target, weight) if self.weighted else (source, target)
            self._rows.links.add((*ends, str(int(both)), str(line)), line)

    def bad(self, kind: str, line: int, what: str, content: str) -> None:
        """What should be a node or a link, and is none."""
        rows = self._rows.nodes if kind == "node" else self._rows.links
        rows.leave_out(kind, line, what, content)

    def finish(self, *, all_both: bool = False) -> Read:
        """The relations; ``all_both`` if all links turned out to be without direction."""
        links, nodes = self._rows.close()
        integers = nodes.integers and links.integers
        self._load(integers)
        found = RowsFound.of(links, self._title)
        found.bad_rows, found.examples = dict(nodes.bad_rows), nodes.examples
        for kind, count in links.bad_rows.items():
            found.leave_out(kind, count, ())
        found.leave_out("", 0, links.examples)
        declared = nodes.rows > 0
        if declared:
            self._check_once(found)
            self._check_ends(found)
        by, why = self._naming(nodes) if declared else ("a", "")
        found.integers = self._name(by, integers) if declared else integers
        if why and self._job.wanted == 2:
            self._show_labels()
        return self._relations(found, declared, by, why, all_both)

    def _load(self, integers: bool) -> None:
        kind = "UBIGINT" if integers else "VARCHAR"
        columns = {"a": kind, "x": "VARCHAR", "p": "UBIGINT"}
        relation = relation_of(self._job, columns, NODES)
        self._job.run(f"CREATE TABLE reading.nodes AS {relation}")
        columns = {"a": kind, "b": kind} | ({"w": "DOUBLE"} if self.weighted else {})
        relation = relation_of(self._job, columns | {"two": "UTINYINT", "p": "UBIGINT"})
        self._job.run(f"CREATE TABLE reading.links AS {relation}")

    def _check_once(self, found: RowsFound) -> None:
        """See that no two nodes have one id; of those left out, the first stays."""
        later = (
            "SELECT rowid FROM (SELECT rowid, row_number() OVER (PARTITION BY a ORDER BY rowid) AS "
            "n FROM reading.nodes) WHERE n > 1"
        )
        query = f"SELECT p, a FROM reading.nodes WHERE rowid IN ({later}) ORDER BY rowid LIMIT 5"
        self._leave_out(found, "node again", query, "a node that is there before", "nodes", later)

    def _check_ends(self, found: RowsFound) -> None:
        """See that links are between nodes that there are."""
        lost = (
            "SELECT rowid FROM reading.links WHERE a NOT IN (SELECT a FROM reading.nodes) OR b NOT "
            "IN (SELECT a FROM reading.nodes)"
        )
        query = f"SELECT p, a, b FROM reading.links WHERE rowid IN ({lost}) ORDER BY rowid LIMIT 5"
        what = "a link to or from a node that is not there"
        found.rows -= self._leave_out(found, "unknown node", query, what, "links", lost)

    def _leave_out(
        self, found: RowsFound, kind: str, query: str, what: str, table: str, rows: str
    ) -> int:
        examples = self._job.run(query)
        if not examples:
            return 0
        place, *content = examples[0]
        if self._job.options.bad_rows == "stop":
            text = " -> ".join(map(str, content))
            raise MalformedRow(self._job.source.label, int(place), what, text)
        self._job.run(f"CREATE TABLE reading.out AS {rows}")
        self._job.run(f"DELETE FROM reading.{table} WHERE rowid IN (FROM reading.out)")
        count = self._job.count("SELECT count(*) FROM reading.out")
        self._job.run("DROP TABLE reading.out")
        shown = (f"line {p}: {what}: {' -> '.join(map(str, ends))!r}" for p, *ends in examples)
        found.leave_out(kind, count, shown)
        return count

    def _naming(self, nodes: TextInput) -> tuple[str, str]:
        """The column that names nodes, and why it is the id where there are labels."""
        query = (
            "SELECT count(*) FILTER (x != ''), count(DISTINCT x) FILTER (x != ''), "
            f"count(*) FILTER (strlen(x) > {_LONGEST}), count(*) FROM reading.nodes"
        )
        have, distinct, long, every = self._job.run(query)[0]
        if have == distinct == every and not long:
            return "x", ""
        if not have:
            return "a", ""
        if have < every:
            return "a", f"{every - have:,} of them have no label"
        if long:
            return "a", f"{long:,} labels are too long"
        return "a", f"several have the same label, such as {self._shared()!r}"

    def _show_labels(self) -> None:
        """Labels that do not name nodes are their titles."""
        labeled = f"x != '' AND strlen(x) <= {_LONGEST}"
        for name, label in self._job.streamed("reading.nodes", "a, x", labeled):
            self._job.titles.add(str(name), str(label))

    def _shared(self) -> str:
        query = "SELECT x FROM reading.nodes GROUP BY x HAVING count(*) > 1 ORDER BY x LIMIT 1"
        return str(self._job.run(query)[0][0])[:60]

    def _name(self, by: str, integers: bool) -> bool:
        """Make the table of ids and names; whether names are integers."""
        if by == "x":
            plain = "regexp_full_match(x, '0|[1-9][0-9]*') AND TRY_CAST(x AS UBIGINT) IS NOT NULL"
            integers = bool(self._job.run(f"SELECT bool_and({plain}) FROM reading.nodes")[0][0])
        kind = "UBIGINT" if integers else "VARCHAR"
        self._job.run(
            f"CREATE TABLE reading.named AS SELECT a AS id, {by}::{kind} AS name FROM reading.nodes"
        )
        return integers

    def _relations(
        self, found: RowsFound, declared: bool, by: str, why: str, all_both: bool
    ) -> Read:
        weight = ", w" if self.weighted else ""
        rows, nodes = "FROM reading.links", ""
        if declared:
            nodes = "SELECT name AS a FROM reading.named"
            rows = (
                f"(SELECT s.name AS a, t.name AS b{weight}, two FROM reading.links l JOIN "
                "reading.named s ON s.id = l.a JOIN reading.named t ON t.id = l.b)"
            )
            self._job.run(f"CREATE TABLE reading.joined AS FROM {rows}")
            rows = "FROM reading.joined"
        mirrored = "a != b" if all_both else "two = 1 AND a != b"
        twice = self._job.count(f"SELECT count(*) {rows} WHERE {mirrored}")
        relation = f"SELECT a, b{weight} {rows}"
        notes = [f"nodes are named by their {'labels' if by == 'x' else 'ids'}"] if declared else []
        if notes and why:
            notes[-1] += f" and shown with their labels, as {why}"
        if twice:
            notes.append(_BOTH)
            if not self._job.options.undirected:
                relation += f" UNION ALL SELECT b AS a, a AS b{weight} {rows} WHERE {mirrored}"
                found.rows += twice
        found.note = "; ".join(notes)
        if self._job.wanted == 1:
            if not declared:
                raise InputError(f"{found.file} declares no nodes")
            found.rows = self._job.count("SELECT count(*) FROM reading.named")
            return Read(nodes, found)
        return Read(relation, found, nodes)


def _one_line(label: str | None) -> str:
    """A label as a name: blanks of any kind are one, what no other name has is left out."""
    text = " ".join((label or "").split())
    text = _REFUSED.sub("", text)
    return text.encode("utf-8", "replace").decode("utf-8")
