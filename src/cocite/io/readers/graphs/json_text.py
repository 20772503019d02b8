"""JSON: a graph of nodes and links, or one link per line.

    {"directed": true, "nodes": [{"id": "a"}, ...], "links": [{"source": "a", "target": "b"}, ...]}
    {"source": "a", "target": "b"}      ["a", "b"]      [{"source": "a", "target": "b"}, ...]
    {"id": "a", "links": ["b", "c"]}    ["a", ["b", "c"]]

Graphs are as in NetworkX and d3. ``edges`` is another name for ``links``; a node's label is its
``label``, ``name`` or ``title``. If nodes have no ids, links refer to them by index from 0.
``--weight-column`` is a key of links. With one link per line, the ends are the members given by
``--columns``, else those with well-known keys (``io/readers/dialect.py``), else the only two
members. If the second end is a list, each of its elements is a target. Lines are read one by one,
other documents in full. A value takes a few microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read, text_lines
from cocite.io.readers.dialect import answer_in, ends_of
from cocite.io.readers.graphs import works
from cocite.io.readers.graphs.document import LabeledGraph, whole_text
from cocite.io.readers.rows import LinkWriter, RowWriter
from cocite.io.readers.signs import wrapped

_LONGEST = 1 << 24


def _whole(job: Job) -> Any:
    try:
        return json.loads(whole_text(job).decode("utf-8-sig", "surrogateescape"))
    except RecursionError:
        raise InputError(f"{job.source.label}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{job.source.label}:{error.lineno}: {error.msg}, at column {error.colno}: this is "
            "not JSON"
        ) from None


# -- nodes and links ---------------------------------------------------------------------


_LABELS = ("label", "name", "title")


def _read_node_link(job: Job) -> Read:
    graph = _whole(job)
    if not isinstance(graph, dict):
        raise InputError(f"{job.source.label} is not an object with nodes and links")
    out = LabeledGraph(job, NODE_LINK_READER.title)
    for number, node in enumerate(_listed(graph.get("nodes"))):
        _node(out, node, number, number + 1)
    for number, link in enumerate(_listed(graph.get("links", graph.get("edges"))), 1):
        _link(out, link, job.options.weight, number)
    return out.finish(all_both=graph.get("directed") is False)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


NODE_LINK_READER = FormatReader(
    "JSON of nodes and links",
    "JSON of nodes and links (NetworkX, d3); nodes are named by their labels (label, name or "
    "title) if every node has a unique label, otherwise by their ids",
    _read_node_link,
)


def name_of(value: Any) -> str | None:
    """Return text or an integer as a name; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _node(out: LabeledGraph, value: Any, number: int, line: int) -> None:
    given = value if isinstance(value, dict) else {"id": value}
    name = name_of(given.get("id", number))
    if name is None:
        out.bad(
            "node", line, "a node whose id is neither text nor a whole number", str(value)[:100]
        )
        return
    labels = (name_of(given[key]) for key in _LABELS if key in given)
    out.node(name, next(filter(None, labels), None), line)


def _link(out: LabeledGraph, value: Any, weight: str, line: int) -> None:
    ends: list[Any] = []
    if isinstance(value, dict):
        ends = [value.get("source"), value.get("target"), value.get(weight, "")]
    elif isinstance(value, list) and len(value) >= 2:
        ends = [*value[:2], value[2] if len(value) > 2 else ""]
    # d3 replaces ids with the nodes themselves when it draws
    names = [name_of(end.get("id") if isinstance(end, dict) else end) for end in ends[:2]]
    if len(names) < 2 or None in names:
        out.bad("link", line, "not a link with a source and a target", str(value)[:100])
        return
    source, target = map(str, names)
    out.link(source, target, "" if ends[2] is None else str(ends[2]), False, line)


# -- lines -------------------------------------------------------------------------------


_NAMES = ("id", "name", "node", "url", "title", "page")


def _read_lines(job: Job) -> Read:
    """Read links or node names. Lists of targets also provide nodes and titles."""
    columns: _Columns | None = None
    unnamed, lists = 0, False
    with LinkWriter(job, weighted=bool(job.options.weight) and job.wanted == 2) as out:
        writer = out.links if job.wanted == 2 else out.nodes
        values = _Values(job, writer)
        for value, line in values:
            if not isinstance(value, dict | list):
                if job.wanted == 1 and name_of(value) is not None:
                    writer.add([str(value)], line)
                    continue
                what = "neither an object nor a list"
                writer.leave_out("link", line, what, json.dumps(value)[:100])
                continue
            if columns is None:
                columns = _Columns(job, value)
                values.decode = columns.decoder
            rows, without = columns.of(value)
            unnamed += without
            if rows is None:
                what = f"no text or whole number as {' or '.join(columns.asked[: job.wanted])}"
                writer.leave_out("link", line, what, json.dumps(value)[:100])
                continue
            for row in rows:
                writer.add(row, line)
            if columns.lists and job.wanted == 2:
                lists = True
                name = columns.node(value)
                out.nodes.add([name], line)
                if title := works.title_of(value):
                    job.titles.add(name, title)
        note = columns.note(unnamed) if columns is not None and job.wanted == 2 else ""
        named = job.wanted == 1 or (lists and not job.options.sides)
        return out.finish(LINES_READER.title, note, named=named)


