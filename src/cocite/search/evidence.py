"""Multiply scores by evidence, a factor that depends on shared neighbors.

``measures/evidence.py`` has the formulas. An index of walks has no links, so evidence reads them
from the graph of the newest samples; an index with a draft has its own links. In the direction
``both``, each part uses its own links. Scaled scores are rounded to grains again; errors and sample
values are scaled without rounding.

For each node that meets the query node, every neighbor in the shorter row is looked up in the
longer row. For the direction ``out``, the links are reversed on first use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cocite.constants import Floats, Ids, Ints
from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.index import StoredIndex
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    NOTHING,
    Estimate,
    Graphs,
    PairEvidence,
    QueryScratch,
    Reader,
    Reasons,
    Span,
    SummingReader,
    Values,
)
from cocite.measures import PartSettings, WholeSettings
from cocite.measures.evidence import evidence_of
from cocite.measures.settings import EVIDENCE
from cocite.resources import Resources
from cocite.search.source import GivenGraph, checked_graph

Factors = Callable[[int, Ids], Floats]
"""Returns the evidence of a node and others, float64[h]."""


class Evidence:
    """Counts shared neighbors. Thread-safe."""

    def __init__(self, stored: StoredIndex, means: Resources, given: GivenGraph) -> None:
        self._stored, self._means, self._given = stored, means, given
        self._lock = threading.Lock()
        self._built: dict[str, Links] = {}

    def over(self, readers: tuple[Reader, ...], asked: WholeSettings) -> tuple[Reader, ...]:
        """Return a reader per part, with evidence if requested."""
        return tuple(self._weighed(reader, reader.part.evidence(asked)) for reader in readers)

    def _weighed(self, reader: Reader, form: str) -> Reader:
        if form == EVIDENCE.default:
            return reader
        assert isinstance(reader, SummingReader)
        links = self._links(reader.part)
        return EvidenceReader(reader, lambda *pair: evidence_of(self.shared(links, *pair), form))

    def shared(self, links: Links, node: int, others: Ids) -> Ints:
        """Return int64[h], the counts of distinct shared neighbors; raises :class:`Damaged`."""
        from cocite.kernels import neighbors

        found = np.empty(others.size, np.int64)
        (me,) = self._stored.in_graph(np.array([node], np.uint32)).tolist()
        theirs = self._stored.in_graph(others)
        if not neighbors.shared(links.offsets, links.neighbors, me, theirs, found):
            raise Damaged(f"{self._graph.path} is damaged; see: cocite verify {self._graph.path}")
        return found

    @cached_property
    def _graph(self) -> Graph:
        return checked_graph(self._stored, self._given)

    def _links(self, part: StoredPart) -> Links:
        if part.on_the_fly:
            return part.links(part.direction)
        with self._lock:  # reversed once for all threads
            if part.direction not in self._built:
                self._built[part.direction] = links_of(
                    self._graph, part.direction, self._means.memory
                )
            return self._built[part.direction]


class EvidenceReader(SummingReader):
    """A sampled part whose values are multiplied by evidence."""

    def __init__(self, inner: SummingReader, factors: Factors) -> None:
        super().__init__(inner.part)
        self._inner, self._factors = inner, factors

    def _factor(self, first: int, second: int) -> float:
        return float(self._factors(first, np.array([second], np.uint32))[0])

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; evidence does not change a node's similarity to itself."""
        found = self._inner.pair(first, second, settings)
        if first == second:
            return found
        factor = self._factor(first, second)
        return Estimate(float(np.rint(found.grains * factor)), found.variance * factor * factor)

    @property
    def pairs_from(self) -> int | None:
        """Return the value of the underlying part."""
        return self._inner.pairs_from

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairEvidence:
        """Return the part's scores and values, multiplied by evidence."""
        found = self._inner.pairs(first, second, settings)
        each = zip(first.tolist(), second.tolist(), strict=True)
        factors = np.fromiter((self._factor(*pair) for pair in each), float, first.size)
        grains = np.rint(found.estimates[:, 0] * factors)
        variances = found.estimates[:, 1] * factors * factors

        def values(some: slice) -> Values:
            least, most = found.values(some)
            return least * factors[some], most * factors[some]

        return PairEvidence(np.column_stack((grains, variances)), values)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add the sums without evidence."""
        return self._inner.gather_sums(node, settings, scratch)

    def _settle(self, node: int, scratch: QueryScratch, used: Ids, samples: int) -> None:
        from cocite.kernels import totals

        given = scratch.sums, used, self._factors(node, used), float(samples), self.part.weight
        own = scratch.totals, scratch.touched, scratch.have
        scratch.have = int(totals.settle(*given, *own))

    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return the part's values and upper bounds, multiplied by evidence."""
        least, most = self._inner.values(node, others, settings)
        factors = self._factors(node, others)
        return least * factors, most * factors

    def span(self, settings: PartSettings) -> Span:
        """Return the span: from 0 (evidence is in [0, 1]) to the part's maximum."""
        return Span(0.0, 0.0, self._inner.span(settings).most)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the part's reasons, with scaled shares."""
        factor = self._factor(first, second)
        if factor == 0:
            return NOTHING
        found = self._inner.reasons(first, second, settings, graphs)
        return replace(
            found, shares=found.shares * factor, unattributed=found.unattributed * factor
        )


def refuse_evidence(parts: Sequence[StoredPart], asked: WholeSettings) -> None:
    """Raise :class:`UsageError` if a refined answer is requested with evidence."""
    for form in (part.evidence(asked) for part in parts):
        if form != EVIDENCE.default:
            raise UsageError(
                f"evidence is {form!r}, which refined answers do not support: omit --evidence "
                "(evidence=...), or --refine (refine=True) and --target-error (target_error=...)"
            )
