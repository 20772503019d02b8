r"""Weighted graphs as files, for Gephi, NetworkX, igraph, Graphviz: GraphML, GEXF, DOT.

A file names its nodes ``n0``, ``n1``, ... by their ids in the graph: any of the formats takes that,
and no two names become one. The name of a page is the ``label``. What else is said of nodes and
links is an attribute, left out where it does not exist; the ``weight`` of a link is one of them.

Names may hold anything. XML has no way to write some characters (most of those below U+0020,
surrogates, U+FFFE, U+FFFF), and DOT ends at a NUL: ``\u0007``, in six letters, stands for these.

Nodes come before links, as some programs want. Pieces come once, so links wait in a nameless file.
Memory: a byte a node, and a piece. Disk: the links once more.

``.dot``: graphs for Graphviz.

    neato -Tsvg near.dot -o near.svg        sfdp -Tsvg knn.dot -o knn.svg, of many pages

A node shows the title of its page, if it has one, and else its name; what has a title has its name
as ``page`` and as tooltip. Names that are URLs are links in SVG. The page asked for is framed.

Backslashes, quotes and what looks like an entity of HTML are escaped: Graphviz shows them as they
are. Source: https://graphviz.org/doc/info/lang.html

``.graphml`` and ``.gexf``: graphs as XML 1.0, in UTF-8.

GEXF is 1.2, which Gephi and NetworkX read; GraphML has its keys by their titles. Attributes of text
have tabs and line breaks as references, as XML would make blanks of them.

Source: http://graphml.graphdrawing.org/specification.html, https://gexf.net/schema.html
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.storage import disk

Facts = Mapping[str, Any]
"""What is said of a node or link, by title."""
Values = Sequence[Any] | NDArray[Any]
"""A column of it."""

_ROWS = 1 << 14


@dataclass(frozen=True)
class GraphShape:
    """What is said of nodes, and of links beside their weight: titles, and ``string``, ``double``,
    ``int`` or ``boolean``. Links have a direction unless ``directed`` is false; ``about`` is a line
    on what it is.
    """

    node: Mapping[str, str]
    link: Mapping[str, str]
    about: str = ""
    directed: bool = True


@dataclass(frozen=True)
class GraphPiece:
    """Some nodes, by ``ids``, with their names as ``labels`` and ``facts``, a column each; of those
    that were there before the first counts. And some links: ``sources`` and ``targets`` by id,
    float64 ``weights``, and ``link_facts``.
    """

    ids: NDArray[Any]
    labels: Values
    facts: Mapping[str, Values]
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64]
    link_facts: Mapping[str, Values]


class GraphForm(ABC):
    """A format, of one graph: its parts as text, in the order in which they are written."""

    def __init__(self, shape: GraphShape) -> None:
        self.shape = shape

    @abstractmethod
    def head(self) -> str:
        """What stands before the nodes."""

    @abstractmethod
    def node(self, node: int, label: str, facts: Facts) -> str:
        """A node; facts that do not exist are left out before."""

    @abstractmethod
    def between(self) -> str:
        """What stands between nodes and links."""

    @abstractmethod
    def link(self, number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        """A link, the ``number``-th from 0 on."""

    @abstractmethod
    def tail(self) -> str:
        """What stands behind the links."""


@dataclass(frozen=True)
class GraphFile:
    """Files of graphs: ``form(shape)`` writes one."""

    title: str
    form: Callable[[GraphShape], GraphForm]

    def write(self, path: Path, pieces: Iterable[GraphPiece], shape: GraphShape) -> None:
        """Write a graph; links wait in the directory of ``path``."""
        with (
            disk.rewrite(path) as file,
            tempfile.TemporaryFile(dir=path.parent, buffering=0) as links,
        ):
            _write(self.form(shape), file, links, pieces)


def graph_text(form: GraphForm, pieces: Iterable[GraphPiece]) -> str:
    """A small graph as text."""
    out = BytesIO()
    _write(form, out, BytesIO(), pieces)
    return out.getvalue().decode()


def _write(form: GraphForm, file: BinaryIO, links: BinaryIO, pieces: Iterable[GraphPiece]) -> None:
    seen, number = np.zeros(0, bool), 0
    _put(file, form.head())
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
        _put(file, "".join(text))
        for low in range(0, piece.sources.size, _ROWS):
            part = slice(low, low + _ROWS)
            ends = (each[part].tolist() for each in (piece.sources, piece.targets, piece.weights))
            columns = [_plain(values[part]) for values in piece.link_facts.values()]
            text = []
            for source, target, weight, *facts in zip(*ends, *columns, strict=True):
                said = _there(piece.link_facts, facts)
                text.append(form.link(number, source, target, weight, said))
                number += 1
            _put(links, "".join(text))
    _put(file, form.between())
    links.seek(0)
    shutil.copyfileobj(links, _Checked(file), 1 << 20)
    _put(file, form.tail())


def _plain(values: Values) -> list[Any]:
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return found


def _there(titles: Iterable[str], values: Iterable[Any]) -> Facts:
    """What exists."""
    pairs = zip(titles, values, strict=True)
    return {
        t: v for t, v in pairs if v is not None and not (isinstance(v, float) and math.isnan(v))
    }


def _put(file: BinaryIO, text: str) -> None:
    """Forms leave nothing that UTF-8 could not write."""
    _Checked(file).write(text.encode())


class _Checked:
    """A file whose errors are those of the store."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        if isinstance(self._file, BytesIO):
            return self._file.write(data)
        disk.write(self._file, data)
        return len(data)


