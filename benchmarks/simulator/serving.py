"""Simulate queries to shards on several machines: response times, and numbers of samples.

A query is sent to one replica of each shard, the one with the fewest queries, one after another, as
each takes ``front`` CPU seconds of the client. It takes the same on the replica, and
``merge`` seconds of the client per response, one response after another. It ends when all have
responded, or at the deadline with the responses received. A failed machine does not respond. After
two successive queries waited for it in vain, it gets no more queries until it is back after
``repair`` (``search/remote/replicas.py``).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.simulator.building import Weather
from benchmarks.simulator.events import Machine, World

NORMAL_99 = 2.326
"""The normal distribution's 99th percentile."""
_SILENCES = 2


@dataclass(frozen=True)
class Serving:
    """``shards`` of ``samples`` each with ``replicas`` over ``nodes``, on ``hosts`` of so many
    ``processors`` each; there are so many ``askers``, each with a processor of its own, or they
    share those of the first host (``beside``). A shard's answer takes a lognormal time of that
    ``mean`` and ``spread`` (of its logarithm), drawn a question: pages with large trees have them
    in most samples, so all shards take long for them, and so does who adds up what they tell.
    ``ended`` shards are gone for good.
    """

    hosts: int
    processors: float
    nodes: int
    shards: int
    samples: int
    replicas: int
    mean: float
    spread: float
    front: float
    merge: float
    trip: float
    deadline: float
    askers: int = 1
    ended: int = 0
    beside: bool = False


@dataclass
class Served:
    """Of each question: when it came, how long it took, and by how many samples; CPU seconds
    of all.
    """

    came: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    processor: float = 0.0

    def percentile(self, share: float) -> float:
        """Seconds that this share of the questions took at most."""
        return sorted(self.took)[min(len(self.took) - 1, math.ceil(share * len(self.took)) - 1)]


class _Question:
    """One that is under way: ``left`` holders that have not answered; all that is done for it takes
    ``factor`` times as long as in the mean.
    """

    def __init__(self, begun: float, factor: float) -> None:
        self.begun, self.open = begun, True
        self.factor = factor
        self.left: dict[int, int] = {}
        self.answered = 0
        self.queue = 0


class _Service:
    """Servers, who asks, and what has been answered."""

    def __init__(self, plan: Serving, weather: Weather) -> None:
        self.plan, self.weather, self.found = plan, weather, Served()
        self.world, self.drawn = World(), random.Random(weather.seed)
        self.hosts = [
            Machine(self.world, plan.processors, 1 / weather.slower if self._slow() else 1.0)
            for _ in range(plan.hosts)
        ]
        self.front = self.hosts[0] if plan.beside else Machine(self.world, plan.askers)
        self.alive, self.known = [True] * plan.nodes, [True] * plan.nodes
        self.load, self.silent = [0] * plan.nodes, [0] * plan.nodes
        self.ends: Callable[[], None] = lambda: None

    def _slow(self) -> bool:
        return self.drawn.random() < self.weather.stragglers

    def ask(self) -> None:
        """A question comes."""
        spread = self.plan.spread
        factor = math.exp(spread * (self.drawn.gauss(0.0, 1.0) - spread / 2))
        question = _Question(self.world.now, factor)
        self.world.after(self.plan.deadline, lambda: self.end(question))
        for shard in range(self.plan.ended, self.plan.shards):
            holders = [(shard + i) % self.plan.nodes for i in range(self.plan.replicas)]
            there = [node for node in holders if self.known[node]]
            if there:
                question.left[shard] = min(there, key=lambda node: self.load[node])
        if question.left:
            self.send(question, deque(question.left.items()))
        else:
            self.end(question)

    def send(self, question: _Question, waiting: deque[tuple[int, int]]) -> None:
        """To one holder after another."""
        plan = self.plan

        def sent() -> None:
            shard, node = waiting.popleft()
            self.load[node] += 1
            work = plan.mean * question.factor
            self.world.after(plan.trip, self._going(question, shard, node, work))
            if waiting:
                self.send(question, waiting)

        self.front.do(plan.front / plan.shards * question.factor, sent)

    def _going(self, question: _Question, shard: int, node: int, work: float) -> Callable[[], None]:
        def back() -> None:
            self.load[node] -= 1
            self.silent[node] = 0
            question.left.pop(shard, None)
            question.queue += 1
            if question.queue == 1:
                self.merge(question)

        def go() -> None:
            if self.alive[node]:
                self.hosts[node % self.plan.hosts].do(work, back)
            else:
                self.load[node] -= 1

        return go

    def merge(self, question: _Question) -> None:
        def merged() -> None:
            question.queue -= 1
            question.answered += 1
            if question.queue:
                self.merge(question)
            elif not question.left:
                self.end(question)

        self.front.do(self.plan.merge * question.factor, merged)

    def end(self, question: _Question) -> None:
        if not question.open:
            return
        question.open = False
        for node in set(question.left.values()):
            self.silent[node] += 1
            if self.silent[node] >= _SILENCES:
                self.known[node] = False
        self.found.came.append(question.begun)
        self.found.took.append(self.world.now - question.begun)
        self.found.samples.append(question.answered * self.plan.samples)
        self.ends()

    def fail(self, node: int) -> None:
        self.alive[node] = False
        self.world.after(self.weather.repair, lambda: self.mend(node))

    def mend(self, node: int) -> None:
        self.alive[node] = self.known[node] = True
        self.silent[node] = 0


def serve(
    plan: Serving,
    questions: int,
    rate: float | None,
    weather: Weather = Weather(),  # noqa: B008  (frozen)
) -> Served:
    """So many questions: one after another, or at random times, ``rate`` a second."""
    service = _Service(plan, weather)
    world, found = service.world, service.found
    for when, node in weather.failures:
        world.after(when, lambda node=node: service.fail(node))  # type: ignore[misc]
    if rate is None:
        left = deque(range(questions - 1))

        def next_one() -> None:
            if left:
                left.popleft()
                world.after(0.0, service.ask)

        service.ends = next_one
        service.ask()
    else:
        when = 0.0
        for _ in range(questions):
            when += service.drawn.expovariate(rate)
            world.after(when, service.ask)
    world.run(until=lambda: len(found.took) == questions)
    machines = {id(each): each for each in (*service.hosts, service.front)}
    found.processor = sum(each.busy * each.speed for each in machines.values())
    return found
