"""What ``related-all`` will take of an index, told from a sample of its nodes.

The sample is that with which a batch begins (``query/batch/told.py``), in a scratch directory that
goes again. Where it turns out to be all nodes, the batch is made, and what it took is told.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from cocite.errors import ResourceError
from cocite.query.batch.run import Batch
from cocite.query.batch.told import BatchPlan, plan_of
from cocite.query.batch.work import Progress
from cocite.query.opened import DEFAULT_K
from cocite.query.ordered import Ordered

__all__ = ["plan_related_all"]


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
            return plan_of(
                batch.work, batch.output, report.rows, time.perf_counter() - began, report.bytes
            )
