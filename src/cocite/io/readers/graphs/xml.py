"""XML as events, with the line each stands on, and nothing that a document could do beyond itself.

A document that declares entities, or defaults of attributes, is refused, whatever they are for, and
nothing is fetched. Names of elements and attributes are without their prefix. Nothing is kept of
what was read; the text of an element is given to whoever asks for it.

Bounds, beyond which a document is refused: a text that is asked for has 131,072 characters; a tag,
a comment or another part of markup 1 MiB; elements are 200 deep, and have 100,000 names. Expat
before 2.6 reads a part of markup again for every piece that it is given of it, so the bound, and
large pieces, keep that from growing with its square (CVE-2023-52425); later ones wait for twice as
much, which is switched off, as it hides how much is read.

Cost: a microsecond an element; memory for some MiB.

GraphML: nodes, links and what is said of them in ``<data>``.

A node's label is its ``label``, ``name`` or ``title``, the first of these that is declared for
nodes, or the label that yEd draws. Links have a direction as ``edgedefault`` says, or as they
themselves do. ``--weight-column`` is the ``attr.name`` (or the id) of a key for links; its default
holds for links without it. Hyperedges are refused.

Cost: that of XML and of :mod:`~cocite.io.readers.graphs.document`.
http://graphml.graphdrawing.org/specification.html

GEXF, the format of Gephi: nodes with labels, links with types and weights.

A link is without direction unless its ``type``, or ``defaultedgetype``, says ``directed``; a
``mutual`` one is both ways, too. ``--weight-column weight`` takes the weights that Gephi draws, 1
where none is given; any other is the title (or the id) of an attribute of links.

Cost: that of XML and of :mod:`~cocite.io.readers.graphs.document`.
https://gexf.net/schema.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, Protocol
from xml.parsers import expat

from cocite.errors import CociteError, InputError, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import GraphWriter
from cocite.io.readers.sources import unpack_errors

_PIECE = 1 << 18
_LONGEST_TEXT = 1 << 17
_LONGEST_MARKUP = 1 << 20
_DEEPEST = 200
_MOST_NAMES = 100_000


class Handler(Protocol):
    """Who is told of elements. ``wants_text`` is looked at for every text."""

    wants_text: bool

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""

    def end(self, name: str, text: str) -> None:
        """An element ends; ``text`` is what was wanted since the last begin or end."""


def parse_xml(job: Job, handler: Handler) -> None:
    """Tell ``handler`` of all elements. Raises :class:`InputError` with the line."""
    source = job.source
    with source.reading() as (stream, raw):
        parse_stream(
            stream,
            source.label,
            handler,
            lambda: job.progress("reading " + source.short, raw.tell(), source.nbytes),
        )


def parse_stream(
    stream: IO[bytes], label: str, handler: Handler, read: Callable[[], None] = lambda: None
) -> None:
    """The same of a stream that messages call ``label``; ``read`` is called now and then."""
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
    except unpack_errors() as error:
        raise InputError(f"{label} cannot be read to its end: {error}") from error


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
        self._clear()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.wrong(f"elements in elements, more than {_DEEPEST} deep")
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        line = self._parser.CurrentLineNumber
        self._handler.start(name.rpartition(":")[2], plain, line)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(name.rpartition(":")[2], "".join(self._text))
        self._clear()

    def _characters(self, text: str) -> None:
        if self._handler.wants_text:
            self._text.append(text)
            self._length += len(text)
            if self._length > _LONGEST_TEXT:
                raise self.wrong(
                    f"a text of more than {_LONGEST_TEXT:,} characters; labels and weights are "
                    "short"
                )

    def _clear(self) -> None:
        self._text.clear()
        self._length = 0

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


# -- graphml -----------------------------------------------------------------------------


_LABELS = ("label", "name", "title")


def _read_graphml(job: Job) -> Read:
    """All links, and all nodes."""
    with GraphWriter(job, READER.title) as out:
        parse_xml(job, _GraphMLHandler(job, out))
        return out.finish()


READER = FormatReader(
    "GraphML",
    "GraphML; nodes are named by their labels (label, name or title) if all have one of their "
    "own, else by their ids",
    _read_graphml,
)


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


class _GraphMLHandler:
    def __init__(self, job: Job, out: GraphWriter) -> None:
        self.wants_text = False
        self._label, self._requested, self._out = job.source.label, job.options.weight, out
        self._label_keys: dict[str, str] = {}
        self._weight_keys: dict[str, str] = {}
        self._edge_names: dict[str, None] = {}
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
            self._edge_names.setdefault(name)
            if self._requested and self._requested in (name, self._key):
                self._weight_keys[self._key] = ""

    def _begin_link(self, attributes: dict[str, str], line: int) -> None:
        if self._out.weighted and not self._weight_keys:
            names = ", ".join(map(repr, self._edge_names)) or "none"
            raise UsageError(
                f"{self._label} has no attribute {self._requested!r} of links; it has {names}"
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


# -- gexf --------------------------------------------------------------------------------


_WEIGHT = "weight"


def _read_gexf(job: Job) -> Read:
    """All links, and all nodes."""
    with GraphWriter(job, GEXF_READER.title) as out:
        parse_xml(job, _GEXFHandler(job, out))
        return out.finish()


GEXF_READER = FormatReader(
    "GEXF",
    "GEXF (Gephi); nodes are named by their labels if all have one of their own, else by their ids",
    _read_gexf,
)


class _GEXFHandler:
    wants_text = False

    def __init__(self, job: Job, out: GraphWriter) -> None:
        self._label, self._requested, self._out = job.source.label, job.options.weight, out
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
                if self._requested != _WEIGHT and self._requested in (key, self._titles.get(key)):
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
        if self._requested and self._requested != _WEIGHT:
            keys = [k for k, title in self._titles.items() if self._requested in (k, title)]
            if not keys and self._out.weighted:
                names = ", ".join(map(repr, [_WEIGHT, *self._titles.values()]))
                raise UsageError(
                    f"{self._label} has no attribute {self._requested!r} of links; it has {names}"
                )
            self._weight = self._defaults.get(keys[0], "") if keys else ""
        both = attributes.get("type", self._type) != "directed"
        ends = attributes.get("source", ""), attributes.get("target", "")
        self._link = (*ends, both, line)
