"""A cluster in this very process: what ``runner.ray.Cluster`` promises, with deaths and delays made
to order. An actor is a thread; one that is gone lets calls wait until it is made anew, as Ray's do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from cocite.errors import LostWorker

Answer = Future[Any]


@dataclass
class Node:
    id: str
    address: str = "here"
    cpus: int = 1
    memory: int = 1 << 30
    alive: bool = True


class Actor:
    """``kind(*arguments)`` in a thread; ``delay`` is how many seconds each call takes more."""

    def __init__(self, kind: Any, arguments: Sequence[Any], node: str) -> None:
        self.kind, self.arguments, self.node, self.delay = kind, arguments, node, 0.0
        self.ended = False
        self.calls: SimpleQueue[Any] = SimpleQueue()
        self.told: list[str] = []
        self.there = threading.Event()
        self.there.set()
        self.value = kind(*arguments)
        self.now: Answer | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def call(self, method: str, *arguments: Any) -> Answer:
        answer: Answer = Future()
        self.calls.put((answer, method, arguments))
        return answer

    def kill(self, *, restart: bool = False) -> None:
        self.ended = True
        self.calls.put(None)

    def lost(self) -> None:
        """As if its process had died: what was under way fails, and calls wait from now on."""
        self.there.clear()
        if self.now is not None and not self.now.done():
            self.now.set_exception(LostWorker("the worker was lost"))

    def made_anew(self) -> None:
        self.value = self.kind(*self.arguments)
        self.there.set()

    def _work(self) -> None:
        while (call := self.calls.get()) is not None:
            answer, method, arguments = call
            self.there.wait()
            self.now = answer
            self.told.append(method)
            if self.delay:
                time.sleep(self.delay)
            try:
                found = getattr(self.value, method)(*arguments)
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
                continue
            if self.there.is_set() and not answer.done():
                answer.set_result(found)


class InProcess:
    """The cluster."""

    def __init__(self, nodes: int) -> None:
        self.all = [Node(f"node{i}") for i in range(nodes)]
        self.made: list[Actor] = []

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
        made = [Actor(kind, each, node) for each, node in zip(arguments, nodes, strict=True)]
        self.made += made
        return made

    def close(self) -> None:
        for actor in self.made:
            actor.kill()

    def get(self, answer: Answer, seconds: float | None = None) -> Any:
        return answer.result(seconds)

    def wait(
        self, answers: Sequence[Answer], seconds: float | None = None, *, least: int = 1
    ) -> tuple[list[Answer], list[Answer]]:
        wait(answers, seconds, FIRST_COMPLETED)
        return [a for a in answers if a.done()], [a for a in answers if not a.done()]

    def on(self, node: int) -> list[Actor]:
        return [actor for actor in self.made if actor.node == f"node{node}"]

    def kill_node(self, node: int) -> None:
        for actor in self.on(node):
            actor.lost()

    def start_again(self, node: int) -> None:
        for actor in self.on(node):
            actor.made_anew()
