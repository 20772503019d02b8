"""Questions to shards on several machines: who answers in time, and with how many samples.

A question costs the front ``front`` processor seconds, goes to one holder of each shard that is
asked (the one with the fewest questions), costs that machine a drawn number of processor seconds,
and the front ``merge`` seconds an answer. It ends when all have answered, or at the deadline by
those that have. A machine that fails answers nothing: after ``breaker`` seconds nobody asks it, and
after ``repair`` it is back.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from benchmarks.simulator.building import Weather
from benchmarks.simulator.events import Machine, World

__all__ = ["Served", "Serving", "serve"]


@dataclass(frozen=True)
class Serving:
    """``shards`` of ``samples`` each with ``replicas`` over ``nodes``, on ``hosts`` of so many
    processors each (the front is a host of its own unless ``beside``); a shard's answer takes a
    lognormal time of that ``median`` and 99th percentile ``tail``.
    """

    hosts: int
    processors: float
    nodes: int
    shards: int
    samples: int
    replicas: int
    median: float
    tail: float
    front: float
    merge: float
    trip: float
    deadline: float
    breaker: float = 0.5
    beside: bool = False


@dataclass
class Served:
    """Of each question: when it came, how long it took, and by how many samples."""

    came: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Seconds that this share of the questions took at most."""
        return sorted(self.took)[min(len(self.took) - 1, math.ceil(share * len(self.took)) - 1)]


def serve(  # noqa: PLR0915  (one event after another)
    plan: Serving, questions: int, rate: float | None, weather: Weather = Weather()  # noqa: B008
) -> Served:
    """So many questions: one after another, or at random times, ``rate`` a second."""
    world, drawn, found = World(), random.Random(weather.seed), Served()
    hosts = [
        Machine(world, plan.processors, 1 / weather.slower if drawn.random() < weather.stragglers else 1)
        for _ in range(plan.hosts)
    ]
    front = hosts[0] if plan.beside else Machine(world, plan.processors)
    spread = math.log(plan.tail / plan.median) / 2.326  # the normal quantile of .99
    alive, known = [True] * plan.nodes, [True] * plan.nodes
    load = [0] * plan.nodes

    def holders(shard: int) -> list[int]:
        return [(shard + i * max(1, plan.nodes // plan.replicas)) % plan.nodes for i in range(plan.replicas)]

    def ask(number: int) -> None:
        begun, answered, open_ = world.now, 0, True
        asked = 0

        def end() -> None:
            nonlocal open_
            if not open_:
                return
            open_ = False
            found.came.append(begun)
            found.took.append(world.now - begun)
            found.samples.append(answered * plan.samples)
            if rate is None and number + 1 < questions:
                world.after(0.0, lambda: ask(number + 1))

        def merged() -> None:
            nonlocal answered
            if open_:
                answered += 1
                if answered == asked:
                    end()

        def send() -> None:
            nonlocal asked
            chosen = []
            for shard in range(plan.shards):
                there = [node for node in holders(shard) if known[node]]
                if there:
                    chosen.append(min(there, key=lambda node: load[node]))
            asked = len(chosen)
            for node in chosen:
                load[node] += 1
                work = plan.median * math.exp(spread * drawn.gauss(0.0, 1.0))

                def back(node: int = node) -> None:
                    load[node] -= 1
                    front.do(plan.merge, merged)

                def gone(node: int = node) -> None:
                    load[node] -= 1

                def go(node: int = node, work: float = work, back=back, gone=gone) -> None:  # type: ignore[no-untyped-def]
                    if alive[node]:
                        hosts[node % plan.hosts].do(work, back)
                    else:
                        gone()

                world.after(plan.trip, go)
            if not chosen:
                end()

        world.after(plan.deadline, end)
        front.do(plan.front, send)

    def fail(node: int) -> None:
        alive[node] = False
        world.after(plan.breaker, lambda: known.__setitem__(node, False))
        world.after(weather.repair, lambda: mend(node))

    def mend(node: int) -> None:
        alive[node] = known[node] = True

    for when, node in weather.failures:
        world.after(when, lambda node=node: fail(node))  # type: ignore[misc]
    if rate is None:
        ask(0)
    else:
        when = 0.0
        for number in range(questions):
            when += drawn.expovariate(rate)
            world.after(when, lambda number=number: ask(number))  # type: ignore[misc]
    world.run(until=lambda: len(found.took) == questions)
    return found
