"""Evaluate rankers on the same queries. All figures of a query come from a single list.

    gamma, gamma_macro             sibling Gamma: (C - D) / (C + D)
    precision@k, recall@k, ndcg@k  by hits that share a label with the query (*relevant*)
    filled_precision@k, ...        the same, with short lists filled up at random
    content@T                      Delta(., T), the mean cosine of the texts of the T best hits
    hits, answered                 the length of a list; the fraction of lists that are not empty

Sibling Gamma compares a list with the *familial* order (``evaluation/labels.py``). Of the pairs of
a node of the query's class and a node of a sibling class, both orders agree on C, and disagree on
D. Ties are in no pair, nor are nodes that are missing or score at most 0 (or ``least``). *micro* is
the mean over queries of Gamma in the best 100; *macro* pools the pairs of whole lists, each led by
its query.

With r_i = 1 if hit i is relevant, else 0, ndcg@k is the sum of r_i / log2(i + 1) over i <= k,
divided by its largest possible value. A missing hit has r_i = 0 and a cosine of 0; *filled* figures
use the fraction of relevant nodes among the unlisted ones, the mean over all their orders. Queries
without relevant nodes are excluded. scikit-learn (an extra) computes TF-IDF.

Source: Goodman, Kruskal 1954; Haveliwala, Gionis, Klein, Indyk 2002; Fogaras, Racz, *Scaling
link-based similarity search*, section 5.1 (micro), *A scalable randomized method ...*, section 6
(macro); Järvelin, Kekäläinen 2002 for nDCG; Lin, King, Lyu 2006, section 6, for texts.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.errors import InputError, UsageError
from cocite.evaluation.labels import SAME, SIBLING, Bootstrap, Hierarchy, Interval
from cocite.evaluation.rankers import Ranker
from cocite.extras import need
from cocite.graph.names import Names
from cocite.io.readers.tables import texts_of
from cocite.resources import require


class PairCount(NamedTuple):
    """Numbers of pairs on which the ranking agrees and disagrees with the labels."""

    concordant: int
    discordant: int

    @property
    def gamma(self) -> float:
        """Return (C - D) / (C + D); NaN without pairs."""
        total = self.concordant + self.discordant
        return (self.concordant - self.discordant) / total if total else float("nan")


def count_pairs(
    scores: NDArray[np.float64],
    relation: NDArray[np.int8],
    *,
    with_query: bool = False,
    least: float = 0.0,
) -> PairCount:
    """Count concordant and discordant pairs in a query's list.

    Parameters
    ----------
    scores
        float64[h], non-increasing.
    relation
        int8[h], the relation of each node to the query: ``labels.SAME``, ``SIBLING`` or ``OTHER``.
    with_query
        Count the query itself as the first node of its list, of class SAME.
    least
        If above 0, only nodes that score more are in pairs.
    """
    related = relation != 0
    if least > 0:
        related &= scores > least
    scores, relation = scores[related], relation[related]
    if scores.size == 0:
        return PairCount(0, 0)
    starts = np.flatnonzero(np.diff(scores, prepend=np.inf))
    same = np.add.reduceat(relation == SAME, starts, dtype=np.int64)
    siblings = np.add.reduceat(relation == SIBLING, starts, dtype=np.int64)
    same_above, siblings_above = np.cumsum(same) - same, np.cumsum(siblings) - siblings
    concordant = int(same_above @ siblings) + (int(siblings.sum()) if with_query else 0)
    return PairCount(concordant, int(siblings_above @ same))


Progress = Callable[[int, int], None]


_WEIGHING = 150_000_000
"""Bytes of scikit-learn and the libraries it loads."""


def read_texts(
    path: Path,
    names: Names,
    progress: Progress = lambda done, total: None,
    memory: int | None = None,
) -> dict[int, str]:
    """Read texts by node id. Raises the errors of :func:`~cocite.io.readers.tables.texts_of`, and
    :class:`~cocite.errors.ResourceError` if twice the texts, plus the libraries that weight words,
    exceed ``memory`` bytes.
    """
    found, held = dict[int, str](), 0
    texts = texts_of(path, names, progress)
    for node, text in texts:
        held += sys.getsizeof(text) - sys.getsizeof(found.get(node, ""))
        if memory is not None and 2 * held + _WEIGHING > memory:
            held += sum(sys.getsizeof(text) for _, text in texts)
            require(2 * held + _WEIGHING, memory, f"weighting the words of {path}")
        found[node] = text
    return found


class Content:
    """TF-IDF vectors of nodes. Thread-safe."""

    def __init__(self, texts: dict[int, str], nodes: int) -> None:
        """Compute the vectors of ``texts``, by id. Raises :class:`~cocite.errors.UsageError`
        without scikit-learn, and :class:`~cocite.errors.InputError` for texts without words.
        """
        text = need("sklearn.feature_extraction.text", "TF-IDF")
        ids = sorted(texts)
        try:
            vectors = text.TfidfVectorizer(dtype=np.float32).fit_transform(texts[i] for i in ids)
        except ValueError as error:  # "empty vocabulary"
            raise InputError(
                f"the {len(ids):,} texts have no word of two or more letters, so there is "
                "nothing to compare"
            ) from error
        counts = np.zeros(nodes + 1, np.int64)
        counts[np.array(ids) + 1] = np.diff(vectors.indptr)
        # Nodes without a text have empty rows.
        self._vectors = type(vectors)(
            (vectors.data, vectors.indices, np.cumsum(counts)), shape=(nodes, vectors.shape[1])
        )
        self._has = np.zeros(nodes, bool)
        self._has[ids] = True

    def cosines(self, node: int, others: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the cosines between the texts of ``node`` and ``others``, float64[others]."""
        rows = self._vectors[others.astype(np.int64)]
        dense = np.zeros(self._vectors.shape[1], np.float32)
        own = slice(*self._vectors.indptr[[node, node + 1]])
        dense[self._vectors.indices[own]] = self._vectors.data[own]
        found: NDArray[np.float64] = np.asarray(rows @ dense, np.float64)
        return found

    def delta(self, node: int, hits: NDArray[np.uint32], depth: int) -> NDArray[np.float64]:
        """Return the mean cosines of the best T = 1..depth hits; NaN if ``node`` has no text."""
        if not self._has[node]:
            return np.full(depth, np.nan)
        found = np.zeros(depth)
        hits = hits[:depth]
        found[: hits.size] = self.cosines(node, hits)
        return np.cumsum(found) / np.arange(1, depth + 1)


