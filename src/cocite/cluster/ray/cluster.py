"""A connection to a cluster: nodes, parallel maps, actors, and stored values.

    with Cluster.connect("local:4") as cluster:
        for found in cluster.in_order(work, items, threads=1, memory=1 << 30): ...

An address is ``local:N`` (N nodes on this machine, for one run), ``HOST:PORT`` of a head node, or
``auto``: the local cluster started by ``cocite cluster up``, otherwise the cluster that includes
this machine. Nodes must run this release of cocite, and NumPy of the same major version.

Errors of cocite are returned as values, because Ray would wrap raised errors. A call whose argument
is a failed answer fails with the same error. Connecting takes a second, and a process per node.
Each item adds a few milliseconds.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from typing import Any, Generic, Self, TypeVar

from cocite import __version__
from cocite.cluster.ray.local import LocalNodes, saved_address, set_token
from cocite.deadline import clock
from cocite.errors import (
    ClusterError,
    CociteError,
    QueryTimeout,
    ResourceError,
    UsageError,
    WorkerLost,
)
from cocite.extras import need
from cocite.resources import format_size

T = TypeVar("T")
R = TypeVar("R")


def library() -> Any:
    """Return the module ``ray``; raises :class:`MissingLibrary`, with the install command."""
    return need("ray", "a cluster", "cluster")


def attempt(work: Callable[..., R], *arguments: Any) -> R | CociteError:
    """Return the result of ``work``, or the :class:`CociteError` that it raised or was given."""
    for argument in arguments:
        if isinstance(argument, CociteError):
            return argument
    try:
        return work(*arguments)
    except CociteError as error:
        return error


def attempt_unless(stopped: bytes, work: Callable[[T], R], item: T) -> R | CociteError | None:
    """Return the result of :func:`attempt`, or None if the cluster has a note ``stopped``.

    Ray's own ``cancel`` can abort the calling process if a task is about to start (Ray 2.60: "Tried
    to complete task that was not pending").
    """
    if _notes()._internal_kv_get(stopped) is not None:
        return None
    return attempt(work, item)


def _notes() -> Any:
    """Return Ray's key-value store, which all processes of a cluster share."""
    return import_module("ray.experimental.internal_kv")


def translated(error: Exception) -> Exception:
    """Convert an error from Ray; return other errors unchanged."""
    ray = library()
    reason = str(error).strip().partition("\n")[0]
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, Exception) else error
        lost = isinstance(cause, ray.exceptions.RayError) and cause is not error
        return translated(cause) if lost else cause  # an argument was lost
    if isinstance(error, ray.exceptions.GetTimeoutError):
        return QueryTimeout("the cluster did not answer within the time limit")
    if isinstance(error, ray.exceptions.OutOfMemoryError | ray.exceptions.ObjectStoreFullError):
        return ResourceError(
            f"a node of the cluster ran out of memory: {reason}. Lower --memory (memory=...) or "
            "--threads (threads=...), or use larger nodes"
        )
    if isinstance(error, ray.exceptions.RayError):
        return WorkerLost(
            f"work on the cluster was lost, and retries failed: {reason}. Check the nodes with "
            "cocite cluster status, and repeat the command"
        )
    return error


class ActorValues:
    """The object in an actor, created there and called by method name.

    Callers that rely on earlier calls mark the object and pass the mark with each call. A
    replacement has no mark, so callers notice every loss.
    """

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._value = attempt(kind, *arguments)
        self._mark: int | None = None

    def take_mark(self, mark: int) -> None:
        """Set the mark that later calls check."""
        self._mark = mark

    def call(self, parts: int, method: str, *arguments: Any, mark: int | None = None) -> Any:
        """Call a method that returns ``parts`` values, which become separate answers. If the
        ``mark`` differs, each answer is a :class:`WorkerLost`.
        """
        if isinstance(self._value, CociteError):
            found: Any = self._value
        elif mark is not None and mark != self._mark:
            found = WorkerLost("an actor was lost and replaced")
        else:
            found = attempt(getattr(self._value, method), *arguments)
        if parts == 1:
            return found
        return [found] * parts if isinstance(found, CociteError) else list(found)


@dataclass(frozen=True)
class Answer(Generic[R]):
    """A value on the cluster, perhaps pending. As an argument of a call, it is passed by value."""

    reference: Any