def visible(codes: Iterable[int]) -> dict[int, str]:
    """For ``str.translate``: characters that a format cannot hold, as people see them."""
    return {code: f"\\u{code:04x}" for code in codes}


# -- dot ---------------------------------------------------------------------------------


_DOT_ESCAPED = visible([*range(0x20), *range(0xD800, 0xE000)])
_DOT_ESCAPED = {code: rf"\{text}" for code, text in _DOT_ESCAPED.items()}
_DOT_ESCAPED |= {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINKS = ("http://", "https://")


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return '"' + _ENTITY.sub("&amp;", str(value)).translate(_DOT_ESCAPED) + '"'


class _Dot(GraphForm):
    def head(self) -> str:
        kind = "digraph" if self.shape.directed else "graph"
        return (
            f"// {' '.join(str(self.shape.about).translate(_DOT_ESCAPED).split())}\n"
            f"{kind} related {{\n"
            'graph [overlap=false, sep="+6", splines=true, outputorder=edgesfirst];\n'
            'node [shape=box, style="filled,rounded", fillcolor=white, fontname="sans-serif"];\n'
            'edge [color="#4c8bc980"];\n'
        )

    def node(self, node: int, label: str, facts: Facts) -> str:
        said: dict[str, object] = dict(facts)
        title = said.pop("title", None)
        shown = {"label": title or label} | ({"page": label, "tooltip": label} if title else {})
        if label.startswith(_LINKS):
            shown["URL"] = label
        if said.get("asked"):
            shown |= {"penwidth": "2", "fillcolor": "#dbe8f4"}
        return f"n{node} [{_attributes({**shown, **said})}];\n"

    def between(self) -> str:
        return ""

    def link(self, number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        arrow = "->" if self.shape.directed else "--"
        return f"n{source} {arrow} n{target} [{_attributes({'weight': weight, **facts})}];\n"

    def tail(self) -> str:
        return "}\n"


def _attributes(facts: Facts) -> str:
    return ", ".join(f"{title}={_quoted(value)}" for title, value in facts.items())


DOT = GraphFile("DOT", _Dot)


# -- xml graphs --------------------------------------------------------------------------


_NEVER = [*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
_ESCAPED = visible(_NEVER) | {ord(sign): f"&#{ord(sign)};" for sign in "\t\n\r"}
_ESCAPED |= {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"}


def _text(value: object) -> str:
    """A value in a text or an attribute."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value).translate(_ESCAPED)


class _GraphML(GraphForm):
    def head(self) -> str:
        keys = [("node", {"label": "string", **self.shape.node})]
        keys.append(("edge", {"weight": "double", **self.shape.link}))
        declared = "".join(
            f'<key id="{end[0]}.{_text(title)}" for="{end}" attr.name="{_text(title)}" '
            f'attr.type="{kind}"/>\n'
            for end, titles in keys
            for title, kind in titles.items()
        )
        way = "directed" if self.shape.directed else "undirected"
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
            f"<desc>{_text(self.shape.about)}</desc>\n{declared}"
            f'<graph id="related" edgedefault="{way}">\n'
        )

    def node(self, node: int, label: str, facts: Facts) -> str:
        said = _data("n", {"label": label, **facts})
        return f'<node id="n{node}">{said}</node>\n'

    def between(self) -> str:
        return ""

    def link(self, number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        said = _data("e", {"weight": weight, **facts})
        return f'<edge source="n{source}" target="n{target}">{said}</edge>\n'

    def tail(self) -> str:
        return "</graph>\n</graphml>\n"


def _data(end: str, facts: Facts) -> str:
    return "".join(
        f'<data key="{end}.{_text(title)}">{_text(value)}</data>' for title, value in facts.items()
    )


class _Gexf(GraphForm):
    def head(self) -> str:
        declared = "".join(
            f'<attributes class="{end}" mode="static">\n'
            + "".join(
                f'<attribute id="{_text(title)}" title="{_text(title)}" '
                f'type="{"integer" if kind == "int" else kind}"/>\n'
                for title, kind in titles.items()
            )
            + "</attributes>\n"
            for end, titles in (("node", self.shape.node), ("edge", self.shape.link))
            if titles
        )
        way = "directed" if self.shape.directed else "undirected"
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
            f"<meta><creator>cocite</creator>"
            f"<description>{_text(self.shape.about)}</description></meta>\n"
            f'<graph mode="static" defaultedgetype="{way}">\n{declared}<nodes>\n'
        )

    def node(self, node: int, label: str, facts: Facts) -> str:
        return f'<node id="n{node}" label="{_text(label)}">{_values(facts)}</node>\n'

    def between(self) -> str:
        return "</nodes>\n<edges>\n"

    def link(self, number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        return (
            f'<edge id="{number}" source="n{source}" target="n{target}" weight="{_text(weight)}">'
            f"{_values(facts)}</edge>\n"
        )

    def tail(self) -> str:
        return "</edges>\n</graph>\n</gexf>\n"


def _values(facts: Facts) -> str:
    if not facts:
        return ""
    said = "".join(
        f'<attvalue for="{_text(title)}" value="{_text(value)}"/>' for title, value in facts.items()
    )
    return f"<attvalues>{said}</attvalues>"


GRAPHML = GraphFile("GraphML", _GraphML)
GEXF = GraphFile("GEXF", _Gexf)
