"""BVGraph, the format of LAW's web graphs: ``NAME.graph`` and ``NAME.properties``.

The input is either of these files, or NAME alone. The graph is decoded sequentially, without
``NAME.offsets``. If ``NAME.urls`` (compressed or not) exists, its lines are the node names, in
order; otherwise, nodes are the integers from 0 on.

A link takes 60 nanoseconds to decode (``kernels/bvgraph.py``), and as much again to load. Memory is
a few MB, plus space for the longest lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError
from cocite.io.readers.contract import FormatReader, Found, Job, Read, ReadOptions
from cocite.io.readers.sources import Source
from cocite.io.readers.text import load_text

_PIECE = 1 << 22
_LINKS = 1 << 20
_ROWS = 1 << 18
_MOST_NODES = 2**32 - 1
_PACKINGS = ("", ".gz", ".bz2", ".xz", ".zst")
_PARTS = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "RESIDUALS": "ZETA",
}
"""Kinds of integers in the order of encoding, with their default codes."""


def _read(job: Job) -> Read:
    path = job.source.path
    assert path is not None
    base = path.with_suffix("") if path.suffix in (".graph", ".properties") else path
    properties = _Properties(base)
    found = Found(str(path), format=f"BVGraph, {properties.nodes:,} nodes")
    names = _load_names(job, base, properties.nodes)
    if names is not None:
        name, found.integers = names
    found.note = "numbered from 0" if names is None else f"named by {name}"
    job.database.execute("CREATE TABLE reading.links (a UBIGINT, b UBIGINT)")
    if job.wanted == 2:
        for sources, targets in _links(Source(base.with_suffix(".graph")), properties, job):
            job.database.register("piece", {"a": sources, "b": targets})
            job.database.execute("INSERT INTO reading.links SELECT a, b FROM piece")
            job.database.unregister("piece")
            found.rows += len(targets)
        if found.rows != properties.arcs:
            raise InputError(
                f"{base}.graph has {found.rows:,} links, but {base}.properties says "
                f"{properties.arcs:,}: one of the two is damaged or belongs to another graph"
            )
    kind = "UBIGINT" if found.integers else "VARCHAR"
    nodes = f"SELECT range::UBIGINT AS a FROM range({properties.nodes})"
    rows = "FROM reading.links"
    if names is not None:
        nodes = f"SELECT a::{kind} AS a FROM reading.names"
        rows = (
            f"SELECT s.a::{kind} AS a, t.a::{kind} AS b FROM reading.links l JOIN "
            "reading.names s ON s.rowid = l.a JOIN reading.names t ON t.rowid = l.b"
        )
    return Read(rows, found, nodes)


READER = FormatReader(
    "a BVGraph",
    "a WebGraph graph, as published by LAW: NAME.graph, NAME.properties or just NAME; nodes are "
    "numbered from 0, or named by NAME.urls if it exists",
    _read,
    streams=False,
    weights=False,
)


# -- properties --------------------------------------------------------------------------


class _Properties:
    """A graph's parameters, from ``BASE.properties``."""

    def __init__(self, base: Path) -> None:
        self.file = f"{base}.properties"
        for file in (self.file, f"{base}.graph"):
            if not Path(file).is_file():
                raise InputError(
                    f"{file} does not exist: a BVGraph has two files, {base.name}.graph and "
                    f"{base.name}.properties"
                )
        text = Path(self.file).read_bytes()[: 1 << 20].decode("latin-1")
        self._values = dict(
            re.findall(r"(?m)^[ \t]*([^#!\s=:]+)[ \t]*[=:][ \t]*(.*?)[ \t\r]*$", text)
        )
        kind = self._values.get("graphclass", "").removeprefix("class ").rpartition(".")[2]
        if kind != "BVGraph":
            raise InputError(
                f"{self.file} describes a graph of class {kind or 'unknown'!r}; cocite reads only "
                "BVGraph. Convert it: java it.unimi.dsi.webgraph.BVGraph FROM TO"
            )
        if self._values.get("endianness", "big") != "big" or self.number("version", 0) != 0:
            raise InputError(
                f"{self.file} describes a BVGraph of version {self._values.get('version')}, "
                f"{self._values.get('endianness', 'big')}-endian; cocite reads version 0, "
                "big-endian"
            )
        self.nodes, self.arcs = self.number("nodes"), self.number("arcs")
        if self.nodes > _MOST_NODES:
            raise ResourceError(
                f"{self.file} declares {self.nodes:,} nodes; the maximum is {_MOST_NODES:,}"
            )
        self.rules = self._rules()

    def number(self, key: str, otherwise: int | None = None) -> int:
        text = self._values.get(key, "" if otherwise is None else str(otherwise))
        if not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise InputError(f"{self.file}: {key} is {text!r}; it must be a whole number")
        return int(text)

    def _rules(self) -> NDArray[np.int64]:
        from cocite.kernels import bvgraph as k

        codes = dict(_PARTS)
        for flag in filter(None, re.split(r"[|\s]+", self._values.get("compressionflags", ""))):
            part, _, code = flag.rpartition("_")
            if part not in (*codes, "OFFSETS") or code not in k.CODES:
                raise InputError(
                    f"{self.file}: compressionflags has {flag!r}, which is not a valid code"
                )
            codes |= {part: code} if part in codes else {}
        rules = np.zeros(k.RULES, np.int64)
        rules[k.NODES], rules[k.WINDOW] = self.nodes, self.number("windowsize")
        rules[k.LEAST], rules[k.K] = self.number("minintervallength"), self.number("zetak", 3)
        if rules[k.WINDOW] > 1 << 16 or rules[k.LEAST] > 1 << 32 or not 0 < rules[k.K] < 1 << 32:
            raise InputError(f"{self.file}: windowsize, minintervallength or zetak is out of range")
        rules[k.DEGREE : k.RESIDUAL + 1] = [k.CODES[code] for code in codes.values()]
        return rules


