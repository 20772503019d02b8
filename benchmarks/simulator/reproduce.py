"""Compare measured runs with their simulations.

    build      shards on local Ray nodes: plain, with a node killed, with the driver killed
    blocks     an index and ranks over blocks on local Ray nodes
    questions  one after another over shards, with all shards, and with some killed

Each run has a few figures, measured and simulated, which must agree within ``ALLOWED``. Constants
come from other runs (``measure.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from benchmarks.simulator.building import Coarse, Fine, Rank, Weather, coarse, fine, rank
from benchmarks.simulator.constants import Constants
from benchmarks.simulator.serving import Served, Serving, serve

ALLOWED = 0.3
_GROUP = 16
_QUESTIONS = 1000
_RANK_BYTES, _TOKEN_BYTES = 8, 12


class Figure(NamedTuple):
    """Of a run: what was ``measured`` and what is ``simulated``, in a ``unit``."""

    run: str
    what: str
    unit: str
    measured: float
    simulated: float

    @property
    def off(self) -> float:
        """By which share the simulated one is more, or less than the measured one."""
        return self.simulated / self.measured - 1


def figures(found: Constants, runs: dict[str, Any]) -> Iterator[Figure]:
    """Yield the figures of all stored runs."""
    for name, record in {"build": _build, "blocks": _blocks, "serving": _questions}.items():
        if name in runs:
            yield from record(found, runs[name])


def _build(found: Constants, run: dict[str, Any]) -> Iterator[Figure]:
    plan, nodes = run["plan"], run["graph"]["nodes"]
    named = f"{plan['shards']} shards on {plan['nodes']} nodes"
    whole = Coarse(
        1, found.processors, plan["nodes"], plan["shards"],
        found.shard_node * nodes * plan["samples"] / plan["shards"], found.begin, found.beside,
        ray=found.ray,
    )  # fmt: skip
    killed = run["node killed"]["at"] - found.beside
    lost = Weather(repair=float("inf"), failures=((max(0.0, killed), 1),))
    rest = replace(whole, shards=plan["shards"] - run["driver killed"]["kept"])
    for key, what, each, weather in (
        ("cluster", "", whole, Weather()),
        ("node killed", ", a node killed", whole, lost),
        ("driver killed", ", the driver killed: remaining work", rest, Weather()),
    ):
        measured, simulated = run[key]["build"], coarse(each, weather)
        yield Figure(named + what, "time", "s", measured["wall"], simulated.seconds)
        yield Figure(named + what, "CPU time", "s", measured["cpu"], simulated.processor)


def _blocks(found: Constants, run: dict[str, Any]) -> Iterator[Figure]:
    graph = run["graph"]
    nodes, blocks = graph["nodes"], graph["blocks"]
    record = run["indexes"]["psimrank"]["in blocks apart"]
    called = {
        "call": found.call,
        "parcel": found.parcel,
        "call_block": found.call_block,
        "parcel_block": found.parcel_block,
        "hop": found.hop,
    }
    named = f"{blocks} blocks on {run['plan']['nodes']} nodes"
    built = fine(
        Fine(
            1, found.processors, blocks, nodes, run["plan"]["samples"], _GROUP, found.live,
            found.fine_token, found.fine_layout, found.gather,
            token_bytes=_TOKEN_BYTES, crossing=found.crossing, record_bytes=found.record_bytes,
            tree_bytes=found.tree_bytes, begin=found.block_begin, start=found.block_start, **called,
        )
    )  # fmt: skip
    sent = sum(record["sent"][f"bytes_of_{kind}"] for kind in ("tokens", "records", "trees"))
    yield Figure(f"{named}, an index", "time", "s", record["wall"], built.seconds)
    yield Figure(f"{named}, an index", "CPU time", "s", record["cpu"], built.processor)
    yield Figure(f"{named}, an index", "sent", "MB", sent / 1e6, built.wire / 1e6)
    record = run["ranks"]
    ranked = rank(
        Rank(
            1, found.processors, blocks, record["sweeps"], graph["edges"], found.block_link,
            record["values sent a sweep"], _RANK_BYTES, begin=found.rank_begin,
            start=found.rank_start, **called,
        )
    )  # fmt: skip
    apart = record["in blocks apart"]
    yield Figure(f"{named}, ranks", "time", "s", apart["wall"], ranked.seconds)
    yield Figure(f"{named}, ranks", "CPU time", "s", apart["cpu"], ranked.processor)


def _questions(found: Constants, run: dict[str, Any]) -> Iterator[Figure]:
    plan, samples = run["plan"], run["index"]["samples"]
    for key, ended in (("cluster", 0), ("killed", plan["shards"] - run["killed"]["shards"])):
        measured, named = run[key], f"queries to {plan['shards']} shards"
        if ended:
            named += f", {ended} of them killed"
        simulated = asked(found, found.processors, plan["nodes"], plan["shards"], samples, ended)
        for what, share in (("median", 0.5), ("99th percentile", 0.99)):
            slow = measured["p50" if share == 0.5 else "p99"]
            yield Figure(named, what, "ms", 1e3 * slow, 1e3 * simulated.percentile(share))
        taken = simulated.processor / _QUESTIONS
        cpu = measured["asker_cpu"] + measured["servers_cpu"]
        yield Figure(named, "CPU time", "ms", 1e3 * cpu, 1e3 * taken)
        if ended:
            yield Figure(named, "samples", "", measured["samples"], simulated.samples[-1])


def asked(
    found: Constants, processors: float, nodes: int, shards: int, samples: int, ended: int = 0
) -> Served:
    """Questions one after another, all on one machine."""
    work = found.ask_call + found.ask_all / shards
    plan = Serving(
        1, processors, nodes, shards, 1, 1, work, found.ask_spread, found.front, found.merge,
        found.trip, 60.0, ended=ended, beside=True,
    )  # fmt: skip
    served = serve(plan, _QUESTIONS, None)
    held = [samples * (i + 1) // shards - samples * i // shards for i in range(shards)]
    served.samples = [round(each * sum(held) / shards) for each in served.samples]
    return served


def table(rows: list[Figure]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield "| run | figure | measured | simulated | off by |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for row in rows:
        unit = f" {row.unit}" * bool(row.unit)
        yield (
            f"| {row.run} | {row.what} | {row.measured:.3g}{unit} | {row.simulated:.3g}{unit} "
            f"| {100 * row.off:+.0f}% |"
        )
