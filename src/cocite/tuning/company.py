"""How well lists find the company of links that are hidden: a judge that needs no labels.

A page v has lost its link with a page w. Who is in the *company* that v had there, has the same
link with w still: the other pages that link to w, if v did; those that w links to, if it linked to
v. Related pages should be such company, as the index never saw that v belongs to it.

    company@k = mean over pages v of   sum of g(x) over x in the first k of v's list and in C(v)
                                       / the sum of the k largest g(x) over C(v)

    C(v)      = the company of all links that v has lost, without v
    g(x)      = 1 / sqrt(1 + links of x, either way, that are not hidden)

Popular pages are in everybody's company, so that finding them tells little: without g measures that
list popular pages win. ``links@k`` is the share of the hidden ends w themselves among the first k,
as in link prediction. Both were compared with labels (docs/tuning.md): company@50 agrees with them,
links@k mostly does not, as a page's related pages need not be linked with it.

Convention: a w with more than 10,000 links of that kind tells of nobody, and is left out; a page
without company is left out of the mean.

Cost: a list of 50 a page, and some 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation import Judgement, Ranker
from cocite.graph import Graph
from cocite.graph.links import in_links, out_links
from cocite.graph.rows import Links
from cocite.runner import in_order
from cocite.tuning.hiding import Hidden

__all__ = ["COMPANY_TITLES", "CUTOFFS", "Company"]

CUTOFFS = (10, 50)
WIDEST = 10_000
COMPANY_TITLES = (
    "answered",
    *(f"company@{k}" for k in CUTOFFS),
    *(f"links@{k}" for k in CUTOFFS),
)
_BATCH = 32
Ids = NDArray[np.uint32]


class Company:
    """The judge: ``queries`` uint32[q] are pages that have lost links and have company."""

    titles = COMPANY_TITLES

    def __init__(self, graph: Graph, shown: Graph, hidden: Hidden, pages: Ids, memory: int) -> None:
        """``graph`` has all links, ``shown`` those that are not ``hidden``; ``pages`` ascending.

        Raises :class:`UsageError` if none of them has company.
        """
        ins, outs = in_links(shown), out_links(shown, memory)
        degrees = np.diff(ins.offsets).astype(np.int64) + np.diff(outs.offsets).astype(np.int64)
        self._gains = 1 / np.sqrt(1.0 + degrees)
        found: list[tuple[int, Ids, Ids]] = []
        for page, ends in zip(pages.tolist(), hidden.of_pages(pages), strict=True):
            company = _company(graph, ins, outs, page, ends)
            if company.size:
                found.append((page, ends, company))
        if not found:
            raise UsageError(
                f"no page of {graph.path} that loses a link leaves company behind: there is "
                "nothing to find. Choose by labels (--labels), or take the default"
            )
        self.queries = np.array([page for page, _, _ in found], np.uint32)
        self._ends = [ends for _, ends, _ in found]
        self._company = [company for _, _, company in found]

    def of(self, rows: NDArray[np.bool_]) -> Company:
        """The same judge of some of its pages, bool[queries]."""
        part = object.__new__(Company)
        at = np.flatnonzero(rows)
        part._gains, part.queries = self._gains, self.queries[at]
        part._ends = [self._ends[i] for i in at]
        part._company = [self._company[i] for i in at]
        return part

    def __call__(
        self,
        ranker: Ranker,
        *,
        threads: int = 1,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Judgement:
        """Ask the ranker every page; ``progress`` gets pages (done, total)."""
        total = self.queries.size
        parts, wholes = (np.zeros((total, len(self.titles))) for _ in range(2))
        batches = [range(low, min(low + _BATCH, total)) for low in range(0, total, _BATCH)]

        def work(batch: range) -> tuple[range, list[NDArray[np.float64]]]:
            return batch, [self._row(ranker, row) for row in batch]

        for batch, rows in in_order([work] * threads, batches):
            for at, row in zip(batch, rows, strict=True):
                parts[at], wholes[at] = row, 1.0
            progress(batch.stop, total)
        return Judgement(self.titles, parts, wholes, 0)

    def _row(self, ranker: Ranker, at: int) -> NDArray[np.float64]:
        """float64[titles]: the figures of one page."""
        ids = ranker.related(int(self.queries[at]), CUTOFFS[-1]).ids
        company, ends = self._company[at], self._ends[at]
        best = np.sort(self._gains[company])[::-1]
        gains = np.where(np.isin(ids, company), self._gains[ids], 0.0)
        there = np.isin(ids, ends)
        figures = [float(ids.size > 0)]
        figures += [float(gains[:k].sum() / best[:k].sum()) for k in CUTOFFS]
        figures += [float(there[:k].sum() / min(k, ends.size)) for k in CUTOFFS]
        return np.array(figures)


def _company(graph: Graph, ins: Links, outs: Links, page: int, ends: Ids) -> Ids:
    """Who has with one of ``ends`` a link as ``page`` had it: ascending."""
    found = []
    for end in ends.tolist():
        if _has(graph.in_neighbours(end), page):
            found.append(_row_of(ins, end))
        if _has(graph.in_neighbours(page), end):
            found.append(_row_of(outs, end))
    found = [row for row in found if row.size <= WIDEST]
    company = np.unique(np.concatenate(found)) if found else np.empty(0, np.uint32)
    others: Ids = company[company != page].astype(np.uint32)
    return others


def _row_of(links: Links, node: int) -> Ids:
    begin, end = int(links.offsets[node]), int(links.offsets[node + 1])
    return np.asarray(links.neighbours[begin:end])


def _has(ascending: Ids, node: int) -> bool:
    at = int(np.searchsorted(ascending, np.uint32(node)))
    return at < ascending.size and int(ascending[at]) == node
