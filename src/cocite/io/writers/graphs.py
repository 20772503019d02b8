r"""Weighted graphs as files for Gephi, NetworkX, igraph and Graphviz: GraphML, GEXF 1.2, DOT.

Node ids are written as ``n0``, ``n1``, ..., which is valid in every format; a page's name is its
``label``. Other values, including a link's ``weight``, are attributes; missing values are omitted.
XML cannot represent some characters (most below U+0020, surrogates, U+FFFE, U+FFFF), and DOT
cannot represent control characters and surrogates. These are escaped visibly, as in ``\u0007``.

Some programs require nodes before links, so links are stored in an unnamed temporary file until
all nodes are written. Writing needs memory for a chunk, and a byte per node.
http://graphml.graphdrawing.org/specification.html, https://gexf.net/schema.html,
https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.storage import disk

Facts = Mapping[str, Any]
"""Attributes of a node or link: name -> value."""
Values = Sequence[Any] | NDArray[Any]
"""A column of attributes."""

_ROWS = 1 << 14


@dataclass(frozen=True)
class GraphShape:
    """Attributes of nodes and of links, other than the weight: name -> type.

    Types are ``string``, ``double``, ``int`` or ``boolean``. ``about`` describes the graph.
    """

    node: Mapping[str, str]
    link: Mapping[str, str]
    about: str = ""
    directed: bool = True


@dataclass(frozen=True)
class GraphPiece:
    """Some of a graph's nodes and links.

    Nodes have ``ids``, names as ``labels``, and ``facts``, a column for each attribute; a node's
    first occurrence counts. Links have ``sources`` and ``targets`` by id, float64 ``weights``, and
    ``link_facts``.
    """

    ids: NDArray[Any]
    labels: Values
    facts: Mapping[str, Values]
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64]
    link_facts: Mapping[str, Values]


@dataclass(frozen=True)
class GraphForm:
    """A format applied to one graph.

    ``head``, ``between`` and ``tail`` are the texts before nodes, before links, and at the end.
    ``node`` formats a node (id, label, facts), ``link`` a link (number from 0 on, source, target,
    weight, facts); facts exclude missing values.
    """

    head: str
    node: Callable[[int, str, Facts], str]
    link: Callable[[int, int, int, float, Facts], str]
    tail: str
    between: str = ""


@dataclass(frozen=True)
class GraphFile:
    """A graph file format; ``form(shape)`` applies it to a graph."""

    title: str
    form: Callable[[GraphShape], GraphForm]

    def write(self, path: Path, pieces: Iterable[GraphPiece], shape: GraphShape) -> None:
        """Write a graph; buffer links in a temporary file next to ``path``."""
        with (
            disk.rewrite(path) as file,
            tempfile.TemporaryFile(dir=path.parent, buffering=0) as links,
        ):
            _write(self.form(shape), file, links, pieces)


def graph_text(form: GraphForm, pieces: Iterable[GraphPiece]) -> str:
    """Return a small graph as text."""
    out = BytesIO()
    _write(form, out, BytesIO(), pieces)
    return out.getvalue().decode()


def _write(form: GraphForm, file: BinaryIO, links: BinaryIO, pieces: Iterable[GraphPiece]) -> None:
    seen, number = np.zeros(0, bool), 0
    disk.write(file, form.head.encode())
    for piece in pieces:
        most = int(piece.ids.max()) + 1 if piece.ids.size else 0
        if most > seen.size:
            seen = np.concatenate([seen, np.zeros(max(most, 2 * seen.size) - seen.size, bool)])
        _, first = np.unique(piece.ids, return_index=True)
        new = np.sort(first[~seen[piece.ids[first]]])
        seen[piece.ids[new]] = True
        columns = [[values[i] for i in new] for values in piece.facts.values()]
        rows = zip(piece.ids[new].tolist(), (piece.labels[i] for i in new), *columns, strict=True)
        text = [form.node(n, str(label), _there(piece.facts, facts)) for n, label, *facts in rows]
        disk.write(file, "".join(text).encode())
        for low in range(0, piece.sources.size, _ROWS):
            part = slice(low, low + _ROWS)
            ends = (each[part].tolist() for each in (piece.sources, piece.targets, piece.weights))
            columns = [
                values[part].tolist() if isinstance(values, np.ndarray) else list(values[part])
                for values in piece.link_facts.values()
            ]
            text = []
            for source, target, weight, *facts in zip(*ends, *columns, strict=True):
                known = _there(piece.link_facts, facts)
                text.append(form.link(number, source, target, weight, known))
                number += 1
            disk.write(links, "".join(text).encode())
    disk.write(file, form.between.encode())
    links.seek(0)
    while text_of_links := links.read(1 << 20):
        disk.write(file, text_of_links)
    disk.write(file, form.tail.encode())


def _there(titles: Iterable[str], values: Iterable[Any]) -> Facts:
    """Return a mapping of names to values; omit missing values."""
    pairs = zip(titles, values, strict=True)
    return {
        t: v for t, v in pairs if v is not None and not (isinstance(v, float) and math.isnan(v))
    }


def _visible(codes: Iterable[int]) -> dict[int, str]:
    """Map characters that a format cannot represent to visible escapes, for ``str.translate``."""
    return {code: f"\\u{code:04x}" for code in codes}


# -- dot ---------------------------------------------------------------------------------

# A node's label is its page's title, with the name as ``page`` and tooltip; without a title, the
# label is the name. URLs become links in SVG. The query page has a thick frame. Backslashes, quotes
# and HTML entities are escaped.

_ESCAPED = {c: rf"\{t}" for c, t in _visible([*range(0x20), *range(0xD800, 0xE000)]).items()}
_ESCAPED |= {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}
_ENTITY = re.compile(r"&(?=#?\w+;)")


def _dot(shape: GraphShape) -> GraphForm:
    arrow = "->" if shape.directed else "--"

    def node(number: int, label: str, facts: Facts) -> str:
        title = facts.get("title")
        shown = {"label": title or label} | ({"page": label, "tooltip": label} if title else {})
        if label.startswith(("http://", "https://")):
            shown["URL"] = label
        if facts.get("asked"):
            shown |= {"penwidth": "2", "fillcolor": "#dbe8f4"}
        shown |= {name: value for name, value in facts.items() if name != "title"}
        return f"n{number} [{_attributes(shown)}];\n"

    def link(number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        return f"n{source} {arrow} n{target} [{_attributes({'weight': weight, **facts})}];\n"

    head = (
        f"// {' '.join(str(shape.about).translate(_ESCAPED).split())}\n"
        f"{'digraph' if shape.directed else 'graph'} related {{\n"
        'graph [overlap=false, sep="+6", splines=true, outputorder=edgesfirst];\n'
        'node [shape=box, style="filled,rounded", fillcolor=white, fontname="sans-serif"];\n'
        'edge [color="#4c8bc980"];\n'
    )
    return GraphForm(head, node, link, "}\n")


def _attributes(facts: Facts) -> str:
    return ", ".join(f"{title}={_quoted(value)}" for title, value in facts.items())


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return '"' + _ENTITY.sub("&amp;", str(value)).translate(_ESCAPED) + '"'


# -- xml graphs --------------------------------------------------------------------------

# Tabs and line breaks in attributes are written as character references, because XML parsers would
# convert them to blanks.

_IN_XML = _visible([*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF])
_IN_XML |= {ord(sign): f"&#{ord(sign)};" for sign in "\t\n\r"}
_IN_XML |= {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"}
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def _text(value: object) -> str:
    """Return a value as text for an XML element or attribute."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value).translate(_IN_XML)