LINES_READER = FormatReader(
    "JSON lines",
    'a link per line, {"source": "a", "target": "b"} or ["a", "b"], or a list of these; or a node '
    'and its targets, {"id": "a", "links": ["b", "c"]}; --columns selects other members. Works of '
    "OpenAlex, Crossref, Semantic Scholar and DBLP are recognized by their keys",
    _read_lines,
)


class _Columns:
    """The members that are the ends of links; ``lists`` says whether the second is a list."""

    def __init__(self, job: Job, first: Any) -> None:
        options, self._requested, self._sides = job.options, job.wanted, job.options.sides
        named, shape = list(options.columns), None
        if not named and isinstance(first, list):
            named = ["1", "2"][: self._requested]
        elif not named:
            shape = works.shape_of(list(first)) if job.wanted == 2 else None
            named = [shape.node, shape.cited] if shape else self._found(job.source.label, first)
        self._weighted = bool(options.weight) and job.wanted == 2
        self._keys = named + ([options.weight] if self._weighted else [])
        if isinstance(first, list):
            numbers = [key for key in self._keys if not key.isdecimal() or int(key) < 1]
            if numbers:
                raise UsageError(
                    f"{job.source.label} contains lists: choose their elements by number, from "
                    f"1; {numbers[0]!r} is not a number"
                )
        else:
            optional = shape.cited if shape else ""
            missing = [key for key in self._keys if key not in first and key != optional]
            if missing:
                raise UsageError(
                    f"{job.source.label} has no member {missing[0]!r}; the first object has "
                    + ", ".join(map(repr, first))
                )
        self.asked = [repr(key) if isinstance(first, dict) else key for key in self._keys]
        self.decoder = works.decoder(self._keys) if isinstance(first, dict) else json.loads
        second = self._cells(first)[1:2] if job.wanted == 2 else []
        self.lists = shape is not None or any(isinstance(cell, list) for cell in second)

    def _found(self, label: str, first: dict[str, Any]) -> list[str]:
        keys = list(first)
        if self._requested == 1:
            known = [key for key in keys if key.lower() in _NAMES]
            return (known or keys)[:1]
        if answer := answer_in(keys):
            raise UnrecognizedInput(f"{label} {answer}")
        ends = ends_of(keys, self._sides)
        if ends is not None:
            return [keys[end] for end in ends]
        if len(keys) == 2:
            return keys
        raise UnrecognizedInput(
            f"{label} has objects with {', '.join(map(repr, keys)) or 'no members'}; it is unclear "
            "which are source and target. Choose them: --columns SOURCE,TARGET (columns=...)"
        )

    def note(self, unnamed: int) -> str:
        """Return a note on how rows were read; ``unnamed`` targets had no name."""
        text = f"links from {self.asked[0]} to {self.asked[1]}"
        text += f", with the weight {self.asked[2]}" if self._weighted else ""
        return text + (f" ({unnamed:,} without a name skipped)" if unnamed else "")

    def _cells(self, value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [value.get(key) for key in self._keys]
        places = [int(key) - 1 if key.isdecimal() else len(value) for key in self._keys]
        return [value[at] if 0 <= at < len(value) else None for at in places]

    def node(self, value: Any) -> str:
        return works.spelled(self._keys[0], str(name_of(self._cells(value)[0])))

    def of(self, value: Any) -> tuple[list[list[str]] | None, int]:
        """Return (rows of a value, or None; number of its targets without a name)."""
        cells = self._cells(value)
        first = name_of(cells[0])
        if first is None:
            return None, 0
        first = works.spelled(self._keys[0], first)
        if self._requested == 1:
            return [[first]], 0
        weight = [("" if cells[-1] is None else str(cells[-1]))] if self._weighted else []
        many = cells[1]
        if self.lists and many is None:
            many = []
        if not isinstance(many, list):
            name = name_of(many)
            return (None if name is None else [[first, name, *weight]]), 0
        rows, key = [], self._keys[0]
        for each in many:
            name = each if isinstance(each, str) else name_of(each)
            if isinstance(each, dict):
                name = name_of(each.get(key, each.get("id")))
            elif each is not None and name is None:
                return None, 0
            if name is not None:
                rows.append([first, works.spelled(key, name), *weight])
        return rows, len(many) - len(rows)


class _Values:
    """Iterable of (value, line); ``decode`` parses a line."""

    def __init__(self, job: Job, writer: RowWriter) -> None:
        self._job, self._writer = job, writer
        self.decode: Callable[[str], Any] = json.loads

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        beginning = self._job.source.beginning()
        if wrapped(beginning) or re.match(r"\[\s*[{\[]", beginning.text.lstrip()):
            whole = _whole(self._job)
            for number, value in enumerate(whole if isinstance(whole, list) else _within(whole), 1):
                yield value, number
            return
        for line, content in text_lines(self._job, _LONGEST, "line"):
            try:
                yield self.decode(content), line
            except (ValueError, RecursionError):
                self._writer.leave_out("JSON", line, "not a JSON value", content[:100])


def _within(answer: dict[str, Any]) -> list[Any]:
    """Return the works in a service's response."""
    message = answer.get("message")  # from Crossref
    for key in works.WRAPPED:
        for each in (answer, message if isinstance(message, dict) else {}):
            if isinstance(each.get(key), list):
                return list(each[key])
    return []
