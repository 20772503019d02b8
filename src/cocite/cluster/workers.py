"""A worker pool on a cluster: one actor per block, distributed over the nodes.

A handle is an answer on the cluster. Passed to another call, it moves from node to node directly.
Ray replaces lost actors without their state. Then calls that were running, and calls made before
:meth:`ClusterPool.again`, raise :class:`~cocite.errors.WorkerLost`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cocite.cluster.ray import Actor, Answer, Cluster
from cocite.deadline import clock
from cocite.errors import ResourceError, WorkerLost
from cocite.resources import format_size

_RESTARTS = 64
_LEAST_SHARE = 0.001
_SECONDS = 300.0
"""Seconds to wait for the replacement of lost actors."""
_EACH = 5.0


class ClusterPool:
    """Actors of a ``kind``, one for each of the ``arguments``, with ``memory`` bytes each.

    Actors reserve only a fraction of a core, so that replacements fit after a node is lost.
    """

    def __init__(
        self,
        cluster: Cluster,
        kind: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        memory: int,
    ) -> None:
        """Request the actors; if they do not start, ``take`` raises an error."""
        self._cluster = cluster
        self.actors: list[Actor] = []
        self.lost = 0
        threads = max(_LEAST_SHARE, round(1 / len(arguments), 4))
        room = cluster.slots(threads, memory)
        if room < len(arguments):
            raise ResourceError(
                f"each of the {len(arguments)} partitions takes {format_size(memory)} of memory; "
                f"the cluster's nodes have room for {room}. Use more or larger nodes, or more "
                "partitions: cocite ingest GRAPH -o OTHER --partitions N"
            )
        self.actors = cluster.actors(
            kind, arguments, threads=threads, memory=memory, restarts=_RESTARTS
        )
        self._mark()

    def __del__(self) -> None:
        with suppress(Exception):  # the cluster may have stopped
            for actor in self.actors:
                actor.kill()

    @property
    def size(self) -> int:
        """Return the number of actors."""
        return len(self.actors)

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Start a call; return handles immediately."""
        return [*self.actors[block].call_for(answers, method, *arguments, mark=self.lost)]

    def take(self, handles: Sequence[Answer[Any]]) -> list[Any]:
        """Wait for the values."""
        return [self._cluster.get(handle) for handle in handles]

    def again(self) -> None:
        """Wait until all actors are available; raises :class:`WorkerLost` on timeout."""
        self.lost += 1
        end = clock() + _SECONDS
        for number, actor in enumerate(self.actors):
            while not actor.alive(_EACH):
                if clock() > end:
                    raise WorkerLost(
                        f"block {number} was lost, and no node restarted it within {_SECONDS:.0f} "
                        "seconds. See cocite cluster status, and repeat the command"
                    )
        self._mark()

    def _mark(self) -> None:
        """Mark the actors, so that later replacements are recognized."""
        for actor in self.actors:
            actor.mark(self.lost)
