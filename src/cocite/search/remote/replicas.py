"""Query all shards: choice of servers, deadlines, and circuit breakers.

A query calls the least busy replica of each shard in parallel. If a replica fails, or has not
responded after half of the time limit, the next replica is called as well. The answer combines the
responses received by the deadline or, if there are none, the first response. Responses from another
index are ignored.

If a server fails, or misses two consecutive queries that others answered, its breaker opens: the
server gets no more queries, so a lost machine delays no query. A thread checks the server several
times a second until it responds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from cocite.cluster.ray import Actor, Answer, Cluster

_SILENCES = 2
"""Number of consecutive missed queries that open a breaker."""


_LOOKS = 0.2
"""Seconds between checks of servers that do not answer."""
_SLICE = 0.05
"""Seconds between a waiting query's checks of its deadline."""
_SMOOTH = 0.1
_PATIENCE = 30.0
"""Seconds that a query waits for the first shard if it has no deadline."""


@dataclass(eq=False)
class _Server:
    """A server and its circuit breaker. Not thread-safe: the owner must use a lock.

    The breaker is also ``open`` until the first response. While it is open, the server gets no
    queries.
    ``opened`` counts how often the breaker opened.
    """

    shard: int
    replica: int
    node: str
    actor: Actor
    open: bool = True
    opened: int = 0
    fault: str = "it has not responded yet"
    silences: int = 0
    waiting: int = 0
    seconds: float = 0.0
    samples: int = 0
    probe: _Call | None = None
    process: int | None = None
    doubted: bool = False
    restarts: int = 0
    refused: StoreError | None = None

    def answered(self) -> None:
        self.open, self.silences, self.fault = False, 0, ""

    def silent(self) -> None:
        """Record a timeout of a query that other servers answered."""
        self.silences += 1
        if self.silences >= _SILENCES:
            self.failed("it does not answer queries")

    def failed(self, fault: str | Exception) -> None:
        self.opened += not self.open
        if isinstance(fault, WorkerLost):
            fault = "its process or its node is lost, and is being restarted"
        self.open, self.silences, self.fault = True, 0, str(fault) or type(fault).__name__

    def status(self) -> ShardStatus:
        return ShardStatus(
            self.shard,
            self.replica,
            self.node,
            self.samples,
            "left alone" if self.open else "answers",
            self.fault,
            self.waiting,
            round(self.seconds, 6),
            self.opened,
            self.restarts,
        )


@dataclass(eq=False)
class _Call:
    server: _Server
    answer: Answer[Any]
    began: float


@dataclass
class _Query:
    """A query under way: replicas ``tried`` by shard, pending ``calls``, and responses by shard."""

    request: ShardRequest
    tried: dict[int, set[int]] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    found: dict[int, dict[int, ShardResponse]] = field(default_factory=dict)


