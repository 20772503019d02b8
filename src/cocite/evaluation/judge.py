"""One judge for all that rank: the same queries, the same truth, every figure from one list each.

A query's list is asked for once, whole; what the figures need of it is added up, and the list is
forgotten. What is kept is a row a query (:class:`Judgement`), from which means, intervals and
differences are made (``bootstrap.py``).

    figure          what it is                                              defined in
    gamma           sibling Gamma, micro-averaged, top 100                  gamma.py
    gamma_macro     sibling Gamma, macro-averaged, whole lists              gamma.py
    precision@k, recall@k, ndcg@k                                           relevance.py
    content@T       Delta(., T), mean cosine of the texts                   content.py
    hits            how many nodes a list has
    answered        the share of queries whose list is not empty

Cost: what the ranker takes to list everything, and some 0.15 ms a query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation.bootstrap import Bootstrap, Interval
from cocite.evaluation.content import Content
from cocite.evaluation.gamma import count_pairs
from cocite.evaluation.labels import SAME, Hierarchy
from cocite.evaluation.rankings import Ranker
from cocite.evaluation.relevance import relevance_at
from cocite.runner import in_order

__all__ = ["CUTOFFS", "TOP", "Figures", "Judge", "Judgement", "headline"]

TOP = 100
"""How much of a list the micro-averaged Gamma looks at (001)."""
CUTOFFS = (1, 5, 10, 20, 50)
_BATCH = 64
_RELEVANCE = ("precision", "recall", "ndcg")

Progress = Callable[[int, int], None]
Figures = dict[str, Interval]


def headline(titles: Sequence[str]) -> list[str]:
    """The figures that tell most: one cutoff of each kind, 10 if it is there, else the largest."""
    found = [title for title in ("gamma", "gamma_macro") if title in titles]
    for kind in (*_RELEVANCE, "content"):
        cutoffs = [int(t.split("@")[1]) for t in titles if t.startswith(f"{kind}@")]
        if cutoffs:
            found.append(f"{kind}@{10 if 10 in cutoffs else max(cutoffs)}")
    return found


@dataclass(frozen=True)
class Judgement:
    """What one ranker's lists come to, a row a query, as parts and wholes of ratios.

    ``parts`` and ``wholes`` are float64[queries, figures], the columns named by ``titles``;
    ``pairs`` is how many comparable pairs the whole lists have.
    """

    titles: tuple[str, ...]
    parts: NDArray[np.float64]
    wholes: NDArray[np.float64]
    pairs: int

    def column(self, title: str) -> NDArray[np.float64]:
        """float64[queries]: the figure of every query by itself, nan where it is left out."""
        at = self.titles.index(title)
        found = np.full(len(self.parts), np.nan)
        wholes = self.wholes[:, at]
        np.divide(self.parts[:, at], wholes, out=found, where=wholes != 0)
        return found

    def value(self, title: str) -> float:
        """A figure by itself; -inf where it is not defined, which is less than any."""
        at = self.titles.index(title)
        whole = float(self.wholes[:, at].sum())
        return float(self.parts[:, at].sum()) / whole if whole else float("-inf")

    def of(self, rows: NDArray[np.bool_]) -> Judgement:
        """That of some of the queries, bool[queries]."""
        wholes = self.wholes[rows]
        return Judgement(self.titles, self.parts[rows], wholes, _pairs(self.titles, wholes))

    def figures(self, bootstrap: Bootstrap) -> Figures:
        """Every figure with its interval."""
        ratios = bootstrap.ratios(self.parts, self.wholes)
        return {title: bootstrap.interval(ratios[:, i]) for i, title in enumerate(self.titles)}

    def differences(self, other: Judgement, bootstrap: Bootstrap) -> Figures:
        """How much every figure is above that of ``other``, on the same queries."""
        ratios = bootstrap.ratios(self.parts, self.wholes)
        ratios = ratios - bootstrap.ratios(other.parts, other.wholes)
        return {title: bootstrap.interval(ratios[:, i]) for i, title in enumerate(self.titles)}


def _pairs(titles: tuple[str, ...], wholes: NDArray[np.float64]) -> int:
    """The comparable pairs of all lists."""
    if "gamma_macro" not in titles:
        return 0
    return int(wholes[:, titles.index("gamma_macro")].sum())


class Judge:
    """The truth, and the queries."""

    def __init__(
        self,
        queries: NDArray[np.uint32],
        *,
        familial: Hierarchy | None = None,
        relevance: Hierarchy | None = None,
        content: Content | None = None,
        cutoffs: Sequence[int] = CUTOFFS,
        depth: int = 50,
        top: int = TOP,
        gamma_least: float = 0.0,
        longest: int = 0,
    ) -> None:
        """``familial`` is the tree for Gamma, ``relevance`` the classes for precision and the like,
        ``content`` the texts, of which ``depth`` hits are compared: what is missing is not judged.
        Gamma compares nodes that score more than ``gamma_least``. ``longest``: ask for so many hits
        only, which is quicker, 0 for whole lists; what looks further down must not be judged then.
        """
        if queries.size == 0:
            raise UsageError("there is no query: no node has a label or a text")
        if top < 2 or depth < 1 or not cutoffs or min(cutoffs) < 1:
            raise UsageError("top is 2 or more, cutoffs and depth are 1 or more")
        if not 0 <= gamma_least < float("inf"):
            raise UsageError(f"gamma_least is {gamma_least!r}; it is a number, 0 or more")
        if longest and (familial or longest < max([*cutoffs, depth if content else 0])):
            raise UsageError(f"lists of {longest} hits are too short for what is to be judged")
        self.queries, self._least, self._longest = queries, gamma_least, longest
        self._familial, self._relevance, self._content = familial, relevance, content
        self._cutoffs, self._depth, self._top = sorted(set(cutoffs)), depth, top
        self._totals = [relevance.same_count(int(q)) for q in queries] if relevance else []
        self.titles = self._titles()

    def _titles(self) -> tuple[str, ...]:
        titles = ["hits", "answered"]
        titles += ["gamma", "gamma_macro"] if self._familial else []
        if self._relevance:
            titles += [f"{kind}@{k}" for kind in _RELEVANCE for k in self._cutoffs]
        titles += [f"content@{t + 1}" for t in range(self._depth)] if self._content else []
        return tuple(titles)

    def __call__(
        self,
        ranker: Ranker,
        *,
        threads: int = 1,
        progress: Progress = lambda done, total: None,
    ) -> Judgement:
        """Ask the ranker every query; ``progress`` gets queries (done, total)."""
        total = self.queries.size
        parts, wholes = (np.zeros((total, len(self.titles))) for _ in range(2))
        batches = [range(low, min(low + _BATCH, total)) for low in range(0, total, _BATCH)]

        def work(batch: range) -> tuple[range, list[NDArray[np.float64]]]:
            return batch, [self._row(ranker, row) for row in batch]

        for batch, rows in in_order([work] * threads, batches):
            for at, row in zip(batch, rows, strict=True):
                parts[at], wholes[at] = row
            progress(batch.stop, total)
        return Judgement(self.titles, parts, wholes, _pairs(self.titles, wholes))

    def _row(self, ranker: Ranker, at: int) -> NDArray[np.float64]:
        """float64[2, figures]: the parts and wholes of one query."""
        node = int(self.queries[at])
        ids, scores = ranker.related(node, self._longest or ranker.nodes)
        parts, wholes = [float(ids.size), float(ids.size > 0)], [1.0, 1.0]
        if self._familial:
            relation = self._familial.relation(node, ids)
            micro = count_pairs(scores[: self._top], relation[: self._top], least=self._least)
            macro = count_pairs(scores, relation, with_query=True, least=self._least)
            parts += [micro.gamma, float(macro.concordant - macro.discordant)]
            wholes += [1.0, float(macro.concordant + macro.discordant)]
        if self._relevance:
            nearest = ids[: self._cutoffs[-1]]
            relevant = self._relevance.relation(node, nearest) == SAME
            found = relevance_at(relevant, self._totals[at], self._cutoffs).ravel()
            parts += found.tolist()
            wholes += [1.0] * found.size
        if self._content:
            found = self._content.delta(node, ids, self._depth)
            parts += found.tolist()
            wholes += [1.0] * found.size
        row = np.array([parts, wholes])
        row[:, np.isnan(row[0])] = 0
        return row
