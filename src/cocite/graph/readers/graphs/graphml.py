"""GraphML: nodes, links and what is said of them in ``<data>``.

A node's label is its ``label``, ``name`` or ``title``, the first of these that is declared for
nodes, or the label that yEd draws. Links have a direction as ``edgedefault`` says, or as they
themselves do. ``--weight-column`` is the ``attr.name`` (or the id) of a key for links; its default
holds for links without it. Hyperedges are refused.

Cost: that of XML and of :mod:`~cocite.graph.readers.graphs.reading`.
http://graphml.graphdrawing.org/specification.html
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cocite.errors import InputError, UsageError
from cocite.graph.readers.graphs.reading import GraphWriter
from cocite.graph.readers.graphs.xml_events import parse_xml
from cocite.graph.readers.reader import Job, Read

__all__ = ["READER", "GraphMLReader"]

_LABELS = ("label", "name", "title")


class GraphMLReader:
    """GraphML, of any program."""

    title = "GraphML"
    described = (
        "GraphML; nodes are named by their labels (label, name or title) if all have one of their "
        "own, else by their ids"
    )
    streams = True

    def read(self, job: Job) -> Read:
        """All links, and all nodes."""
        with GraphWriter(job, self.title) as out:
            parse_xml(job, _Handler(job, out))
            return out.finish()


READER = GraphMLReader()


@dataclass
class _Part:
    """A node or a link that is open."""

    kind: str
    name: str
    line: int
    ends: tuple[str, str] = ("", "")
    both: bool = False
    weight: str = ""
    labels: dict[str, str] = field(default_factory=dict)


class _Handler:
    def __init__(self, job: Job, out: GraphWriter) -> None:
        self.wants_text = False
        self._label, self._wanted, self._out = job.source.label, job.options.weight, out
        self._label_keys: dict[str, str] = {}
        self._weight_keys: dict[str, str] = {}
        self._edge_names: list[str] = []
        self._key, self._default = "", ""
        self._both = [False]
        self._open: list[_Part] = []
        self._data = ""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""
        match name:
            case "key":
                self._declare(attributes)
            case "default":
                self.wants_text = self._key in self._weight_keys
            case "graph":
                self._both.append(attributes.get("edgedefault", "directed") == "undirected")
            case "node":
                self._open.append(_Part(name, attributes.get("id", ""), line))
            case "edge":
                self._begin_link(attributes, line)
            case "data":
                self._data = attributes.get("key", "")
                self.wants_text = self._data in self._label_keys or self._data in self._weight_keys
            case "NodeLabel":
                self.wants_text = True
            case "hyperedge":
                raise InputError(
                    f"{self._label}:{line}: a hyperedge, which links more than two nodes; cocite "
                    "reads links of two"
                )

    def end(self, name: str, text: str) -> None:
        """An element ends."""
        part = self._open[-1] if self._open else None
        match name:
            case "key":
                self._key = ""
            case "default" if self.wants_text:
                self._weight_keys[self._key] = text
            case "graph":
                self._both.pop()
            case "data" if self.wants_text and part is not None:
                if part.kind == "edge" and self._data in self._weight_keys:
                    part.weight = text.strip()
                elif part.kind == "node" and self._data in self._label_keys:
                    part.labels.setdefault(self._label_keys[self._data], text)
            case "NodeLabel" if part is not None:
                part.labels.setdefault("drawn", text)
            case "node" | "edge" if part is not None and part.kind == name:
                self._end_part(self._open.pop())
        self.wants_text = False

    def _declare(self, attributes: dict[str, str]) -> None:
        self._key = attributes.get("id", "")
        name, of = attributes.get("attr.name", self._key), attributes.get("for", "all")
        if of in ("node", "all") and name.lower() in _LABELS:
            self._label_keys[self._key] = name.lower()
        if of in ("edge", "all"):
            self._edge_names.append(name)
            if self._wanted and self._wanted in (name, self._key):
                self._weight_keys[self._key] = ""

    def _begin_link(self, attributes: dict[str, str], line: int) -> None:
        if self._out.weighted and not self._weight_keys:
            names = ", ".join(map(repr, self._edge_names)) or "none"
            raise UsageError(
                f"{self._label} has no attribute {self._wanted!r} of links; it has {names}"
            )
        said = attributes.get("directed")
        both = self._both[-1] if said is None else said in ("false", "0")
        weight = next(iter(self._weight_keys.values()), "").strip()
        ends = attributes.get("source", ""), attributes.get("target", "")
        self._open.append(_Part("edge", "", line, ends, both, weight))

    def _end_part(self, part: _Part) -> None:
        if part.kind == "edge":
            self._out.link(*part.ends, part.weight, part.both, part.line)
            return
        found = [part.labels[key] for key in (*_LABELS, "drawn") if part.labels.get(key)]
        self._out.node(part.name, found[0] if found else None, part.line)
