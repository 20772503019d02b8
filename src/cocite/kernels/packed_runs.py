"""Reading packed trees: a run by its number, and which run a node is in.

A sample is a row uint64[6]: the addresses of its directory, order and runs (``packed.py`` tells
what these are), how many runs it has, and how many bits a node takes and the number of a run. A run
comes as its first node and the *rest*: its size, the label of its first place, and that of the
others (``inner``). Bits are read by words of 64 on no boundary, which a node or a run and its rest
always fit; two words behind the last run are there to be read.

Nothing is checked but what the caller needs so as not to read elsewhere: the rank of a run in order
of ids, and its number, are to be compared with the number of runs.

Cost: a node's run takes three accesses, each known when the one before it is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, long_at, ones, prefetch_at, word_at

__all__ = [
    "REST",
    "bits_at",
    "fetch_begin",
    "fetch_number",
    "fetch_run",
    "inner_of",
    "label_of",
    "number_of",
    "rank_of",
    "run_at",
    "size_of",
    "starts_at",
]

REST = np.uint64(13)
"""Bits of the rest."""
_ONE64, _THREE64, _FOUR64, _FIVE64 = np.uint64(1), np.uint64(3), np.uint64(4), np.uint64(5)
_SIX64, _LOW3, _LOW6, _NINE64 = np.uint64(6), np.uint64(7), np.uint64(63), np.uint64(9)
_TWELVE64, _LOW4, _LOW5 = np.uint64(12), np.uint64(15), np.uint64(31)
_ALL = np.uint64(2**64 - 1)


@helper
def bits_at(address: Any, bit: Any) -> Any:
    """At least 57 bits from a bit on."""
    return long_at(address, bit >> _THREE64) >> (bit & _LOW3)


@helper
def run_at(sample: Any, run: Any) -> Any:
    """The first node of a run, and the rest."""
    bits = sample[4]
    word = bits_at(sample[2], run * (bits + REST))
    return word & ((_ONE64 << bits) - _ONE64), word >> bits


@helper
def size_of(rest: Any) -> Any:
    """How many places a run has."""
    return (rest & _LOW5) + _ONE64


@helper
def label_of(rest: Any) -> Any:
    """The label of the first place: what joins it to the run before."""
    return (rest >> _FIVE64) & _LOW4


@helper
def inner_of(rest: Any) -> Any:
    """The label of all other places, 0 if there are none."""
    return (rest >> _NINE64) & _LOW4


@helper
def rank_of(directory: Any, node: Any) -> Any:
    """Which run, in order of ids, a node is in: 2**64 - 1 for none, if that is damaged."""
    block = node >> _SIX64
    below = long_at(directory, block * _TWELVE64 + _FOUR64) & (_ALL >> (_LOW6 - (node & _LOW6)))
    return np.uint64(word_at(directory, block * _THREE64)) + ones(below) - _ONE64


@helper
def starts_at(directory: Any, node: Any) -> Any:
    """1 where a node is the first of its run, and at the end of the nodes; else 0."""
    starts = long_at(directory, (node >> _SIX64) * _TWELVE64 + _FOUR64)
    return (starts >> (node & _LOW6)) & _ONE64


@helper
def number_of(sample: Any, rank: Any) -> Any:
    """The number of a run by its rank in order of ids."""
    return bits_at(sample[1], rank * sample[5]) & ((_ONE64 << sample[5]) - _ONE64)


@helper
def fetch_begin(sample: Any, node: Any) -> None:
    """Ask for what ``rank_of`` reads."""
    prefetch_at(sample[0], (node >> _SIX64) * _THREE64)


@helper
def fetch_number(sample: Any, rank: Any) -> None:
    """Ask for what ``number_of`` reads."""
    prefetch_at(sample[1], (rank * sample[5]) >> _FIVE64)


@helper
def fetch_run(sample: Any, run: Any) -> None:
    """Ask for what ``run_at`` reads."""
    prefetch_at(sample[2], (run * (sample[4] + REST)) >> _FIVE64)
