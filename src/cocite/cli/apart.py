"""Graphs that are stored in blocks, on the command line: where the blocks live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cocite.cli.options import verifying
from cocite.errors import UsageError

if TYPE_CHECKING:
    from cocite.graph.in_blocks import BlockedGraph

__all__ = ["blocks_apart"]


@contextmanager
def blocks_apart(
    graph: str, address: str | None, memory: int | None, *, cut: bool = False
) -> Iterator[tuple[BlockedGraph, int]]:
    """The graph in blocks, which will live on the cluster at the ``address``, and how many bytes a
    block may take there: as given, or what the nodes have. Raises :class:`UsageError` if there is
    no address, or something is said of how the graph is to be ``cut``.
    """
    from cocite.graph.in_blocks import BlockedGraph

    if address is None:
        raise UsageError(
            f"{graph} is stored in blocks: say where they are to live, --cluster local:2 for two "
            "nodes of this machine, or the address of a cluster; or take the graph it was cut from"
        )
    if cut:
        raise UsageError(f"{graph} is stored in blocks: leave --blocks, --external and --via out")
    from cocite.runner.hired import hiring
    from cocite.runner.ray import Cluster

    with Cluster.connect(address) as cluster:
        found = BlockedGraph.open(graph, verify=verifying(), crew=hiring(cluster))
        yield found, cluster.memory_each(memory, 1)
