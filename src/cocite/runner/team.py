"""Threads that split one range of work again and again.

``in_order`` hands out items; a :class:`Team` is for the loop that cuts each of thousands of small
steps into one part a thread and waits for all of them. Parts are ranges, aligned so that
two threads do not write to one cache line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Team"]


class Team:
    """``with Team(threads) as team: team.split(work, n)`` runs ``work(low, high)`` side by side."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="cocite")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def split(
        self,
        work: Callable[[int, int], Any],
        size: int,
        load: NDArray[Any] | None = None,
        aligned: int = 16,
    ) -> list[Any]:
        """What ``work`` returns for each part of range(size), in order.

        ``load``, ascending and one longer than the range, is the work before each item; without it
        all are taken to be equal. Parts begin at multiples of ``aligned``.
        """
        cuts = self._cuts(size, load, aligned)
        ranges: Sequence[tuple[int, int]] = list(pairwise(cuts))
        if self._pool is None or len(ranges) < 2:
            return [work(low, high) for low, high in ranges]
        others = [self._pool.submit(work, low, high) for low, high in ranges[1:]]
        try:
            mine = work(*ranges[0])
        finally:
            found = [other.result() for other in others]
        return [mine, *found]

    def _cuts(self, size: int, load: NDArray[Any] | None, aligned: int) -> list[int]:
        if load is None:
            inner = [size * i // self.threads for i in range(1, self.threads)]
        else:
            whole = float(load[size] - load[0])
            shares = [load[0] + whole * i / self.threads for i in range(1, self.threads)]
            inner = np.searchsorted(load[: size + 1], shares).tolist()
        cuts = {cut // aligned * aligned for cut in inner}
        return [0, *sorted(cuts - {0, size}), size]
