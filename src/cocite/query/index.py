"""The index as its users see it: build one, open one, ask it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.query.pair import similarity
from cocite.query.related import find_related
from cocite.query.scores import GRAINS, Score, scores_of, weights_of

__all__ = ["DEFAULT_DECAY", "DEFAULT_K", "Hit", "Index", "Score", "build", "open_index"]

DEFAULT_K = 20
DEFAULT_DECAY = 0.6


class Hit(NamedTuple):
    """A related node: its name, its score, and the standard error of that over the samples."""

    node: str
    score: float
    stderr: float


@lru_cache(maxsize=16)
def _cached_weights(decay: float) -> NDArray[np.uint64]:
    return weights_of(decay)


def _weights(decay: float) -> NDArray[np.uint64]:
    if not isinstance(decay, int | float):
        raise UsageError(f"decay is {decay!r}; it is a number between 0 and 1")
    return _cached_weights(decay)


class Index:
    """Answers questions on one graph by one measure. Safe to share between threads."""

    def __init__(self, stored: StoredIndex) -> None:
        self._stored = stored

    def __repr__(self) -> str:
        return (
            f"Index({str(self._stored.store.path)!r}, measure={self.measure!r}, "
            f"nodes={len(self.nodes)}, samples={self.samples}, length={self.length})"
        )

    @property
    def stored(self) -> StoredIndex:
        """The directory behind it."""
        return self._stored

    @property
    def measure(self) -> str:
        """The measure's name."""
        return self._stored.measure

    @property
    def samples(self) -> int:
        """How many independent samples every estimate is the mean of."""
        return self._stored.samples

    @property
    def length(self) -> int:
        """The most steps a walk made."""
        return self._stored.length

    @property
    def seed(self) -> int:
        """The seed it was built with."""
        return self._stored.seed

    @cached_property
    def nodes(self) -> Names:
        """The names of the nodes: ``len``, ``in``, iteration, ``complete``, ``nearest``."""
        return self._stored.names

    def similarity(self, a: object, b: object, *, decay: float = DEFAULT_DECAY) -> Score:
        """How similar two nodes are.

        Parameters
        ----------
        a, b
            Names of nodes.
        decay
            The factor a step, in (0, 1).

        Returns
        -------
        Score
            ``score`` in [0, 1] and its ``stderr``.

        Raises
        ------
        UnknownNode
            If no node has the name.
        """
        weights = _weights(decay)
        return similarity(self._stored, self.nodes.id(a), self.nodes.id(b), weights)

    def related(
        self,
        node: object,
        k: int = DEFAULT_K,
        *,
        min_score: float = 0.0,
        decay: float = DEFAULT_DECAY,
    ) -> list[Hit]:
        """The nodes most related to ``node``, itself left out.

        Parameters
        ----------
        node
            The name of a node.
        k
            How many hits at most, 1 or more.
        min_score
            The least score of a hit, itself included; nodes whose score is 0 are never hits.
        decay
            The factor a step, in (0, 1).

        Returns
        -------
        list of Hit
            By score descending, then by node id ascending.

        Raises
        ------
        UnknownNode
            If no node has the name.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise UsageError(f"k is {k!r}; it is a whole number, 1 or more")
        if not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
            raise UsageError(f"min_score is {min_score!r}; it is a number from 0 to 1")
        floor = max(1, round(min_score * GRAINS))
        ids, best = find_related(self._stored, self.nodes.id(node), int(k), _weights(decay), floor)
        scores, errors = scores_of(best[:, 0], best[:, 1], self.samples)
        return list(map(Hit, self.nodes.names(ids), scores, errors))


def open_index(path: str | os.PathLike[str]) -> Index:
    """Open the index in the directory ``path``.

    Raises :class:`~cocite.errors.NotAStore`, :class:`~cocite.errors.WrongFormat` or
    :class:`~cocite.errors.Damaged`.
    """
    return Index(StoredIndex.open(path))


def build(
    graph: Graph | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    measure: str = "psimrank",
    samples: int = 100,
    length: int = 10,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    shard: int | None = None,
    blocks: int | None = None,
    external: bool = False,
    overwrite: bool = False,
    restart: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Index:
    """Build an index of ``graph`` in the directory ``output``, and open it.

    Parameters
    ----------
    graph
        A stored graph, opened or as a path.
    output
        The directory to make. A build that was interrupted is resumed.
    measure
        ``"psimrank"`` or ``"simrank"``.
    samples
        Independent samples; the standard error falls with the square root of their number.
    length
        Steps of a walk, 1 to 15.
    seed
        Equal seeds give equal samples, whatever the threads, memory, blocks and shards.
    threads, memory
        By default all cores, and half of the memory that is available.
    shard
        Samples written between two points at which a build can resume; by default 16, fewer for
        large graphs.
    blocks
        Cut the graph into so many blocks, one of which is in memory at a time; by default as many
        as the memory needs, mostly one.
    external
        Keep the walks' tokens and the trees in files, too, all but those of one block; by default
        only if the memory does not hold them (26.5 bytes a node).
    overwrite
        Replace ``output`` if it is an index; the old one answers until the new one is whole.
    restart
        Throw away an unfinished build with other settings.
    progress
        Called with samples (done, total).

    Raises
    ------
    UsageError, OutputExists, Busy, ResourceError
    """
    from cocite.index.build import BuildOptions, IndexBuild

    if not isinstance(graph, Graph):
        graph = Graph.open(graph)
    options = BuildOptions.checked(measure, samples, length, seed)
    with IndexBuild(
        graph,
        output,
        options,
        threads=threads,
        memory=memory,
        shard=shard,
        blocks=blocks,
        external=external,
        overwrite=overwrite,
        restart=restart,
    ) as work:
        work.run(progress)
    return open_index(output)
