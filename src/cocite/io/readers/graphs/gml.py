"""GML: nested keys and values in brackets.

    graph [ directed 1  node [ id 0 label "Zebra" ]  edge [ source 0 target 1 value 2 ] ]

Links are undirected unless the graph has ``directed 1``. ``--weight-column`` is a key of links,
such as ``value`` or ``weight``. Text is UTF-8, with HTML entities. Parsing takes a microsecond per
word. Himsolt, "GML: a portable graph file format", University of Passau, 1997.
"""

from __future__ import annotations

import re
from html import unescape

from cocite.errors import InputError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import LabeledGraph, whole_text

_WORD = re.compile(
    r'\s+|#[^\n]*|"(?P<text>[^"]*)"|(?P<mark>[\[\]])|(?P<key>[^\s\[\]"#]+)|(?P<open>")'
)


def _read_gml(job: Job) -> Read:
    out, text = LabeledGraph(job, READER.title), whole_text(job)
    directed, key, line = False, "", 1
    nesting: list[str] = []
    values: dict[str, str] = {}
    begun = 0

    def wrong(what: str) -> InputError:
        return InputError(f"{job.source.label}:{line}: {what}: this is not GML")

    for word in _WORD.finditer(text.decode("utf-8-sig", "surrogateescape")):
        kind = word.lastgroup
        content = word[kind] if kind else ""
        if kind == "open":
            raise wrong("an unclosed string")
        if kind and not key and content == "]" and kind == "mark" and nesting:
            if nesting == ["graph", "node"]:
                out.node(values.get("id", ""), values.get("label"), begun)
            elif nesting == ["graph", "edge"]:
                weight = values.get(job.options.weight.lower(), "")
                ends = values.get("source", ""), values.get("target", "")
                out.link(*ends, weight, False, begun)
            nesting.pop()
        elif kind and not key:
            if kind != "key":
                raise wrong(f"{content[:60]!r} in place of a key")
            key = content.lower()
        elif kind == "mark" and content == "]":
            raise wrong("']' in place of a key")
        elif kind == "mark":
            nesting.append(key)
            if nesting in (["graph", "node"], ["graph", "edge"]):
                values, begun = {}, line
            key = ""
        elif kind:
            if len(nesting) == 2:
                values.setdefault(key, unescape(content) if kind == "text" else content)
            elif nesting == ["graph"] and key == "directed":
                directed = content == "1"
            key = ""
        line += word[0].count("\n")
    if nesting or key:
        raise wrong("it ends within brackets")
    return out.finish(all_both=not directed)


READER = FormatReader(
    "GML",
    "GML; nodes are named by their labels if every node has a unique label, otherwise by their ids",
    _read_gml,
)
