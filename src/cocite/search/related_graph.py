"""The k-nearest-neighbor graph, restricted to query pages and their hits.

Each hit is queried with the same options. Its own hits become links if the graph contains them.

    node    label (the name), title, asked, score (with the query page)
    link    weight (the score), rank, low, high, stderr
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from cocite.errors import UsageError
from cocite.io.writers import GRAPHS, kinds_of
from cocite.io.writers.graphs import GraphFile, GraphPiece, GraphShape, graph_text
from cocite.search.hits import Hit
from cocite.storage import check_file, staged_file

_LINK = {"rank": "int", "low": "double", "high": "double", "stderr": "double"}
_ALONE = ("aggregate", "offset", "total")
"""Options that apply to the query pages, but not to their hits."""


@dataclass(frozen=True)
class RelatedGraph:
    """A neighborhood: the query pages ``asked``, and their ``hits``.

    ``links`` are (source, target, rank, hit): ``hit`` is the target with its score, at ``rank``
    among the source's hits. ``titles`` has one title per page, "" for none; None if the graph has
    no titles.
    """

    asked: Sequence[Any]
    hits: Sequence[Hit]
    links: Sequence[tuple[Any, Any, int, Hit]]
    titles: Sequence[str] | None
    about: str = ""

    @classmethod
    def of(
        cls, index: Any, node: Any, k: int, hits: Sequence[Hit] | None = None, **options: Any
    ) -> Self:
        """Query ``node`` (unless ``hits`` are given) and each hit."""
        if options.get("only") is not None:
            options["only"] = list(options["only"])  # may be an iterator, and is used repeatedly
        asked = index.nodes.names(np.array(index.now.ids_of(node)))
        if hits is None:
            hits = index.related(node, k, **options)
        nodes = [*asked, *(hit.node for hit in hits)]
        places = {name: place for place, name in enumerate(nodes)}
        alone = {name: value for name, value in options.items() if name not in _ALONE}
        offset = int(options.get("offset", 0))
        first = [(asked[0], hits, offset)] if len(asked) == 1 else []
        rest = nodes[len(first) :]
        many = index.related_many(rest, k, **alone)
        found = zip(rest, many, strict=True)
        lists = [*first, *((name, its, 0) for name, its in found)]
        links = [
            (name, hit.node, rank, hit)
            for name, its, before in lists
            for rank, hit in enumerate(its, before + 1)
            if hit.node in places
        ]
        named = ", ".join(map(str, asked))
        about = f"the neighborhood of {named}, by {index.measure}"
        return cls(asked, hits, links, index.titles_of(nodes), about)

    @property
    def nodes(self) -> list[Any]:
        """Return all page names, query pages first."""
        return [*self.asked, *(hit.node for hit in self.hits)]

    def _facts(self) -> dict[str, list[Any]]:
        """Return the facts of the nodes, by column name."""
        title = {} if self.titles is None else {"title": [title or None for title in self.titles]}
        asked, hits = len(self.asked), len(self.hits)
        scores = [None] * asked + [hit.score for hit in self.hits]
        return title | {"asked": [True] * asked + [False] * hits, "score": scores}

    def _piece(self) -> GraphPiece:
        places = {name: place for place, name in enumerate(self.nodes)}
        hits = [hit for *_, hit in self.links]
        scores = {
            title: [getattr(hit, title) for hit in hits] for title in ("low", "high", "stderr")
        }
        return GraphPiece(
            np.arange(len(places)),
            self.nodes,
            self._facts(),
            np.array([places[source] for source, *_ in self.links], np.int64),
            np.array([places[target] for _, target, *_ in self.links], np.int64),
            np.array([hit.score for hit in hits], np.float64),
            {"rank": [rank for _, _, rank, _ in self.links], **scores},
        )

    @property
    def _shape(self) -> GraphShape:
        title = {"title": "string"} if self.titles is not None else {}
        return GraphShape({**title, "asked": "boolean", "score": "double"}, _LINK, self.about)

    def to_text(self, kind: str) -> str:
        """Return the graph as text; ``kind`` is ``graphml``, ``gexf`` or ``dot``."""
        return graph_text(_writer(kind).form(self._shape), [self._piece()])

    def to_networkx(self) -> Any:
        """Return the graph as a ``networkx.DiGraph``, with names as nodes."""
        from cocite.extras import need

        graph = need("networkx", "a NetworkX graph", "networkx").DiGraph()
        facts = self._facts()
        for name, *values in zip(self.nodes, *facts.values(), strict=True):
            known = zip(facts, values, strict=True)
            graph.add_node(name, **{title: value for title, value in known if value is not None})
        for source, target, rank, hit in self.links:
            attributes = {"rank": rank, "low": hit.low, "high": hit.high, "stderr": hit.stderr}
            graph.add_edge(source, target, weight=hit.score, **attributes)
        return graph

    def write(
        self, output: str | os.PathLike[str], *, kind: str | None = None, overwrite: bool = False
    ) -> Path:
        """Write GraphML, GEXF or DOT, by ``kind`` or the file extension; raises
        :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
        """
        path = Path(output)
        writer = _writer(path.suffix.removeprefix(".") if kind is None else kind)
        check_file(path, overwrite)
        with staged_file(path) as file:
            writer.write(Path(file.name), [self._piece()], self._shape)
        return path


def _writer(kind: str) -> GraphFile:
    found = GRAPHS.get(f".{kind.lower()}")
    if found is None:
        raise UsageError(f"kind is {kind!r}; it must be one of {', '.join(kinds_of(GRAPHS))}")
    return found