def _directed(shape: GraphShape) -> str:
    return "directed" if shape.directed else "undirected"


def _each(form: str, facts: Facts) -> str:
    """Return ``form``, filled in for each name ``{t}`` and value ``{v}``."""
    return "".join(form.format(t=_text(title), v=_text(value)) for title, value in facts.items())


def _graphml(shape: GraphShape) -> GraphForm:
    def node(number: int, label: str, facts: Facts) -> str:
        inside = _each('<data key="n.{t}">{v}</data>', {"label": label, **facts})
        return f'<node id="n{number}">{inside}</node>\n'

    def link(number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        inside = _each('<data key="e.{t}">{v}</data>', {"weight": weight, **facts})
        return f'<edge source="n{source}" target="n{target}">{inside}</edge>\n'

    key = '<key id="{}.{{t}}" for="{}" attr.name="{{t}}" attr.type="{{v}}"/>\n'
    declared = _each(key.format("n", "node"), {"label": "string", **shape.node})
    declared += _each(key.format("e", "edge"), {"weight": "double", **shape.link})
    head = (
        f'{_XML}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f"<desc>{_text(shape.about)}</desc>\n{declared}"
        f'<graph id="related" edgedefault="{_directed(shape)}">\n'
    )
    return GraphForm(head, node, link, "</graph>\n</graphml>\n")


def _gexf(shape: GraphShape) -> GraphForm:
    def values(facts: Facts) -> str:
        inside = _each('<attvalue for="{t}" value="{v}"/>', facts)
        return f"<attvalues>{inside}</attvalues>" if inside else ""

    def node(number: int, label: str, facts: Facts) -> str:
        return f'<node id="n{number}" label="{_text(label)}">{values(facts)}</node>\n'

    def link(number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        return (
            f'<edge id="{number}" source="n{source}" target="n{target}" weight="{_text(weight)}">'
            f"{values(facts)}</edge>\n"
        )

    declared = ""
    for end, titles in (("node", shape.node), ("edge", shape.link)):
        kinds = {title: "integer" if kind == "int" else kind for title, kind in titles.items()}
        each = _each('<attribute id="{t}" title="{t}" type="{v}"/>\n', kinds)
        if each:
            declared += f'<attributes class="{end}" mode="static">\n{each}</attributes>\n'
    head = (
        f'{_XML}<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
        f"<meta><creator>cocite</creator><description>{_text(shape.about)}</description></meta>\n"
        f'<graph mode="static" defaultedgetype="{_directed(shape)}">\n{declared}<nodes>\n'
    )
    tail = "</edges>\n</graph>\n</gexf>\n"
    return GraphForm(head, node, link, tail, between="</nodes>\n<edges>\n")


DOT = GraphFile("DOT", _dot)
GRAPHML = GraphFile("GraphML", _graphml)
GEXF = GraphFile("GEXF", _gexf)
