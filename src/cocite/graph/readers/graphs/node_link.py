"""JSON of nodes and links: NetworkX's node-link data, and what d3 draws.

    {"directed": true, "nodes": [{"id": "a"}, ...], "links": [{"source": "a", "target": "b"}, ...]}

``edges`` may stand for ``links``. A node's label is its ``label``, ``name`` or ``title``. Where
nodes have no ids, links name them by their numbers from 0, as d3 does. Links have the direction
that they are written in, unless ``"directed": false`` stands beside them. ``--weight-column`` is a
key of links, such as ``value`` or ``weight``.

Cost: some microseconds a node and link, and that of :mod:`~cocite.graph.readers.graphs.reading`.
"""

from __future__ import annotations

from typing import Any

from cocite.graph.readers.graphs.reading import GraphWriter
from cocite.graph.readers.json_values import JSONText
from cocite.graph.readers.reader import Job, Read

__all__ = ["READER", "NodeLinkReader", "name_of"]

_LABELS = ("label", "name", "title")


class NodeLinkReader:
    """Node-link data."""

    title = "JSON of nodes and links"
    described = (
        "JSON of nodes and links (NetworkX, d3); nodes are named by their labels (label, name or "
        "title) if all have one of their own, else by their ids"
    )
    streams = True

    def read(self, job: Job) -> Read:
        """All links, and all nodes."""
        directed, number = True, 0
        with GraphWriter(job, self.title) as out, JSONText(job) as text:
            for key, value, line in text.members():
                if key == "directed":
                    directed = value is not False
                elif key == "nodes":
                    _node(out, value, number, line)
                    number += 1
                elif key in ("links", "edges"):
                    _link(out, value, job.options.weight, line)
            if text.peek():
                raise text.wrong("more than one value of JSON")
            return out.finish(all_both=not directed)


READER = NodeLinkReader()


def name_of(value: Any) -> str | None:
    """A text or a whole number as a name; None of anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _node(out: GraphWriter, value: Any, number: int, line: int) -> None:
    given = value if isinstance(value, dict) else {"id": value}
    name = name_of(given.get("id", number))
    if name is None:
        out.bad_node("node", line, "a node whose id is no text or whole number", str(value)[:100])
        return
    labels = (name_of(given[key]) for key in _LABELS if key in given)
    out.node(name, next(filter(None, labels), None), line)


def _link(out: GraphWriter, value: Any, weight: str, line: int) -> None:
    ends: list[Any] = []
    if isinstance(value, dict):
        ends = [value.get("source"), value.get("target"), value.get(weight, "")]
    elif isinstance(value, list) and len(value) >= 2:
        ends = [*value[:2], value[2] if len(value) > 2 else ""]
    # d3 puts the node itself in the place of its id while it draws
    names = [name_of(end.get("id") if isinstance(end, dict) else end) for end in ends[:2]]
    if len(names) < 2 or None in names:
        out.bad_link("link", line, "no link of a source and a target", str(value)[:100])
        return
    source, target = map(str, names)
    out.link(source, target, "" if ends[2] is None else str(ends[2]), False, line)
