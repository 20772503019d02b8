"""A cluster as its driver sees it: its nodes, items done in order, values that lie on it.

    with Cluster.connect("local:4") as cluster:
        for found in cluster.in_order(work, items, threads=1, memory=1 << 30): ...

An address is ``local:N`` (N nodes on this machine, for the time of the run), ``HOST:PORT`` of a
head node, or ``auto``: the local cluster that ``cocite cluster up`` has started, or else the one
that this machine is a node of.

When a cluster is reached every node says what it runs. Bytes do not depend on it, but values that
are sent have to be understood: all have this release of cocite, and NumPy and Numba of the same
main version.

Cost: a connection takes about a second, and a process on each node; an item some milliseconds.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from cocite import __version__
from cocite.compiled.clock import clock
from cocite.errors import ClusterError, CociteError, UsageError
from cocite.memory import format_size
from cocite.runner.ray.actors import (
    Actor,
    Answer,
    Held,
    attempt,
    library,
    translated,
    value_of,
)
from cocite.runner.ray.address import answers, reached
from cocite.runner.ray.local import LocalNodes

__all__ = ["Cluster", "NodeSeen"]

T = TypeVar("T")
R = TypeVar("R")

_log = logging.getLogger("cocite")

_SILENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
"""No statistics; and errors of what nobody waits for any more are not printed."""
_AGAIN = 8
"""How often an item is done again whose worker was lost."""
_ANSWERS = 120.0
"""How long nodes have to say what they run: each starts a process for it."""
_LOOK = 5.0
"""After how long without an answer the head node is looked at."""
_LOOKS = 6
"""How often in a row it is not there before it is given up: Ray would wait for ever."""


@dataclass(frozen=True)
class NodeSeen:
    """A node: Ray's ``id`` of it, its address, ``cpus`` and bytes of ``memory`` for work, and
    whether it is ``alive``.
    """

    id: str
    address: str
    cpus: int
    memory: int
    alive: bool


class Cluster:
    """A connection to a cluster; there is one in a process at a time."""

    def __init__(self, address: str, local: LocalNodes | None) -> None:
        """See :meth:`connect`."""
        self.address = address
        self._local = local
        self._ray = library()
        self._open = True  # what is asked of Ray without a connection makes a cluster of its own
        self._head = address

    @classmethod
    def connect(cls, address: str, *, check: bool = True) -> Self:
        """Reach the cluster; local nodes are started first. Raises :class:`MissingLibrary`,
        :class:`UsageError` for an address that is none, and :class:`ClusterError` if nothing
        answers there, or if nodes run something else than this process (``check``).
        """
        for name, value in _SILENT.items():
            os.environ.setdefault(name, value)
        ray = library()
        if ray.is_initialized():
            raise ClusterError("this process is connected to a cluster; one at a time")
        _redirect(ray)
        local = LocalNodes.start(address) if address.startswith("local") else None
        try:
            found = cls(local.address if local is not None else reached(address), local)
            found._connect()
        except BaseException:
            if local is not None:
                local.stop()
            raise
        try:
            if check:
                found._check_versions()
        except BaseException:
            found.close()
            raise
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
            told = " ".join(str(error).split())
            raise ClusterError(
                f"the cluster at {self.address} cannot be used: {told}. All its machines need the "
                "same versions of Python and Ray as this one, and this one its token"
            ) from error
        self._head = self._ray.get_runtime_context().gcs_address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster. What this process has begun on it ends; local nodes end."""
        self._open = False
        self._ray.shutdown()
        if self._local is not None:
            self._local.stop()

    # -- nodes -----------------------------------------------------------------------------

    def nodes(self) -> list[NodeSeen]:
        """All that there are or were, those of a local cluster in the order of their numbers."""
        found = [
            NodeSeen(
                each["NodeID"],
                each["NodeManagerAddress"],
                int(each["Resources"].get("CPU", 0)),
                int(each["Resources"].get("memory", 0)),
                bool(each["Alive"]),
            )
            for each in self._ray.nodes()
        ]
        order = self._local.ids if self._local is not None else []
        place = {node: number for number, node in enumerate(order)}
        return sorted(found, key=lambda node: (place.get(node.id, len(order)), node.id))

    def _workers(self) -> list[NodeSeen]:
        return [node for node in self.nodes() if node.alive and node.cpus]

    def threads_each(self, asked: int | None) -> int:
        """How many threads a piece of work gets: as asked, or what every node has."""
        return asked or min((node.cpus for node in self._workers()), default=1)

    def memory_each(self, asked: int | None, threads: int) -> int:
        """How many bytes a piece of work gets that takes so many threads: as asked, or half of its
        share of the memory of the smallest node.
        """
        shares = [
            node.memory // max(1, node.cpus // threads)
            for node in self._workers()
            if node.cpus >= threads
        ]
        return asked or min(shares, default=0) // 2

    def slots(self, threads: float, memory: int) -> int:
        """How many pieces of work of that size run at a time. Raises :class:`UsageError` if no node
        can do one.
        """
        nodes = self._workers()
        each = [min(int(n.cpus / threads), n.memory // max(1, memory)) for n in nodes]
        found = sum(each)
        if not found:
            most = max((node.cpus for node in nodes), default=0)
            room = max((node.memory for node in nodes), default=0)
            raise UsageError(
                f"no node of the cluster has {threads} threads and {format_size(memory)} of memory "
                f"for a piece of work: the largest have {most}, and {format_size(room)}. Give less "
                "with --threads (threads=...) and --memory (memory=...)"
            )
        return found

    def kill_node(self, number: int) -> None:
        """End a node of a local cluster, its raylet and its workers, by SIGKILL; 0 is the head, and
        cannot go. For tests.
        """
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
                told = [
                    f"{name} {there.get(name)}, here {here[name]}"
                    for name in here
                    if there.get(name) != here[name]
                ]
                raise ClusterError(
                    f"node {node.address} of the cluster runs other versions than this machine: "
                    f"{'; '.join(told)}. Install the same on all"
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
        """Yield ``work(item)`` for every item, in the items' order, from all nodes.

        A piece of work has ``threads`` and ``memory`` of its node to itself; ``ahead`` are begun
        before the first of them is yielded, twice as many as run at a time unless told. An item
        whose worker is lost is done again elsewhere. An error of the work comes out as itself;
        whoever stops asking (Ctrl-C, too) ends what has begun.
        """
        most = ahead or 2 * self.slots(threads, memory)
        task = self._ray.remote(attempt).options(
            num_cpus=threads,
            memory=memory,
            max_retries=_AGAIN,
            scheduling_strategy="SPREAD",
        )
        sent, left = self._ray.put(work), iter(items)
        waiting: deque[Any] = deque(task.remote(sent, item) for item in islice(left, most))
        try:
            while waiting:
                found: R = self.get(Answer(waiting[0]))
                waiting.popleft()
                waiting.extend(task.remote(sent, item) for item in islice(left, 1))
                yield found
        finally:
            if self._open:
                for each in waiting:
                    self._ray.cancel(each, force=True)

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
        """``kind(*each)`` for each of the arguments, living on nodes: those of these ids, or spread
        over all. One that is lost is made anew so many times (-1: always), elsewhere if its node is
        gone; calls meanwhile wait, and what was under way fails with :class:`LostWorker`.
        ``concurrency`` calls are done at a time. With no ``threads`` they have none to themselves,
        and are started wherever they are wanted.
        """
        if threads:
            self.slots(threads, memory)
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        held, found = self._ray.remote(Held), []
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
        """Lay a value on the cluster, once for all who take it."""
        return Answer(self._ray.put(value))

    def get(self, answer: Answer[R], seconds: float | None = None) -> R:
        """The value; raises its error, :class:`LostWorker` where Ray gave up,
        :class:`TookTooLong` after so many seconds, and :class:`ClusterError` if the head node is
        gone.
        """
        end, missed = None if seconds is None else clock() + seconds, 0
        while True:
            left = _LOOK if end is None else min(_LOOK, max(0.0, end - clock()))
            try:
                found: R = value_of(self._ray.get(answer.reference, timeout=left))
            except self._ray.exceptions.GetTimeoutError as error:
                if end is not None and clock() >= end:
                    raise translated(error) from error
                missed = 0 if answers(self._head) else missed + 1
                if missed == _LOOKS:
                    raise ClusterError(
                        f"the head node of the cluster, {self._head}, does not answer any more. "
                        "Start the cluster again, and repeat the command: it goes on from what was "
                        "done"
                    ) from error
            except self._ray.exceptions.RayError as error:
                raise translated(error) from error
            else:
                return found

    def wait(
        self, answers: Sequence[Answer[R]], seconds: float | None = None, *, least: int = 1
    ) -> tuple[list[Answer[R]], list[Answer[R]]]:
        """Wait until so many have come, or so many seconds; those that have, and the others."""
        if not answers:
            return [], []
        by = {each.reference: each for each in answers}
        known, least = list(by), min(least, len(by))
        self._ray.wait(known, num_returns=least, timeout=seconds, fetch_local=False)
        done, _ = self._ray.wait(known, num_returns=len(known), timeout=0, fetch_local=False)
        came = set(done)
        return (
            [each for each in answers if each.reference in came],
            [each for each in answers if each.reference not in came],
        )


def _redirect(ray: Any) -> None:
    """What Ray tells of lost nodes goes to our log: it would print it among the results."""

    def tell(data: dict[str, Any], ignore_prefix: bool) -> None:
        for line in data["lines"]:
            _log.info("cluster: %s", ". ".join(line.split(". ")[:3]))

    ray._private.worker.print_to_stdstream = tell


def _versions() -> dict[str, str]:
    """What has to be the same on all nodes."""
    found = {"cocite": __version__}
    for name in ("numpy", "numba"):
        parts = version(name).split(".")
        found[name] = ".".join(parts[: 2 if parts[0] == "0" else 1])
    return found
