"""Pilots: an index of few samples is built and asked, to tell what many will cost.

    bytes(N)    names + N * what a sample of the larger pilot takes
    seconds(N)  what the larger pilot's build took beside its samples, and for each of N
                    what a sample took behind the first round of them,
                    its share of closing a shard
    query(N)    of each quantile of the nodes asked, the line through its times in both

A sample's size differs from the next one's by some per mille. Of all costs the fixed ones and those
of a sample are told apart, and neither is below 0. Those of a build are told apart within one
build, by the clock at each sample: the difference of two small builds is that of how long the disk
took to have their files.

Seconds and bytes of ``related-all`` follow such a line, too (``query/plan/whole.py``). Where a node
has all the hits that are written, bytes grow no more, so that twice the samples come out too large.

Of questions, that line goes through the larger pilot and one of a quarter of its samples. The more
samples, the fewer are new to a node that is near many others, so that its time bends below a line;
and a line from few samples would tell up to twice too much. So the larger pilot has as many samples
as are planned, if they are made in the time there is: then nothing is told but what was measured.
Quantiles and not nodes are followed, as one node's times, of a question each, are unsteady.

Builds are timed by the clock, questions by the processor (``query/plan/questions.py``).

Cost: half of ``limit`` for builds and half for questions, about; but no less than three rounds of
samples, as many as are made at once, of which the first may compile the kernels and brings the
graph into memory. A layout without samples is built, once or twice, if its estimate is within
``limit``. Beside, some three seconds for each pilot that ``related-all`` is told of.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.names import NAME_FILES
from cocite.graph.titles import TITLE_FILES
from cocite.index import StoredIndex
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.index.sharded import Pace, ShardedPart, shard_samples
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.wanted import WANTED
from cocite.means import Means
from cocite.measures import SAMPLES, PartSettings, WholeSettings
from cocite.measures.settings import MAX_SAMPLES
from cocite.memory import format_size, format_time
from cocite.query.index import Index
from cocite.query.plan.questions import ASKED, Progress, Times, asked_names, time_questions
from cocite.query.plan.starts import starts
from cocite.query.plan.whole import plan_related_all
from cocite.store import Manifest, kind_of

__all__ = ["Costs", "Pilots", "Progress", "WholeCosts"]

_SAMPLES = 32
_CLEAR, _MOST = 0.2, 2048
"""Seconds that builds must differ by, and samples that are made for that at most."""
_PART = 4
"""How many times the samples of the smaller pilot that is asked the larger one has."""

_Chosen = TypeVar("_Chosen", WholeSettings, PartSettings)


@dataclass(frozen=True)
class Costs:
    """What samples cost, from ``pilot`` of them.

    In bytes, those of the ``names`` and those of a ``sample``; in seconds of the build, those
    ``fixed`` and those of ``each``; and of the questions, float64[quantiles, 2], the same;
    ``starts`` of processes that ask one question (``query/plan/starts.py``); ``batch``,
    float64[2, 2], the same of seconds and bytes of ``related-all``.
    """

    names: int
    sample: float
    fixed: float
    each: float
    questions: Times
    fit: MemoryPlan
    pilot: int
    starts: Times | None = None
    batch: Times | None = None

    def bytes(self, samples: int) -> int:
        """On disk."""
        return self.names + round(self.sample * samples)

    def seconds(self, samples: int) -> float:
        """To build it."""
        return self.fixed + self.each * samples

    def times(self, samples: int) -> Times:
        """Of questions: as many quantiles as nodes were asked."""
        found: Times = self.questions @ np.array([1.0, samples])
        return found

    def related_all(self, samples: int) -> tuple[float, int] | None:
        """Seconds and bytes of it; None if not known."""
        if self.batch is None:
            return None
        seconds, size = (self.batch @ np.array([1.0, samples])).tolist()
        return seconds, round(size)

    def within_bytes(self, size: int) -> int:
        """The most samples of that size in all; raises :class:`UsageError` if not one."""
        number = int((size - self.names) / self.sample)
        if number < 1:
            raise UsageError(
                f"no sample fits on {format_size(size)} of disk: one takes "
                f"{format_size(self.sample)}, and the names of the nodes {format_size(self.names)}"
            )
        return min(number, MAX_SAMPLES)

    def within_seconds(self, seconds: float) -> int:
        """The most samples made in that time; raises :class:`UsageError` if not one."""
        if self.seconds(1) > seconds:
            raise UsageError(
                f"no sample can be made in {format_time(seconds)}: one takes about "
                f"{format_time(self.seconds(1))}"
            )
        number = (seconds - self.fixed) / self.each if self.each > 0 else MAX_SAMPLES
        return min(max(1, int(number)), MAX_SAMPLES)


@dataclass(frozen=True)
class WholeCosts:
    """What a layout without samples costs; ``times`` of questions, None if it was not built, and
    seconds and bytes of a ``batch``.
    """

    bytes: int
    seconds: float
    fit: MemoryPlan
    times: Times | None
    starts: Times | None = None
    batch: tuple[float, int] | None = None


@dataclass(frozen=True)
class _Built:
    """What a pilot's build took: ``bytes`` and ``seconds`` in all; of its ``samples`` so many are
    made in a ``round``, and the ``paces`` of its parts say in what time.
    """

    bytes: int
    seconds: float
    fit: MemoryPlan
    samples: int
    round: int
    paces: list[Pace]

    @property
    def _each(self) -> float:
        """Seconds to make a sample of all parts, from what is behind the first round if it can."""
        return sum(
            pace.first / min(self.round, self.samples) if pace.each is None else pace.each
            for pace in self.paces
        )

    @property
    def made(self) -> float:
        """Seconds that were spent on what tells how long a sample takes."""
        return self._each * (self.samples - self.round)

    def within(self, seconds: float) -> float:
        """How many samples are made in that time, with all that is beside them."""
        beside = self.seconds - self._each * self.samples
        return (seconds - beside) / self._each if self._each > 0 else np.inf

    def costs(self, fewer: _Built, shard: int) -> tuple[float, float]:
        """(fixed, each) in seconds, with shards of so many samples; ``fewer`` is a build of fewer,
        which tells how closing a shard depends on them.
        """
        closing = shards = 0.0
        for pace, other in zip(self.paces, fewer.paces, strict=True):
            each = (pace.closing - other.closing) / max(pace.shard - other.shard, 1.0)
            each = min(max(each, 0.0), pace.closing / pace.shard)
            closing += each + (pace.closing - each * pace.shard) / shard
            shards += pace.closing * self.samples / pace.shard
        fixed = self.seconds - self._each * self.samples - shards
        return max(0.0, fixed), self._each + closing


@dataclass(frozen=True)
class Pilots:
    """Builds pilots in scratch directories and asks them.

    ``asked`` are the settings of the questions, ``limit`` is in seconds.
    """

    graph: Graph
    options: BuildOptions
    asked: WholeSettings
    means: Means
    limit: float
    scratch: str | os.PathLike[str] | None
    progress: Progress

    def sampled(self, threads: int, choose: Callable[[Costs], int]) -> Costs:
        """From one round of samples and from as many as a quarter of the time and the disk allow,
        two rounds at least, and no more than ``choose`` will want.
        """
        with self._folder() as folder:
            few, many = folder / "few", folder / "many"
            cold = self._built(few, self._with(threads), threads)
            names = _name_bytes(few)
            number = 2 * max(threads, cold.round)
            built = self._built(many, self._with(number), threads)
            fitting = shutil.disk_usage(folder).free / 2 / built.bytes * number
            sample = (built.bytes - names) / number
            rough = Costs(
                names, sample, *built.costs(cold, self._shard), np.empty((0, 2)), built.fit, number
            )
            wanted = max(_SAMPLES, _wanted(choose, rough))
            more = min(wanted, built.within(self.limit / 4), fitting)
            if more >= 2 * number:
                number = int(more) // built.round * built.round
                built = self._built(many, self._with(number), threads)
            clear = self._clear(folder, threads, built, fitting)
            fixed, each = clear.costs(cold, self._shard)
            fewer = max(threads, number // _PART)
            if fewer > threads:
                self._built(few, self._with(fewer), threads)
            times = self._ask(many)
            before = self._ask(few, times.size)
            lines = _line(fewer, np.sort(before), number, np.sort(times))
            questions = np.column_stack(lines)
            begun = self._starts(many, times)
            batches = [np.array(self._batch(folder)) for folder in (few, many)]
            batch = np.column_stack(_line(fewer, batches[0], number, batches[1]))
        sample = (built.bytes - names) / number
        return Costs(names, sample, fixed, each, questions, built.fit, number, begun, batch)

    def _clear(self, folder: Path, threads: int, built: _Built, fitting: float) -> _Built:
        """A build of samples whose making the clock can tell from nothing."""
        while built.made < _CLEAR and 4 * built.samples <= min(_MOST, fitting):
            if 4 * built.seconds > self.limit / 8:
                break
            built = self._built(folder / "more", self._with(4 * built.samples), threads)
        return built

    @property
    def _shard(self) -> int:
        """Samples in a shard of the index."""
        plans = [plan for plan in self.options.parts if SAMPLES in plan.settings]
        return min(shard_samples(plan, self.graph.nodes, None) for plan in plans)

    def whole(self) -> WholeCosts:
        """From the layout's own estimate; from the index itself if that is made in ``limit``."""
        with self._folder() as folder:
            with self._build(folder, self.options, self.means.threads) as work:
                parts = [part.estimate() for part in work.parts]
            rooms = [part.fit for part in parts if part.fit is not None]
            fit = max(rooms, key=lambda fit: fit.memory)
            size, seconds = sum(part.bytes for part in parts), sum(part.seconds for part in parts)
            del work
            if seconds > self.limit or size > shutil.disk_usage(folder).free / 2:
                return WholeCosts(size + _name_bytes(self.graph.path), seconds, fit, None)
            builds = [self._built(folder, self.options, self.means.threads)]
            if builds[0].seconds < self.limit / 4:
                # The first may compile the kernels and bring the graph into memory.
                builds.append(self._built(folder, self.options, self.means.threads))
            size, seconds = builds[-1].bytes, min(built.seconds for built in builds)
            times = self._ask(folder)
            begun = self._starts(folder, times)
            return WholeCosts(size, seconds, fit, times, begun, self._batch(folder))

    def _with(self, samples: int) -> BuildOptions:
        def fewer(settings: _Chosen) -> _Chosen:
            return settings.changed(SAMPLES, samples) if SAMPLES in settings else settings

        options = self.options
        parts = tuple(replace(part, settings=fewer(part.settings)) for part in options.parts)
        return replace(options, settings=fewer(options.settings), parts=parts)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """A directory that goes with all that is in it, also when interrupted."""
        try:
            made = tempfile.TemporaryDirectory(prefix="cocite-plan-", dir=self.scratch)
        except OSError as error:
            raise ResourceError(
                f"the pilots cannot be built: {error}. Choose another directory with --scratch "
                "(scratch=)"
            ) from error
        try:
            with made as folder:
                yield Path(folder)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # without the note that a pilot could go on

    def _build(self, output: Path, options: BuildOptions, threads: int) -> IndexBuild:
        means = self.means.up_to(threads)
        return IndexBuild(self.graph, output / "index", options, means, overwrite=True)

    def _built(self, output: Path, options: BuildOptions, threads: int) -> _Built:
        with self._build(output, options, threads) as work:
            report = work.run(lambda done, total: self.progress("pilot", done, total))
        fits = [part.fit for part in work.parts if part.fit is not None]
        fit = max(fits, key=lambda fit: fit.memory, default=MemoryPlan(0, 1, ()))
        parts = [part for part in work.parts if isinstance(part, ShardedPart)]
        return _Built(
            report.bytes,
            report.seconds,
            fit,
            options.samples or 0,
            max((part.round for part in parts), default=1),
            [part.pace for part in parts if part.pace is not None],
        )

    def _ask(self, folder: Path, most: int | None = None) -> Times:
        """Random nodes, always the same ones: as many as the time allows, or ``most``."""
        index = Index(StoredIndex.open(folder / "index"), self.means)
        limit = self.limit / 4 if most is None else float("inf")
        return time_questions(index, most or ASKED, limit, self.asked.to_json(), self.progress)

    def _batch(self, folder: Path) -> tuple[float, int]:
        """Seconds and bytes of ``related-all``, told of a pilot."""
        index = Index(StoredIndex.open(folder / "index"), self.means)
        asked: dict[str, Any] = self.asked.to_json()
        told = plan_related_all(index, scratch=folder, progress=self.progress, **asked)
        return told.seconds, told.bytes

    def _starts(self, folder: Path, times: Times) -> Times | None:
        """What processes take that ask one of the questions of these ``times`` each."""
        index = StoredIndex.open(folder / "index")
        names = asked_names(index.names, times.size)
        layouts = " ".join(sorted(part.layout for part in self.options.parts))
        return starts(folder / "index", layouts, names, times.tolist(), self.limit / 4)


def _name_bytes(folder: Path) -> int:
    """What the names of the nodes take in a graph, or in the index in a pilot's folder."""
    path = folder / "index" if (folder / "index").exists() else folder
    manifest = Manifest.read(path, kind_of(path) or "graph")
    copied = NAME_FILES, TITLE_FILES, WANTED
    names = {name: e for name, e in manifest.files.items() if name.startswith(copied)}
    return sum(entry.nbytes for entry in names.values())


def _wanted(choose: Callable[[Costs], int], costs: Costs) -> int:
    """How many samples it wants by these costs; 1 if they allow none, as better ones may not."""
    try:
        return choose(costs)
    except UsageError:
        return 1


def _line(few: int, first: Times, many: int, second: Times) -> tuple[Times, Times]:
    """(fixed, each) through two measurements, elementwise: through the second one exactly."""
    each = np.clip((second - first) / (many - few), 0, second / many)
    return second - many * each, each
