"""What a question takes in a process that has asked before, by the processor.

Each of up to a thousand random nodes is asked once: that is how users ask. What a node needs has
never been read before, and half of what a question takes in a large index is to fetch it from
memory into the processor; asked again, it takes that much less. By the processor, as with the index
in memory a question takes that if a core is free, whatever else runs.

Cost: the questions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.compiled.clock import clock
from cocite.graph.names import Names
from cocite.query.opened import DEFAULT_K

if TYPE_CHECKING:
    from cocite.query.index import Index

__all__ = ["ASKED", "Progress", "Times", "asked_names", "quantiles", "time_questions"]

ASKED = 1000
_WARM = 3

Progress = Callable[[str, int, int], None]
Times = NDArray[np.float64]


def time_questions(
    index: Index,
    most: int,
    limit: float,
    asked: dict[str, Any],
    progress: Progress = lambda stage, done, total: None,
) -> Times:
    """float64[asked]: processor seconds of ``related`` for random nodes, each asked once.

    ``most`` nodes, fewer if ``limit`` seconds have gone; always the same ones first. A few others
    go before, as far as there are any: they load the code and the tables that all nodes share.
    """
    names = asked_names(index.nodes, most + _WARM)
    for name in names[-_WARM:]:
        index.related(name, DEFAULT_K, **asked)
    names = names[:most]
    began, times = clock(), []
    for done, name in enumerate(names):
        times.append(_time(index, name, asked))
        progress("asking", done + 1, len(names))
        if clock() - began > limit:
            break
    return np.array(times)


def asked_names(names: Names, most: int) -> list[str]:
    """``most`` of random nodes, always the same ones first."""
    nodes = len(names)
    chosen = np.random.default_rng(0).choice(nodes, min(nodes, ASKED + _WARM), replace=False)
    chosen = chosen[:most]
    return names.names(chosen.astype(np.uint32))


def _time(index: Index, name: str, asked: dict[str, Any]) -> float:
    """Of this thread's core: what else runs on the machine does not count."""
    begin = time.thread_time()
    index.related(name, DEFAULT_K, **asked)
    return time.thread_time() - begin


def quantiles(times: Times | None) -> tuple[float | None, float | None]:
    """Median and 99th percentile; None if not known."""
    if times is None:
        return None, None
    median, p99 = np.quantile(times, (0.5, 0.99)).tolist()
    return median, p99
