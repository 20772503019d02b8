"""Links sent to ``POST /v1/links``, which affect answers before a refresh adds them to the index.

Posted links go to a log beside the index (``graph/journal.py``). Every server process reads the log
when it grows. A node with posted links is queried like an unseen node, with its links in the graph
and in the log. Each generation of an index reads the log, and ignores links that its graph has.
Links that a refresh removes from the log stay in memory, so they count until the new index is open.

A query costs two system calls; the first query for a changed node also costs a copy of the links.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from cocite.errors import UnknownNode, UsageError
from cocite.graph.journal import PostedLink, decoded_links, encoded_links, has_link, journal_of
from cocite.graph.spelling import NameQuery, refused_in, trimmed
from cocite.io.readers.contract import normalizer
from cocite.io.readers.parquet import MAX_NAME
from cocite.results import Document
from cocite.search import Index
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from cocite.search.source import find_graph
from cocite.search.unseen import UnseenNode
from cocite.server.requests import ANSWERS, TooMany, Values, heavy, stored
from cocite.server.results import CompleteDocument, Limits
from cocite.storage.records import RecordLog, RecordReader

_DRAFTS = 4
"""Number of recently queried changed nodes whose indexes are cached."""
_MOST = 10_000
"""Maximum degree of a node whose posted links count; for hubs, they would change little."""
_LEAST_WEIGHT, _WEIGHTS_END = 1e-30, 1e30


class _Link(msgspec.Struct, forbid_unknown_fields=True):
    source: str | int
    target: str | int
    weight: float = 1.0


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    links: list[_Link]
    index: str | None = None


class TakenLinks(NamedTuple):
    """Counts of new ``links``, ``ignored`` ones (existing or self-loops), and new nodes; and the
    end of the log.
    """

    links: int
    ignored: int
    new_nodes: int
    position: int


def links_in(body: bytes, lines: bool, limits: Limits) -> tuple[str | None, list[PostedLink]]:
    """Return the index name in a body, or None, and the links.

    The body is an object or, with ``lines``, JSON lines. Raises ``msgspec.DecodeError`` and
    :class:`UsageError`.
    """
    try:
        if lines:
            index, rows = None, msgspec.json.Decoder(_Link).decode_lines(body)
        else:
            found = msgspec.json.decode(body, type=_Body)
            index, rows = found.index, found.links
    except msgspec.ValidationError as error:
        raise UsageError(f"links are invalid: {error}") from None
    if len(rows) > limits.links:
        raise TooMany(
            f"the request has {len(rows):,} links; this server accepts {limits.links:,} at once"
        )
    if not rows:
        raise UsageError("the request has no links: send one or more")
    return index, [_checked(place, row) for place, row in enumerate(rows)]


def _checked(place: int, row: _Link) -> PostedLink:
    if not _LEAST_WEIGHT <= row.weight < _WEIGHTS_END:
        raise UsageError(
            f"links[{place}].weight is {row.weight:g}; it must be a number from 1e-30 to below 1e30"
        )
    ends = {"source": trimmed(str(row.source)), "target": trimmed(str(row.target))}
    for what, name in ends.items():
        fault = "" if name else "is empty"
        if len(name.encode()) > MAX_NAME:
            fault = f"is longer than {MAX_NAME:,} bytes"
        elif refused := refused_in(name):
            fault = f"has {refused}"
        if fault:
            raise UsageError(f"links[{place}].{what} {fault}")
    return PostedLink(**ends, weight=row.weight)


class FreshLinks:
    """Links posted for an index and missing from its graph. Thread-safe."""

    def __init__(self, index: Index, path: str) -> None:
        """Open the log of the index at ``path``; raises :class:`CociteError` if drafts are not
        supported.
        """
        if index.stored.measure.texts:
            raise UsageError(
                f"{path} compares texts, but posted links have no texts: serve an index without "
                "texts, or omit --accept-links"
            )
        self._index, self._graph = index, find_graph(index.stored, index.given)
        self._names = index.nodes.stored
        index.with_draft([self._names.name(0)])  # raises an error if drafts are not supported
        for way in ("in", "out"):
            index.now.unseen.links(way)  # load now, so that the first query does not wait
        self._path = journal_of(path)
        self._log, self._reader = RecordLog(self._path), RecordReader(self._path)
        facts = self._graph.store.facts
        self._both = bool(facts["undirected"])
        self._called: Callable[[str], str] = normalizer() if "normalized_urls" in facts else str
        self._out: dict[str, dict[str, float]] = {}
        self._into: dict[str, dict[str, float]] = {}
        self._drafts: OrderedDict[str, Index] = OrderedDict()
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self.links = 0
        """The number of posted links."""
        self.look()

    def close(self) -> None:
        """Close the log."""
        with self._lock:
            self._reader.close()

    def look(self) -> int:
        """Read new records; return the number of links."""
        with self._lock:
            for record in self._reader.new():
                for link in decoded_links(self._path, record):
                    self._add(link)
            return self.links

    def _add(self, link: PostedLink) -> None:
        if self._has(link):
            return
        self.links += 1
        for a, b in ((link.source, link.target), (link.target, link.source))[: 1 + self._both]:
            self._out.setdefault(a, {})[b] = link.weight
            self._into.setdefault(b, {})[a] = link.weight
        for name in link[:2]:
            self._drafts.pop(name, None)

    def _has(self, link: PostedLink) -> bool:
        return link.target in self._out.get(link.source, ()) or has_link(self._graph, link)

    # -- taking ---------------------------------------------------------------------------

    def take(self, links: Sequence[PostedLink], limits: Limits) -> TakenLinks:
        """Append links to the log on disk; raises :class:`TooMany` and :class:`UsageError`."""
        if not self._index.stored.weighted and any(link.weight != 1 for link in links):
            raise UsageError(
                "the links have weights, but the index ignores weights: omit the weights"
            )
        links = [PostedLink(self._called(a), self._called(b), weight) for a, b, weight in links]
        with self._taking:
            self.look()
            each = {link[:2]: link for link in reversed(links)}
            new = [link for link in reversed(each.values()) if not self._has(link)]
            if not new:
                return TakenLinks(0, len(links), 0, self._reader.position)
            if self.links + len(new) > limits.pending:
                raise TooMany(
                    f"{self.links:,} links wait for a refresh, and this server stores at most "
                    f"{limits.pending:,}: refresh the index (cocite refresh --add-links)"
                )
            ends = dict.fromkeys(name for link in new for name in link[:2])
            nodes = sum(not self._is_node(name) and not self._changed(name) for name in ends)
            position = self._log.append(encoded_links(new))
            self.look()
        return TakenLinks(len(new), len(links) - len(new), nodes, position)

    def _is_node(self, name: str) -> bool:
        return self._names.find(name) is not None

    def _changed(self, name: str) -> bool:
        return name in self._out or name in self._into

    # -- answering ------------------------------------------------------------------------

    def answer(self, operation: str, values: Values) -> tuple[Document, Index] | None:
        """Return the answer for a changed node, and the index used; None for other nodes."""
        if operation in ("complete", "draft") or heavy(values) or not self.look():
            return None
        asked = values["node"] if operation == "related" else (values["a"], values["b"])
        names = [n for each in asked for n in ([each] if isinstance(each, str) else each)]
        rest = [name for name in names if not self._changed(name)]
        resolved = dict(zip(rest, stored(self._index, values, rest), strict=True))
        changed = [n for n in (resolved.get(n, n) for n in names) if self._changed(n)]
        fresh = self._draft(list(dict.fromkeys(changed)))
        if fresh is None:
            return None
        name, index = fresh
        document = ANSWERS[operation](index, values)
        assert isinstance(document, RelatedDocument | SimilarityDocument | WhyDocument)
        return replace(document, loss=document.loss | {"fresh": name}), index

    def _draft(self, changed: list[str]) -> tuple[str, Index] | None:
        """Return a new node, or else a changed one, and an index with the node's current links.

        Returns None if no posted link counts; raises :class:`UnknownNode` for two new nodes.
        """
        new = [name for name in changed if not self._is_node(name)]
        if len(new) > 1:
            note = f"It is new, like {new[0]!r}: until a refresh, query them one at a time"
            raise UnknownNode(new[1], note=note)
        for name in new or changed:
            with self._lock:
                index = self._drafts.get(name) or self._new_index(name)
                if index is not None:
                    self._drafts[name] = index
                    self._drafts.move_to_end(name)
                    while len(self._drafts) > _DRAFTS:
                        self._drafts.popitem(last=False)
                    return name, index
        return None

    def _new_index(self, name: str) -> Index | None:
        node, weighted = self._names.find(name), self._index.stored.weighted
        sides: list[dict[str, float]] = []
        more = False
        for way, posted in (("out", self._out), ("in", self._into)):
            links = {
                n: w for n, w in posted.get(name, {}).items() if n != name and self._is_node(n)
            }
            more = more or bool(links)
            if node is not None:
                every = self._index.now.unseen.links(way)
                row = slice(int(every.offsets[node]), int(every.offsets[node + 1]))
                if row.stop - row.start > _MOST:
                    return None
                ids = every.neighbors[row]
                weights = [1.0] * ids.size if every.weights is None else every.weights[row].tolist()
                theirs = dict(zip(self._names.names(ids), weights, strict=True))
                links |= {n: w for n, w in theirs.items() if n != name}
            sides.append(links)
        if not more and node is None:
            note = "It is new, and linked only with new nodes: query it after a refresh"
            raise UnknownNode(name, note=note)
        if not more:
            return None
        draft = UnseenNode.of(*(links if weighted else list(links) for links in sides))
        return self._index.with_unseen(draft, name=name, replaced=node)

    def completed(self, found: CompleteDocument, k: int) -> CompleteDocument:
        """Add matching names of new nodes to the document."""
        if not self.look():
            return found
        query, most = NameQuery(found.text), 5 if found.matches else 2
        with self._lock:
            names = dict.fromkeys((*self._out, *self._into))
        new = [n for n in names if query.how(n) <= most and not self._is_node(n)]
        nodes = [*found.nodes, *new]
        titles = None if found.titles is None else [*found.titles, *[None] * len(new)][:k]
        more = found.more or len(nodes) > k
        return replace(found, nodes=nodes[:k], titles=titles, more=more)
