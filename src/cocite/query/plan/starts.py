"""What a question takes beside answering it, where a process is begun for it, as from a shell.

    start = wall time of "cocite related INDEX NODE" - the time of that question in a warm process

Measured on a pilot's index in real processes, one after another: the interpreter, the libraries,
the compiled kernels, the files that are opened, the output. It does not depend on how many samples
there are, but for pages of the index that are read for the first time, some kilobytes a sample. So
a question from a shell takes a start and the question; any start may meet any question, so the
quantiles are those of all their sums. That the kernels are compiled already is taken for granted:
a process before those that are timed sees to it.

Cost: three processes at least, about a second each; of the same layouts they are remembered.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.query.plan.questions import quantiles

__all__ = ["shell_quantiles", "starts"]

_LEAST, _MOST = 2, 7
_remembered: dict[str, NDArray[np.float64]] = {}
"""Of this process, by layouts."""


def starts(
    index: Path, layouts: str, names: Sequence[str], warm: Sequence[float], limit: float
) -> NDArray[np.float64] | None:
    """float64[runs]: seconds of new processes that ask for ``names``, without the ``warm`` seconds
    that the questions take; two runs at least, others as ``limit`` allows. None where a process
    cannot be begun, or cannot answer.
    """
    if layouts not in _remembered:
        found, began = list[float](), time.perf_counter()
        for run, (name, question) in enumerate(zip(names, warm, strict=False)):
            begin = time.perf_counter()
            command = [sys.executable, "-m", "cocite", "related", str(index), "--quiet", "--", name]
            try:
                subprocess.run(command, capture_output=True, check=True)
            except (OSError, ValueError, subprocess.CalledProcessError):
                return None
            if run:  # the first one may compile kernels
                found.append(max(0.0, time.perf_counter() - begin - question))
            if len(found) >= _MOST or (len(found) >= _LEAST and begin - began > limit):
                break
        if not found:
            return None
        _remembered[layouts] = np.array(found)
    return _remembered[layouts]


def shell_quantiles(
    begun: NDArray[np.float64] | None, times: NDArray[np.float64] | None
) -> tuple[float | None, float | None]:
    """Median and 99th percentile of a start and a question, in seconds; None if not known."""
    if begun is None or times is None:
        return None, None
    return quantiles(np.add.outer(begun, times))
