"""Compute the diagonal of linearized SimRank for a graph, with certified bounds.

    S = sum over l of c**l Q**l D (Q')**l,      D(w) = 1 - c * mean of S over pairs of in-neighbors

The first diagonal D' is 1 - c / d. Each sweep bounds the residual r(v) = S'(v, v) - 1, which is 0
for the exact diagonal (``kernels/linear.py``), then sets

    D'(v)  <-  D'(v) - r(v) + c / d(v)**2 * sum of r over in-neighbors of v

The remaining residual is usually smaller by a factor of ten or more. If it still exceeds the
target, for example with a decay near 1, up to twelve more sweeps mix the last few moves. A score
computed with D' is between s (1 + low) and s (1 + high), where s is the exact score, and low and
high are the extremes of r. The number of threads does not change the result. Memory is 120 bytes
per node, and 24 per node per thread. Source: Maehara, Kusumi, Kawarabayashi 2014 (the linearized
form); Anderson 1965 (mixing). The correction and the bounds are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.kernels.linear import MOST_LEVELS, Rows, RunSpace, average, peaks, residuals
from cocite.resources import Resources, format_least, short_of
from cocite.storage.spool import Scratch

LIMITS = 5
"""Number of levels with their own limits; later levels use the last limit."""
Table = NDArray[np.float32]
SweepReport = Callable[[int, int, int], None]
"""Called with (pass, nodes done, total nodes) during the computation."""


@dataclass(frozen=True)
class Diagonal:
    """A diagonal with limits, ``table`` float32[nodes, 1 + LIMITS], and bounds on all residuals."""

    decay: float
    table: Table
    low: float
    high: float

    @property
    def is_valid(self) -> bool:
        """Return whether the table is free of NaN and within bounds, as kernels require."""
        most = 1.001 / (1 - self.decay)
        fine = (self.table >= 0) & (self.table <= most)
        return bool(fine.all() and (self.table[:, 0] <= 1).all())


def make_space(nodes: int, entries: int = 0) -> RunSpace:
    """Allocate scratch for ``nodes`` nodes, and for forward runs of up to ``entries`` entries."""
    scratch = Scratch(None)
    return RunSpace(
        scratch.zeros(2 * nodes, np.float64).reshape(2, nodes),
        scratch.zeros(2 * (nodes + 1), np.uint32).reshape(2, nodes + 1),
        scratch.zeros(entries, np.uint32),
        scratch.zeros(entries, np.float64),
        np.zeros(MOST_LEVELS + 2, np.int64),
    )


_FLOOR = 1e-3
_PIECE = 1024
_FIRST = 1e-3
_ROUNDS, _EASE = 12, 0.85
_MOST_LINKS = 4e6
_NODE = 160

Column = NDArray[np.float64]
_SWEEPS = (16, 4, 1)
"""Accuracy of the sweeps, in multiples of the target."""
_TOGETHER, _PAST = 12, 4
"""Maximum number of mixing sweeps, and of moves to mix."""


def make_diagonal(
    rows: Links,
    columns: Links,
    decay: float,
    *,
    threads: int = 1,
    target: float = 0.01,
    progress: SweepReport = lambda sweep, done, total: None,
    reached: tuple[int, Table] | None = None,
    keep: Callable[[Table], None] = lambda table: None,
) -> Diagonal:
    """Compute the diagonal for the links ``rows``; ``columns`` are the same links by the other end.

    ``decay`` is c, between 0 and 1. ``target`` is the target width of the residual's bounds; nodes
    that would require more than a few million links get wider bounds. ``progress`` is called with
    (pass, nodes done, total nodes); passes are numbered from 0. After each stage, ``keep`` is
    called with the table. To resume, pass the number of completed stages and their table as
    ``reached``. Neither resuming nor ``threads`` changes the result.
    """
    return _Making(rows, columns, decay, threads, target, progress)(reached, keep)


def diagonal_room(rows: Links, columns: Links, means: Resources) -> int:
    """Return how many threads fit in memory; raises :class:`ResourceError` if none does."""
    return _threads(rows.nbytes + columns.nbytes, rows, means)[0]


def diagonal_memory(links: Links, means: Resources) -> int:
    """Return the bytes needed for ``links`` by both ends; raises :class:`ResourceError`."""
    return _threads(2 * links.nbytes, links, means)[1]


def _threads(ends: int, links: Links, means: Resources) -> tuple[int, int]:
    """Return (threads, bytes), if links by both ends take ``ends`` bytes."""
    whole, each = ends + _NODE * links.nodes, 24 * (links.nodes + 1)
    if means.memory < whole + each:
        raise ResourceError(
            f"preparing refined answers for {links.edges:,} links takes "
            f"{format_least(whole + each)} of memory; {short_of(means.memory)}, or omit "
            "--refine (refine=True)"
        )
    threads = min(means.threads, (means.memory - whole) // each)
    return threads, whole + threads * each


class _Making:
    def __init__(
        self,
        rows: Links,
        columns: Links,
        decay: float,
        threads: int,
        target: float,
        progress: SweepReport,
    ) -> None:
        self.nodes, self.decay, self.target = rows.nodes, decay, target
        self.rows = Rows(rows.offsets, rows.neighbors)
        self.columns = Rows(columns.offsets, columns.neighbors)
        self.degrees = np.diff(rows.offsets).astype(np.float64)
        self.fewest = np.maximum(self.degrees, 1)
        self.spaces = [make_space(self.nodes) for _ in range(threads)]
        self.progress, self.passes = progress, 0
        self.table = np.empty((self.nodes, 1 + LIMITS), np.float32)

    def __call__(
        self, reached: tuple[int, Table] | None, keep: Callable[[Table], None]
    ) -> Diagonal:
        everyone = np.flatnonzero(self.degrees).astype(np.uint32)
        swept = 0
        if reached is not None:
            swept = reached[0] - 1
            self.table[:] = reached[1]
        else:
            self.table[:, 1:] = self._limits()
            self._set(np.where(self.degrees > 0, 1 - self.decay / self.fewest, 1.0))
            keep(self.table)
        for coarse in _SWEEPS[swept:]:
            found = self._residuals(everyone, coarse * self.target)
            self._move(everyone, found[:, 0] + found[:, 2])
            self._settle(everyone, found, coarse * self.target)
            keep(self.table)
        found = self._together(everyone, self._residuals(everyone, self.target))
        low, high = found[:, 0], found[:, 0] + found[:, 1]
        # Nodes without in-links have the residual 0.
        return Diagonal(
            self.decay, self.table, float(low.min(initial=0)), float(high.max(initial=0))
        )

    def _settle(self, nodes: NDArray[np.uint32], found: NDArray[np.float64], target: float) -> None:
        """Move again the nodes whose last move was large: their residuals may still be large."""
        moved = found[:, 0] + found[:, 2]
        for round_ in range(_ROUNDS):
            far = np.abs(moved) > target / 4
            nodes = nodes[far]
            if nodes.size == 0 or (round_ > 0 and bool(far.all())):
                return
            found = self._residuals(nodes, target)
            moved = found[:, 0] + found[:, 2]
            self._move(nodes, _EASE * moved)

    def _together(
        self, nodes: NDArray[np.uint32], found: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Mix recent moves (Anderson mixing), because single moves do not converge with a decay
        near 1; adopt the best diagonal, and return its residuals.
        """
        best, kept = found, self.table[:, 0].copy()
        least = _worst(found)
        before: list[tuple[Column, Column]] = []
        for _ in range(_TOGETHER):
            if _worst(found) <= self.target:
                break
            residuals = np.zeros(self.nodes)
            residuals[nodes] = found[:, 0] + found[:, 2]
            step = self._average(residuals) / self.fewest - residuals
            step[self.degrees == 0] = 0.0
            here = self.table[:, 0].astype(np.float64)
            before = [*before, (here, step)][-_PAST:]
            self._set(mixture(before))
            found = self._residuals(nodes, self.target)
            if _worst(found) < least:
                best, kept, least = found, self.table[:, 0].copy(), _worst(found)
        self.table[:, 0] = kept
        return best

    def _move(self, nodes: NDArray[np.uint32], residuals: NDArray[np.float64]) -> None:
        steps = np.zeros(self.nodes)
        steps[nodes] = residuals
        back = self._average(steps) / self.fewest
        moved = self.table[:, 0].astype(np.float64)
        moved[nodes] += back[nodes] - residuals
        self._set(moved)

    def _set(self, diagonal: NDArray[np.float64]) -> None:
        """Set the diagonal, clipped to [1 - decay, 1], which contains the exact values."""
        diagonal[self.degrees == 0] = 1.0
        self.table[:, 0] = np.clip(diagonal, 1 - self.decay, 1.0)

    def _average(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty(self.nodes)
        average(self.rows, values, self.decay, out)
        return out

    def _limits(self) -> NDArray[np.float32]:
        """Return float32[nodes, LIMITS], rounded up."""
        tops = np.empty((self.nodes, LIMITS + 1))
        self._pass(
            self.nodes,
            lambda space, first, last: peaks(
                self.rows, self.columns, first, _FLOOR, space, tops[first:last]
            ),
        )
        limits = np.empty((self.nodes, LIMITS), np.float32)
        common = np.full(self.nodes, 1 / (1 - self.decay))
        for _ in range(64):  # each iterate is an upper bound
            common = np.minimum(common, self._average(common) + tops[:, LIMITS])
        for level in range(LIMITS, 0, -1):
            beyond = self._average(common)
            limits[:, level - 1] = np.nextafter(beyond.astype(np.float32), np.float32(np.inf))
            common = beyond + tops[:, level - 1]
        return limits

    def _residuals(self, nodes: NDArray[np.uint32], target: float) -> NDArray[np.float64]:
        """Return float64[nodes, 3]: lower bound on r, interval width, estimate minus the bound."""
        out = np.empty((nodes.size, 3))
        tune = np.array([self.decay, target * _FIRST, target, _MOST_LINKS])
        self._pass(
            nodes.size,
            lambda space, first, last: residuals(
                self.rows, self.table, nodes[first:last], tune, space, out[first:last]
            ),
        )
        out[:, 0] -= 1
        return out

    def _pass(self, count: int, work: Callable[..., None]) -> None:
        """Run a kernel over ``count`` nodes in chunks, on all threads."""
        from cocite.cluster import in_order

        pieces = [(a, min(a + _PIECE, count)) for a in range(0, count, _PIECE)]

        def worker(space: RunSpace) -> Callable[[tuple[int, int]], int]:
            def run(piece: tuple[int, int]) -> int:
                work(space, *piece)
                return piece[1] - piece[0]

            return run

        done = 0
        for made in in_order([worker(space) for space in self.spaces], pieces):
            done += made
            self.progress(self.passes, done, count)
        self.passes += 1


def _worst(found: NDArray[np.float64]) -> float:
    return float(np.abs(found[:, 0] + found[:, 2]).max(initial=0))


def mixture(
    moves: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> NDArray[np.float64]:
    """Return the mixture of moves (start, step) that would have minimized the residual."""
    (here, step), past = moves[-1], moves[:-1]
    out = here + step
    if not past:
        return out
    apart = [(here - place, step - other) for place, other in past]
    square = np.array([[float((a * b).sum()) for _, b in apart] for _, a in apart])
    right = np.array([float((a * step).sum()) for _, a in apart])
    shares = np.linalg.lstsq(square, right, rcond=1e-12)[0]
    for share, (moved, changed) in zip(shares.tolist(), apart, strict=True):
        out -= share * (moved + changed)
    return out