@dataclass(frozen=True)
class Actor:
    """An object on a node (:meth:`Cluster.actors`)."""

    handle: Any

    def mark(self, mark: int) -> None:
        """Set the mark that later calls check."""
        self.handle.take_mark.remote(mark)

    def call(self, method: str, *arguments: Any, mark: int | None = None) -> Answer[Any]:
        """Start ``value.method(*arguments)`` there.

        Calls run one by one, in order, and wait for arguments that are answers. The returned answer
        raises :class:`WorkerLost` if the object does not have this ``mark``.
        """
        return self.call_for(1, method, *arguments, mark=mark)[0]

    def call_for(
        self, parts: int, method: str, *arguments: Any, mark: int | None = None
    ) -> list[Answer[Any]]:
        """Call a method that returns ``parts`` values, which become separate answers."""
        sent = [each.reference if isinstance(each, Answer) else each for each in arguments]
        call = self.handle.call if parts == 1 else self.handle.call.options(num_returns=parts)
        found = call.remote(parts, method, *sent, mark=mark)
        return [Answer(each) for each in ([found] if parts == 1 else found)]

    def alive(self, seconds: float = 1.0) -> bool:
        """Return whether the actor answers within ``seconds``; False if it is lost or busy."""
        ray = library()
        try:
            ray.get(self.handle.__ray_ready__.remote(), timeout=seconds)
        except ray.exceptions.RayError:
            return False
        return True

    def kill(self, *, restart: bool = False) -> None:
        """Kill the actor; with ``restart``, Ray replaces it as after a fault."""
        ray = library()
        if ray.is_initialized():  # otherwise Ray would start a cluster to find the actor
            ray.kill(self.handle, no_restart=not restart)


_SECONDS = 5.0
"""Seconds to wait for a head node to accept a connection."""


def reached(address: str) -> str:
    """Return the address of a head node that accepts connections."""
    kept = saved_address()
    if address == "auto":
        if kept is None:
            return "auto"
        address = kept.address
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and 0 < int(port) < 1 << 16):
        raise UsageError(
            f"{address!r} is not a cluster address; it must be local:N for N nodes on this "
            "machine, HOST:PORT of a head node, or auto for the running one"
        )
    if kept is not None and kept.address == address:
        set_token(kept.token)
    if not answers(address):
        raise ClusterError(
            f"no cluster answers at {address}. To start one on this machine: cocite cluster up "
            "--local N"
        )
    return address


def answers(address: str) -> bool:
    """Return whether HOST:PORT accepts connections."""
    host, _, port = address.rpartition(":")
    try:
        with closing(socket.create_connection((host.strip("[]"), int(port)), _SECONDS)):
            return True
    except OSError:
        return False


_log = logging.getLogger("cocite")

_SILENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
"""Ray's options: no usage statistics, and no messages about unhandled errors."""
_AGAIN = 8
"""Maximum retries of an item whose worker was lost."""
_ANSWERS = 120.0
"""Seconds for nodes to report their versions, each from a new process."""
_LOOK = 5.0
"""Seconds without an answer before the head node is checked."""
_LOOKS = 6
"""Failed checks in a row after which the head node counts as lost; Ray would wait forever."""


@dataclass(frozen=True)
class ClusterNode:
    """A node with its ``cpus`` and bytes of ``memory`` for work; ``id`` is Ray's."""

    id: str
    address: str
    cpus: int
    memory: int
    alive: bool


