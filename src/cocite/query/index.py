"""The index as its users see it: build one, open one, ask it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module

import numpy as np

from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.index import StoredIndex, StoredPart
from cocite.measures import Settings, Value
from cocite.query.reader import Reader
from cocite.query.scores import GRAINS, Hit, Score, scores_of
from cocite.query.scratch import borrowed

__all__ = ["DEFAULT_K", "Index", "build", "open_index"]

DEFAULT_K = 20

_READERS = {
    "trees": ("cocite.query.trees", "TreeReader"),
    "features": ("cocite.query.features", "FeatureReader"),
}
"""Layout -> where its reader is; imported when an index of that layout is first asked."""


def _reader(part: StoredPart) -> Reader:
    if part.layout not in _READERS:
        raise Damaged(f"{part.store.path}: the manifest names an unknown layout {part.layout!r}")
    module, name = _READERS[part.layout]
    found: Reader = getattr(import_module(module), name)(part)
    return found


class Index:
    """Answers questions on one graph by one measure. Safe to share between threads."""

    def __init__(self, stored: StoredIndex) -> None:
        self._stored = stored

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return (
            f"Index({str(self._stored.store.path)!r}, measure={self.measure!r}, "
            f"direction={self.direction!r}, nodes={len(self.nodes)}{settings})"
        )

    @property
    def stored(self) -> StoredIndex:
        """The directory behind it."""
        return self._stored

    @property
    def measure(self) -> str:
        """The measure's name."""
        return self._stored.measure.name

    @property
    def direction(self) -> str:
        """Which links it looks at: ``in``, ``out`` or ``both``."""
        return self._stored.direction

    @property
    def settings(self) -> dict[str, Value]:
        """What it was built with, such as ``samples``, ``length`` and ``seed``."""
        return dict(self._stored.settings)

    @property
    def samples(self) -> int | None:
        """How many independent samples every estimate is the mean of; None if scores are exact."""
        found = self._stored.settings.get("samples")
        return None if found is None else int(found)

    @cached_property
    def nodes(self) -> Names:
        """The names of the nodes: ``len``, ``in``, iteration, ``complete``, ``nearest``."""
        return self._stored.names

    @cached_property
    def readers(self) -> tuple[Reader, ...]:
        """What answers for each part."""
        return tuple(map(_reader, self._stored.parts))

    def similarity(self, a: object, b: object, **settings: Value) -> Score:
        """How similar two nodes are.

        Parameters
        ----------
        a, b
            Names of nodes.
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``).

        Returns
        -------
        Score
            ``score`` and its ``stderr``.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a setting that the measure does not have, or a value that is not allowed.
        """
        asked = self._asked(settings)
        first, second = self.nodes.id(a), self.nodes.id(b)
        grains = variance = 0.0
        for reader in self.readers:
            found, weight = reader.pair(first, second, asked), reader.part.weight
            grains += weight * found.grains
            variance += weight * weight * found.variance
        scores, errors = scores_of(np.array([[np.rint(grains), variance]]))
        return Score(scores[0], errors[0])

    def related(
        self, node: object, k: int = DEFAULT_K, *, min_score: float = 0.0, **settings: Value
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
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``).

        Returns
        -------
        list of Hit
            By score descending, then by node id ascending.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a value that is not allowed.
        """
        from cocite.kernels import totals

        if not isinstance(k, int | np.integer) or k < 1:
            raise UsageError(f"k is {k!r}; it is a whole number, 1 or more")
        if not isinstance(min_score, int | float) or not 0 <= min_score < float("inf"):
            raise UsageError(f"min_score is {min_score!r}; it is a number, 0 or more")
        floor = max(1.0, float(np.rint(min_score * GRAINS)))
        asked, me = self._asked(settings), self.nodes.id(node)
        with borrowed(self._stored.nodes) as scratch:
            for reader in self.readers:
                reader.gather(me, asked, scratch)
            room = min(int(k), scratch.have)
            ids, best = np.empty(room, np.uint32), np.empty((room, 2))
            found = int(totals.top(scratch.totals, scratch.touched, scratch.have, floor, ids, best))
        scores, errors = scores_of(best[:found])
        return list(map(Hit, self.nodes.names(ids[:found]), scores, errors))

    def related_many(
        self, nodes: Iterable[object], k: int = DEFAULT_K, **options: Value
    ) -> list[list[Hit]]:
        """``related`` for each of ``nodes``, in their order."""
        return [self.related(node, k, **options) for node in nodes]  # type: ignore[arg-type]

    def _asked(self, settings: dict[str, Value]) -> Settings:
        return self._stored.measure.ask_settings(settings)


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
    direction: str = "in",
    layout: str | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    shard: int | None = None,
    blocks: int | None = None,
    overwrite: bool = False,
    restart: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **settings: Value,
) -> Index:
    """Build an index of ``graph`` in the directory ``output``, and open it.

    Parameters
    ----------
    graph
        A stored graph, opened or as a path.
    output
        The directory to make. A build that was interrupted is resumed.
    measure
        Such as ``"psimrank"`` or ``"simrank"``; ``cocite measures`` lists them all.
    direction
        Which links the measure looks at: ``in`` (two pages are similar if similar pages link to
        them), ``out`` (if they link to similar pages), or ``both``, the mean of the two scores.
    layout
        How the index is laid out on disk, for measures that have a choice.
    settings
        What the measure takes: ``samples``, ``length``, ``seed``, ... (``cocite measures``).
        Equal seeds give equal samples, whatever the threads, memory, blocks and shards.
    threads, memory
        By default all cores, and half of the memory that is available.
    shard
        Samples written between two points at which a build can resume; by default 16, fewer for
        large graphs.
    blocks
        Cut the graph into so many blocks, one of which is in memory at a time; by default as many
        as the memory needs, mostly one.
    overwrite
        Replace ``output`` if it is an index; the old one answers until the new one is whole.
    restart
        Throw away an unfinished build with other settings.
    progress
        Called with (done, total), in samples for measures that have them.

    Raises
    ------
    UsageError, OutputExists, Busy, ResourceError
    """
    from cocite.index.build import IndexBuild
    from cocite.index.plan import BuildOptions

    if not isinstance(graph, Graph):
        graph = Graph.open(graph)
    options = BuildOptions.checked(measure, direction, layout, settings)
    with IndexBuild(
        graph,
        output,
        options,
        threads=threads,
        memory=memory,
        shard=shard,
        blocks=blocks,
        overwrite=overwrite,
        restart=restart,
    ) as work:
        work.run(progress)
    return open_index(output)
