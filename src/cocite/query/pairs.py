"""Many pairs, each asked for itself: the very scores and intervals of single questions.

Where samples are trees, blocks of pairs are asked together, sample by sample
(``kernels/pairs.py``), and their intervals are made some hundred at a time. Else, and of a node and
itself, of few pairs, of refined answers, and where parts have lost different samples, one pair is
asked after another.
Threads take a block each, or a pair. Blocks share nothing, so no score depends on them.

If a question finds a shard of samples to be damaged all pairs are asked again without it, so that
all scores are of the same samples.

Cost: together some 40 ns of the processor a pair and sample, intervals included; one by one some
0.1 ms a pair. Memory: 32 bytes a pair, and for each thread 2 to 11 bytes a node and 8 MiB of
meeting times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import check
from cocite.layouts.reader import PairsTold, Span
from cocite.measures import WholeSettings
from cocite.query.answers import Answers, joined
from cocite.query.confidence import around
from cocite.query.scores import Score, scores_of
from cocite.runner import Pace, in_order

__all__ = ["Progress", "blocks_of", "scores_of_pairs", "together"]

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
_TIMES = 1 << 23
"""Meeting times that a block has at most."""
_LEAST = 1024
_AT_ONCE = 512
"""Pairs whose intervals are made together."""
_TOLD = 1 << 12
"""Pairs that are asked one by one between two words of how many are done."""


def scores_of_pairs(
    first: Ids,
    second: Ids,
    one: Callable[[int, int], Score],
    block: Callable[[Ids, Ids], Floats] | None,
    blocks: int,
    threads: int,
    progress: Progress,
) -> Floats:
    """float64[4, pairs]: scores, standard errors, and the ends of intervals.

    ``one`` asks for a pair. ``block`` asks for many of different nodes at once, in so many
    ``blocks``; None if nothing does.
    """
    found, done = np.empty((4, first.size)), 0
    progress("scoring", 0, first.size)
    apart = np.arange(first.size)
    if block is not None:
        apart, others = np.flatnonzero(first == second), np.flatnonzero(first != second)
        ask = partial(_block, first, second, block)
        pieces = np.array_split(others, blocks)
        for places, values in in_order([ask] * min(threads, blocks), pieces):
            found[:, places] = values
            done += places.size
            progress("scoring", done, first.size)

    def single(place: int) -> tuple[int, Score]:
        return place, one(int(first[place]), int(second[place]))

    workers, pace = [single] * max(1, min(threads, apart.size)), Pace()
    for place, score in _first_alone(workers, apart.tolist(), pace):
        found[:, place] = score
        done += 1
        if done % _TOLD == 0:
            progress("scoring", done, first.size)
    progress("scoring", first.size, first.size)
    return found


def _block(
    first: Ids, second: Ids, ask: Callable[[Ids, Ids], Floats], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    return places, ask(first[places], second[places])


def _first_alone(
    workers: Sequence[Callable[[int], tuple[int, Score]]], places: list[int], pace: Pace
) -> Iterator[tuple[int, Score]]:
    """All pairs, the first before the others begin, as what all need is made with it."""
    yield from map(workers[0], places[:1])
    yield from in_order(workers, places[1:], pace)


def blocks_of(index: Answers, asked: WholeSettings, pairs: int, threads: int) -> int:
    """In how many blocks so many pairs are asked together; 0 if one by one is better."""
    readers = index.reading(asked)
    least = [reader.pairs_from for reader in readers]
    held = {reader.part.freshness.held.size for reader in index._sampled}
    if len(held) > 1 or any(each is None or pairs < each for each in least):
        return 0
    samples = max(reader.part.samples for reader in readers)
    most = max(_LEAST, _TIMES // samples)
    return max(-(-pairs // most), min(threads, pairs // max(filter(None, least))))


def together(
    index: Answers, asked: WholeSettings, confidence: float, bound: str, first: Ids, second: Ids
) -> Floats:
    """float64[4, pairs] of different nodes, as :func:`scores_of_pairs`."""
    grains, variances = np.zeros(first.size), np.zeros(first.size)
    told: list[tuple[float, PairsTold]] = []
    span = Span(0.0, 0.0, 0.0)
    for reader in index.reading(asked):
        check()
        own, weight = reader.part.ask_settings(asked), reader.part.weight
        found = reader.pairs(first, second, own)
        grains += weight * found.estimates[:, 0]
        variances += weight * weight * found.estimates[:, 1]
        told.append((weight, found))
    for reader in index._sampling(asked):
        span = span.plus(reader.span(reader.part.ask_settings(asked)), reader.part.weight)
    index.check(grains.tolist())
    scores, errors = map(np.array, scores_of(np.column_stack((np.rint(grains), variances))))
    freshness, room = index._stored.freshness, np.zeros((1, 2, first.size))
    known = None if freshness.since is None else freshness.knowing(first, second)
    for begin in range(0, first.size, _AT_ONCE):
        check()
        some = slice(begin, begin + _AT_ONCE)
        values = [_weighed(weight, each.values(some)) for weight, each in told]
        knowing = None if known is None else known[some]
        draws = joined(values, span, knowing, freshness.alike)
        _, below, above = around(draws, confidence, bound)
        room[0, 0, some], room[0, 1, some] = np.maximum(0.0, below), np.maximum(0.0, above)
    low, high = index._ends(room, scores, np.zeros(first.size, bool), asked)
    return np.stack((scores, errors, low[0], high[0]))


def _weighed(weight: float, values: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    least, most = values
    return (least, most) if weight == 1 else (weight * least, weight * most)
