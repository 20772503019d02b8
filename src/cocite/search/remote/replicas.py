"""Query all shards: choice of servers, deadlines, and circuit breakers.

A query calls the least busy replica of each shard in parallel. If a replica fails, or has not
responded after half of the time, the next one is called as well. The answer combines the responses
received by the deadline or, if there are none, the first response. Responses from another index are
ignored.

If a server fails, or misses two consecutive queries that others answered, its breaker opens: it
gets no more queries, so a lost machine delays no query. A thread checks the server several times a
second until it responds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from cocite.deadline import check
from cocite.errors import (
    CociteError,
    QueryTimeout,
    ResourceError,
    StoreError,
    UsageError,
    WorkerLost,
)
from cocite.index import StoredIndex
from cocite.index.layouts.messages import ShardRequest, ShardResponse
from cocite.options.query import ShardOptions
from cocite.search.remote.index import (
    Holds,
    RemoteShards,
    SampleHolder,
    ShardStatus,
    marked,
    spread_parts,
)

_SILENCES = 2
"""Number of consecutive queries that a server may miss."""


class Breaker:
    """The circuit breaker of a server, whose owner must hold a lock."""

    def __init__(self) -> None:
        self.open = True
        """Whether the server gets no queries; true until its first response."""
        self.opened = 0
        """How often a closed breaker opened."""
        self.fault = "it has not responded yet"
        self._silent = 0

    def answered(self) -> None:
        """Record an answer."""
        self.open, self._silent, self.fault = False, 0, ""

    def silent(self) -> None:
        """Record a timeout of a query that other servers answered."""
        self._silent += 1
        if self._silent >= _SILENCES:
            self._opens("it does not answer queries")

    def failed(self, fault: str) -> None:
        """Record a failure."""
        self._opens(fault)

    def _opens(self, fault: str) -> None:
        if not self.open:
            self.opened += 1
        self.open, self._silent, self.fault = True, 0, fault


_LOOKS = 0.2
"""Seconds between checks of servers that do not answer."""
_SLICE = 0.05
"""Seconds between a waiting query's checks of its deadline."""
_SMOOTH = 0.1
_PATIENCE = 30.0
"""Seconds that a query waits for the first shard if it has no deadline."""
Answer = Any


class OnCluster(Protocol):
    """The interface for remote calls: ``cluster.ray.Cluster``, or a fake in tests."""

    def nodes(self) -> Sequence[Any]:
        """Return all nodes."""

    def actors(
        self,
        kind: Any,
        arguments: Sequence[Sequence[Any]],
        *,
        threads: int,
        memory: int,
        restarts: int,
        nodes: Sequence[str] | None = None,
    ) -> Sequence[Any]:
        """Start a server per row of ``arguments``, on the nodes with these ids."""

    def get(self, answer: Answer, seconds: float | None = None) -> Any:
        """Wait for a call, and return its result."""

    def wait(
        self, answers: Sequence[Answer], seconds: float | None = None, *, least: int = 1
    ) -> tuple[Sequence[Answer], Sequence[Answer]]:
        """Wait for ``least`` calls; return the completed calls, and the others."""


class _Server:
    def __init__(self, shard: int, replica: int, node: str, actor: Any) -> None:
        self.shard, self.replica, self.node, self.actor = shard, replica, node, actor
        self.breaker = Breaker()
        self.waiting = 0
        self.seconds = 0.0
        self.samples = 0
        self.probe: Answer | None = None
        self.process: int | None = None
        self.doubted = False
        self.restarts = 0
        self.refused: StoreError | None = None

    def status(self) -> ShardStatus:
        state = "left alone" if self.breaker.open else "answers"
        return ShardStatus(
            self.shard,
            self.replica,
            self.node,
            self.samples,
            state,
            self.breaker.fault,
            self.waiting,
            round(self.seconds, 6),
            self.breaker.opened,
            self.restarts,
        )


def _fault(error: Exception) -> str:
    if isinstance(error, WorkerLost):
        return "its process or its node is lost, and is being restarted"
    return str(error) or type(error).__name__


class _Call:
    def __init__(self, server: _Server, answer: Answer) -> None:
        self.server, self.answer, self.began = server, answer, time.monotonic()


