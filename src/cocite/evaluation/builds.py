"""Where the indexes of an evaluation, or of a tuning, are built: here, or on a cluster.

On a cluster nodes draw what is made of samples (``index/spread.py``), over one connection for all
of the indexes; measures that are built in one go are built here. Bytes are the same, and so are
all figures.

Cost: a connection for a run; a build as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.index.spread import connected
from cocite.means import Means
from cocite.measures import SAMPLES
from cocite.query import Index, build

if TYPE_CHECKING:
    from cocite.runner.ray import Cluster

__all__ = ["Builds", "builds_on"]


@dataclass(frozen=True)
class Builds:
    """Builds indexes: here by ``means``, or on a ``cluster``, where a piece of work takes what of
    ``asked``, the threads and the memory, is not None; ``via`` is the URL that shards come by.
    """

    means: Means
    cluster: Cluster | None = None
    asked: tuple[int | None, str | int | None] = (None, None)
    via: str | None = None

    def index(
        self,
        graph: Graph,
        place: Path,
        measure: str,
        direction: str,
        settings: Mapping[str, Any],
        **more: Any,
    ) -> Index:
        """The index of a graph with these settings, made at ``place``; ``more`` is as for
        :func:`~cocite.query.build`.
        """
        chosen = {"measure": measure, "direction": direction, **settings, **more}
        if self.cluster is None or SAMPLES.name not in settings:
            means = self.means
            return build(graph, place, threads=means.threads, memory=means.memory, **chosen)
        threads, memory = self.asked
        where: dict[str, Any] = {"cluster": self.cluster, "via": self.via}
        return build(graph, place, threads=threads, memory=memory, **where, **chosen)


@contextmanager
def builds_on(
    cluster: str | Cluster | None,
    via: str | None,
    threads: int | None,
    memory: str | int | None,
) -> Iterator[Builds]:
    """Builds by these means, or on a cluster: one that is connected, or by its address, for as
    long as this goes on. Raises :class:`UsageError` and what a connection raises.
    """
    means = Means.checked(threads, memory)
    if cluster is None:
        if via is not None:
            raise UsageError("via is for builds on a cluster: give --cluster (cluster=...), too")
        yield Builds(means)
        return
    with ExitStack() as stack:
        reached = stack.enter_context(connected(cluster))
        yield Builds(means, reached, (threads, memory), via)
