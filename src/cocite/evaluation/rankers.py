"""The interface of rankers, and where an evaluation or a tuning builds its indexes.

A *ranker* answers one query, with ids instead of names: the nodes related to a node, best first.
Everything is judged through this interface; implement it to try a new method.

    ranker.related(node, k) -> (ids uint32[h], scores float64[h]),  h <= k

Contract: scores do not increase, and ties are ordered by hash (``kernels/listing.py``); the list
excludes the node itself and nodes that score 0 or less; it contains only *candidates*, if given;
threads may share a ranker.

On a cluster, workers draw samples (``index/cluster.py``) over one connection for all indexes;
measures without samples are built locally. Results are byte-identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.index.cluster import connected
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
    """Nodes, best first, and their scores."""

    ids: Ids
    scores: NDArray[np.float64]


class Ranker(Protocol):
    """The interface of what can be judged."""

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""

    def related(self, node: int, k: int) -> Related:
        """Return the best ``k`` nodes related to ``node``; see the contract above."""


class IndexRanker:
    """An index with query settings."""

    def __init__(
        self,
        index: Index,
        candidates: Ids | None = None,
        means: Resources | None = None,
        **settings: Value,
    ) -> None:
        """Use the index with ``settings``. ``candidates`` are ascending ids, or None for all nodes;
        ``means`` are for lists, by default those of the index. Raises :class:`UsageError`.
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
        """Return the answer of the index."""
        whole = k >= self.nodes  # a mask is faster than the filter, once all is listed
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
    """Builds indexes: locally with ``means``, or on a ``cluster``. There, each task takes the
    threads and memory in ``asked``, unless None; ``staging_url`` transfers shards. Beside a build
    the process holds ``held`` bytes.
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
        """Build the index of a graph with these settings at ``place``; ``more`` goes to
        :func:`~cocite.search.build`.
        """
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
    """Return what remains of ``means`` for builds and lists beside what the process holds now,
    beyond ``since``, and the figures, ``rows`` bytes: as many threads as fit.

    ``nodes`` and ``samples`` are those of an index, ``listed`` the bytes of a node in a list.
    Raises :class:`ResourceError` if not even one thread fits.
    """
    held = max(0, resident() - since) + rows
    each = (NODE_SCRATCH + listed) * nodes + pages_memory(nodes, samples)
    require(held + each, means.memory, "judging, beside what to judge by,")
    return replace(means.up_to((means.memory - held) // each), memory=means.memory - held)


@contextmanager
def builds_on(
    cluster: str | Cluster | None,
    staging_url: str | None,
    threads: int | None,
    memory: str | int | None,
) -> Iterator[Builds]:
    """Yield a :class:`Builds` for the context: local, or on a cluster, given as a connection or by
    address. Raises :class:`UsageError` and connection errors.
    """
    means = Resources.checked(threads, memory)
    if cluster is None:
        if staging_url is not None:
            raise UsageError(
                "--staging-url (staging_url=...) is for builds on a cluster: give --cluster "
                "(cluster=...), too"
            )
        yield Builds(means)
        return
    with ExitStack() as stack:
        reached = stack.enter_context(connected(cluster))
        yield Builds(means, reached, (threads, memory), staging_url)