class ReplicaSet:
    """The servers of an index's shards. Threads may share it."""

    def __init__(
        self,
        cluster: OnCluster,
        path: str,
        mark: str,
        *,
        shards: int,
        replicas: int,
        deadline: float,
        ended: Callable[[], None] | None = None,
    ) -> None:
        """Start the servers without waiting for them; a query waits for the first one."""
        self.shards, self.replicas, self.deadline = shards, replicas, deadline
        self._cluster, self._mark, self._ended = cluster, mark, ended
        nodes = [node for node in cluster.nodes() if node.alive and node.cpus]
        where = [
            (i, r, nodes[(i + r) % len(nodes)]) for i in range(shards) for r in range(replicas)
        ]
        actors = cluster.actors(
            SampleHolder,
            [(path, shard, shards) for shard, _, _ in where],
            threads=0,
            memory=0,
            restarts=-1,
            nodes=[node.id for _, _, node in where],
        )
        self._servers: list[list[_Server]] = [[] for _ in range(shards)]
        for (shard, replica, node), actor in zip(where, actors, strict=True):
            named = f"{node.address} {node.id[:6]}"
            self._servers[shard].append(_Server(shard, replica, named, actor))
        self._lock = threading.Lock()
        self._late: list[_Call] = []
        self._turn = 0
        self._stop, self._wake = threading.Event(), threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="shards", daemon=True)
        self._watcher.start()

    # -- queries --------------------------------------------------------------------------

    def ask(self, wanted: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        """Query ``shards`` shards; return (shard, responses by part), at least one.

        Raises :class:`QueryTimeout`, and the servers' error if all fail.
        """
        began = time.monotonic()
        end, second = began + self.deadline, began + self.deadline / 2
        found: dict[int, dict[int, ShardResponse]] = {}
        asked: dict[int, set[int]] = {}
        calls: list[_Call] = []
        fault: CociteError | None = None
        for shard in self._chosen(shards):
            self._call(shard, wanted, asked, calls)
        if not calls:  # wait for the first server to become available
            for shard in range(self.shards):
                self._call(shard, wanted, asked, calls, whoever=True)
        while True:
            now = time.monotonic()
            if len(found) == len(asked) or (found and now >= end):
                break
            check()
            if now > began + _PATIENCE:
                self._give_up(calls, blamed=False)
                raise fault or QueryTimeout(
                    f"none of {self.shards} shards of samples has answered within {_PATIENCE:g} "
                    "s: check the nodes with cocite cluster status"
                )
            next_look = second if self.replicas > 1 and now < second else end
            wait = min(next_look - now, _SLICE) if next_look > now else _SLICE
            done, _ = (
                self._cluster.wait([call.answer for call in calls], wait) if calls else ([], [])
            )
            came = {id(each) for each in done}
            for call in [call for call in calls if id(call.answer) in came]:
                calls.remove(call)
                shard = call.server.shard
                try:
                    response = self._reported(call, end)
                except CociteError as error:
                    fault = error
                    self._call(shard, wanted, asked, calls)
                    continue
                if response is not None:
                    found.setdefault(shard, response)
            if self.replicas > 1 and time.monotonic() >= second:
                second = float("inf")
                for shard in set(asked) - set(found):
                    self._call(shard, wanted, asked, calls)
            if not calls and len(found) < len(asked):
                if found:
                    break  # the others have failed
                time.sleep(_SLICE)
                for shard in range(self.shards):
                    asked[shard] = set()
                    self._call(shard, wanted, asked, calls, whoever=True)
        self._give_up([call for call in calls if call.server.shard not in found], blamed=True)
        self._give_up([call for call in calls if call.server.shard in found], blamed=False)
        return sorted(found.items())

    def _chosen(self, shards: int) -> list[int]:
        """Return ``shards`` available shards, least busy first; ties rotate."""
        with self._lock:
            loads = {
                i: min(s.waiting for s in servers if not s.breaker.open)
                for i, servers in enumerate(self._servers)
                if not all(s.breaker.open for s in servers)
            }
            if shards >= len(loads):
                return list(loads)
            self._turn += shards
            turn = self._turn
        order = sorted(loads, key=lambda i: (loads[i], (i - turn) % self.shards))
        return order[:shards]

    def _call(
        self,
        shard: int,
        wanted: ShardRequest,
        asked: dict[int, set[int]],
        calls: list[_Call],
        whoever: bool = False,
    ) -> None:
        """Call a shard's next untried server; do nothing if all were tried."""
        tried = asked.setdefault(shard, set())
        with self._lock:
            left = [
                server
                for server in self._servers[shard]
                if server.replica not in tried and (whoever or not server.breaker.open)
            ]
            if not left:
                return
            server = min(left, key=lambda s: (s.breaker.open, s.waiting, s.seconds))
            server.waiting += 1
        tried.add(server.replica)
        try:
            calls.append(_Call(server, server.actor.call("tell", wanted)))
        except Exception as error:  # the transport may raise anything for a lost server
            self._failed(server, error)
            with self._lock:
                server.waiting -= 1

    def _reported(self, call: _Call, end: float) -> dict[int, ShardResponse] | None:
        """Return a completed call's result; None if failed, late, or from another index."""
        server = call.server
        try:
            mark, response = self._cluster.get(call.answer, max(_SLICE, end - time.monotonic()))
        except QueryTimeout:
            self._give_up([call], blamed=True)
            return None
        except Exception as error:
            with self._lock:
                server.waiting -= 1
            self._failed(server, error)
            if isinstance(error, CociteError):
                raise
            return None
        seconds = time.monotonic() - call.began
        with self._lock:
            server.waiting -= 1
            if mark != self._mark:
                server.breaker.failed("it has another index")
                return None
            server.breaker.answered()
            server.seconds += (_SMOOTH if server.seconds else 1.0) * (seconds - server.seconds)
        found: dict[int, ShardResponse] = response
        return found

    def _give_up(self, calls: Sequence[_Call], blamed: bool) -> None:
        if not calls:
            return
        with self._lock:
            self._late += calls
            for call in calls if blamed else ():
                call.server.breaker.silent()
                call.server.doubted = True  # the process may be replaced
        self._wake.set()

    def _failed(self, server: _Server, error: Exception) -> None:
        with self._lock:
            server.breaker.failed(_fault(error))
        self._wake.set()

    # -- servers --------------------------------------------------------------------------

    def status(self) -> list[ShardStatus]:
        """Return each server's state."""
        with self._lock:
            return [server.status() for servers in self._servers for server in servers]

    def begin(self, seconds: float) -> int:
        """Wait at most ``seconds`` until all shards are available; return the number that are.

        Raises the servers' error if they cannot open the index, and :class:`ResourceError` if no
        shard is available.
        """
        end = time.monotonic() + seconds
        while True:
            alive = [any(not s.breaker.open for s in servers) for servers in self._servers]
            refused = [s.refused for each in self._servers for s in each if s.refused]
            if refused:
                raise refused[0]
            if all(alive) or (time.monotonic() > end and any(alive)):
                return sum(alive)
            if time.monotonic() > end:
                raise ResourceError(
                    f"none of {self.shards} servers of samples has started within {seconds:g} s: "
                    f"{self._servers[0][0].breaker.fault}. Check the nodes with cocite cluster "
                    "status"
                )
            time.sleep(_SLICE)

    def look(self) -> None:
        """Check unavailable servers, and discard late calls."""
        with suppress(Exception):  # the cluster may be shutting down
            self._reap()
            self._probe()

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._wake.wait(_LOOKS)
            self._wake.clear()
            self._stop.wait(_LOOKS / 4)

    def _reap(self) -> None:
        with self._lock:
            late = list(self._late)
        if not late:
            return
        done, _ = self._cluster.wait([call.answer for call in late], 0)
        came = {id(each) for each in done}
        with self._lock:
            for call in [call for call in late if id(call.answer) in came]:
                self._late.remove(call)
                call.server.waiting -= 1

    def _probe(self) -> None:
        servers = [
            s
            for each in self._servers
            for s in each
            if s.breaker.open or s.doubted or not s.samples
        ]
        for server in servers:
            if server.probe is None:
                with suppress(Exception):
                    server.probe = server.actor.call("holds")
        asked = [server for server in servers if server.probe is not None]
        if not asked:
            return
        done, _ = self._cluster.wait([server.probe for server in asked], _LOOKS / 4)
        came = {id(each) for each in done}
        for server in [server for server in asked if id(server.probe) in came]:
            probe, server.probe = server.probe, None
            try:
                holds: Holds = self._cluster.get(probe, _LOOKS)
            except Exception as error:
                with self._lock:
                    server.breaker.failed(_fault(error))
                    server.refused = error if isinstance(error, StoreError) else None
                continue
            with self._lock:
                server.samples = holds.samples
                if server.process not in (None, holds.process):
                    server.restarts += 1
                server.process, server.doubted = holds.process, False
                if holds.mark == self._mark:
                    if server.breaker.open:  # only answered queries reset a closed breaker
                        server.breaker.answered()
                else:
                    server.breaker.failed("it has another index")

    def close(self) -> None:
        """Stop the servers."""
        self._stop.set()
        self._wake.set()
        self._watcher.join()
        for servers in self._servers:
            for server in servers:
                with suppress(Exception):
                    server.actor.kill()
        if self._ended is not None:
            self._ended()


_BEGIN = 120.0
"""Seconds for servers to start; a node may have to compile kernels first."""
_EACH = 2
"""Default number of shards per node; with several, a node recovers step by step."""


def open_spread(
    stored: StoredIndex, cluster: str | OnCluster, options: ShardOptions
) -> RemoteShards:
    """Open an index's shards on a cluster.

    If ``cluster`` is an address, closing the index disconnects from the cluster. Raises
    :class:`UsageError`, and errors from the cluster or the servers.
    """
    spread = [stored.parts[i].samples for i in spread_parts(stored)]
    most = min(spread, default=1)
    shards, replicas = options.shards, options.replicas
    if shards is not None and shards > most:
        raise UsageError(
            f"shards is {shards!r}; the index has {most} samples to distribute: choose 1 to {most}"
        )
    reached, ended = cluster, None
    if isinstance(reached, str):
        from cocite.cluster.ray import Cluster

        own = Cluster.connect(reached)
        reached, ended = own, own.close
    try:
        nodes = sum(1 for node in reached.nodes() if node.alive and node.cpus)
        if replicas > nodes:
            raise UsageError(
                f"replicas is {replicas!r}; each needs its own node, and the cluster has {nodes}: "
                f"choose 1 to {nodes}"
            )
        company = ReplicaSet(
            reached,
            str(Path(stored.store.path).absolute()),
            marked(stored),
            shards=shards or min(most, _EACH * nodes),
            replicas=replicas,
            deadline=options.deadline / 1000,
            ended=ended,
        )
    except BaseException:
        if ended is not None:
            ended()
        raise
    try:
        company.begin(_BEGIN)
        return RemoteShards(stored, company)
    except BaseException:
        company.close()
        raise
