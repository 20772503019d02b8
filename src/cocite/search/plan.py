"""Estimate an index's size, memory, time and accuracy before building it.

Size and time grow linearly with the number of samples, so two samples per thread are drawn from the
real graph. Layouts without samples have their own estimates. With N samples, except with
probability ``failure``, for every graph, measure and pair:

    error      |estimate - score| <= delta              failure = 2 exp(-6/7 N delta**2)  Theorem 5
    order      scores delta apart keep their order                exp(-0.3 N delta**2)    Theorem 6
    recall     a list above a threshold misses at most this share
               of nodes delta above it, in expectation            exp(-6/7 N delta**2)    Theorem 7
    precision  at most this share of the list is delta below      r / (exp(6/7 N delta**2) - 1)

r is the number of nodes delta below the threshold, divided by the number delta above the threshold.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 4.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.index.build import IndexBuild
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.plan import BuildOptions, query_settings
from cocite.io.opening import open_graph
from cocite.measures import (
    DECAY,
    DEFAULT,
    MEETING_WEIGHT,
    SAMPLES,
    PartSettings,
    Value,
    WholeSettings,
    find_measure,
)
from cocite.measures.meeting_weight import weights_of
from cocite.measures.settings import MAX_SAMPLES
from cocite.options import accepts
from cocite.options.build import PlanOptions
from cocite.progress import shows
from cocite.resources import Resources, format_size, format_time, parse_size
from cocite.results import Document

SCORES = (0.1, 0.3)
"""Scores at which plans report standard errors."""


@dataclass(frozen=True)
class Promise:
    """A theorem: ``factor / (exp(rate * samples * delta**2) - less)`` bounds the failure
    probability.

    For precision, ``factor`` is r (:func:`promises`).
    """

    theorem: int
    text: str
    rate: float
    factor: float
    less: float = 0

    def _exponent(self, failure: float) -> float:
        return math.log(self.factor / failure + self.less)

    def samples(self, delta: float, failure: float) -> int:
        """Return the minimum number of samples for ``delta`` and ``failure``, both in (0, 1)."""
        return max(1, math.ceil(self._exponent(failure) / (self.rate * delta * delta)))

    def delta(self, samples: int, failure: float) -> float:
        """Return the minimum delta for this number of samples, at most 1."""
        return min(1.0, math.sqrt(self._exponent(failure) / (self.rate * samples)))


PROMISES = {
    "error": Promise(5, "a score is off by at most this", 6 / 7, 2),
    "order": Promise(6, "two nodes that differ by this keep their order", 0.3, 1),
    "recall": Promise(7, "nodes this far above a threshold are listed", 6 / 7, 1),
    "precision": Promise(7, "no listed node is further below a threshold", 6 / 7, 1, 1),
}
LISTED = 10
"""Default number of nodes in a list."""


def promises(nodes: int, listed: int) -> dict[str, Promise]:
    """Return the guarantees for lists of ``listed`` nodes in a graph of ``nodes``."""
    others = max(0, nodes - 1 - listed)
    return PROMISES | {"precision": replace(PROMISES["precision"], factor=others / listed)}


def standard_error(score: float, most: float, samples: int) -> float:
    """Return the maximum standard error of a score s from samples in [0, R = ``most``]:
    sqrt((R s - s**2) / N).
    """
    return math.sqrt(max(0.0, most * score - score * score) / samples)


def standard_errors(
    parts: Iterable[PartPlan], asked: WholeSettings, samples: int | None
) -> dict[float, float]:
    """Return maximum standard errors by score, for :data:`SCORES`; {} without samples."""
    if samples is None:
        return {}
    most = 0.0
    for part in (part for part in parts if SAMPLES in part.settings):
        own = part.ask_settings(asked)
        by_meeting = MEETING_WEIGHT in own
        most = max(most, weights_of(own, part.settings).most if by_meeting else own[DECAY])
    return {score: standard_error(score, most, samples) for score in SCORES}


def expected_error(errors: Mapping[float, float]) -> str:
    """Describe the expected error, for the end of the line on costs; "" without samples."""
    if not errors:
        return ""
    error = errors[SCORES[0]]
    return f", a standard error of at most {error:.2g} for a score of {SCORES[0]:g}"


_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h)\s*")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


_Chosen = TypeVar("_Chosen", WholeSettings, PartSettings)


@dataclass(frozen=True)
class Figures:
    """Estimates for an index with this many ``samples`` (None for a layout without samples).

    ``bytes`` is the size on disk, ``seconds`` the build time. With samples, ``delta`` has each
    guarantee's delta, and ``stderr`` upper bounds on standard errors, by score.
    """

    samples: int | None
    bytes: int
    seconds: float
    delta: dict[str, float]
    stderr: dict[float, float]


@dataclass(frozen=True)
class Costs:
    """Bytes for ``names`` and per ``sample``, seconds for ``each`` sample, and a memory plan."""

    names: int
    sample: float
    each: float
    fit: MemoryPlan

    def bytes(self, samples: int) -> int:
        """Return the index's size on disk."""
        return self.names + round(self.sample * samples)

    def within_bytes(self, size: int) -> int:
        """Return the maximum number of samples that fit; raises :class:`UsageError` if none."""
        number = int((size - self.names) / self.sample)
        if number < 1:
            raise UsageError(
                f"no sample fits in {format_size(size)} of disk space: a sample takes "
                f"{format_size(self.sample)}, and the node names take {format_size(self.names)}"
            )
        return min(number, MAX_SAMPLES)

    def within_seconds(self, seconds: float) -> int:
        """Return the maximum number of samples in this time; raises :class:`UsageError` if none."""
        if self.each > seconds:
            raise UsageError(
                f"no sample can be drawn in {format_time(seconds)}: a sample takes about "
                f"{format_time(self.each)}"
            )
        return min(int(seconds / self.each) if self.each > 0 else MAX_SAMPLES, MAX_SAMPLES)