def relevance_at(
    relevant: NDArray[np.bool_],
    total: int,
    cutoffs: Sequence[int],
    candidates: int | None = None,
) -> NDArray[np.float64]:
    """Return precision, recall and nDCG, float64[3, cutoffs]; NaN if ``total`` is 0.

    Parameters
    ----------
    relevant
        bool[h], whether each hit is relevant, best first: the whole list, or its first hits up to
        the largest cutoff.
    total
        R, the number of relevant nodes.
    cutoffs
        The values of k, ascending.
    candidates
        The number of possible hits. If given, short lists are filled up with the missing nodes in
        random order.
    """
    ks = np.asarray(cutoffs, np.int64)
    if total == 0:
        return np.full((3, ks.size), np.nan)
    deepest = int(ks.max())
    found = np.zeros(deepest)
    found[: min(deepest, relevant.size)] = relevant[:deepest]
    if candidates is not None:
        missing = total - int(relevant.sum())
        found[relevant.size : candidates] = missing / max(candidates - relevant.size, missing, 1)
    discount = 1 / np.log2(np.arange(deepest) + 2.0)
    hits, gain, best = np.cumsum(found), np.cumsum(found * discount), np.cumsum(discount)
    ideal = best[np.minimum(ks, total) - 1]
    return np.stack([hits[ks - 1] / ks, hits[ks - 1] / total, gain[ks - 1] / ideal])


TOP = 100
"""List length for the micro-averaged Gamma (Fogaras, Racz, *Scaling ...*)."""
CUTOFFS = (1, 5, 10, 20, 50)
_BATCH = 32
_RELEVANCE = ("precision", "recall", "ndcg")
_FILLED = tuple(f"filled_{kind}" for kind in _RELEVANCE)

Figures = dict[str, Interval]


def headline(titles: Sequence[str]) -> list[str]:
    """Return the main figures, each kind at cutoff 10 if available, otherwise at the largest."""
    found = [title for title in ("gamma", "gamma_macro") if title in titles]
    for kind in (*_RELEVANCE, *_FILLED, "content"):
        cutoffs = [int(t.split("@")[1]) for t in titles if t.startswith(f"{kind}@")]
        if cutoffs:
            found.append(f"{kind}@{10 if 10 in cutoffs else max(cutoffs)}")
    return found


