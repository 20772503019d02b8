"""What a batch will take, told from its first answers: time, memory, rows, bytes, disk.

The first nodes that are answered are a sample, *strata*: runs at equal distances in the order of
work. Their hits are kept like all others, so that nothing is asked twice. It ends after some two
seconds. One more run goes before, which is not counted: it loads kernels and pages.

    seconds = ((nodes - strata) * b + (nodes / slice) * a) / threads + rows * w

a is what the first node of a slice takes, b each of the others by the clock, where nodes are
answered together (``kernels/trees_batch.py`` begins anew in each slice); else they are the same.
w is what writing the rows of the sample took a row, beside what writing none took. Bytes go on as
from half of the sample to all of it: a table that has each name once grows more slowly than its
rows.

Where few nodes take most of the time, as with hubs, a sample may have none of them, or too many.
Source: Cochran, *Sampling Techniques*, 8 (systematic sampling).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cocite.documents import Document
from cocite.memory import own_memory
from cocite.query.batch.outputs import Output
from cocite.query.batch.pieces import Ids, Kept, Piece, rows_in
from cocite.query.batch.work import Progress, Work

__all__ = ["BatchPlan", "plan_of", "strata", "tell"]

_SECONDS = 2.0
_TOGETHER, _SINGLE = (24, 48), (160, 2)
"""How many strata, and of how many nodes, where nodes are answered together, or one by one."""
_SLICE = 512
_LEAST_SLICE = 8
_SCRATCH, _PLACES, _ROW = 44, 24, 160
"""Bytes a node and thread while relating; a node asked; a row that is being written."""


@dataclass(frozen=True)
class BatchPlan(Document):
    """What a batch of so many ``nodes`` will take, all of it.

    ``hits`` in all; ``seconds`` by the clock from now on, on ``threads``; ``memory`` in bytes,
    Python included, beside the pages of the ``index`` (bytes), which the system may keep in memory;
    the ``bytes`` of the output, and of the ``disk`` that is taken meanwhile. ``sampled`` is of how
    many nodes the answers tell it.
    """

    nodes: int
    hits: int
    seconds: float
    threads: int
    memory: int
    index: int
    bytes: int
    disk: int
    sampled: int


def strata(missing: Sequence[range], count: int, size: int) -> list[range]:
    """``count`` runs of ``size`` places at equal distances, of those that are ``missing``."""
    places = np.concatenate([np.empty(0, np.int64), *(np.array(run) for run in missing)])
    if places.size <= count * size:
        return list(missing)
    starts = (np.arange(count) * (places.size - size) / max(1, count - 1)).astype(np.int64)
    found = []
    for start in starts.tolist():
        run = places[start : start + size]
        whole = run[run - run[0] == np.arange(run.size)]
        found.append(range(int(whole[0]), int(whole[-1]) + 1))
    return found


def tell(
    work: Work, output: Output, kept: Kept, order: Ids, progress: Progress
) -> BatchPlan | None:
    """Answer a sample of what is not ``kept``, and keep it; None if nothing is left to tell of."""
    together = work.question.together is not None
    count, size = _TOGETHER if together else _SINGLE
    runs = strata(kept.missing, count, size)

    def answer(runs: list[range]) -> list[Piece]:
        """As many as there is time for."""
        found, began = [], time.monotonic()
        with closing(work.pieces(order, runs)) as pieces:
            for piece in pieces:
                kept.add(piece)
                found.append(piece)
                progress("relating", kept.done, work.nodes)
                if time.monotonic() - began > _SECONDS:
                    break
        return found

    # A piece that is not counted; then the strata from far to near, as time may run out.
    warm = [runs[0][:_LEAST_SLICE]] if runs else []
    rest = [runs[0][_LEAST_SLICE:], *runs[1:]] if runs else []
    answer(warm)
    turns = sorted(range(len(rest)), key=lambda i: f"{i:08b}"[::-1])
    pieces = answer([rest[i] for i in turns if len(rest[i])])
    left = work.nodes - kept.done
    if not left or not pieces:
        return None
    relating = _relating(pieces, left, together) / work.threads
    sample = _written(work, output, order, pieces, kept.folder)
    hits = int(kept.rows(order).counts.sum()) + round(sample.hits * left)
    written = sample.bytes + sample.bytes_a_row * max(0, hits - sample.rows)
    told = plan_of(work, output, hits, relating + sample.seconds_a_row * hits, written)
    return replace(told, sampled=sum(piece.size for piece in pieces))


def plan_of(work: Work, output: Output, hits: int, seconds: float, size: float) -> BatchPlan:
    """What a batch takes beside: memory and disk."""
    scratch = work.threads * _SCRATCH * len(work.index.nodes)
    chunk = _ROW * min(hits, work.chunk * work.question.k)
    memory = own_memory() + _PLACES * work.nodes + max(scratch, output.memory + chunk)
    return BatchPlan(
        work.nodes,
        hits,
        seconds,
        work.threads,
        memory,
        work.index.stored.store.nbytes,
        round(size),
        4 * (work.question.words * hits + work.nodes) + round((1 + output.twice) * size),
        work.nodes,
    )


def _relating(pieces: list[Piece], left: int, together: bool) -> float:
    """Seconds of one thread for the nodes that are left."""
    if not together:
        return left * _mean([seconds / nodes for p in pieces for nodes, seconds in p.slices])
    first = [piece.slices[0][1] for piece in pieces]
    more = [
        (nodes - 1, max(0.0, seconds - piece.slices[0][1]))
        for piece in pieces
        for nodes, seconds in piece.slices
        if nodes >= _LEAST_SLICE
    ]
    anew = _mean(first)
    if not more:
        return left * anew
    each = sum(seconds for _, seconds in more) / sum(nodes for nodes, _ in more)
    return left * (each + anew / _SLICE)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class _Sample(NamedTuple):
    """Of what was written: hits a node, rows, seconds a row, bytes, and bytes a row more."""

    hits: float
    rows: int
    seconds_a_row: float
    bytes: int
    bytes_a_row: float


def _written(work: Work, output: Output, order: Ids, pieces: list[Piece], folder: Path) -> _Sample:
    """What became of the hits of some pieces."""
    words = np.frombuffer(b"".join(piece.content for piece in pieces), np.uint32)
    starts = np.cumsum([0] + [len(piece.content) // 4 for piece in pieces]).tolist()
    runs = [(start, piece[:2]) for start, piece in zip(starts, pieces, strict=False)]
    rows = rows_in(words, runs, order, work.question.words)
    asked = np.sort(np.concatenate([order[p.begin : p.begin + p.size] for p in pieces]))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        some = [work.pages_of(rows, part) for part in (asked[:0], asked[::2], asked)]
        (_, base), (half, _), (size, seconds) = (
            output.trial([pages], Path(scratch)) for pages in some
        )
    few, count = (pages.related.size for pages in some[1:])
    return _Sample(
        count / asked.size,
        count,
        max(0.0, seconds - base) / max(1, count),
        size,
        max(0, size - half) / max(1, count - few),
    )
