"""What an index will take and give, before it is built: size, memory, time, answers, errors.

All of it is measured on the very graph, by *pilots* in a scratch directory that goes again
(``query/plan/pilots.py``). For layouts of samples they are the index's own first samples, and
figures follow their number in straight lines. A layout made in one go has no part that would tell
of the whole: if its own estimate says that it is made in the time given, the pilot is the index
itself, and all figures are its own; if not, size, memory and time are that estimate, and how long
questions take is not known.

Memory is what the build will plan (``layouts/memory_plan.py``). Times are of this machine as it is
now, with the index in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cocite.documents import Document
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.index.asked import asked_settings
from cocite.index.keep import Keep
from cocite.index.plan import BuildOptions
from cocite.layouts.memory_plan import MemoryPlan
from cocite.means import Means
from cocite.measures import DEFAULT, SAMPLES, Value, find_measure
from cocite.measures.settings import MAX_SAMPLES
from cocite.memory import format_size, format_time, own_memory, parse_size
from cocite.query.plan.pilots import Costs, Pilots
from cocite.query.plan.precision import (
    PROMISES,
    Promise,
    checked_listed,
    checked_samples,
    checked_share,
    expected_error,
    promises,
    samples_for,
    standard_errors,
)
from cocite.query.plan.questions import Progress, quantiles
from cocite.query.plan.starts import shell_quantiles

__all__ = ["Figures", "Plan", "parse_time", "plan_index"]

_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h)\s*")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Figures:
    """Of an index with so many ``samples`` (None for a layout without).

    ``bytes`` on disk and ``seconds`` to build it; the ``median`` and the 99th percentile ``p99`` of
    seconds a question, in a process that has asked before, and ``shell_median`` and ``shell_p99``
    where one is begun for the question, and ``batch_seconds`` and ``batch_bytes`` of
    ``related_all``, 20 hits a node, on the threads given, as Parquet; None if not known; for
    samples, the ``delta`` of each promise of ``query/plan/precision.py`` and the standard error, at
    most, of each of ``SCORES``.
    """

    samples: int | None
    bytes: int
    seconds: float
    median: float | None
    p99: float | None
    delta: dict[str, float]
    stderr: dict[float, float]
    shell_median: float | None = None
    shell_p99: float | None = None
    batch_seconds: float | None = None
    batch_bytes: int | None = None


@dataclass(frozen=True)
class Plan(Document):
    """What an index of ``graph`` will take and give: as planned, and with twice the samples.

    ``doubled`` is None for layouts without samples, and where an index cannot have so many;
    ``memory`` is in bytes, Python included, and ``room`` the same in words. The promises hold but
    for ``failure``, precision of a list that is to find ``listed`` nodes; ``needs`` is how many
    samples each takes for the delta asked for, if one was.
    ``pilot`` is how many samples it was measured with (None: the whole index, 0: not built).
    """

    graph: str
    measure: str
    direction: str
    layout: str
    settings: dict[str, Value]
    asked: dict[str, Value]
    memory: int
    room: str
    planned: Figures
    doubled: Figures | None
    failure: float
    listed: int
    needs: dict[str, int]
    pilot: int | None

    def __str__(self) -> str:
        figures = self.planned
        text = f"{format_size(figures.bytes)} on disk, {self.room}, about "
        return text + format_time(figures.seconds) + expected_error(figures.stderr)


def parse_time(text: str | float) -> float:
    """Seconds from ``90s``, ``10min``, ``1.5 h`` or a number; raises :class:`UsageError`."""
    if isinstance(text, str):
        match = _TIME.fullmatch(text)
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    else:
        seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{text!r} is not a time; write it like 90s, 10min or 2h")
    return seconds


def plan_index(
    graph: Graph | str | os.PathLike[str],
    *,
    measure: str = DEFAULT,
    direction: str | None = None,
    layout: str | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    samples: int | None = None,
    delta: float | None = None,
    disk: str | int | None = None,
    time: str | float | None = None,
    failure: float = 0.01,
    promise: str | None = None,
    listed: int | None = None,
    pilot: str | float = 10.0,
    scratch: str | os.PathLike[str] | None = None,
    unweighted: bool = False,
    keep: Iterable[object] | None = None,
    keep_prefix: str | Sequence[str] | None = None,
    texts: str | os.PathLike[str] | None = None,
    texts_share: float | None = None,
    progress: Progress = lambda stage, done, total: None,
    **settings: Value,
) -> Plan:
    """What an index of ``graph`` will take and give, measured on a few pilot samples.

    Parameters
    ----------
    graph, measure, direction, layout, threads, memory, unweighted, keep, keep_prefix
        As for :func:`~cocite.query.build`.
    texts, texts_share
        Likewise; texts are read several times.
    samples, delta, disk, time
        At most one of them, by default the measure's ``samples``: so many; as many as keep
        ``promise`` for this difference of scores, in (0, 1); as many as fit on ``disk``, such as
        ``"5GB"``; as many as are made in ``time``, such as ``"10min"``.
    failure
        The probability, in (0, 1), with which a promise may fail.
    promise
        With ``delta``: ``error`` of a score, ``order`` of two nodes, ``recall`` of a list or its
        ``precision``; by default all of them.
    listed
        How many nodes a list is to find, on which its precision depends; by default 10.
    pilot
        How long the pilots may take, about.
    scratch
        The directory for the pilots; by default the system's for temporary files. Writing counts,
        so choose the disk that the index will be on.
    progress
        Called with (stage, done, total).
    settings
        What the measure takes when building and when asking.

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        Also if ``disk`` or ``time`` do not hold a single sample.
    ResourceError
        If the memory does not suffice, or ``scratch`` has no room for the pilots.

    Source: Fogaras, Racz, *Scaling link-based similarity search*, 4 (Theorems 5 to 7).
    """
    if not isinstance(graph, Graph):
        graph = Graph.open(graph)
    names = [setting.name for setting in find_measure(measure).ask]
    ask = {name: value for name, value in settings.items() if name in names}
    kept = {name: value for name, value in settings.items() if name not in names}
    if samples is not None:
        kept["samples"] = samples
    pages = Keep.checked(keep, keep_prefix)
    options = BuildOptions.checked(
        measure,
        direction,
        layout,
        kept,
        unweighted=unweighted,
        keep=pages,
        texts=texts,
        texts_share=texts_share,
    )
    if any(SAMPLES in component.fixed for component in options.measure.components):
        raise UsageError(
            f"{measure} fixes its number of samples, but a plan is measured with fewer. Leave it "
            "out there, and give --samples (samples=) instead"
        )
    asked = asked_settings(options.measure, options.parts, ask)
    means = Means.checked(threads, memory)
    ways = {"samples": samples, "delta": delta, "disk": disk, "time": time}
    listed = checked_listed(listed, graph.nodes)
    kept_promises = promises(graph.nodes, listed)
    choose, needs = _chosen_way(options, ways, promise, kept_promises, failure)
    limit = parse_time(pilot)
    work = Pilots(graph, options, asked, means, limit, scratch, progress)
    used: int | None
    if options.samples is not None:
        room, planned, doubled, used = _sampled(work, means.threads, choose, kept_promises, failure)
    else:
        found = work.whole()
        times = quantiles(found.times)
        shell = shell_quantiles(found.starts, found.times)
        room, doubled = found.fit, None
        used = 0 if found.times is None else None
        planned = Figures(
            None, found.bytes, found.seconds, *times, {}, {}, *shell, *found.batch or (None, None)
        )
    filled = options.settings.to_json()
    if SAMPLES in options.settings and planned.samples is not None:
        filled[SAMPLES.name] = planned.samples
    return Plan(
        str(graph.path),
        options.measure.name,
        options.direction,
        options.parts[0].layout,
        filled,
        asked.to_json(),
        room.memory + own_memory(),
        str(room),
        planned,
        doubled,
        failure,
        listed,
        needs,
        used,
    )


def _chosen_way(
    options: BuildOptions,
    ways: dict[str, Any],
    promise: str | None,
    kept: dict[str, Promise],
    failure: float,
) -> tuple[Callable[[Costs], int], dict[str, int]]:
    """How many samples, from what they cost; and how many each promise needs, if that decides."""
    checked_share("failure", failure)
    given = [name for name, value in ways.items() if value is not None]
    if given and options.samples is None:
        raise UsageError(
            f"{options.measure.name} has no samples, so {given[0]} cannot choose their number. "
            "Leave it out"
        )
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are given; give one of them")
    if promise is not None and promise not in PROMISES:
        raise UsageError(f"promise is {promise!r}; it is " + " or ".join(PROMISES))
    if promise is not None and "delta" not in given:
        raise UsageError("a promise is about a delta; give that, too")
    if "delta" in given:
        needs = samples_for(kept, ways["delta"], failure)
        most = promise or max(needs, key=lambda name: needs[name])
        number = checked_samples(needs[most], kept[most], ways["delta"], failure)
        return lambda costs: number, needs
    if "disk" in given:
        size = parse_size(ways["disk"])
        return lambda costs: costs.within_bytes(size), {}
    if "time" in given:
        seconds = parse_time(ways["time"])
        return lambda costs: costs.within_seconds(seconds), {}
    return lambda costs: options.samples or 0, {}


def _sampled(
    work: Pilots,
    threads: int,
    choose: Callable[[Costs], int],
    kept: dict[str, Promise],
    failure: float,
) -> tuple[MemoryPlan, Figures, Figures | None, int]:
    """Room, figures as planned and doubled, and the pilot's samples.

    A build has no more threads than samples: if ``choose`` wants fewer, pilots go on as many.
    """
    costs = work.sampled(threads, choose)
    while (samples := choose(costs)) < threads:
        threads = samples
        costs = work.sampled(threads, choose)
    planned, doubled = (_figures(work, costs, n, kept, failure) for n in (samples, 2 * samples))
    return costs.fit, planned, doubled if 2 * samples <= MAX_SAMPLES else None, costs.pilot


def _figures(
    work: Pilots, costs: Costs, samples: int, kept: dict[str, Promise], failure: float
) -> Figures:
    return Figures(
        samples,
        costs.bytes(samples),
        costs.seconds(samples),
        *quantiles(costs.times(samples)),
        {name: promise.delta(samples, failure) for name, promise in kept.items()},
        standard_errors(work.options.parts, work.asked, samples),
        *shell_quantiles(costs.starts, costs.times(samples)),
        *costs.related_all(samples) or (None, None),
    )
