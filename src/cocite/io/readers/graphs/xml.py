"""Graphs in XML: GraphML and GEXF.

In GraphML, a node's label is its first value among ``label``, ``name`` and ``title``, or else the
label that yEd displays. ``--weight-column`` is the ``attr.name`` or id of a link key. Hyperedges
are refused. In GEXF, links are undirected unless their ``type`` or ``defaultedgetype`` is
``directed``; ``--weight-column`` is ``weight`` (1 if missing), or an attribute's title or id.
http://graphml.graphdrawing.org/specification.html, https://gexf.net/schema.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from cocite.errors import InputError, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import LabeledGraph, whole_text

_LABELS = ("label", "name", "title")
_WEIGHT = "weight"
"""Link attribute that Gephi uses as weight without a declaration."""


LINE = "-line"
"""Attribute for storing an element's first line."""


def parse_xml(text: bytes, label: str) -> Element:
    """Return a document's root element, with namespaces removed.

    Nothing is fetched. Raises :class:`InputError`, with the line number, for malformed XML and for
    declarations of entities or default attributes, which can expand without limit.
    """
    names: dict[str, str] = {}
    parser, builder = expat.ParserCreate(intern=names), TreeBuilder()

    def start(tag: str, attributes: dict[str, str]) -> None:
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        plain[LINE] = str(parser.CurrentLineNumber)
        builder.start(tag.rpartition(":")[2], plain)

    def refuse(*what: Any) -> int:
        raise InputError(
            f"{label}:{parser.CurrentLineNumber}: the document has entities or default "
            "attributes, which cocite does not read. Write the document without them"
        )

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: builder.end(tag.rpartition(":")[2])
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.AttlistDeclHandler = lambda *declared: declared[3] is not None and refuse()
    try:
        parser.Parse(text, True)
        return builder.close()
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, str(error))
        raise InputError(
            f"{label}:{error.lineno}: {what}, at column {error.offset + 1}: this is not "
            "well-formed XML"
        ) from error
    except (LookupError, ValueError) as error:  # from Python's codecs
        raise InputError(
            f"{label}: its encoding cannot be read ({error}). Write it as UTF-8"
        ) from error


def line_of(element: Element) -> int:
    """Return an element's first line."""
    return int(element.attrib[LINE])


class _Weights:
    """The requested weight attribute of links, and its defaults by key."""

    def __init__(self, job: Job, named: Iterable[tuple[str, str, Element]], *usual: str) -> None:
        each, asked = list(named), job.options.weight
        self._label, self.asked, self.drawn = job.source.label, asked, asked in usual
        self._names = list(dict.fromkeys([*usual, *(name for _, name, _ in each)]))
        chosen = [key for key in each if asked in key[:2] and not self.drawn]
        self.defaults = {key: (of.findtext("default") or "").strip() for key, _, of in chosen}

    def check(self) -> None:
        if self.asked and not self.drawn and not self.defaults:
            names = ", ".join(map(repr, self._names)) or "none"
            raise UsageError(f"{self._label} has no link attribute {self.asked!r}; it has {names}")

    def of(self, values: Iterable[tuple[str, str]]) -> str:
        """Return a link's weight from its (key, value) pairs, or the default."""
        found = next((text for key, text in values if key in self.defaults), None)
        return next(iter(self.defaults.values()), "") if found is None else found.strip()


def _read_graphml(job: Job) -> Read:
    out, root = LabeledGraph(job, READER.title), parse_xml(whole_text(job), job.source.label)
    named, links = dict[str, str](), []
    for key in root.iter("key"):
        name = key.get("attr.name", key.get("id", ""))
        if key.get("for", "all") in ("node", "all") and name.lower() in _LABELS:
            named[key.get("id", "")] = name.lower()
        if key.get("for", "all") in ("edge", "all"):
            links.append((key.get("id", ""), name, key))
    weights = _Weights(job, links)
    for hyperedge in root.iter("hyperedge"):
        raise InputError(
            f"{job.source.label}:{line_of(hyperedge)}: a hyperedge joins more than two nodes; "
            "cocite reads only links between two nodes"
        )
    for node in root.iter("node"):
        of_node = [(named.get(data.get("key", "")), data.text) for data in node.iterfind("data")]
        of_node += [("drawn", label.text) for label in node.iterfind("data//NodeLabel")]
        found = {key: text for key, text in reversed(of_node) if key and (text or "").strip()}
        label = next((found[key] for key in (*_LABELS, "drawn") if key in found), None)
        out.node(node.get("id", ""), label, line_of(node))
    for graph in root.iter("graph"):
        undirected = graph.get("edgedefault") == "undirected"
        for edge in graph.iterfind("edge"):
            weights.check()
            declared = edge.get("directed")
            both = undirected if declared is None else declared in ("false", "0")
            values = ((data.get("key", ""), data.text or "") for data in edge.iterfind("data"))
            ends = edge.get("source", ""), edge.get("target", "")
            out.link(*ends, weights.of(values), both, line_of(edge))
    return out.finish()


def _read_gexf(job: Job) -> Read:
    out, root = LabeledGraph(job, GEXF_READER.title), parse_xml(whole_text(job), job.source.label)
    declared = root.iterfind(".//attributes[@class='edge']/attribute")
    links = [(each.get("id", ""), each.get("title", ""), each) for each in declared]
    weights = _Weights(job, links, _WEIGHT)
    default = next((g.get("defaultedgetype", "") for g in root.iter("graph")), "")
    for node in root.iter("node"):
        out.node(node.get("id", ""), node.get("label"), line_of(node))
    for edge in root.iter("edge"):
        weights.check()
        weight = edge.get(_WEIGHT, "1")
        if not weights.drawn:
            values = edge.iter("attvalue")
            weight = weights.of((v.get("for", v.get("id", "")), v.get("value", "")) for v in values)
        both = edge.get("type", default) != "directed"
        out.link(edge.get("source", ""), edge.get("target", ""), weight, both, line_of(edge))
    return out.finish()


READER = FormatReader(
    "GraphML",
    "GraphML; nodes are named by their labels (label, name or title) if every node has a unique "
    "label, otherwise by their ids",
    _read_graphml,
)
GEXF_READER = FormatReader(
    "GEXF",
    "GEXF (Gephi); nodes are named by their labels if every node has a unique label, otherwise "
    "by their ids",
    _read_gexf,
)
