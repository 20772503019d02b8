"""Estimate what ``related-all`` will take, from a sample of the nodes of an index.

The sample is the one with which a batch begins (``search/batch/estimate.py``), in a scratch
directory that is removed afterwards. If the sample is all nodes, the figures are those of the whole
batch.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from cocite.errors import ResourceError
from cocite.options.query import DEFAULT_K
from cocite.search.batch.estimate import BatchPlan, Progress, plan_of
from cocite.search.batch.run import Batch
from cocite.search.searcher import Searching


def plan_related_all(
    index: Searching,
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
        What :class:`~cocite.search.batch.run.Batch` takes.

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
            told = batch.estimate(progress)
            if told is not None:
                return told
            report = batch.run()
            took = time.perf_counter() - began
            return plan_of(batch.work, batch.output, report.rows, took, report.bytes or 0)
