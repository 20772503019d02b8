"""``.dot``: graphs for Graphviz.

    neato -Tsvg near.dot -o near.svg        sfdp -Tsvg knn.dot -o knn.svg, of many pages

A node shows the title of its page, if it has one, and else its name; what has a title has its name
as ``page`` and as tooltip. Names that are URLs are links in SVG. The page asked for is framed.

Backslashes, quotes and what looks like an entity of HTML are escaped: Graphviz shows them as they
are. Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import re

from cocite.graph.writers.graphs import Facts, GraphFile, GraphForm, visible

__all__ = ["DOT"]

_ESCAPED = visible([*range(0x20), *range(0xD800, 0xE000)])
_ESCAPED = {code: rf"\{text}" for code, text in _ESCAPED.items()}
_ESCAPED |= {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINKS = ("http://", "https://")


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return '"' + _ENTITY.sub("&amp;", str(value)).translate(_ESCAPED) + '"'


class _Dot(GraphForm):
    def head(self) -> str:
        kind = "digraph" if self.shape.directed else "graph"
        return (
            f"// {' '.join(str(self.shape.about).translate(_ESCAPED).split())}\n"
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
