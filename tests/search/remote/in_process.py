"""A cluster in this process with the interface of ``cocite.cluster.ray.Cluster``, a virtual clock,
and crashes and delays on demand. An actor runs one call after another; calls of a crashed actor
wait until it restarts, as in Ray. Time passes only when something waits, and then jumps to the next
event; silent servers are checked as time passes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from cocite.errors import QueryTimeout, WorkerLost
from cocite.search.remote import replicas
from cocite.search.remote.replicas import ReplicaSet
from tests.clock import Clock

NEVER = float("inf")


@dataclass
class Node:
    id: str
    address: str = "here"
    cpus: int = 1
    memory: int = 1 << 30
    alive: bool = True


class Answer:
    """The future result of a call, valid once ``done``."""

    def __init__(self, called: float, method: str, arguments: Sequence[Any]) -> None:
        self.called, self.method, self.arguments = called, method, arguments
        self.due, self.done = NEVER, False
        self.result: Any = None
        self.error: Exception | None = None

    def finish(self, result: Any = None, error: Exception | None = None) -> None:
        self.result, self.error, self.done = result, error, True


class Actor:
    """An actor ``kind(*arguments)``; new calls take ``delay`` seconds."""

    def __init__(self, clock: Clock, kind: Any, arguments: Sequence[Any], node: str) -> None:
        self.clock, self.kind, self.arguments, self.node = clock, kind, arguments, node
        self.delay, self.free_at = 0.0, clock.now
        self.running, self.ended = True, False
        self.calls: deque[Answer] = deque()
        self.methods: list[str] = []
        self.value = kind(*arguments)
        self.now: Answer | None = None

    def call(self, method: str, *arguments: Any) -> Answer:
        answer = Answer(self.clock.now, method, arguments)
        self.calls.append(answer)
        self.work()
        return answer

    def kill(self, *, restart: bool = False) -> None:
        self.running, self.ended = False, True

    def crash(self) -> None:
        """Crash the process: the current call fails, and other calls wait."""
        self.running = False
        if self.now is not None:
            self.now.finish(error=WorkerLost("the worker was lost"))
            self.now = None

    def restart_process(self) -> None:
        self.value = self.kind(*self.arguments)
        self.running, self.free_at = True, self.clock.now
        self.work()

    def work(self) -> None:
        """Finish all calls that are due, and start the next one."""
        while self.running and (self.now or self.calls):
            if self.now is None:
                self.now = self.calls.popleft()
                self.now.due = max(self.free_at, self.now.called) + self.delay
                self.methods.append(self.now.method)
            if self.now.due > self.clock.now:
                return
            answer, self.now = self.now, None
            self.free_at = answer.due
            try:
                answer.finish(getattr(self.value, answer.method)(*answer.arguments))
            except Exception as error:
                answer.finish(error=error)


class InProcess(Clock):
    """The cluster and its clock, which :meth:`rule` installs for all of its clients."""

    def __init__(self, nodes: int) -> None:
        self.cluster_nodes = [Node(f"node{i}") for i in range(nodes)]
        self.made: list[Actor] = []
        self.watchers: list[Callable[[], None]] = []
        self._watching = False

    def rule(self, patch: pytest.MonkeyPatch) -> None:
        """Make new replica sets and deadlines use this clock."""
        init = ReplicaSet.__init__

        def init_and_watch(self_: ReplicaSet, *arguments: Any, **options: Any) -> None:
            init(self_, *arguments, **options)
            if arguments[0] is self:
                self.watchers.append(self_.look)

        patch.setattr(ReplicaSet, "__init__", init_and_watch)
        patch.setattr(ReplicaSet, "_watch", lambda self_: None)
        patch.setattr(replicas, "time", self)
        patch.setattr("cocite.deadline._now", self)

    def sleep(self, seconds: float) -> None:
        """Let time pass, with all events that are due."""
        end = self.now + seconds
        while self.now < end:
            self._advance(end)

    def _advance(self, end: float) -> None:
        """Advance to the next answer, or to the ``end``."""
        self.now = min([end, *(actor.now.due for actor in self.made if actor.now)])
        for actor in self.made:
            actor.work()
        if not self._watching:
            self._watching = True  # time does not pass for nested checks
            for watch in self.watchers:
                watch()
            self._watching = False

    def nodes(self) -> list[Node]:
        return list(self.cluster_nodes)

    def actors(
        self,
        kind: Any,
        arguments: Sequence[Sequence[Any]],
        *,
        threads: int,
        memory: int,
        restarts: int,
        nodes: Sequence[str] | None = None,
    ) -> list[Actor]:
        assert nodes is not None
        assert restarts == -1
        created = [
            Actor(self, kind, each, node) for each, node in zip(arguments, nodes, strict=True)
        ]
        self.made += created
        return created

    def close(self) -> None:
        for actor in self.made:
            actor.kill()

    def get(self, answer: Answer, seconds: float | None = None) -> Any:
        self.wait([answer], seconds)
        if not answer.done:
            raise QueryTimeout("the call timed out")
        if answer.error is not None:
            raise answer.error
        return answer.result

    def wait(
        self, answers: Sequence[Answer], seconds: float | None = None, *, least: int = 1
    ) -> tuple[list[Answer], list[Answer]]:
        end = NEVER if seconds is None else self.now + seconds
        while self.now < end and not self._watching and not any(each.done for each in answers):
            self._advance(end)
            assert self.now < NEVER, "no call will ever finish"
        return [a for a in answers if a.done], [a for a in answers if not a.done]

    def actors_on(self, node: int) -> list[Actor]:
        return [actor for actor in self.made if actor.node == f"node{node}"]

    def kill_node(self, node: int) -> None:
        for actor in self.actors_on(node):
            actor.crash()

    def start_again(self, node: int) -> None:
        for actor in self.actors_on(node):
            actor.restart_process()
