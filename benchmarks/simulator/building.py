"""Simulate builds and ranks on a cluster: shards of samples, blocks of a graph, sweeps.

``coarse``: machines fetch the graph once, and free machines take the next shard. A shard whose
machine fails is built again elsewhere. ``fine``: machines hold blocks. At each step of a walk,
every block moves and sends its tokens, and the next step begins when the slowest is done. Trees are
laid out block after block, three samples at a time, and sent to the driver. A failure loses the
samples in progress. ``rank``: in a sweep, all blocks add what rows receive from sources above at
the same time, and what they receive from below one after another.

A straggler is a machine slower by a factor. Failures are random, one per machine every ``lifetime``
seconds on average, and a machine is back after ``repair`` seconds. Without both, the result is a
closed form, which the tests compare.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.simulator.events import Machine, World

AHEAD = 3
"""Samples that blocks lay out at a time (``index/layouts/trees/assemble.py``)."""
_HOPELESS = 1000
"""How many times samples may restart before a build counts as endless."""


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
    """``hosts`` machines of so many ``processors``, ``nodes`` of the cluster on them with ``each``
    workers; ``shards`` of ``work`` CPU seconds each; ``begin`` CPU seconds of every
    worker before its first (imports, opening, checks), ``fetch`` seconds a node to copy the graph,
    ``beside`` seconds of the driver; ``ray`` CPU seconds a node and second; ``wire`` bytes a
    shard and ``copied`` bytes a node.
    """

    hosts: int
    processors: float
    nodes: int
    shards: int
    work: float
    begin: float
    beside: float
    each: int = 1
    ray: float = 0.0
    fetch: float = 0.0
    wire: float = 0.0
    copied: float = 0.0


def _hosts(world: World, hosts: int, processors: float, weather: Weather) -> list[Machine]:
    drawn = random.Random(weather.seed)
    slow = [drawn.random() < weather.stragglers for _ in range(hosts)]
    return [Machine(world, processors, 1 / weather.slower if each else 1.0) for each in slow]


class _Coarse:
    """A build by shards under way."""

    def __init__(self, plan: Coarse, weather: Weather) -> None:
        self.plan, self.weather = plan, weather
        self.world, self.drawn = World(), random.Random(weather.seed + 1)
        self.hosts = _hosts(self.world, plan.hosts, plan.processors, weather)
        self.waiting, self.left = deque(range(plan.shards)), plan.shards
        self.again, self.ended, self.copies = 0, 0.0, 0
        self.up = [0] * plan.nodes
        """How often a node has come, below 0 while it is away."""
        self.free: list[tuple[int, int, bool]] = []
        """Workers that wait: node, which of its comings, whether they have yet to begin."""
        self.running: dict[int, dict[int, int]] = {node: {} for node in range(plan.nodes)}

    def run(self) -> Outcome:
        """To the end."""
        plan, world = self.plan, self.world
        for node in range(plan.nodes):
            self.come(node)
        for when, node in self.weather.failures:
            world.after(when, lambda node=node: self.fail(node))  # type: ignore[misc]
        world.run(until=lambda: not self.left)
        seconds = self.ended + plan.beside
        processor = sum(host.busy * host.speed for host in self.hosts) + plan.beside
        processor += plan.ray * plan.nodes * seconds
        wire = plan.wire * (plan.shards + self.again) + plan.copied * self.copies
        return Outcome(seconds, processor, wire, self.again)

    def host(self, node: int) -> Machine:
        return self.hosts[node % self.plan.hosts]

    def come(self, node: int) -> None:
        """A node begins, or is back: it fetches the graph, and its workers are free."""
        self.up[node] = abs(self.up[node]) + 1
        self.copies += 1
        coming = self.up[node]
        self.world.after(self.plan.fetch, lambda: self.ready(node, coming))
        if self.weather.lifetime < float("inf"):
            lasts = self.drawn.expovariate(1 / self.weather.lifetime)
            self.world.after(lasts, lambda: self.fail(node, coming))

    def ready(self, node: int, coming: int) -> None:
        if self.up[node] == coming:
            self.free += [(node, coming, True)] * self.plan.each
            self.give()

    def give(self) -> None:
        """Shards that wait to workers that are free."""
        while self.waiting and self.free:
            node, coming, first = self.free.pop(0)
            if self.up[node] == coming:
                self.begin(node, coming, self.waiting.popleft(), first)

    def begin(self, node: int, coming: int, shard: int, first: bool) -> None:
        def done() -> None:
            del self.running[node][shard]
            self.left -= 1
            self.ended = self.world.now
            self.free.append((node, coming, False))
            self.give()

        work = self.plan.work + self.plan.begin * first
        self.running[node][shard] = self.host(node).do(work, done)

    def fail(self, node: int, coming: int | None = None) -> None:
        if self.up[node] < 0 or not self.left or coming not in (None, self.up[node]):
            return
        self.up[node] = -self.up[node]
        for shard, job in self.running[node].items():
            self.host(node).drop(job)
            self.waiting.append(shard)
            self.again += 1
        self.running[node] = {}
        if self.weather.repair < float("inf"):
            self.world.after(self.weather.repair, lambda: self.come(node))
        self.give()


def coarse(plan: Coarse, weather: Weather = Weather()) -> Outcome:
    """A build by shards."""
    return _Coarse(plan, weather).run()


@dataclass(frozen=True)
class Fine:
    """``hosts`` of so many ``processors`` with ``blocks`` in all, of a graph of so many ``nodes``;
    ``samples``, of which so many walk ``together``. ``live`` tokens at each step, a share of the
    nodes; ``token`` CPU seconds a live token, ``layout`` a node and sample; ``gather`` of the
    driver a node and sample, ``laid`` bytes that come to it. Of a token that goes to another block
    there are ``token_bytes``, a share ``crossing`` of them goes; ``record_bytes`` and
    ``tree_bytes`` a node and sample; ``wire_rate`` bytes a second and host. A ``call`` and a
    ``parcel`` cost the driver so much, and ``call_block`` and ``parcel_block`` a block; ``hop``
    seconds until a call is heard; ``begin`` CPU seconds of a block, ``start`` with those
    that its process takes to be there, ``beside`` of the driver.
    """

    hosts: int
    processors: float
    blocks: int
    nodes: float
    samples: int
    together: int
    live: Sequence[float]
    token: float
    layout: float
    gather: float = 0.0
    laid: float = 0.0
    token_bytes: float = 0.0
    crossing: float = 1.0
    record_bytes: float = 0.0
    tree_bytes: float = 0.0
    wire_rate: float = float("inf")
    call: float = 0.0
    parcel: float = 0.0
    call_block: float = 0.0
    parcel_block: float = 0.0
    hop: float = 0.0
    begin: float = 0.0
    start: float = 0.0
    beside: float = 0.0


def fine_calls(blocks: int, steps: int, samples: int) -> tuple[int, int]:
    """Calls and parcels of samples that walk together: ``steps`` of all blocks and one each before
    and behind them, a parcel for each pair; then trees, of each sample by itself.
    """
    calls = (steps + 2) * blocks + 2 * samples * blocks
    behind = blocks * (blocks - 1) // 2
    return calls, steps * blocks**2 + samples * (blocks**2 + behind + 2 * blocks)


@dataclass(frozen=True)
class _Taken:
    """What a piece of work takes: seconds, CPU seconds, bytes."""

    seconds: float
    processor: float
    wire: float


def _walk(plan: Fine, group: int, slowest: float) -> _Taken:
    """Samples that walk together."""
    share = min(1.0, plan.processors * plan.hosts / plan.blocks)  # of a processor, for a block
    steps = len(plan.live) + 1
    calls, parcels = fine_calls(plan.blocks, steps, 0)
    walked = group * plan.nodes * sum(plan.live) * plan.token
    driver = calls * plan.call + parcels * plan.parcel
    theirs = calls * plan.call_block + parcels * plan.parcel_block
    sent = plan.crossing * plan.token_bytes * sum(plan.live) + plan.record_bytes
    sent *= group * plan.nodes
    seconds = (walked + theirs) / plan.blocks / share * slowest + driver
    seconds += steps * plan.hop + sent / plan.hosts / plan.wire_rate
    return _Taken(seconds, walked + driver + theirs, sent)


def _tree(plan: Fine, slowest: float) -> _Taken:
    """A sample laid out, while others are."""
    calls, parcels = fine_calls(plan.blocks, -2, 1)
    parcels += 2 * plan.blocks**2  # those of steps, which there are none of
    laid, gathered = plan.nodes * plan.layout, plan.nodes * plan.gather
    driver = calls * plan.call + parcels * plan.parcel
    theirs = calls * plan.call_block + parcels * plan.parcel_block
    sent = plan.nodes * plan.tree_bytes
    at_once = min(AHEAD, plan.blocks, plan.processors * plan.hosts)
    taken = gathered + driver + plan.nodes * plan.laid / plan.wire_rate
    if plan.hosts == 1:  # the driver has the same processors
        seconds = (laid + theirs + taken) / min(at_once + 1, plan.processors)
    else:
        seconds = max((laid + theirs) / at_once * slowest, taken)
    seconds += sent / plan.hosts / plan.wire_rate
    return _Taken(seconds, laid + theirs + gathered + driver, sent + plan.nodes * plan.laid)


class _Fine:
    """A build by blocks under way."""

    def __init__(self, plan: Fine, weather: Weather) -> None:
        self.plan, self.weather = plan, weather
        self.drawn = random.Random(weather.seed)
        self.slowest = _slowest(self.drawn, plan.hosts, weather)
        self.failures = deque(sorted(when for when, _ in weather.failures))
        at_once = min(plan.blocks, plan.hosts * plan.processors)
        begin = plan.blocks * max(plan.begin, plan.start) / at_once * self.slowest
        self.seconds = begin + plan.beside
        self.processor, self.wire = plan.blocks * plan.begin + plan.beside, 0.0
        self.again = 0
        self.next = self._next()

    def _next(self) -> float:
        rate = self.plan.hosts / self.weather.lifetime
        return self.seconds + (self.drawn.expovariate(rate) if rate else math.inf)

    def run(self) -> Outcome:
        """To the end, or until it is plain that there is none."""
        left = self.plan.samples
        while left:
            group = min(self.plan.together, left)
            if not self.done(_walk(self.plan, group, self.slowest)):
                self.again += group
                if self.again > _HOPELESS * self.plan.samples:
                    return Outcome(math.inf, math.inf, math.inf, self.again)
                continue
            for laid in range(group):
                if not self.done(_tree(self.plan, self.slowest)):
                    self.again += group - laid
                    break
                left -= 1
        return Outcome(self.seconds, self.processor, self.wire, self.again)

    def done(self, work: _Taken) -> bool:
        """Do a piece of work, if no machine is lost meanwhile."""
        fails = self.next
        if self.failures and self.failures[0] < min(fails, self.seconds + work.seconds):
            fails = self.failures.popleft()
        passed = min(work.seconds, max(0.0, fails - self.seconds))
        part = passed / work.seconds if work.seconds else 1.0
        self.seconds += passed
        self.processor, self.wire = (
            self.processor + part * work.processor,
            self.wire + part * work.wire,
        )
        if passed == work.seconds:
            return True
        self.seconds += self.weather.repair
        self.next = self._next()
        return False


def fine(plan: Fine, weather: Weather = Weather()) -> Outcome:
    """A build by blocks: a step ends when the slowest block has sent its rows. Where machines are
    lost faster than samples are made, it has no end: infinite.
    """
    return _Fine(plan, weather).run()


def _slowest(drawn: random.Random, hosts: int, weather: Weather) -> float:
    slow = [drawn.random() < weather.stragglers for _ in range(hosts)]
    return weather.slower if any(slow) else 1.0


@dataclass(frozen=True)
class Rank:
    """``sweeps`` over ``links`` in ``blocks``; ``link`` CPU seconds each; ``borders`` values
    of ``value`` bytes go between blocks at a sweep; all else as of :class:`Fine`.
    """

    hosts: int
    processors: float
    blocks: int
    sweeps: int
    links: float
    link: float
    borders: float
    value: float
    wire_rate: float = float("inf")
    call: float = 0.0
    parcel: float = 0.0
    call_block: float = 0.0
    parcel_block: float = 0.0
    hop: float = 0.0
    begin: float = 0.0
    start: float = 0.0
    beside: float = 0.0


def rank(plan: Rank, weather: Weather = Weather()) -> Outcome:
    """PageRank by blocks. A failure has all sweeps since the last gathering made again, which is
    less than the run: it is taken to double none of it, and stragglers hold up everybody.
    """
    drawn = random.Random(weather.seed)
    slowest = _slowest(drawn, plan.hosts, weather)
    at_once = min(plan.blocks, plan.hosts * plan.processors)
    calls, parcels = 3 * plan.blocks, plan.blocks**2
    driver = calls * plan.call + parcels * plan.parcel
    theirs = calls * plan.call_block + parcels * plan.parcel_block
    half = plan.links * plan.link / 2
    moved = plan.borders * plan.value
    sweep = half / at_once * slowest + half * slowest + plan.blocks * plan.hop
    sweep = max(sweep, driver + theirs / at_once) + moved / plan.hosts / plan.wire_rate
    begin = plan.blocks * max(plan.begin, plan.start) / at_once * slowest
    seconds = plan.sweeps * sweep + begin + plan.beside
    processor = plan.sweeps * (2 * half + driver + theirs) + plan.blocks * plan.begin + plan.beside
    return Outcome(seconds, processor, plan.sweeps * moved)
