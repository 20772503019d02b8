"""A cluster in this very process: what ``runner.ray.Cluster`` promises, with deaths and delays made
to order, in a time of its own. An actor does one call after another; one that is gone lets calls
wait until it is made anew, as Ray's do. Time goes by only where somebody waits, and goes on at once
to what comes next; servers that do not answer are looked at as time goes by.
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
    """What comes of a call, when it is ``done``."""

    def __init__(self, called: float, method: str, arguments: Sequence[Any]) -> None:
        self.called, self.method, self.arguments = called, method, arguments
        self.due, self.done = NEVER, False
        self.found: Any = None
        self.error: Exception | None = None

    def end(self, found: Any = None, error: Exception | None = None) -> None:
        self.found, self.error, self.done = found, error, True


class Actor:
    """``kind(*arguments)``; ``delay`` is how many seconds each call takes that begins now."""

    def __init__(self, clock: Clock, kind: Any, arguments: Sequence[Any], node: str) -> None:
        self.clock, self.kind, self.arguments, self.node = clock, kind, arguments, node
        self.delay, self.free = 0.0, clock.now
        self.there, self.ended = True, False
        self.calls: deque[Answer] = deque()
        self.told: list[str] = []
        self.value = kind(*arguments)
        self.now: Answer | None = None

    def call(self, method: str, *arguments: Any) -> Answer:
        answer = Answer(self.clock.now, method, arguments)
        self.calls.append(answer)
        self.work()
        return answer

    def kill(self, *, restart: bool = False) -> None:
        self.there, self.ended = False, True

    def lost(self) -> None:
        """As if its process had died: what was under way fails, and calls wait from now on."""
        self.there = False
        if self.now is not None:
            self.now.end(error=WorkerLost("the worker was lost"))
            self.now = None

    def made_anew(self) -> None:
        self.value = self.kind(*self.arguments)
        self.there, self.free = True, self.clock.now
        self.work()

    def work(self) -> None:
        """Do all calls that are done by now, and begin the next one."""
        while self.there and (self.now or self.calls):
            if self.now is None:
                self.now = self.calls.popleft()
                self.now.due = max(self.free, self.now.called) + self.delay
                self.told.append(self.now.method)
            if self.now.due > self.clock.now:
                return
            answer, self.now = self.now, None
            self.free = answer.due
            try:
                answer.end(getattr(self.value, answer.method)(*answer.arguments))
            except Exception as error:
                answer.end(error=error)


class InProcess(Clock):
    """The cluster, and its clock, which :meth:`rule` makes that of all who ask it."""

    def __init__(self, nodes: int) -> None:
        self.all = [Node(f"node{i}") for i in range(nodes)]
        self.made: list[Actor] = []
        self.looks: list[Callable[[], None]] = []
        self._looking = False

    def rule(self, patch: pytest.MonkeyPatch) -> None:
        """Have companies that are made from now on, and deadlines, go by this clock."""
        init = ReplicaSet.__init__

        def watched(self_: ReplicaSet, *arguments: Any, **more: Any) -> None:
            init(self_, *arguments, **more)
            if arguments[0] is self:
                self.looks.append(self_.look)

        patch.setattr(ReplicaSet, "__init__", watched)
        patch.setattr(ReplicaSet, "_watch", lambda self_: None)
        patch.setattr(replicas, "time", self)
        patch.setattr("cocite.deadline._now", self)

    def sleep(self, seconds: float) -> None:
        """Let time go by, and what is to happen in it happen."""
        end = self.now + seconds
        while self.now < end:
            self._go_on(end)

    def _go_on(self, end: float) -> None:
        """To the next answer, or to the ``end``."""
        self.now = min([end, *(actor.now.due for actor in self.made if actor.now)])
        for actor in self.made:
            actor.work()
        if not self._looking:
            self._looking = True  # who looks meanwhile takes no time from others
            for look in self.looks:
                look()
            self._looking = False

    def nodes(self) -> list[Node]:
        return list(self.all)

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
        made = [Actor(self, kind, each, node) for each, node in zip(arguments, nodes, strict=True)]
        self.made += made
        return made

    def close(self) -> None:
        for actor in self.made:
            actor.kill()

    def get(self, answer: Answer, seconds: float | None = None) -> Any:
        self.wait([answer], seconds)
        if not answer.done:
            raise QueryTimeout("it is not there in time")
        if answer.error is not None:
            raise answer.error
        return answer.found

    def wait(
        self, answers: Sequence[Answer], seconds: float | None = None, *, least: int = 1
    ) -> tuple[list[Answer], list[Answer]]:
        end = NEVER if seconds is None else self.now + seconds
        while self.now < end and not self._looking and not any(each.done for each in answers):
            self._go_on(end)
            assert self.now < NEVER, "nobody will ever answer"
        return [a for a in answers if a.done], [a for a in answers if not a.done]

    def on(self, node: int) -> list[Actor]:
        return [actor for actor in self.made if actor.node == f"node{node}"]

    def kill_node(self, node: int) -> None:
        for actor in self.on(node):
            actor.lost()

    def start_again(self, node: int) -> None:
        for actor in self.on(node):
            actor.made_anew()
