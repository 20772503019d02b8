"""Other orders of a list: by PageRank, or by the score times it.

    score             the most similar first
    score*pagerank    the largest product first
    pagerank          the most important first

of the ``candidates`` that score best. Who orders by importance needs similarity only to tell what
is related at all, so fewer samples do (000). Ties keep the order of scores.

PageRank is that of the index's graph, computed by ``ranking/pagerank.py`` with its defaults when it
is first asked for and kept with the index: seconds for some million links, 8 bytes a node. Or it is
read from what ``cocite rank -o`` wrote: an array by id (``.npy``), which is mapped, or a table of
names, some microseconds a node.

Source: Fogaras, Racz, *A scalable randomized method to compute link-based similarity rank on the
web graph*, 4.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocite.errors import InputError, UsageError
from cocite.index import StoredIndex
from cocite.search.source import find_graph
from cocite.search.stages import Reasoned, check_number

ORDERS = ("score", "score*pagerank", "pagerank")
DEFAULT_ORDER = "score"
_LEAST, _TIMES = 100, 4
_ROWS = 1 << 14
_MAKING = threading.Lock()
"""Ranks are made once, whatever threads ask for them."""
RanksLike = str | os.PathLike[str] | NDArray[np.float64] | None
Ranks = NDArray[np.float64]


@dataclass(frozen=True)
class Order:
    """How a list is ordered: ``by`` what, out of how many ``candidates``, and which of these are
    looked at: the ``k`` that are shown, and what may belong among them.
    """

    by: str
    candidates: int
    k: int
    looked: slice

    @classmethod
    def checked(
        cls, by: str, candidates: int | None, ranks: RanksLike, k: int, offset: int
    ) -> Order:
        """Raises :class:`UsageError`. By default max(100, 4 * (k + offset)) are candidates."""
        if by not in ORDERS:
            raise UsageError(f"order is {by!r}; it is " + " or ".join(ORDERS))
        end = offset + k
        if by == DEFAULT_ORDER:
            for name, value in (("candidates", candidates), ("ranks", ranks)):
                if value is not None:
                    raise UsageError(
                        f"{name} go with an order by PageRank: choose {' or '.join(ORDERS[1:])}, "
                        f"or leave {name} out"
                    )
            return cls(by, end + 1, k, slice(offset, end + 1))
        if candidates is not None:
            check_number("candidates", candidates, 1)
        found = max(_LEAST, _TIMES * end) if candidates is None else int(candidates)
        # A candidate that is not shown may have the larger product.
        return cls(by, found, k, slice(offset, end if by == "pagerank" else None))


class Ordered(Reasoned):
    """An index whose lists may have other orders."""

    def pageranks(self, nodes: Iterable[object], ranks: RanksLike = None) -> list[float]:
        """The PageRanks of some nodes, by which lists are ordered.

        Parameters
        ----------
        nodes
            Names of nodes.
        ranks
            A file that ``cocite rank -o`` wrote, or float64[nodes] by id. By default the PageRank
            of the index's graph is computed, once.

        Raises
        ------
        UnknownNode
            If no node has a name.
        InputError
            For a file that does not hold a rank of every node.
        NotAStore, UsageError
            If the graph is needed and not found, or another one.
        """
        found: list[float] = self._ranked(self.nodes.ids(list(nodes)), ranks).tolist()
        return found

    def _ranked(self, ids: NDArray[np.uint32], ranks: RanksLike) -> Ranks:
        """float64[h]: the ranks of some nodes. An index that keeps some pages only has other ids
        than the graph.
        """
        found: Ranks = self._ranks(ranks)[self._stored.in_graph(ids)]
        return found

    def _ranks(self, ranks: RanksLike) -> Ranks:
        """float64[nodes of the graph]: those given, or those of the graph."""
        if ranks is not None and not isinstance(ranks, str | os.PathLike):
            return _checked(ranks, self._stored.graph_nodes, "ranks")
        kept: dict[str, Ranks] = self.__dict__.setdefault("_kept_ranks", {})
        key = "" if ranks is None else str(Path(ranks).absolute())
        with _MAKING:
            if key not in kept:
                kept[key] = self._computed() if ranks is None else _read(Path(ranks), self._stored)
        return kept[key]

    def _computed(self) -> Ranks:
        from cocite.ranking import pagerank

        graph = find_graph(self._stored, self._graph)
        graph.check()
        return pagerank(graph, memory=self.means.memory).values

    def _places(
        self, order: Order, ids: NDArray[np.uint32], scores: ArrayLike, ranks: RanksLike
    ) -> NDArray[np.intp]:
        """Which of the candidates are looked at, in their order; ``ids`` are in that of scores."""
        if order.by == DEFAULT_ORDER:
            return np.arange(ids.size)[order.looked]
        values = self._ranked(ids, ranks)
        if order.by != "pagerank":
            values = values * np.asarray(scores, np.float64)
        return np.argsort(-values, kind="stable")[order.looked]


def _checked(values: ArrayLike, nodes: int, name: str) -> Ranks:
    found = np.asarray(values)
    if found.shape != (nodes,) or found.dtype.kind != "f":
        raise InputError(
            f"{name}: found {found.dtype}{list(found.shape)}; it is a number for each of {nodes:,} "
            "nodes, as cocite rank -o writes them"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"{name}: a rank is a finite number, 0 or more")
    return found.astype(np.float64, copy=False)


def _read(path: Path, stored: StoredIndex) -> Ranks:
    """float64[nodes of the graph]: the ranks in a file, of the nodes of the index at least."""
    from cocite.ranking import WeightsFile

    names, nodes = stored.names, stored.graph_nodes
    if path.suffix == ".npy":
        try:
            return _checked(np.load(path, mmap_mode="r", allow_pickle=False), nodes, str(path))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    found, rows = np.full(nodes, np.nan), WeightsFile(path).items()
    while piece := list(islice(rows, _ROWS)):
        if stored.wanted is not None:  # the others of the graph are no nodes here
            piece = [row for row in piece if row[0] in names]
        ids = names.ids([name for name, _ in piece])
        found[stored.in_graph(ids)] = [weight for _, weight in piece]
    own = stored.in_graph(np.arange(stored.nodes, dtype=np.uint32))
    missing = np.flatnonzero(np.isnan(found[own]))
    if missing.size:
        raise InputError(
            f"{path} has no rank of {missing.size:,} nodes, such as {names.name(int(missing[0]))!r}"
            ". Write it from the graph of the index: cocite rank GRAPH -o FILE"
        )
    return found
