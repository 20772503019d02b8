"""Opening an index whose samples answer from a cluster: who is started, and where."""

from __future__ import annotations

from pathlib import Path

from cocite.errors import UsageError
from cocite.index import StoredIndex
from cocite.means import Means
from cocite.query.shards.company import Company, OnCluster
from cocite.query.shards.holder import marked, spread_parts
from cocite.query.shards.spread import SpreadIndex
from cocite.query.source import Given

__all__ = ["open_spread"]

_BEGIN = 120.0
"""Seconds that servers have to begin: a node may have to compile kernels first."""
_EACH = 2
"""Shards a node, where nobody says: a node that is lost and comes back does so in pieces."""


def open_spread(
    stored: StoredIndex,
    means: Means,
    graph: Given,
    cluster: str | OnCluster,
    shards: int | None,
    replicas: int,
    deadline: float,
) -> SpreadIndex:
    """The index, asked over a cluster, which is reached first if it is an address, and left when
    the index is closed.

    Raises :class:`UsageError`, and what the cluster or the servers raise.
    """
    if not isinstance(deadline, int | float) or not 0 < deadline < float("inf"):
        raise UsageError(f"deadline is {deadline!r}; it is a number of seconds above 0")
    spread = [stored.parts[i].samples for i in spread_parts(stored)]
    most = min(spread, default=1)
    if shards is not None and (type(shards) is not int or not 1 <= shards <= most):
        raise UsageError(
            f"shards is {shards!r}; the index has {most} samples to share out: 1 to {most}"
        )
    reached, ended = cluster, None
    if isinstance(reached, str):
        from cocite.runner.ray import Cluster

        own = Cluster.connect(reached)
        reached, ended = own, own.close
    try:
        nodes = sum(1 for node in reached.nodes() if node.alive and node.cpus)
        if type(replicas) is not int or not 1 <= replicas <= nodes:
            raise UsageError(
                f"replicas is {replicas!r}; each is on a node of its own, and the cluster has "
                f"{nodes}: 1 to {nodes}"
            )
        company = Company(
            reached,
            str(Path(stored.store.path).absolute()),
            marked(stored),
            shards=shards or min(most, _EACH * nodes),
            replicas=replicas,
            deadline=float(deadline),
            ended=ended,
        )
    except BaseException:
        if ended is not None:
            ended()
        raise
    try:
        company.begin(_BEGIN)
        return SpreadIndex(stored, means, graph, company)
    except BaseException:
        company.close()
        raise
