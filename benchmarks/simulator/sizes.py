"""Simulate builds on webs of billions of pages: machines, memory, disk, hours and network traffic.

A web is built in each form that fits the machines (``index/layouts/memory_plan.py``):

    in memory    a machine takes shards, with the graph and one walk per thread in its memory
    from disk    the same, with the tokens of one walk in memory and the links read from disk
    in blocks    each machine has some blocks of the graph, and no machine has all of it

Every run has stragglers and failures (``WEATHER``). Constants are per processor of the measured
machine. On graphs that exceed its caches, all work takes longer by the factor ``large_node`` /
``sample_node``, which was measured on 20 million pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.simulator.building import (
    Coarse,
    Fine,
    Outcome,
    Rank,
    Weather,
    coarse,
    fine,
    rank,
)
from benchmarks.simulator.constants import Constants
from benchmarks.simulator.serving import Serving, serve
from cocite.index.layouts.trees.build import tree_maker_bytes as maker_bytes

IDS = 2**32 - 1
"""As many nodes has a graph at most; the rows of more reckon with ids twice as wide."""
SAMPLES = 100
WEATHER = Weather(stragglers=0.02, slower=1.5, lifetime=30 * 86400, repair=600.0)
"""A machine fails once a month, and one in fifty takes 1.5 times as long."""
_GROUP = 16
_FROM_DISK = 1.4
"""Times the work in memory, where samples walk together (``docs/architecture.md``)."""
_STATE_NODE = 28
"""Bytes of scratch a token that lies on disk between two steps (``engine/walk_batch.py``)."""
_FEW = 64
"""Links are read whole while one node in so many has a token."""
_BLOCK_NODE, _WALKS_NODE = 29, 36
"""Bytes of a block a node, and a node and sample that walks
(``index/layouts/trees/assemble.py``).
"""
_PER_MACHINE = (1, 2, 4, 8, 16)
_COLD_READS, _COLD_SECONDS = 3.3, 1e-4
"""Pages that a sample reads for a question where nothing of it is in memory (1.3 MB for 100)."""
_QUESTIONS = 400


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
    Web("100 billion pages (not possible today)", 100e9, 1270e9, 512),
)


@dataclass(frozen=True)
class Kind:
    """A machine: processors, bytes of memory, bytes a second of the net and of the disk."""

    processors: int = 16
    memory: float = 128e9
    net: float = 25e9 / 8
    disk: float = 1.2e9

    @property
    def room(self) -> float:
        """Memory that a build may take."""
        return 0.9 * self.memory


@dataclass(frozen=True)
class Plan:
    """Costs of a web: its ``form``, bytes of ``graph`` and ``index``, ``memory`` per machine, the
    ``build``, seconds of PageRank and its bytes on the wire, queries per second with their 99th
    percentile, and bytes of the index per machine.
    """

    web: Web
    form: str
    graph: float
    index: float
    memory: float
    build: Outcome
    ranked: Outcome
    questions: float
    p99: float
    held: float


def plans(web: Web, found: Constants, kind: Kind = Kind()) -> list[Plan]:
    """Build, rank and serve it, in each form that fits."""
    wide = 2 if web.nodes > IDS else 1
    names = found.name_bytes * web.nodes
    graph = wide * (found.link_bytes * web.links + found.node_bytes * web.nodes) + names
    index = wide * found.sample_bytes * web.nodes * SAMPLES + names
    built: dict[str, tuple[float, Outcome]] = {}
    if wide == 1:
        built |= _coarse(web, found, kind, graph, index)
    built |= _fine(web, found, kind, wide)
    ranked = _ranked(web, found, kind, wide)
    held = (index - names) / web.machines
    rate, p99 = _served(web, found, kind, held)
    return [
        Plan(web, form, graph, index, memory, outcome, ranked, rate, p99, held)
        for form, (memory, outcome) in built.items()
    ]


def _growth(found: Constants) -> float:
    return max(1.0, found.large_node / found.sample_node)


def _coarse(
    web: Web, found: Constants, kind: Kind, graph: float, index: float
) -> dict[str, tuple[float, Outcome]]:
    """Shards of the whole graph, in memory and from disk."""
    links = found.link_bytes * web.links + 8 * web.nodes
    nodes = int(web.nodes)
    threads = kind.processors
    while threads and links + threads * maker_bytes(nodes, threads > 1) > kind.room:
        threads -= 1
    node = _growth(found) * found.shard_node * web.nodes
    begin = found.begin + graph / kind.disk
    run = Coarse(
        web.machines, kind.processors, web.machines, SAMPLES, node, begin, found.beside,
        each=max(1, threads), ray=found.ray, fetch=graph / kind.net, wire=index / SAMPLES,
        copied=graph,
    )  # fmt: skip
    if threads:
        memory = links + threads * maker_bytes(nodes, threads > 1)
        return {"in memory": (memory, coarse(run, WEATHER))}
    memory = maker_bytes(nodes, False)
    if memory > kind.room:
        return {}
    shard = min(_GROUP, math.ceil(SAMPLES / web.machines))
    read = links * (sum(share > 1 / _FEW for share in found.live) + 1)
    read += 2 * shard * _STATE_NODE * web.nodes * sum(found.live)
    work = _FROM_DISK * shard * node + read / kind.disk
    shards = math.ceil(SAMPLES / shard)
    run = replace(run, shards=shards, work=work, wire=index / shards)
    return {"from disk": (memory, coarse(run, WEATHER))}


def _fine(web: Web, found: Constants, kind: Kind, wide: int) -> dict[str, tuple[float, Outcome]]:
    """So many blocks a machine that it takes least; as many samples together as have room."""
    fixed = wide * (_BLOCK_NODE * web.nodes + found.link_bytes * web.links) / web.machines
    each = wide * _WALKS_NODE * web.nodes / web.machines
    together = min(_GROUP, int((kind.room - fixed) / each))
    if together < 1:
        return {}
    grown, best = _growth(found), None
    for blocks in _PER_MACHINE:
        run = Fine(
            web.machines, kind.processors, web.machines * blocks, web.nodes, SAMPLES, together,
            found.live, grown * found.fine_token, grown * found.fine_layout,
            found.gather, wide * found.sample_bytes, wide * 12, 1.0, wide * found.record_bytes,
            wide * found.tree_bytes, kind.net, found.call, found.parcel, found.call_block,
            found.parcel_block, found.hop, found.block_begin, found.block_start, found.beside,
        )  # fmt: skip
        outcome = fine(run, WEATHER)
        if best is None or outcome.seconds < best[1].seconds:
            best = blocks, outcome
    assert best is not None
    form = f"in {web.machines * best[0]} blocks, {together} samples together"
    return {form: (fixed + together * each, best[1])}


def _ranked(web: Web, found: Constants, kind: Kind, wide: int) -> Outcome:
    """On one machine while ids go, its links read from disk if need be; else over blocks."""
    if wide == 1:
        links = found.link_bytes * web.links
        sweep = web.links * found.sweep_link
        if links > kind.room:
            sweep = max(sweep, links / kind.disk)
        return Outcome(found.sweeps * sweep, found.sweeps * web.links * found.sweep_link, 0.0)
    run = Rank(
        web.machines, kind.processors, web.machines, found.sweeps, web.links,
        max(found.sweep_link, found.block_link), web.nodes * found.border, 8.0, kind.net,
        found.call, found.parcel, found.call_block, found.parcel_block, found.hop,
        found.rank_begin, found.rank_start, found.beside,
    )  # fmt: skip
    return rank(run, WEATHER)


def _served(web: Web, found: Constants, kind: Kind, held: float) -> tuple[float, float]:
    """Questions a second at half of what the machines can do, and the 99th percentile there. One
    process asks on every machine; with more machines than samples, groups of them hold all.
    """
    shards = min(web.machines, SAMPLES)
    groups = web.machines / shards
    work = found.ask_call + found.ask_all / shards
    if held > kind.room:
        work += _COLD_READS * SAMPLES / shards * _COLD_SECONDS
    asker = found.front + shards * found.merge
    rate = 0.5 * min(shards / asker, kind.processors / work)
    run = Serving(
        shards, kind.processors, shards, shards, 1, 1, work, found.ask_spread, found.front,
        found.merge, found.trip, 1.0, askers=shards,
    )  # fmt: skip
    served = serve(run, _QUESTIONS, rate, replace(WEATHER, lifetime=float("inf")))
    return rate * groups, served.percentile(0.99)


def _size(value: float) -> str:
    for unit in ("GB", "TB", "PB"):
        value /= 1e9 if unit == "GB" else 1e3
        if value < 1000 or unit == "PB":
            return f"{value:.3g} {unit}"
    raise AssertionError


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def table(found: list[Plan]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield (
        "| web | nodes, links | machines | built | graph, index on disk | memory per machine "
        "| hours | machine hours | on the wire | PageRank, hours |"
    )
    yield "| --- | ---: | ---: | --- |" + " ---: |" * 6
    for each in found:
        web, build = each.web, each.build
        yield (
            f"| {web.name} | {web.nodes:.3g}, {web.links:.4g} | {web.machines} | {each.form} "
            f"| {_size(each.graph)}, {_size(each.index)} | {_size(each.memory)} "
            f"| {_hours(build.seconds)} | {_hours(build.seconds * web.machines)} "
            f"| {_size(build.wire)} | {_hours(each.ranked.seconds)} |"
        )
    yield ""
    yield "| web | machines | index per machine | queries per second | 99th percentile |"
    yield "| --- |" + " ---: |" * 4
    for each in {each.web: each for each in found}.values():
        yield (
            f"| {each.web.name} | {each.web.machines} | {_size(each.held)} "
            f"| {each.questions:,.0f} | {1e3 * each.p99:.0f} ms |"
        )
