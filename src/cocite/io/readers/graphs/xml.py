"""Graphs in XML, GraphML and GEXF: XML as events, and one walker over the elements of both.

A document that declares entities, or defaults of attributes, is refused, and nothing is fetched.
Texts, markup, depth and names are bounded: expat before 2.6 reads a part of markup again for every
piece of it (CVE-2023-52425); later ones wait for twice as much, which hides how much is read.

GraphML: a node's label is its ``label``, ``name`` or ``title``, the first that is declared, or what
yEd draws; ``--weight-column`` is the ``attr.name`` or id of a key of links. Hyperedges are refused.
GEXF: links are without direction unless their ``type`` or ``defaultedgetype`` is ``directed``;
``--weight-column`` is ``weight``, 1 where none is given, or the title or id of an attribute.
http://graphml.graphdrawing.org/specification.html, https://gexf.net/schema.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Protocol
from xml.parsers import expat

from cocite.errors import CociteError, InputError, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import GraphWriter

_PIECE = 1 << 18
_LONGEST_TEXT = 1 << 17
_LONGEST_MARKUP = 1 << 20
_DEEPEST = 200
_MOST_NAMES = 100_000


class Handler(Protocol):
    """Takes elements. ``wants_text`` is looked at for every text."""

    wants_text: bool

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""

    def end(self, name: str, text: str) -> None:
        """An element ends; ``text`` is what was wanted since the last begin or end."""


def parse_stream(
    stream: IO[bytes], label: str, handler: Handler, read: Callable[[], None] = lambda: None
) -> None:
    """Report all elements of a stream, which messages call ``label``, to ``handler``; ``read`` is
    called now and then. Raises :class:`InputError` with the line.
    """
    names: dict[str, str] = {}
    parser = expat.ParserCreate(intern=names)
    if hasattr(parser, "SetReparseDeferralEnabled"):
        parser.SetReparseDeferralEnabled(False)
    events, size = _Events(parser, handler, label), 0
    try:
        while piece := stream.read(_PIECE):
            parser.Parse(piece, False)
            size += len(piece)
            if size - parser.CurrentByteIndex > _LONGEST_MARKUP:
                raise events.wrong(
                    f"a tag, a comment or another part of markup of more than {_LONGEST_MARKUP:,} "
                    "bytes"
                )
            if len(names) > _MOST_NAMES:
                raise events.wrong(f"more than {_MOST_NAMES:,} names of elements and attributes")
            read()
        parser.Parse(b"", True)
    except CociteError:
        raise
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, str(error))
        raise InputError(
            f"{label}:{error.lineno}: {what}, at column {error.offset + 1}: this is not "
            "well-formed XML"
        ) from error
    except (LookupError, ValueError) as error:  # of the codecs of Python
        raise InputError(
            f"{label}: its encoding cannot be read ({error}). Write it as UTF-8"
        ) from error


class _Events:
    """Expat's events, as :class:`Handler` has them."""

    def __init__(self, parser: Any, handler: Handler, label: str) -> None:
        self._parser, self._handler, self._label = parser, handler, label
        self._text: list[str] = []
        self._length, self._depth = 0, 0
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse
        parser.SkippedEntityHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse
        parser.AttlistDeclHandler = self._declare

    def wrong(self, what: str) -> InputError:
        """The error to raise."""
        return InputError(f"{self._label}:{self._parser.CurrentLineNumber}: {what}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._text, self._length = [], 0
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.wrong(f"elements in elements, more than {_DEEPEST} deep")
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        line = self._parser.CurrentLineNumber
        self._handler.start(name.rpartition(":")[2], plain, line)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(name.rpartition(":")[2], "".join(self._text))
        self._text, self._length = [], 0

    def _characters(self, text: str) -> None:
        if self._handler.wants_text:
            self._text.append(text)
            self._length += len(text)
            if self._length > _LONGEST_TEXT:
                raise self.wrong(
                    f"a text of more than {_LONGEST_TEXT:,} characters; labels and weights are "
                    "short"
                )

    def _refuse(self, *what: object) -> int:
        raise self.wrong(
            "the document declares or uses entities of its own, which cocite does not read. Write "
            "it without"
        )

    def _declare(
        self, element: str, attribute: str, kind: str, default: str | None, needed: bool
    ) -> None:
        if default is not None:
            raise self.wrong(
                f"the document declares a default of the attribute {attribute[:60]!r}, which "
                "cocite does not read. Write it without"
            )


# -- graphs ------------------------------------------------------------------------------


_LABELS = ("label", "name", "title")
_WEIGHT = "weight"
"""What Gephi draws links by, without a declaration."""


def _read(job: Job, title: str, *, gephi: bool) -> Read:
    """All links, and all nodes."""
    source = job.source
    with GraphWriter(job, title) as out, source.reading() as (stream, raw):
        parse_stream(
            stream,
            source.label,
            _Graph(job, out, gephi),
            lambda: job.progress("reading " + source.short, raw.tell(), source.nbytes),
        )
        return out.finish()


READER = FormatReader(
    "GraphML",
    "GraphML; nodes are named by their labels (label, name or title) if all have one of their "
    "own, else by their ids",
    partial(_read, title="GraphML", gephi=False),
)
GEXF_READER = FormatReader(
    "GEXF",
    "GEXF (Gephi); nodes are named by their labels if all have one of their own, else by their ids",
    partial(_read, title="GEXF", gephi=True),
)


@dataclass
class _Part:
    """A node or a link that is open."""

    kind: str
    line: int
    attributes: dict[str, str]
    both: bool = False
    weight: str = ""
    labels: dict[str, str] = field(default_factory=dict)


class _Graph:
    """The elements of GraphML, or of GEXF (``gephi``)."""

    def __init__(self, job: Job, out: GraphWriter, gephi: bool) -> None:
        self.wants_text = False
        self._label, self._requested, self._out = job.source.label, job.options.weight, out
        self._gephi = gephi
        self._drawn = gephi and self._requested in ("", _WEIGHT)
        self._of_links = False
        self._key = ""
        self._names: dict[str, None] = {_WEIGHT: None} if gephi else {}
        self._weights: dict[str, str] = {}
        """Attributes that are the weight of a link, and their defaults."""
        self._label_keys: dict[str, str] = {}
        self._both = [gephi]
        self._open: list[_Part] = []

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""
        match name:
            case "graph":
                self._begin_graph(attributes)
            case "node" | "edge":
                self._begin_part(_Part(name, line, attributes))
            case "key" if not self._gephi:
                self._declare_key(attributes)
            case "data" if not self._gephi:
                self._key = attributes.get("key", "")
                self.wants_text = self._key in self._label_keys or self._key in self._weights
            case "NodeLabel" if not self._gephi:
                self.wants_text = True
            case "hyperedge" if not self._gephi:
                raise InputError(
                    f"{self._label}:{line}: a hyperedge, which links more than two nodes; cocite "
                    "reads links of two"
                )
            case "attributes":
                self._of_links = attributes.get("class") == "edge"
            case "attribute" if self._of_links:
                self._declare(attributes.get("id", ""), attributes.get("title", ""))
            case "attvalue" if self._open:
                if attributes.get("for", attributes.get("id", "")) in self._weights:
                    self._open[-1].weight = attributes.get("value", "")
            case "default":
                self.wants_text = self._of_links or self._key in self._weights

    def end(self, name: str, text: str) -> None:
        """An element ends."""
        part = self._open[-1] if self._open else None
        match name:
            case "attributes" | "key":
                self._of_links, self._key = False, ""
            case "default" if self._key in self._weights:
                self._weights[self._key] = text
            case "graph" if not self._gephi:
                self._both.pop()
            case "data" if self.wants_text and part is not None:
                if part.kind == "edge" and self._key in self._weights:
                    part.weight = text
                elif part.kind == "node" and self._key in self._label_keys:
                    part.labels.setdefault(self._label_keys[self._key], text)
            case "NodeLabel" if part is not None:
                part.labels.setdefault("drawn", text)
            case "node" | "edge" if part is not None and part.kind == name:
                self._end_part(self._open.pop())
        self.wants_text = False

    def _begin_graph(self, attributes: dict[str, str]) -> None:
        if not self._gephi:
            self._both.append(attributes.get("edgedefault", "directed") == "undirected")
        elif "defaultedgetype" in attributes:
            self._both = [attributes["defaultedgetype"] != "directed"]

    def _declare_key(self, attributes: dict[str, str]) -> None:
        key = attributes.get("id", "")
        name, of = attributes.get("attr.name", key), attributes.get("for", "all")
        if of in ("node", "all") and name.lower() in _LABELS:
            self._label_keys[key] = name.lower()
        self._key = key
        if of in ("edge", "all"):
            self._declare(key, name)

    def _declare(self, key: str, name: str) -> None:
        """An attribute of links."""
        self._key = key
        self._names.setdefault(name)
        if self._requested and not self._drawn and self._requested in (key, name):
            self._weights[key] = ""

    def _begin_part(self, part: _Part) -> None:
        attributes = part.attributes
        if part.kind == "node" and self._gephi:  # all that is said of it is here
            self._out.node(attributes.get("id", ""), attributes.get("label"), part.line)
            return
        if part.kind == "edge":
            if self._out.weighted and not self._drawn and not self._weights:
                names = ", ".join(map(repr, self._names)) or "none"
                raise UsageError(
                    f"{self._label} has no attribute {self._requested!r} of links; it has {names}"
                )
            said = attributes.get("type" if self._gephi else "directed")
            part.both = self._both[-1]
            if said is not None:
                part.both = said != "directed" if self._gephi else said in ("false", "0")
            part.weight = next(iter(self._weights.values()), "")
            if self._drawn:
                part.weight = attributes.get(_WEIGHT, "1")
        self._open.append(part)

    def _end_part(self, part: _Part) -> None:
        of = part.attributes
        if part.kind == "edge":
            ends = of.get("source", ""), of.get("target", "")
            self._out.link(*ends, part.weight.strip(), part.both, part.line)
            return
        found = [part.labels[key] for key in (*_LABELS, "drawn") if part.labels.get(key)]
        self._out.node(of.get("id", ""), found[0] if found else None, part.line)
