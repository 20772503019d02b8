"""Webs larger than any here: machines, memory, disk, hours and bytes on the wire, by simulation.

A web is built *coarse* (every machine takes shards of samples of the whole graph) where what a walk
needs of all nodes fits a machine, and *fine* (a block of the graph a machine) where it does not.
Every run has stragglers and failures (``WEATHER``). Constants are of one processor of the machine
that they were measured on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.simulator.building import Coarse, Fine, Outcome, Rank, Weather, coarse, fine, rank
from benchmarks.simulator.constants import Constants
from benchmarks.simulator.serving import Serving, serve

__all__ = ["WEBS", "Plan", "Web", "plan", "table"]

IDS = 2**32 - 1
"""As many nodes has a graph at most; the rows of more reckon with ids twice as wide."""
SAMPLES = 100
WEATHER = Weather(stragglers=0.02, slower=1.5, lifetime=30 * 86400, repair=600.0)
"""A machine fails once a month, and one in fifty is slower by half."""


@dataclass(frozen=True)
class Web:
    """A graph of so many nodes and links, and on how many machines."""

    name: str
    nodes: float
    links: float
    machines: int


WEBS = (
    Web("Common Crawl's hosts, autumn 2025", 235.7e6, 9.5e9, 4),
    Web("1 billion pages", 1e9, 12.7e9, 8),
    Web("Web Data Commons' pages, 2012", 3.56e9, 128.7e9, 32),
    Web("4 billion pages", 4e9, 50.8e9, 32),
    Web("100 billion pages", 100e9, 1270e9, 512),
)


@dataclass(frozen=True)
class Kind:
    """A machine: processors, bytes of memory, bytes a second of the net and of the disk."""

    processors: int = 16
    memory: float = 128e9
    net: float = 25e9 / 8
    disk: float = 1.2e9


@dataclass(frozen=True)
class Plan:
    """What a web takes."""

    web: Web
    form: str
    graph: float
    index: float
    memory: float
    build: Outcome
    ranked: Outcome
    questions: float
    p99: float


def plan(web: Web, found: Constants, kind: Kind = Kind()) -> Plan:  # noqa: B008  (frozen)
    """Build, rank and serve it."""
    wide = 2 if web.nodes > IDS else 1
    graph = wide * found.link_bytes * web.links + (wide * found.node_bytes + found.name_bytes) * web.nodes
    index = wide * found.sample_bytes * web.nodes * SAMPLES
    whole = wide * found.walk_bytes * web.nodes
    threads = min(kind.processors, int(kind.memory * 0.9 / whole))
    if threads >= 2:
        form, memory = "coarse", threads * whole + min(graph, kind.memory - threads * whole)
        built = _coarse(web, found, kind, threads, graph, index)
    else:
        form, memory = "fine", wide * found.block_bytes * web.nodes / web.machines
        memory += wide * found.link_bytes * web.links / web.machines
        built = _fine(web, found, kind, wide)
    sweeps = Rank(
        web.machines, kind.processors, found.sweeps, web.links, found.sweep_link,
        web.nodes * found.border, 8.0 + 4 * wide, kind.net, found.step, found.beside,
    )  # fmt: skip
    rate, p99 = _served(web, found, kind)
    return Plan(web, form, graph, index, memory, built, rank(sweeps, WEATHER), rate, p99)


def _coarse(
    web: Web, found: Constants, kind: Kind, threads: int, graph: float, index: float
) -> Outcome:
    """A sample a shard, as many at a time on a machine as have room."""
    work = web.nodes * found.sample_node * found.coarse_share
    begin = graph / kind.disk
    run = Coarse(
        web.machines, kind.processors, web.machines * threads, SAMPLES, work, found.begin + begin,
        found.beside, graph / kind.net, index / SAMPLES, graph,
    )  # fmt: skip
    return coarse(run, WEATHER)


def _fine(web: Web, found: Constants, kind: Kind, wide: int) -> Outcome:
    """A block a processor; four samples walk at a time."""
    live = [share * web.nodes for share in found.live]
    run = Fine(
        web.machines, kind.processors, web.machines * kind.processors, SAMPLES, 4, live,
        found.fine_token, web.nodes * found.fine_layout, wide * found.sent_bytes, kind.net,
        found.step, found.beside,
    )  # fmt: skip
    return fine(run, WEATHER)


def _served(web: Web, found: Constants, kind: Kind) -> tuple[float, float]:
    """Questions a second at half load, and the 99th percentile of their times there.

    Each machine holds its share of the samples; with more machines than samples, groups of them
    hold all, and a question goes to one group.
    """
    shards = min(web.machines, SAMPLES)
    groups = web.machines / shards
    each = found.ask_median * SAMPLES / shards
    tail = found.ask_tail * SAMPLES / shards
    spread = math.log(found.ask_tail / found.ask_median) / 2.326
    mean = each * math.exp(spread * spread / 2)
    front = found.front + shards * found.merge
    rate = 0.5 * min(kind.processors / mean, kind.processors * shards / front)
    run = Serving(
        shards, kind.processors, shards, shards, max(1, SAMPLES // shards), 1, each, tail,
        front / shards, 0.0, found.trip, 1.0,
    )  # fmt: skip
    served = serve(run, 2000, rate)
    return rate * groups, served.percentile(0.99)


def _size(value: float) -> str:
    for unit in ("GB", "TB", "PB"):
        value /= 1e9 if unit == "GB" else 1e3
        if value < 1000 or unit == "PB":
            return f"{value:.3g} {unit}"
    raise AssertionError


def table(plans: list[Plan]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield (
        "| web | nodes, links | machines | build | graph, index | memory a machine | hours | machine hours "
        "| on the wire | PageRank, hours | questions a second, p99 |"
    )
    yield "| --- |" + " ---: |" * 10
    for each in plans:
        web, built = each.web, each.build
        yield (
            f"| {web.name} | {web.nodes:.3g}, {web.links:.3g} | {web.machines} | {each.form} "
            f"| {_size(each.graph)}, {_size(each.index)} | {_size(each.memory)} "
            f"| {built.seconds / 3600:.2g} | {built.seconds / 3600 * web.machines:.3g} "
            f"| {_size(built.wire)} | {each.ranked.seconds / 3600:.2g} "
            f"| {each.questions:,.0f}, {1e3 * each.p99:.0f} ms |"
        )