@dataclass(frozen=True)
class Plan(Document):
    """Cost and accuracy of an index, as ``planned`` and with twice the samples.

    ``doubled`` is None for layouts without samples, and if an index cannot have that many
    samples. ``memory`` is in bytes, including Python; ``room`` describes the memory. Guarantees
    hold with probability 1 - ``failure``; precision is for a list of ``listed`` nodes. ``needs`` is
    the number of samples that each guarantee requires for the given delta; {} without a delta.
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

    def __str__(self) -> str:
        figures = self.planned
        text = f"{format_size(figures.bytes)} on disk, {self.room}, about "
        return text + format_time(figures.seconds) + expected_error(figures.stderr)


def parse_time(text: str | float) -> float:
    """Parse ``90s``, ``10min``, ``1.5 h`` or seconds; raises :class:`UsageError`."""
    if isinstance(text, str):
        match = _TIME.fullmatch(text)
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    else:
        seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{text!r} is not a time; write a time like 90s, 10min or 2h")
    return seconds


@shows("planning an index")
@accepts(PlanOptions)
def plan_index(
    graph: Any,
    *,
    threads: int | None = None,
    memory: str | int | None = None,
    options: PlanOptions | None = None,
    **given: Any,
) -> Plan:
    """Estimate the cost and accuracy of an index of ``graph`` from a few samples.

    Parameters
    ----------
    graph, threads, memory
        As for :func:`~cocite.search.build`.
    options, given
        The options below, as one object or by name. Other keyword arguments are the measure's build
        and query settings. At most one of ``samples``, ``delta``, ``disk`` and ``time`` is allowed;
        the default is the measure's ``samples``.
    {options}

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        For invalid values, and if a single sample exceeds ``disk`` or ``time``.
    ResourceError
        If memory is insufficient, or ``scratch`` cannot be written.

    Source: Fogaras, Racz, *Scaling link-based similarity search*, section 4, Theorems 5 to 7.
    """
    chosen = PlanOptions.of(options, given)
    graph = open_graph(graph, memory=memory, threads=threads)
    measure, samples, failure = chosen.measure or DEFAULT, chosen.samples, chosen.failure
    names = [setting.name for setting in find_measure(measure).ask]
    ask = {name: value for name, value in chosen.settings.items() if name in names}
    kept = {name: value for name, value in chosen.settings.items() if name not in names}
    if samples is not None:
        kept["samples"] = samples
    way = chosen.direction, chosen.layout
    built = BuildOptions.checked(measure, *way, kept, options=chosen)
    if any(SAMPLES in component.fixed for component in built.measure.components):
        raise UsageError(
            f"{measure} contains a number of samples, but planning draws fewer. Omit samples from "
            "the measure, and pass --samples (samples=...) instead"
        )
    asked = query_settings(built.measure, built.parts, ask)
    means = Resources.checked(threads, memory)
    ways = {"samples": samples, "delta": chosen.delta, "disk": chosen.disk, "time": chosen.time}
    listed = min(LISTED, max(1, graph.nodes - 1)) if chosen.listed is None else chosen.listed
    if chosen.listed is not None and listed >= graph.nodes:
        raise UsageError(
            f"listed is {listed}; it must be below {graph.nodes:,}, the number of nodes"
        )
    kept_promises = promises(graph.nodes, listed)
    choose, needs = _chosen_way(built, ways, chosen.guarantee, kept_promises, failure)
    costs, seconds = _estimated(graph, built, means, chosen.scratch)
    if built.samples is None:
        planned, doubled = Figures(None, costs.bytes(1), seconds, {}, {}), None
    else:
        while (number := choose(costs)) < means.threads:  # a build has no more threads than samples
            means = means.up_to(number)
            costs, _ = _estimated(graph, built, means, chosen.scratch)

        def figures(count: int) -> Figures:
            deltas = {name: each.delta(count, failure) for name, each in kept_promises.items()}
            errors = standard_errors(built.parts, asked, count)
            return Figures(count, costs.bytes(count), costs.each * count, deltas, errors)

        planned = figures(number)
        doubled = figures(2 * number) if 2 * number <= MAX_SAMPLES else None
    filled = built.settings.to_json()
    if SAMPLES in built.settings and planned.samples is not None:
        filled[SAMPLES.name] = planned.samples
    return Plan(
        str(graph.path),
        built.measure.name,
        built.direction,
        built.parts[0].layout,
        filled,
        asked.to_json(),
        replace(means, memory=costs.fit.memory).total,
        str(costs.fit),
        planned,
        doubled,
        failure,
        listed,
        needs,
    )


def _chosen_way(
    options: BuildOptions,
    ways: dict[str, Any],
    promise: str | None,
    kept: dict[str, Promise],
    failure: float,
) -> tuple[Callable[[Costs], int], dict[str, int]]:
    """Return a function from costs to the number of samples, and the number for each guarantee."""
    given = [name for name, value in ways.items() if value is not None]
    if given and options.samples is None:
        raise UsageError(
            f"{options.measure.name} has no samples, so {given[0]} cannot choose their number: "
            f"omit {given[0]}"
        )
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: pass one of them")
    if promise is not None and "delta" not in given:
        raise UsageError("a guarantee needs delta: pass both")
    if "delta" in given:
        delta = ways["delta"]
        needs = {name: each.samples(delta, failure) for name, each in kept.items()}
        most = promise or max(needs, key=lambda name: needs[name])
        number = needs[most]
        if number > MAX_SAMPLES:
            least = math.ceil(kept[most].delta(MAX_SAMPLES, failure) * 1e4) / 1e4
            raise UsageError(
                f"delta is {delta:g}; with a failure of {failure:g} it needs {number:,} samples, "
                f"and an index has at most {MAX_SAMPLES:,}, enough for a delta of {least:g}. "
                "Choose a larger delta or failure, or a --guarantee (guarantee=...) that needs "
                "fewer"
            )
        return lambda costs: number, needs
    if "disk" in given:
        size = parse_size(ways["disk"])
        return lambda costs: costs.within_bytes(size), {}
    if "time" in given:
        seconds = parse_time(ways["time"])
        return lambda costs: costs.within_seconds(seconds), {}
    return lambda costs: options.samples or 0, {}


def _estimated(
    graph: Graph, options: BuildOptions, means: Resources, scratch: str | os.PathLike[str] | None
) -> tuple[Costs, float]:
    """Return the cost per sample, or of the whole index if it has no samples; and the seconds of
    the estimated build, which has two samples per thread.
    """
    count = None if options.samples is None else 2 * means.threads
    few = options if count is None else _with_samples(options, count)
    try:
        with (
            scratch_folder(scratch) as folder,
            IndexBuild(graph, folder / "index", few, means) as work,
        ):
            parts, names = [part.estimate() for part in work.parts], work.name_bytes
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # without the note on resuming a build
    fits = [part.fit for part in parts if part.fit is not None]
    fit = max(fits, key=lambda fit: fit.memory, default=MemoryPlan(0, 1, ()))
    size, seconds = sum(part.bytes for part in parts), sum(part.seconds for part in parts)
    return Costs(names, size / (count or 1), seconds / (count or 1), fit), seconds


@contextmanager
def scratch_folder(scratch: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Create a temporary directory in ``scratch``; raises :class:`ResourceError`."""
    try:
        made = TemporaryDirectory(prefix="cocite-plan-", dir=scratch, ignore_cleanup_errors=True)
    except OSError as error:
        raise ResourceError(
            f"cannot create a temporary directory for the estimate: {error}. Choose another "
            "directory with --scratch (scratch=...)"
        ) from error
    with made as folder:
        yield Path(folder)


def _with_samples(options: BuildOptions, samples: int) -> BuildOptions:
    def changed(settings: _Chosen) -> _Chosen:
        return settings.changed(SAMPLES, samples) if SAMPLES in settings else settings

    parts = tuple(replace(part, settings=changed(part.settings)) for part in options.parts)
    return replace(options, settings=changed(options.settings), parts=parts)
