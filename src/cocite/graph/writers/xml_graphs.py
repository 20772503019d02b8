"""``.graphml`` and ``.gexf``: graphs as XML 1.0, in UTF-8.

GEXF is 1.2, which Gephi and NetworkX read; GraphML has its keys by their titles. Attributes of text
have tabs and line breaks as references, as XML would make blanks of them.

Source: http://graphml.graphdrawing.org/specification.html, https://gexf.net/schema.html
"""

from __future__ import annotations

from cocite.graph.writers.graphs import Facts, GraphFile, GraphForm, visible

__all__ = ["GEXF", "GRAPHML"]

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
