"""What questions of an index take, and ``related-all`` will, told from a sample of its nodes.

The sample is that with which a batch begins (``query/batch/told.py``), in a scratch directory that
goes again. Where it turns out to be all nodes, the batch is made, and what it took is told.

Questions are asked for two seconds (``query/plan/questions.py``), and by a few new processes
(``query/plan/starts.py``).
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cocite.errors import ResourceError
from cocite.query.batch.run import Batch
from cocite.query.batch.told import BatchPlan, plan_of
from cocite.query.batch.work import Progress
from cocite.query.index import Index
from cocite.query.opened import DEFAULT_K
from cocite.query.ordered import Ordered
from cocite.query.plan.questions import ASKED, asked_names, quantiles, time_questions
from cocite.query.plan.starts import shell_quantiles, starts

__all__ = ["IndexPlan", "plan_related_all", "plan_whole"]

_SECONDS = 2.0
"""Of questions, by the clock."""


@dataclass(frozen=True)
class IndexPlan(BatchPlan):
    """What ``related-all`` takes, and the ``median`` and the 99th percentile ``p99`` of seconds a
    question, of so many nodes ``asked``, in a process that has asked before; and ``shell_median``
    and ``shell_p99`` where one is begun for the question, None if that cannot be.
    """

    median: float | None
    p99: float | None
    asked: int
    shell_median: float | None
    shell_p99: float | None


def plan_whole(
    index: Index,
    k: int = DEFAULT_K,
    *,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress = lambda stage, done, total: None,
    **settings: Any,
) -> IndexPlan:
    """What ``related_all`` will take, as of :func:`plan_related_all`, and what questions take.

    ``settings`` are those that the measure takes when asking; processes ask with its own.
    ``progress`` gets ("asking", done, total), too.
    """
    batch = plan_related_all(index, k, scratch=scratch, progress=progress, **settings)
    times = time_questions(index, ASKED, _SECONDS, settings, progress)
    layouts = " ".join(sorted(part.layout for part in index.stored.parts))
    names = asked_names(index.nodes, times.size)
    begun = starts(index.stored.store.path, layouts, names, times.tolist(), 0.0)
    shell = shell_quantiles(begun, times)
    (median, p99), (shell_median, shell_p99) = quantiles(times), shell
    return IndexPlan(
        **asdict(batch),
        median=median,
        p99=p99,
        asked=times.size,
        shell_median=shell_median,
        shell_p99=shell_p99,
    )


def plan_related_all(
    index: Ordered,
    k: int = DEFAULT_K,
    *,
    kind: str = "parquet",
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress = lambda stage, done, total: None,
    **options: Any,
) -> BatchPlan:
    """Time, memory and size of ``related_all`` with these options, in some three seconds.

    Parameters
    ----------
    index
        An opened index, or a graph.
    k
        How many hits a node at most.
    kind
        What is written: ``parquet``, ``csv``, ``tsv``, ``jsonl`` or ``folder``.
    scratch
        The directory for the sample; by default the system's for temporary files. Writing counts,
        so choose the disk that the output will be on.
    progress
        Called with ("relating", done, total), in nodes.
    options
        What :class:`~cocite.query.batch.run.Batch` takes.

    Raises
    ------
    UnknownNode, UsageError
        For options that are not allowed.
    ResourceError
        If there is no room for the sample.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="cocite-plan-", dir=scratch)
    except OSError as error:
        raise ResourceError(
            f"the sample cannot be made: {error}. Choose another directory with --scratch "
            "(scratch=)"
        ) from error
    with made as folder:
        began = time.perf_counter()
        with Batch(index, Path(folder) / "all", k, kind=kind, **options) as batch:
            told = batch.told(progress)
            if told is not None:
                return told
            report = batch.run()
            took = time.perf_counter() - began
            return plan_of(batch.work, batch.output, report.rows, took, report.bytes or 0)