@dataclass(frozen=True)
class Judgment:
    """The figures ``titles`` of a ranker: ``parts`` over ``wholes``, float64[queries, figures]."""

    titles: tuple[str, ...]
    parts: NDArray[np.float64]
    wholes: NDArray[np.float64]

    @property
    def pairs(self) -> int:
        """Return the total number of pairs, 0 without Gamma."""
        if "gamma_macro" not in self.titles:
            return 0
        return int(self.wholes[:, self.titles.index("gamma_macro")].sum())

    def column(self, title: str) -> NDArray[np.float64]:
        """Return a figure per query, float64[queries]; NaN for excluded queries."""
        at = self.titles.index(title)
        found = np.full(len(self.parts), np.nan)
        wholes = self.wholes[:, at]
        np.divide(self.parts[:, at], wholes, out=found, where=wholes != 0)
        return found

    def value(self, title: str) -> float:
        """Return a figure over all queries; -inf if undefined, so that it sorts last."""
        at = self.titles.index(title)
        whole = float(self.wholes[:, at].sum())
        return float(self.parts[:, at].sum()) / whole if whole else float("-inf")

    def of(self, rows: NDArray[np.bool_]) -> Judgment:
        """Return the judgment for the selected queries, bool[queries]."""
        return Judgment(self.titles, self.parts[rows], self.wholes[rows])

    def figures(self, bootstrap: Bootstrap) -> Figures:
        """Return all figures with intervals."""
        ratios = bootstrap.ratios(self.parts, self.wholes)
        return {title: bootstrap.interval(ratios[:, i]) for i, title in enumerate(self.titles)}

    def differences(self, other: Judgment, bootstrap: Bootstrap) -> Figures:
        """Return the differences from ``other`` in all figures, on the same queries."""
        ratios = bootstrap.ratios(self.parts, self.wholes)
        ratios = ratios - bootstrap.ratios(other.parts, other.wholes)
        return {title: bootstrap.interval(ratios[:, i]) for i, title in enumerate(self.titles)}


class QueryJudge(ABC):
    """Computes the figures ``titles`` of rankers, one query after another."""

    titles: tuple[str, ...]
    queries: NDArray[np.uint32]

    @abstractmethod
    def of(self, rows: NDArray[np.bool_]) -> Self:
        """Return the judge for the selected queries, bool[queries]."""

    @abstractmethod
    def _row(self, ranker: Ranker, at: int) -> NDArray[np.float64]:
        """Return the numerators and denominators of query ``at``, float64[2, titles]."""

    def __call__(
        self,
        ranker: Ranker,
        *,
        threads: int = 1,
        progress: Progress = lambda done, total: None,
    ) -> Judgment:
        """Evaluate a ranker on all queries. ``progress`` is called with queries (done, total)."""
        count = self.queries.size
        parts, wholes = (np.zeros((count, len(self.titles))) for _ in range(2))
        batches = [range(low, min(low + _BATCH, count)) for low in range(0, count, _BATCH)]

        def work(batch: range) -> range:
            for at in batch:
                parts[at], wholes[at] = self._row(ranker, at)
            return batch

        for batch in in_order([work] * threads, batches):
            progress(batch.stop, count)
        return Judgment(self.titles, parts, wholes)


class Judge(QueryJudge):
    """Evaluates rankers by labels and texts."""

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
        """Choose the figures: Gamma by ``familial``, over nodes that score more than
        ``gamma_least``; precision, recall and nDCG by ``relevance``; cosines by ``content``, up to
        ``depth`` hits. None omits a figure.

        ``longest`` limits the length of lists for speed, and must suffice for all figures; 0 means
        whole lists.
        """
        if queries.size == 0:
            raise UsageError("there are no queries, because no node has a label or a text")
        if top < 2 or depth < 1 or not cutoffs or min(cutoffs) < 1:
            raise UsageError("top must be 2 or more; cutoffs and depth must be 1 or more")
        if not 0 <= gamma_least < float("inf"):
            raise UsageError(f"gamma_least is {gamma_least!r}; it must be a number, 0 or more")
        if longest and familial:
            raise UsageError(f"longest is {longest}, but Gamma needs whole lists: set longest to 0")
        needed = max([*cutoffs, depth if content else 0])
        if 0 < longest < needed:
            raise UsageError(f"longest is {longest}; it must be at least {needed}, or 0")
        self.queries, self._least, self._longest = queries, gamma_least, longest
        self._familial, self._relevance, self._content = familial, relevance, content
        self._cutoffs, self._depth, self._top = sorted(set(cutoffs)), depth, top
        self._totals = [relevance.same_count(int(q)) for q in queries] if relevance else []
        titles = ["hits", "answered"]
        titles += ["gamma", "gamma_macro"] if familial else []
        if relevance:
            titles += [f"{kind}@{k}" for kind in (*_RELEVANCE, *_FILLED) for k in self._cutoffs]
        titles += [f"content@{t + 1}" for t in range(depth)] if content else []
        self.titles = tuple(titles)

    def of(self, rows: NDArray[np.bool_]) -> Self:
        """Return the judge for the selected queries, bool[queries]."""
        part = copy(self)
        part.queries = self.queries[rows]
        part._totals = [total for total, row in zip(self._totals, rows, strict=False) if row]
        return part

    def _row(self, ranker: Ranker, at: int) -> NDArray[np.float64]:
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
            for candidates in (None, self._relevance.nodes - 1):
                found = relevance_at(relevant, self._totals[at], self._cutoffs, candidates).ravel()
                parts += found.tolist()
                wholes += [1.0] * found.size
        if self._content:
            found = self._content.delta(node, ids, self._depth)
            parts += found.tolist()
            wholes += [1.0] * found.size
        row = np.array([parts, wholes])
        row[:, np.isnan(row[0])] = 0
        return row
