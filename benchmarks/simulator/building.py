"""Builds and ranks on a cluster: shards of samples, blocks of a graph, sweeps.

``coarse``: machines fetch the graph once and take shards, the next one to whoever is free; a shard
whose machine fails is made again elsewhere. ``fine``: machines hold blocks; at each step of a walk
every block moves its tokens and sends them, and the next step begins when the slowest is done; a
failure costs the samples that are under way. ``rank``: sweeps, with the values at the borders sent
between them.

A straggler is a machine slower by a factor that is drawn; failures come at random, one a machine
every ``lifetime`` seconds in the mean, and it is back after ``repair`` seconds.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.simulator.events import Machine, World

__all__ = ["Coarse", "Fine", "Outcome", "Rank", "Weather", "coarse", "fine", "rank"]


@dataclass(frozen=True)
class Weather:
    """What goes wrong: a share of machines is ``slower`` times slower, each fails every
    ``lifetime`` seconds in the mean and is back after ``repair``; ``failures`` are times at which
    the machine of that number fails for certain.
    """

    stragglers: float = 0.0
    slower: float = 2.0
    lifetime: float = float("inf")
    repair: float = 60.0
    failures: tuple[tuple[float, int], ...] = ()
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """``seconds`` from begin to end, ``processor`` seconds in all, ``wire`` bytes sent between
    machines, and how many pieces of work were done ``again``.
    """

    seconds: float
    processor: float
    wire: float
    again: int = 0


@dataclass(frozen=True)
class Coarse:
    """``hosts`` machines of so many ``processors``, ``nodes`` workers on them; ``shards`` of
    ``work`` processor seconds each; ``begin`` processor seconds of every worker before its first
    (imports, opening, checks), ``fetch`` seconds a host to copy the graph, ``beside`` seconds of
    the driver before and after; ``wire`` bytes a shard and ``copied`` bytes a host.
    """

    hosts: int
    processors: float
    nodes: int
    shards: int
    work: float
    begin: float
    beside: float
    fetch: float = 0.0
    wire: float = 0.0
    copied: float = 0.0


def _hosts(world: World, hosts: int, processors: float, weather: Weather) -> list[Machine]:
    drawn = random.Random(weather.seed)
    slow = [drawn.random() < weather.stragglers for _ in range(hosts)]
    return [Machine(world, processors, 1 / weather.slower if each else 1.0) for each in slow]


def coarse(plan: Coarse, weather: Weather = Weather()) -> Outcome:  # noqa: B008  (frozen)
    """A build by shards."""
    world, drawn = World(), random.Random(weather.seed + 1)
    hosts = _hosts(world, plan.hosts, plan.processors, weather)
    waiting, left, again = deque(range(plan.shards)), plan.shards, 0
    alive = [True] * plan.nodes
    ended = 0.0

    def host(node: int) -> Machine:
        return hosts[node % plan.hosts]

    def take(node: int, first: bool = False) -> None:
        if not (alive[node] and waiting) or node in running:
            return
        shard = waiting.popleft()
        work = plan.work + plan.begin * first

        def done() -> None:
            nonlocal left, ended
            left, ended = left - 1, world.now
            del running[node]
            take(node)

        running[node] = shard, host(node).do(work, done)

    def fail(node: int) -> None:
        nonlocal again
        if not alive[node] or not left:
            return
        alive[node] = False
        if node in running:
            shard, job = running.pop(node)
            host(node).drop(job)
            waiting.append(shard)
            again += 1
            for other in range(plan.nodes):
                if alive[other] and other not in running:
                    take(other)
        world.after(weather.repair, lambda: back(node))

    def back(node: int) -> None:
        alive[node] = True
        take(node, first=True)
        if weather.lifetime < float("inf"):
            world.after(drawn.expovariate(1 / weather.lifetime), lambda: fail(node))

    running: dict[int, tuple[int, int]] = {}
    for node in range(plan.nodes):
        world.after(plan.fetch, lambda node=node: take(node, first=True))  # type: ignore[misc]
        if weather.lifetime < float("inf"):
            world.after(drawn.expovariate(1 / weather.lifetime), lambda node=node: fail(node))  # type: ignore[misc]
    for when, node in weather.failures:
        world.after(when, lambda node=node: fail(node))  # type: ignore[misc]
    world.run(until=lambda: not left)
    processor = sum(each.busy * each.speed for each in hosts) + plan.beside
    wire = plan.wire * (plan.shards + again) + plan.copied * plan.hosts
    return Outcome(ended + plan.beside, processor, wire, again)


@dataclass(frozen=True)
class Fine:
    """``hosts`` with ``blocks`` in all; ``together`` samples walk at a time, ``samples`` in all;
    ``live`` tokens a sample at each step, over all nodes; ``token`` processor seconds a live token,
    ``layout`` processor seconds a sample, both over all blocks; ``sent`` bytes a token that goes,
    ``wire_rate`` bytes a second and host; ``step`` processor seconds of the driver and of each
    block for a step of all samples that walk together, ``beside`` seconds before and after.
    """

    hosts: int
    processors: float
    blocks: int
    samples: int
    together: int
    live: Sequence[float]
    token: float
    layout: float
    sent: float
    wire_rate: float
    step: float
    beside: float


def fine(plan: Fine, weather: Weather = Weather()) -> Outcome:  # noqa: B008  (frozen)
    """A build by blocks: each step ends when the slowest block has sent its rows."""
    drawn = random.Random(weather.seed)
    slowest = max(
        weather.slower if drawn.random() < weather.stragglers else 1.0 for _ in range(plan.hosts)
    )
    share = min(1.0, plan.processors * plan.hosts / plan.blocks)  # of a processor, for a block
    away = 1 - 1 / plan.hosts
    failures = deque(sorted(when for when, _ in weather.failures))
    seconds = processor = wire = 0.0
    again = 0
    done = 0
    while done < plan.samples:
        group = min(plan.together, plan.samples - done)
        took, worked, sent = 0.0, 0.0, 0.0
        for live in (*plan.live, 0.0):
            work = group * live * plan.token + plan.blocks * plan.step
            moved = group * live * plan.sent * away
            took += work / plan.blocks / share * slowest + moved / plan.hosts / plan.wire_rate
            worked += work
            sent += moved
        laid = group * plan.layout
        took += laid / plan.blocks / share * slowest
        worked += laid
        rate = plan.hosts / weather.lifetime if weather.lifetime < float("inf") else 0.0
        fails = drawn.expovariate(rate) if rate else float("inf")
        if failures and failures[0] < seconds + took:
            fails = min(fails, failures.popleft() - seconds)
        if fails < took:
            again += group
            part = fails / took
            seconds, processor = seconds + fails + weather.repair, processor + worked * part
            wire += sent * part
            continue
        seconds, processor, wire = seconds + took, processor + worked, wire + sent
        done += group
    return Outcome(seconds + plan.beside, processor + plan.beside, wire, again)


@dataclass(frozen=True)
class Rank:
    """``sweeps`` over ``links``; ``link`` processor seconds each; ``borders`` values of ``value``
    bytes go between hosts at a sweep.
    """

    hosts: int
    processors: float
    sweeps: int
    links: float
    link: float
    borders: float
    value: float
    wire_rate: float
    step: float
    beside: float


def rank(plan: Rank, weather: Weather = Weather()) -> Outcome:  # noqa: B008  (frozen)
    """PageRank by blocks."""
    drawn = random.Random(weather.seed)
    slowest = max(
        weather.slower if drawn.random() < weather.stragglers else 1.0 for _ in range(plan.hosts)
    )
    work = plan.links * plan.link + plan.hosts * plan.step
    moved = plan.borders * plan.value
    sweep = work / plan.hosts / plan.processors * slowest + moved / plan.hosts / plan.wire_rate
    worked, wire = plan.sweeps * work + plan.beside, plan.sweeps * moved
    return Outcome(plan.sweeps * sweep + plan.beside, worked, wire)
