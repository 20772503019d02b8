"""Pairs scored per second by an index, and the cost of their intervals.

    python -m benchmarks.pairs INDEX [--pairs 1000000] [--rounds 3] [--single 300]

Runs ``similarities`` of random pairs of node ids on one thread, and for some of them ``similarity``
one by one, which must be bit-identical. Prints CPU seconds, the best of some rounds, with
data in memory and kernels compiled. The scores alone are what the readers take; intervals take
nearly all of the rest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Index


def best(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The least seconds of the processor, and what came of it."""
    least, found = float("inf"), None
    for _ in range(rounds):
        begin = time.process_time()
        found = work()
        least = min(least, time.process_time() - begin)
    return least, found


def scored(index: Index, pairs: NDArray[np.uint32]) -> None:
    """The scores alone, without intervals, where pairs are asked together."""
    asked = index.stored.ask_settings({})
    for block in np.array_split(pairs, index.scorer.pair_blocks(len(pairs), asked, 1)):
        first, second = np.ascontiguousarray(block.T)
        for reader in index.scorer.readers:
            reader.pairs(first, second, reader.part.ask_settings(asked))


def told(title: str, seconds: float, pairs: int, samples: int) -> str:
    """A line of the table."""
    rate = pairs * samples / seconds / 1e6
    return f"{title:<22} {seconds:8.2f} s {1e6 * seconds / pairs:8.2f} us a pair {rate:8.2f} M/s"


def main() -> None:
    """Print what a million pairs take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=cocite.open, metavar="INDEX")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=300)
    options = parser.parse_args()
    index, count = options.index, options.pairs
    samples = index.samples or 1
    pairs = np.random.default_rng(1).integers(0, len(index.nodes), (count, 2)).astype(np.uint32)
    few = min(options.single, count)
    named = index.nodes.names(pairs[:few].ravel())
    index.similarities(pairs[:20_000], ids=True, threads=1)
    index.similarity(*named[:2])
    print(f"{count:,} random pairs, {samples} samples; pair-samples a second of the processor")
    asked = index.stored.ask_settings({})
    if index.scorer.pair_blocks(count, asked, 1):
        seconds, _ = best(lambda: scored(index, pairs), options.rounds)
        print(told("scores", seconds, count, samples), flush=True)
    seconds, found = best(lambda: index.similarities(pairs, ids=True, threads=1), options.rounds)
    print(told("scores and intervals", seconds, count, samples), flush=True)
    each = list(zip(named[::2], named[1::2], strict=True))
    seconds, single = best(lambda: [index.similarity(*pair) for pair in each], options.rounds)
    print(told("one by one", seconds, few, samples))
    if [repr(tuple(found[i])) for i in range(few)] != [repr(tuple(score)) for score in single]:
        raise SystemExit("answers differ")


if __name__ == "__main__":
    main()