class ReplicaSet:
    """The servers of an index's shards. Thread-safe."""

    def __init__(
        self,
        cluster: Cluster,
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

    def ask(self, request: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        """Query ``shards`` shards; return (shard, responses by part), at least one.

        Raises :class:`QueryTimeout`, and the servers' error if all fail.
        """
        began = time.monotonic()
        end = began + self.deadline
        second = began + self.deadline / 2 if self.replicas > 1 else end
        query, fault = _Query(request), None
        for shard in self._chosen(shards):
            self._call(query, shard)
        if not query.calls:
            self._call_all(query)
        while True:
            now = time.monotonic()
            if len(query.found) == len(query.tried) or (query.found and now >= end):
                break
            check()
            if now > began + _PATIENCE:
                self._give_up(query.calls, blamed=False)
                raise fault or QueryTimeout(
                    f"none of {self.shards} shards of samples has answered within {_PATIENCE:g} "
                    "s: check the nodes with cocite cluster status"
                )
            wait = min([_SLICE, *(each - now for each in (second, end) if each > now)])
            for call in self._completed(query.calls, wait):
                query.calls.remove(call)
                try:
                    response = self._response(call, end)
                except CociteError as error:
                    fault = error
                    self._call(query, call.server.shard)
                else:
                    if response is not None:
                        query.found.setdefault(call.server.shard, response)
            if second < end and time.monotonic() >= second:
                second = end
                for shard in query.tried.keys() - query.found.keys():
                    self._call(query, shard)
            if not query.calls and len(query.found) < len(query.tried):
                if query.found:
                    break  # the others have failed
                time.sleep(_SLICE)
                self._call_all(query)
        self._give_up([c for c in query.calls if c.server.shard not in query.found], blamed=True)
        self._give_up([c for c in query.calls if c.server.shard in query.found], blamed=False)
        return sorted(query.found.items())

    def _chosen(self, shards: int) -> list[int]:
        """Return ``shards`` available shards, least busy first; ties rotate."""
        with self._lock:
            loads = {
                i: min(s.waiting for s in servers if not s.open)
                for i, servers in enumerate(self._servers)
                if not all(s.open for s in servers)
            }
            if shards >= len(loads):
                return list(loads)
            self._turn += shards
            turn = self._turn
        order = sorted(loads, key=lambda i: (loads[i], (i - turn) % self.shards))
        return order[:shards]

    def _call_all(self, query: _Query) -> None:
        """Call a server of each shard, available or not, to wait for the first one."""
        for shard in range(self.shards):
            query.tried[shard] = set()
            self._call(query, shard, whoever=True)

    def _call(self, query: _Query, shard: int, whoever: bool = False) -> None:
        """Call a shard's next untried server; do nothing if all were tried."""
        tried = query.tried.setdefault(shard, set())
        with self._lock:
            left = [s for s in self._servers[shard] if s.replica not in tried]
            left = [s for s in left if whoever or not s.open]
            if not left:
                return
            server = min(left, key=lambda s: (s.open, s.waiting, s.seconds))
            server.waiting += 1
        tried.add(server.replica)
        began = time.monotonic()
        try:
            query.calls.append(_Call(server, server.actor.call("tell", query.request), began))
        except Exception as error:  # the transport may raise anything for a lost server
            self._failed(server, error)

    def _completed(self, calls: Sequence[_Call], seconds: float) -> list[_Call]:
        """Wait at most ``seconds`` for all calls; return the completed ones."""
        if not calls:
            return []
        done, _ = self._cluster.wait([call.answer for call in calls], seconds, least=len(calls))
        came = set(map(id, done))
        return [call for call in calls if id(call.answer) in came]

    def _response(self, call: _Call, end: float) -> dict[int, ShardResponse] | None:
        """Return a completed call's result; None if failed, late, or from another index."""
        server = call.server
        try:
            mark, response = self._cluster.get(call.answer, max(_SLICE, end - time.monotonic()))
        except QueryTimeout:
            self._give_up([call], blamed=True)
            return None
        except Exception as error:
            self._failed(server, error)
            if isinstance(error, CociteError):
                raise
            return None
        seconds = time.monotonic() - call.began
        with self._lock:
            server.waiting -= 1
            if mark != self._mark:
                server.failed("it has another index")
                return None
            server.answered()
            server.seconds += (_SMOOTH if server.seconds else 1.0) * (seconds - server.seconds)
        found: dict[int, ShardResponse] = response
        return found

    def _give_up(self, calls: Sequence[_Call], blamed: bool) -> None:
        if not calls:
            return
        with self._lock:
            self._late += calls
            for call in calls if blamed else ():
                call.server.silent()
                call.server.doubted = True  # the process may be replaced
        self._wake.set()

    def _failed(self, server: _Server, error: Exception) -> None:
        """Record the failure of a server's call."""
        with self._lock:
            server.waiting -= 1
            server.failed(error)
        self._wake.set()

    # -- servers --------------------------------------------------------------------------

    def status(self) -> list[ShardStatus]:
        """Return each server's state."""
        with self._lock:
            return [server.status() for server in chain(*self._servers)]

    def begin(self, seconds: float) -> int:
        """Wait at most ``seconds`` until all shards are available; return how many are.

        Raises the servers' error if they cannot open the index, and :class:`ResourceError` if no
        shard is available.
        """
        end = time.monotonic() + seconds
        while True:
            alive = [any(not s.open for s in servers) for servers in self._servers]
            for refused in filter(None, (s.refused for s in chain(*self._servers))):
                raise refused
            late = time.monotonic() > end
            if all(alive) or (late and any(alive)):
                return sum(alive)
            if late:
                raise ResourceError(
                    f"none of {self.shards} sample servers has started within {seconds:g} s: "
                    f"{self._servers[0][0].fault}. Check the nodes with cocite cluster status"
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
        done = self._completed(late, 0)
        with self._lock:
            for call in done:
                self._late.remove(call)
                call.server.waiting -= 1

    def _probe(self) -> None:
        servers = [s for s in chain(*self._servers) if s.open or s.doubted or not s.samples]
        for server in servers:
            if server.probe is None:
                with suppress(Exception):
                    call = server.actor.call("holds")
                    server.probe = _Call(server, call, time.monotonic())
        probes = [server.probe for server in servers if server.probe is not None]
        for probe in self._completed(probes, _LOOKS / 4):
            server = probe.server
            server.probe = None
            try:
                holds: Holds = self._cluster.get(probe.answer, _LOOKS)
            except Exception as error:
                with self._lock:
                    server.failed(error)
                    server.refused = error if isinstance(error, StoreError) else None
                continue
            with self._lock:
                server.samples = holds.samples
                server.restarts += server.process not in (None, holds.process)
                server.process, server.doubted = holds.process, False
                if holds.mark != self._mark:
                    server.failed("it has another index")
                elif server.open:  # only answered queries reset a closed breaker
                    server.answered()

    def close(self) -> None:
        """Stop the servers."""
        self._stop.set()
        self._wake.set()
        self._watcher.join()
        for server in chain(*self._servers):
            with suppress(Exception):
                server.actor.kill()
        if self._ended is not None:
            self._ended()


_BEGIN = 120.0
"""Seconds for servers to start; a node may have to compile kernels first."""
_EACH = 2
"""Default number of shards per node; with several, a node recovers step by step."""


def open_spread(stored: StoredIndex, cluster: str | Cluster, options: ShardOptions) -> RemoteShards:
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
    with ExitStack() as undo:
        ended = None
        if isinstance(cluster, str):
            from cocite.cluster.ray import Cluster

            cluster = Cluster.connect(cluster)
            ended = undo.callback(cluster.close)
        nodes = sum(1 for node in cluster.nodes() if node.alive and node.cpus)
        if replicas > nodes:
            raise UsageError(
                f"replicas is {replicas!r}; each replica needs its own node, but the cluster has "
                f"{nodes}: choose 1 to {nodes}"
            )
        servers = ReplicaSet(
            cluster,
            str(Path(stored.store.path).absolute()),
            marked(stored),
            shards=shards or min(most, _EACH * nodes),
            replicas=replicas,
            deadline=options.deadline / 1000,
            ended=ended,
        )
        undo.pop_all()
        undo.callback(servers.close)  # this also disconnects
        servers.begin(_BEGIN)
        found = RemoteShards(stored, servers)
        undo.pop_all()
    return found
