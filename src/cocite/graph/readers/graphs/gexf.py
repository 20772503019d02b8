"""GEXF, the format of Gephi: nodes with labels, links with types and weights.

A link is without direction unless its ``type``, or ``defaultedgetype``, says ``directed``; a
``mutual`` one is both ways, too. ``--weight-column weight`` takes the weights that Gephi draws, 1
where none is given; any other is the title (or the id) of an attribute of links.

Cost: that of XML and of :mod:`~cocite.graph.readers.graphs.reading`.
https://gexf.net/schema.html
"""

from __future__ import annotations

from cocite.errors import UsageError
from cocite.graph.readers.graphs.reading import GraphWriter
from cocite.graph.readers.graphs.xml_events import parse_xml
from cocite.graph.readers.reader import Job, Read

__all__ = ["READER", "GEXFReader"]

_WEIGHT = "weight"


class GEXFReader:
    """GEXF of any version."""

    title = "GEXF"
    described = (
        "GEXF (Gephi); nodes are named by their labels if all have one of their own, else by "
        "their ids"
    )
    streams = True

    def read(self, job: Job) -> Read:
        """All links, and all nodes."""
        with GraphWriter(job, self.title) as out:
            parse_xml(job, _Handler(job, out))
            return out.finish()


READER = GEXFReader()


class _Handler:
    wants_text = False

    def __init__(self, job: Job, out: GraphWriter) -> None:
        self._label, self._wanted, self._out = job.source.label, job.options.weight, out
        self._type = "undirected"
        self._of_links = False
        self._titles: dict[str, str] = {}
        self._defaults: dict[str, str] = {}
        self._link: tuple[str, str, bool, int] | None = None
        self._weight = ""
        self._attribute = ""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""
        match name:
            case "graph":
                self._type = attributes.get("defaultedgetype", self._type)
            case "attributes":
                self._of_links = attributes.get("class") == "edge"
            case "attribute" if self._of_links:
                self._attribute = attributes.get("id", "")
                self._titles[self._attribute] = attributes.get("title", "")
            case "default" if self._of_links:
                self.wants_text = True
            case "node":
                self._out.node(attributes.get("id", ""), attributes.get("label"), line)
            case "edge":
                self._begin_link(attributes, line)
            case "attvalue" if self._link is not None:
                key = attributes.get("for", attributes.get("id", ""))
                if self._wanted != _WEIGHT and self._wanted in (key, self._titles.get(key)):
                    self._weight = attributes.get("value", "").strip()

    def end(self, name: str, text: str) -> None:
        """An element ends."""
        if name == "default" and self._of_links:
            self._defaults[self._attribute] = text.strip()
            self.wants_text = False
        if name == "attributes":
            self._of_links = False
        if name == "edge" and self._link is not None:
            source, target, both, line = self._link
            self._out.link(source, target, self._weight, both, line)
            self._link = None

    def _begin_link(self, attributes: dict[str, str], line: int) -> None:
        self._weight = attributes.get(_WEIGHT, "1").strip()
        if self._wanted and self._wanted != _WEIGHT:
            keys = [k for k, title in self._titles.items() if self._wanted in (k, title)]
            if not keys and self._out.weighted:
                names = ", ".join(map(repr, [_WEIGHT, *self._titles.values()]))
                raise UsageError(
                    f"{self._label} has no attribute {self._wanted!r} of links; it has {names}"
                )
            self._weight = self._defaults.get(keys[0], "") if keys else ""
        both = attributes.get("type", self._type) != "directed"
        ends = attributes.get("source", ""), attributes.get("target", "")
        self._link = (*ends, both, line)
