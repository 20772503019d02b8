"""Why two nodes are similar: the score as a sum over pages.

    score = sum over reasons of share,    share = weight of the part * share in the part's score

For walks, the pages are those at which two walks meet. All layouts store when walks meet; ``paths``
and ``compact`` also store where. For ``trees``, the walks are recomputed from the graph. For other
measures, see ``index/layouts/reader.py``. Shares add up exactly to the estimate, which may differ
from the true score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cocite.constants import Bools, Floats, Ids, Ints, added
from cocite.errors import StoreError, UsageError
from cocite.index import StoredIndex
from cocite.measures import WholeSettings
from cocite.options import EITHER
from cocite.resources import Resources
from cocite.search.scorer import Nodes, Scorer
from cocite.search.source import GivenGraph, find_graph, find_graphs

LISTS = ("nearest", "rows")
"""Layouts that store lists of nearest pages."""


class Explainer:
    """Computes reasons for scores. Thread-safe."""

    def __init__(self, scorer: Scorer, resources: Resources, graph: GivenGraph) -> None:
        """Use the readers of ``scorer``. ``graph`` locates the index's graph if it was moved."""
        self._scorer, self._resources, self._graph = scorer, resources, graph

    def why(
        self, pair: tuple[int, int], k: int, settings: WholeSettings, graph: GivenGraph = None
    ) -> Why:
        """Return the ``k`` main reasons for a pair's score: pages by descending share, then
        ascending id, then ``in`` before ``out``.

        If the two nodes are near each other, that reason comes first, or last in a bipartite graph.
        """
        stored, readers = self._scorer.stored, self._scorer.reading(settings)
        first, second = pair
        score, _ = self._scorer.pair(first, second, settings)
        graphs = find_graphs(stored, self._resources, self._graph if graph is None else graph)
        if first == second:
            return _itself(stored, first, score)
        found = [
            reader.reasons(first, second, reader.part.ask_settings(settings), graphs)
            for reader in readers
        ]
        for each in found:
            known = stored.nodes + len(each.gone)
            if (
                bool((each.nodes >= known).any())
                or not np.isfinite([*each.shares, each.unattributed]).all()
            ):
                raise stored.damaged()
        if score <= 0:  # shares below the score's last digit are not reasons
            return Why(score, [], 0, 0.0)
        shares = np.concatenate(
            [reader.part.weight * f.shares for reader, f in zip(readers, found, strict=True)]
        )
        nodes = np.concatenate([f.nodes for f in found])
        parts = np.repeat(np.arange(len(found)), [f.nodes.size for f in found])
        looked = [reader.part.measure.looks_at(reader.part.direction) for reader in readers]
        either = [f.samples is None and way in EITHER for f, way in zip(found, looked, strict=True)]
        rows = _once(nodes, parts, shares, np.array(either))
        begins = np.cumsum([0, *(f.nodes.size for f in found)])
        # In lists of nearest nodes, one reason is that the two nodes are near each other. This most
        # obvious reason comes first. In a bipartite graph it comes last: no link joins two nodes on
        # one side, so they are near only because of common neighbors.
        lists = [reader.part.layout in LISTS for reader in readers] == [True]
        two = stored.names.sides is not None
        own = np.isin(nodes, pair) & (lists or two)
        rows = _joined(rows, own, nodes, shares, second) if lists else rows
        place = np.where(own, 1 if two else -1, 0)
        rounded = shares.round(12)  # shares displayed as equal are ordered as ties
        order = rows[np.lexsort((parts[rows], nodes[rows], -rounded[rows], place[rows]))]
        reasons = []
        for at in order[:k].tolist():
            part = int(parts[at])
            row, part_found = at - int(begins[part]), found[part]
            one, other = part_found.path(row)
            reasons.append(
                Reason(
                    part_found.named([int(nodes[at])], stored.names)[0],
                    float(rounded[at]),
                    looked[part],
                    None if part_found.samples is None else int(part_found.samples[row]),
                    len(one) - 1 if len(one) == len(other) > 0 else None,
                    part_found.named(one, stored.names),
                    part_found.named(other, stored.names),
                )
            )
        others = order[k:]
        unattributed = added(
            r.part.weight * f.unattributed for r, f in zip(readers, found, strict=True)
        )
        rest = round(float(shares[others].sum()), 12)
        return Why(score, reasons, others.size, rest, round(unattributed, 12))

    def why_together(
        self,
        nodes: Nodes,
        other: int,
        k: int,
        aggregate: str,
        settings: WholeSettings,
        graph: GivenGraph = None,
    ) -> WhyTogether:
        """Return each node's contribution to the score of ``other``, with reasons."""
        score, scores, shares = self._scorer.shares(nodes, other, aggregate, settings)
        name = self._scorer.stored.names.name
        return WhyTogether(
            score,
            [
                PageWhy(name(node), own, share, self.why((node, other), k, settings, graph))
                for node, own, share in zip(nodes, scores, shares, strict=True)
            ],
        )


