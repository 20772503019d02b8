"""The interface of rankers, and index builds for evaluation and tuning.

Evaluations accept any *ranker*: an object that returns the nodes related to a node, best first, by
id:

    ranker.related(node, k) -> (ids uint32[h], scores float64[h]),  h <= k

Scores must not increase, and ties are ordered by hash (``kernels/totals.py``). The list excludes
the node itself, nodes that score 0 or less, and, if *candidates* are given, all other nodes.
Threads share a ranker, so it must be thread-safe. With a cluster, workers draw samples, and one
connection serves all indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS
from cocite.graph import Graph
from cocite.index.cluster import spread_on
from cocite.index.layouts.reader import NODE_SCRATCH, pages_memory, release_pages
from cocite.measures import SAMPLES, Value
from cocite.resources import Resources, require, reserve, resident
from cocite.search import Index, build
from cocite.search.scorer import Filter, ScoreQuery
from cocite.storage import Access

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


Ids = NDArray[np.uint32]


class Related(NamedTuple):
    """Related nodes, best first, and their scores."""

    ids: Ids
    scores: NDArray[np.float64]


class Ranker(Protocol):
    """Interface of the methods that can be evaluated."""

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""

    def related(self, node: int, k: int) -> Related:
        """Return the best ``k`` nodes related to ``node``, as the module docstring specifies."""


class IndexRanker:
    """An index with query settings."""

    def __init__(
        self,
        index: Index,
        candidates: Ids | None = None,
        means: Resources | None = None,
        **settings: Value,
    ) -> None:
        """Rank ``candidates`` (ascending; None for all nodes) with query ``settings``.
        ``means`` limits the memory of lists, by default to the index's limit. Raises
        :class:`UsageError`.
        """
        self._index = index
        self._settings = index.stored.ask_settings(settings)
        self._filter = Filter() if candidates is None else Filter(only=(candidates,))
        if index.stored.store.nbytes > index.means.memory:
            index.stored.store.advise(Access.SCATTERED)
        index.stored.store.evict()
        self._since = resident()
        means, pages = means or index.means, pages_memory(self.nodes, index.samples or 0)
        self._memory = means.memory - means.threads * pages
        self._mask = np.ones(self.nodes, bool)
        if candidates is not None:
            self._mask[:] = False
            self._mask[candidates] = True

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return self._index.stored.nodes

    def related(self, node: int, k: int) -> Related:
        """Return the index's results."""
        whole = k >= self.nodes  # for full lists, a mask is faster than the filter
        chosen = (Filter() if whole else self._filter).on_side_of(self._index.nodes, node)
        ids, best = self._index.scorer.top(node, ScoreQuery(k, chosen, self._settings))
        scores = best[:, 0] / GRAINS
        if whole and self._filter.only:
            keep = self._mask[ids]
            ids, scores = ids[keep], scores[keep]
        release_pages(self._index.stored.store, self._memory, self._since)
        return Related(ids, scores)


@dataclass(frozen=True)
class Builds:
    """Builds indexes, locally with ``means`` or on a ``cluster``. Cluster tasks take the threads
    and memory in ``asked``, unless None, and send shards through ``staging_url``. ``held`` is the
    number of bytes that the process holds during a build.
    """

    means: Resources
    cluster: Cluster | None = None
    asked: tuple[int | None, str | int | None] = (None, None)
    staging_url: str | None = None
    held: int = 0

    def index(
        self,
        graph: Graph,
        place: Path,
        measure: str,
        direction: str,
        settings: Mapping[str, Any],
        **more: Any,
    ) -> Index:
        """Build an index at ``place``. ``more`` is passed to :func:`~cocite.search.build`."""
        chosen = {"measure": measure, "direction": direction, **settings, **more}
        if self.cluster is None or SAMPLES.name not in settings:
            means = self.means
            total = means.total
            with reserve(self.held):
                return build(graph, place, threads=means.threads, memory=total, **chosen)
        threads, memory = self.asked
        where: dict[str, Any] = {"cluster": self.cluster, "staging_url": self.staging_url}
        return build(graph, place, threads=threads, memory=memory, **where, **chosen)


def judging_resources(
    means: Resources, since: int, nodes: int, samples: int, rows: int, listed: int
) -> Resources:
    """Return the rest of ``means`` for builds and lists, with as many threads as fit.

    Subtracts what the process allocated beyond ``since`` bytes, and ``rows`` bytes for results.
    ``nodes`` and ``samples`` describe the largest index, ``listed`` is the bytes per node of a
    list. Raises :class:`ResourceError` if not even one thread fits.
    """
    held = max(0, resident() - since) + rows
    each = (NODE_SCRATCH + listed) * nodes + pages_memory(nodes, samples)
    require(held + each, means.memory, "the evaluation, in addition to labels and texts,")
    return replace(means.up_to((means.memory - held) // each), memory=means.memory - held)


@contextmanager
def builds_on(
    cluster: str | Cluster | None,
    staging_url: str | None,
    threads: int | None,
    memory: str | int | None,
) -> Iterator[Builds]:
    """Yield a local :class:`Builds`, or one on a ``cluster``, given as a connection or address.
    Raises :class:`UsageError` and connection errors.
    """
    means = Resources.checked(threads, memory)
    with spread_on(cluster, None, staging_url) as spread:
        reached = None if spread is None else spread.cluster
        yield Builds(means, reached, (threads, memory), staging_url)