# -- links -------------------------------------------------------------------------------


def _links(
    source: Source, properties: _Properties, job: Job
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """Yield (sources, targets), chunk by chunk."""
    with source.reading() as (stream, raw):
        decoder = _Decoder(properties.rules)
        while True:
            status = decoder.run()
            yield from decoder.taken(all_of_it=status == decoder.k.DONE)
            if status == decoder.k.DONE:
                return
            if status == decoder.k.DAMAGED:
                node, bit = decoder.place()
                raise InputError(
                    f"{source.label} is damaged, or belongs to another graph: the successors of "
                    f"node {node:,}, at byte {bit // 8:,}, are invalid"
                )
            if status == decoder.k.MORE_BITS:
                decoder.feed(stream.read(_PIECE))
                job.progress("reading " + job.source.short, raw.tell(), source.nbytes)
            else:
                decoder.grow()


class _Decoder:
    def __init__(self, rules: NDArray[np.int64], links: int = _LINKS, rows: int = _ROWS) -> None:
        from cocite.kernels import bvgraph as k

        self.k: Any = k
        self._rules = rules
        self._state = np.zeros(k.STATE, np.int64)
        self._begins = np.zeros(2 * (rows + int(rules[k.WINDOW])) + 1, np.int64)
        self._links = np.empty(links, np.uint32)
        self._parts = np.empty(links // 4, np.uint32)
        self._bytes, self._read = b"", 0
        self._words = np.zeros(2, np.uint64)
        self._taken = 0

    def run(self) -> int:
        """Decode until the input or a buffer is exhausted; return the kernel's status."""
        arrays = (self._begins, self._links, self._parts)
        return int(self.k.decode(self._words, self._rules, self._state, *arrays))

    def place(self) -> tuple[int, int]:
        """Return (current node, first bit of its list)."""
        state = self._state
        return int(state[self.k.NEXT]), self._read * 8 + int(state[self.k.POSITION])

    def feed(self, more: bytes) -> None:
        """Append ``more`` to the undecoded bytes; empty bytes mark the end of the file."""
        k, state = self.k, self._state
        done = int(state[k.POSITION]) // 64 * 8
        self._bytes = self._bytes[done:] + more
        self._read += done
        state[k.POSITION] -= done * 8
        state[k.BITS] = len(self._bytes) * 8
        state[k.LAST] = not more
        padded = self._bytes + bytes(16 + -len(self._bytes) % 8)
        self._words = np.frombuffer(padded, ">u8").astype(np.uint64)

    def taken(self, *, all_of_it: bool) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        """Yield new links if a buffer is half full, or if ``all_of_it``."""
        k, state = self.k, self._state
        rows = int(state[k.NEXT] - state[k.FIRST])
        few = state[k.USED] * 2 < self._links.size and rows * 2 < self._begins.size
        if (few and not all_of_it) or state[k.NEXT] == self._taken:
            return
        first, used = self._taken - int(state[k.FIRST]), int(state[k.USED])
        degrees = np.diff(self._begins[first : rows + 1])
        nodes = np.arange(self._taken, int(state[k.NEXT]), dtype=np.uint64)
        targets = self._links[int(self._begins[first]) : used].astype(np.uint64)
        if targets.size:
            yield np.repeat(nodes, degrees), targets
        kept = min(rows, int(self._rules[k.WINDOW]))  # later lists refer to these
        low = int(self._begins[rows - kept])
        self._links[: used - low] = self._links[low:used].copy()
        self._begins[: kept + 1] = self._begins[rows - kept : rows + 1] - low
        state[k.FIRST], state[k.USED] = state[k.NEXT] - kept, used - low
        self._taken = int(state[k.NEXT])

    def grow(self) -> None:
        """Enlarge the buffers until the longest list fits."""
        k, state = self.k, self._state
        need = int(state[k.USED] + state[k.LONGEST])
        if need > self._links.size:
            more = np.empty(max(need, 2 * self._links.size), np.uint32)
            more[: int(state[k.USED])] = self._links[: int(state[k.USED])]
            self._links = more
        if int(state[k.LONGEST]) > self._parts.size:
            self._parts = np.empty(2 * int(state[k.LONGEST]), np.uint32)


# -- names -------------------------------------------------------------------------------


def _load_names(job: Job, base: Path, nodes: int) -> tuple[str, bool] | None:
    """Load ``BASE.urls``; return (file name, whether all names are integers), or None."""
    files = [base.with_name(f"{base.name}.urls{packing}") for packing in _PACKINGS]
    file = next(filter(Path.is_file, files), None)
    if file is None:
        return None
    options = ReadOptions(delimiter="tab", header="no", comment="")
    alone = replace(job, wanted=1, options=options)
    read = load_text(alone, Source(file), "names")
    if read.rows != nodes or read.blank_lines:
        raise InputError(
            f"{file} has {read.rows:,} names and {read.blank_lines:,} blank lines, but the graph "
            f"has {nodes:,} nodes: it belongs to another graph. To number the nodes instead, move "
            "the file away"
        )
    twice = job.database.execute(
        "SELECT a FROM reading.names GROUP BY a HAVING count(*) > 1 ORDER BY min(rowid) LIMIT 1"
    ).fetchone()
    if twice is not None:
        raise InputError(
            f"{file} gives several nodes the name {str(twice[0])!r}. To number the nodes instead, "
            "move the file away"
        )
    return file.name, read.integers
