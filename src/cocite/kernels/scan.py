"""A scan over in-links, for rows of several lanes at once, with two arrangements of the links.

    out[v] = start[v] (+) x[u1] (+) x[u2] (+) ...        u1 < u2 < ... the in-neighbors of v

(+) is SUM, MIN or MAX per lane; NaN never wins MIN or MAX, and sums of unsigned integers are modulo
2**32. Rows are flat: lane l of node v is ``x[v * lanes + l]``. ``identity`` is a tuple with (+)'s
identity for every lane, of the accumulator's type: always float64 for SUM of floats. Its length is
known when a kernel is compiled, so a row is one vector operation (``kernels/_vectors.py``).

* ``pull`` iterates over destinations, with the links of the stored graph; it reads x at random.
* ``push`` iterates over sources. The links of a block of destinations are a stream of words: a
  source, then its targets, counted from the block's first node, with a mark on the last. It reads x
  in sequence, and only the block's accumulators at random.

Both add the terms of a row in ascending order of source, so results are bit-identical. A link in
``pull`` costs 1 ns with one lane, 3 ns with 16 lanes of 32 bits. Source: Haveliwala, *Efficient
computation of PageRank*, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import JIT, helper, kernel, prefetch
from cocite.kernels._types import *

if JIT:
    from cocite.kernels._vectors import row_max, row_min, row_sum

SUM, MIN, MAX = np.uint8(0), np.uint8(1), np.uint8(2)

_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_SHIFT = np.uint64(32)
_LAST = np.uint32(1 << 31)
"""Mark of the last target of a source."""
_AHEAD = np.uint64(16)
"""Links between prefetching a row and using it."""
_WIDE = 4
"""Rows with more lanes than this are prefetched; for others, prefetching costs more than it
saves.
"""

LANES = [
    {"T": name, "D": name, "W": f"tuple[{', '.join([name] * lanes)}]"}
    for name, most in (("U32", 16), ("F64", 8))
    for lanes in (1, most)
]
"""Variants of kernels: for one value per node, and for a row of 64 bytes per node."""


@helper
def _fold(fold: Any, into: Any, at: Any, rows: Any, source: Any, lanes: Any) -> Any:
    """Combine one row: ``into[at] (+)= rows[source]``."""
    if fold == SUM:
        row_sum(into, at, rows, source, lanes)
    elif fold == MIN:
        row_min(into, at, rows, source, lanes)
    else:
        row_max(into, at, rows, source, lanes)


@kernel(*LANES)
def pull(
    in_offsets: U64s, in_sources: U32s, x: Ts, start: Ts, fold: U8, identity: W, out: OutTs
) -> None:
    """Scan the rows of a range of destinations.

    ``in_offsets`` (absolute), ``start`` (empty: the identity) and ``out`` cover the range;
    ``in_sources`` and ``x`` the whole graph. ``out`` may be ``start``.
    """
    lanes = np.uint64(len(identity))
    row = np.array(identity)
    if in_sources.size == 0:
        last = _ZERO64
    else:
        last = np.uint64(in_sources.size) - _ONE64
    for i in range(in_offsets.size - 1):
        here = np.uint64(i) * lanes
        for lane in range(len(identity)):
            if start.size:
                row[lane] = start[here + np.uint64(lane)]
            else:
                row[lane] = identity[lane]
        for link in range(in_offsets[i], in_offsets[np.uint64(i) + _ONE64]):
            if len(identity) > _WIDE:
                prefetch(x, np.uint64(in_sources[min(link + _AHEAD, last)]) * lanes)
            _fold(fold, row, _ZERO64, x, np.uint64(in_sources[link]) * lanes, identity)
        for lane in range(len(identity)):
            out[here + np.uint64(lane)] = row[lane]


@kernel(*LANES, {"T": "F32", "D": "F64", "W": "tuple[F64]"})
def push(words: U32s, begin: U64, x: Ts, stop: U64, fold: U8, identity: W, into: OutDs) -> U64:
    """Scan the links of ``words`` (uint32) from ``begin`` on whose sources are below ``stop``.
    ``into`` is the block's accumulators. Returns the position of the next source.
    """
    lanes, size = np.uint64(len(identity)), np.uint64(words.size)
    final = size - _ONE64
    at = begin
    while at < size:
        source = np.uint64(words[at])
        if source >= stop:
            break
        going = True
        while going:
            at += _ONE64
            if len(identity) > _WIDE:
                ahead = words[min(at + _AHEAD, final)] & ~_LAST  # or a source: harmless
                prefetch(into, np.uint64(ahead) * lanes)
            word = words[at]
            going = word < _LAST
            _fold(fold, into, np.uint64(word & ~_LAST) * lanes, x, source * lanes, identity)
        at += _ONE64
    return at


@kernel
def pair(
    in_offsets: U64s, in_sources: U32s, link: U64, row: U64, first: U64, keys: OutU64s
) -> None:
    """Fill ``keys`` uint64 with (source, target) of the links from number ``link`` on. ``row`` is
    the target of the first link; targets are relative to node ``first``.
    """
    here = row
    for i in range(keys.size):
        while in_offsets[here + _ONE64] <= link:
            here += _ONE64
        keys[i] = (np.uint64(in_sources[link]) << _SHIFT) | (here - first)
        link += _ONE64


@kernel
def arrange(keys: U64s, weights: F32s, words: OutU32s, beside: OutF32s) -> U64:
    """Write sorted ``keys`` (uint64[links]) as words (uint32[2 * links]); return their number.
    ``beside`` receives the ``weights``, if any, at the positions of their targets.
    """
    at, source = _ZERO64, _ZERO64
    for i in range(keys.size):
        mine = keys[i] >> _SHIFT
        if i == 0 or mine != source:
            source = mine
            words[at] = np.uint32(source)
            at += _ONE64
        target = np.uint32(keys[i])
        ends = i + 1 == keys.size or keys[np.uint64(i) + _ONE64] >> _SHIFT != source
        words[at] = target | _LAST if ends else target
        if weights.size > 0:
            beside[at] = weights[i]
        at += _ONE64
    return at