def links_between(
    stored: StoredIndex, graph: GivenGraph
) -> Callable[[str, str], tuple[bool, bool]]:
    """Return a function that tells, for two pages, whether each links to the other."""
    try:
        found = find_graph(stored, graph)
    except (StoreError, UsageError):
        return lambda one, other: (False, False)

    def linked(one: str, other: str) -> tuple[bool, bool]:
        a, b = found.names.find(one), found.names.find(other)
        if a is None or b is None:
            return False, False
        return bool(a in found.in_neighbors(b)), bool(b in found.in_neighbors(a))

    return linked


class Reason(NamedTuple):
    """A page that makes two nodes a and b similar.

    ``contribution`` is the page's share of the score. ``links`` is the direction of the links used:
    ``in``, ``out``, ``any`` or ``both``. ``both`` occurs only for a node with itself and for lists
    of nearest pages. With ``any`` or ``both``, a page has one reason; in a blend, its paths come
    from the last part that contains the page. ``path_a`` and ``path_b`` are node names, from a and
    from b to the page inclusive, ``steps`` links each. For walks, this pair of paths contributes
    most to the share, and ``samples`` counts the samples in which the walks meet at the page.

    Unknown paths are empty, with ``steps`` None. ``pagesim`` stores which pages reach each other,
    but not how. For ``snn``, the page is near both nodes. For ``ppr``, the page precedes b, and
    ``path_b`` leads back to the page. For ``companion``, the page is a hub that links to b. For
    ``tfidf``, which uses no links, ``links`` is ``none`` and ``node`` is a word in both texts.
    """

    node: str
    contribution: float
    links: str
    samples: int | None
    steps: int | None
    path_a: tuple[str, ...]
    path_b: tuple[str, ...]


class Why(NamedTuple):
    """A score as a sum of shares: those of ``reasons``, ``remaining`` for the ``others`` that are
    not listed, and ``unattributed`` for unknown pages.

    Unattributed shares come from samples whose graph is unavailable (in a refreshed index) and, for
    ``xjaccard``, from pages that were removed or are not in the index.
    """

    score: float
    reasons: list[Reason]
    others: int
    remaining: float
    unattributed: float = 0.0


class PageWhy(NamedTuple):
    """A query node's own score, its contribution to the combined score, and its reasons."""

    node: str
    score: float
    contribution: float
    why: Why


class WhyTogether(NamedTuple):
    """The score of a hit for several query nodes: the sum of the contributions of ``pages``."""

    score: float
    pages: list[PageWhy]


def _once(nodes: Ids, parts: Ints, shares: Floats, either: Bools) -> Ints:
    """Return the rows of reasons to show.

    Parts marked in ``either`` show each page once, in the row of the last such part, with the sum
    of the page's shares.
    """
    present = np.flatnonzero(either[parts])
    _, first, same = np.unique(nodes[present][::-1], return_index=True, return_inverse=True)
    last = present[::-1][first]
    shares[last] = np.bincount(same, shares[present][::-1], last.size)
    return np.sort(np.concatenate([np.flatnonzero(~either[parts]), last]))


def _joined(rows: Ints, own: Bools, nodes: Ids, shares: Floats, second: int) -> Ints:
    """Merge the rows of the pair's ``own`` nodes into one row, preferably the second node's."""
    mine = rows[own[rows]]
    if mine.size < 2:
        return rows
    last = mine[np.argmax(nodes[mine] == second)]
    shares[last] = shares[mine].sum()
    rest: Ints = rows[~own[rows] | (rows == last)]
    return rest


def _itself(stored: StoredIndex, node: int, score: float) -> Why:
    if score <= 0:
        return Why(score, [], 0, 0.0)
    name, made = stored.names.name(node), None
    if stored.samples is not None:
        made = int(stored.freshness.knowing(node, np.array([node]))[0])
    links = stored.measure.looks_at(stored.direction)
    reason = Reason(name, score, links, made, 0, (name,), (name,))
    return Why(score, [reason], 0, 0.0)