class Cluster:
    """A connection to a cluster; at most one per process."""

    def __init__(self, address: str, local: LocalNodes | None) -> None:
        """See :meth:`connect`."""
        self.address = address
        self._local = local
        self._ray = library()
        self._open = True  # without a connection, calling Ray would start a cluster
        self._head = address

    @classmethod
    def connect(cls, address: str, *, check: bool = True) -> Self:
        """Connect to a cluster; for ``local:N``, first start the nodes.

        Raises :class:`MissingLibrary`, :class:`UsageError` for an invalid address, and
        :class:`ClusterError` if the cluster does not answer or, with ``check``, if its nodes have
        different versions than this process.
        """
        for name, value in _SILENT.items():
            os.environ.setdefault(name, value)
        ray = library()
        if ray.is_initialized():
            raise ClusterError(
                "this process is already connected to a cluster; it can use only one at a time"
            )
        _redirect(ray)
        local = LocalNodes.start(address) if address.startswith("local") else None
        with ExitStack() as stack:
            if local is not None:
                stack.callback(local.stop)
            found = cls(local.address if local is not None else reached(address), local)
            found._connect()
            stack.pop_all()
            stack.push(found)
            if check:
                found._check_versions()
            stack.pop_all()
        return found

    def _connect(self) -> None:
        try:
            self._ray.init(
                address=self.address,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
        except (ConnectionError, RuntimeError, self._ray.exceptions.RayError) as error:
            reason = " ".join(str(error).split())
            raise ClusterError(
                f"the cluster at {self.address} cannot be used: {reason}. All machines need the "
                "same versions of Python and Ray, and this machine needs the cluster's token"
            ) from error
        self._head = self._ray.get_runtime_context().gcs_address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect, which ends this process's work and its local nodes."""
        self._open = False
        self._ray.shutdown()
        if self._local is not None:
            self._local.stop()

    # -- nodes -----------------------------------------------------------------------------

    def nodes(self) -> list[ClusterNode]:
        """Return all nodes, including lost ones; local nodes are in order of number."""
        found = []
        for each in self._ray.nodes():
            cpus, memory = (int(each["Resources"].get(name, 0)) for name in ("CPU", "memory"))
            named = each["NodeID"], each["NodeManagerAddress"]
            found.append(ClusterNode(*named, cpus, memory, bool(each["Alive"])))
        order = self._local.ids if self._local is not None else []
        place = {node: number for number, node in enumerate(order)}
        return sorted(found, key=lambda node: (place.get(node.id, len(order)), node.id))

    def _workers(self) -> list[ClusterNode]:
        return [node for node in self.nodes() if node.alive and node.cpus]

    def threads_each(self, asked: int | None) -> int:
        """Return the threads of a task: ``asked``, by default as many as the smallest node has."""
        return asked or min((node.cpus for node in self._workers()), default=1)

    def memory_each(self, asked: int | None, threads: int) -> int:
        """Return a task's bytes: ``asked``, or half of its share of the smallest node's memory."""
        shares = [
            node.memory // max(1, node.cpus // threads)
            for node in self._workers()
            if node.cpus >= threads
        ]
        return asked or min(shares, default=0) // 2

    def slots(self, threads: float, memory: int) -> int:
        """Return how many tasks of this size fit at a time; raises :class:`UsageError` if none."""
        nodes = self._workers()
        each = [min(int(n.cpus / threads), n.memory // max(1, memory)) for n in nodes]
        found = sum(each)
        if not found:
            most = max((node.cpus for node in nodes), default=0)
            room = max((node.memory for node in nodes), default=0)
            raise UsageError(
                f"no node of the cluster has {threads} threads and {format_size(memory)} of "
                f"memory; the most that any node has is {most} threads and {format_size(room)}. "
                "Lower --threads (threads=...) or --memory (memory=...)"
            )
        return found

    def kill_node(self, number: int) -> None:
        """Kill a node of a local cluster, except the head (0), with its workers. For tests."""
        if self._local is None:
            raise UsageError("only nodes of a local cluster can be killed")
        self._local.kill(number)

    def _check_versions(self) -> None:
        here = _versions()
        asked = self._ray.remote(_versions)
        nodes = [node for node in self.nodes() if node.alive]
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        answers = [
            asked.options(num_cpus=0, scheduling_strategy=affinity(node.id, soft=False)).remote()
            for node in nodes
        ]
        for node, answer in zip(nodes, answers, strict=True):
            try:
                there: dict[str, str] = self.get(Answer(answer), _ANSWERS)
            except (CociteError, ImportError, AttributeError) as error:
                raise ClusterError(
                    f"node {node.address} of the cluster cannot run cocite: {error}. Install "
                    f"cocite {__version__} there, with the extra cluster"
                ) from error
            if there != here:
                others = [name for name in here if there.get(name) != here[name]]
                versions = [f"{name} {there.get(name)}, here {here[name]}" for name in others]
                raise ClusterError(
                    f"node {node.address} of the cluster has different versions than this "
                    f"machine: {'; '.join(versions)}. Install the same versions on all machines"
                )

    # -- work ------------------------------------------------------------------------------

    def in_order(
        self,
        work: Callable[[T], R],
        items: Iterable[T],
        *,
        threads: int,
        memory: int,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """Yield ``work(item)``, computed on any node, for every item, in order.

        Each item reserves ``threads`` and ``memory`` on a node. At most ``ahead`` items are
        submitted at a time, by default twice as many as can run. An item whose worker is lost runs
        again elsewhere. Closing the iterator drops waiting items.
        """
        most = ahead or 2 * self.slots(threads, memory)
        task = self._ray.remote(attempt_unless).options(
            num_cpus=threads,
            memory=memory,
            max_retries=_AGAIN,
            scheduling_strategy="SPREAD",
        )
        sent, left, stopped = self._ray.put(work), iter(items), os.urandom(16)
        waiting: deque[Any] = deque(task.remote(stopped, sent, item) for item in islice(left, most))
        try:
            while waiting:
                found: R = self.get(Answer(waiting[0]))
                waiting.popleft()
                waiting.extend(task.remote(stopped, sent, item) for item in islice(left, 1))
                yield found
        finally:
            if self._open and waiting and answers(self._head):
                _notes()._internal_kv_put(stopped, b"stopped")

    def actors(
        self,
        kind: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        *,
        threads: float,
        memory: int,
        restarts: int,
        nodes: Sequence[str] | None = None,
        concurrency: int = 1,
    ) -> list[Actor]:
        """Create ``kind(*each)`` for each of the arguments, on ``nodes`` (ids) or on all.

        A lost object is replaced up to ``restarts`` times (-1: always). Meanwhile new calls wait,
        and calls that were running fail with :class:`WorkerLost`. Up to ``concurrency`` calls run
        at a time.
        """
        if threads:
            self.slots(threads, memory)
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        held, found = self._ray.remote(ActorValues), []
        for number, each in enumerate(arguments):
            place = "SPREAD" if nodes is None else affinity(nodes[number], soft=True)
            made = held.options(
                num_cpus=threads,
                memory=memory,
                max_restarts=restarts,
                max_concurrency=concurrency,
                scheduling_strategy=place,
            )
            found.append(Actor(made.remote(kind, *each)))
        return found

    def put(self, value: R) -> Answer[R]:
        """Store a value on the cluster."""
        return Answer(self._ray.put(value))

    def get(self, answer: Answer[R], seconds: float | None = None) -> R:
        """Return the value, or raise its error.

        Raises :class:`WorkerLost` if retries failed, :class:`QueryTimeout` after ``seconds``, and
        :class:`ClusterError` if the head node does not answer.
        """
        end, missed = None if seconds is None else clock() + seconds, 0
        while True:
            left = _LOOK if end is None else min(_LOOK, max(0.0, end - clock()))
            try:
                found: R | CociteError = self._ray.get(answer.reference, timeout=left)
            except self._ray.exceptions.GetTimeoutError as error:
                if end is not None and clock() >= end:
                    raise translated(error) from error
                missed = 0 if answers(self._head) else missed + 1
                if missed == _LOOKS:
                    raise ClusterError(
                        f"the head node of the cluster, {self._head}, has stopped responding. "
                        "Restart the cluster and repeat the command; interrupted builds and "
                        "batches resume"
                    ) from error
            except self._ray.exceptions.RayError as error:
                raise translated(error) from error
            else:
                if isinstance(found, CociteError):
                    raise found
                return found

    def wait(
        self, answers: Sequence[Answer[R]], seconds: float | None = None, *, least: int = 1
    ) -> tuple[list[Answer[R]], list[Answer[R]]]:
        """Wait for ``least`` answers, or for ``seconds``; return the ready ones, and the others."""
        if not answers:
            return [], []
        by = {each.reference: each for each in answers}
        known, least = list(by), min(least, len(by))
        found = self._ray.wait(known, num_returns=least, timeout=seconds, fetch_local=False)
        if least < len(known):
            found = self._ray.wait(known, num_returns=len(known), timeout=0, fetch_local=False)
        done, others = ([by[each] for each in some] for some in found)
        return done, others


def _redirect(ray: Any) -> None:
    """Log Ray's messages about lost nodes, which Ray would print among the results."""

    def tell(data: dict[str, Any], ignore_prefix: bool) -> None:
        for line in data["lines"]:
            _log.info("cluster: %s", ". ".join(line.split(". ")[:3]))

    ray._private.worker.print_to_stdstream = tell


def _versions() -> dict[str, str]:
    return {"cocite": __version__, "numpy": version("numpy").partition(".")[0]}
