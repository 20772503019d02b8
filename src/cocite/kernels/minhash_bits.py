"""Min-hashes cut to b bits of each winner's hash, as bit planes, and queries on them.

For a block of 512 nodes, each ring and bit has a plane of 16 words: bit i of word w belongs to node
32 w + i. So 512 nodes are compared with one cache line per bit. ``tally`` counts the matches of one
node in planes, too: level j holds bit j of the counts. With y the mean weight of the rings that
match, W the sum of all weights, and q = 2**-b the probability that different winners match,
``settle`` estimates without bias

    x = (y - q W) / (1 - q),        variance(x) = variance(y) / (1 - q)**2

Tallying reads b / 8 bytes per node per ring per sample. Source: Li, Koenig 2010, *b-bit minwise
hashing*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, ONE
from cocite.kernels._kernel import JIT, helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.random import draw

# differ(into, words, at, same): into |= words[at : at + 16] ^ same, with one word for all lanes
# agree(into): into = ~into, so a bit is set if all planes were the same
# count_in(plane, at, carry): adds ``carry`` to plane[at : at + 16]; ``carry`` is the next carry
# spread(found, at, bits, worth): found[at + i] += worth, for each bit i that is set in ``bits``
if JIT:
    from cocite.kernels._vectors import agree, count_in, differ, spread

LINE, BLOCK = 16, 512
"""Words of a plane, and nodes of a block."""
_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ZERO64, _ONE64, _LINE64 = np.uint64(0), np.uint64(1), np.uint64(LINE)
_WORD, _LOW5, _LOW9, _NINE, _FIVE = (np.uint64(v) for v in (64, 31, 511, 9, 5))
_ROUNDING = 2.0**-45


@kernel
def sketch(winners: U32s, key: U64, ring: I64, planes: OutU32s4) -> None:
    """Write the sketches of one ring to ``planes`` uint32[blocks, length, bits, LINE], all zero."""
    bits = np.uint64(planes.shape[2])
    for node in range(winners.size):
        word = draw(key, winners[node]) >> (_WORD - bits)
        here = np.uint64(node)
        line, shift = (here & _LOW9) >> _FIVE, np.uint32(here & _LOW5)
        for bit in range(bits):
            value = np.uint32((word >> np.uint64(bit)) & _ONE64)
            planes[here >> _NINE, ring, bit, line] |= np.uint32(value << shift)


@helper
def _plane(blob: Any, block: Any, ring: Any, bit: Any) -> Any:
    """Return where a plane begins; ``blob`` is a sample's (begin, length, bits)."""
    return blob[0] + ((block * blob[1] + ring) * blob[2] + bit) * _LINE64


@helper
def _bit(words: Any, blob: Any, node: Any, ring: Any, bit: Any) -> Any:
    at = _plane(blob, node >> _NINE, ring, bit) + ((node & _LOW9) >> _FIVE)
    return (words[at] >> np.uint32(node & _LOW5)) & _ONE32


@helper
def _mask(words: Any, blob: Any, first: Any, second: Any) -> Any:
    """Return a mask with bit k - 1 set if two nodes match in ring k."""
    mask = _ZERO32
    for ring in range(blob[1]):
        apart = _ZERO32
        for bit in range(blob[2]):
            one = _bit(words, blob, first, ring, bit)
            apart |= one ^ _bit(words, blob, second, ring, bit)
        mask |= np.uint32((_ONE32 ^ apart) << np.uint32(ring))
    return mask


@helper
def _prefetch(words: Any, blobs: Any, node: Any) -> None:
    for sample in range(blobs.shape[0]):
        for plane in range(blobs[sample, 1] * blobs[sample, 2]):
            begin = _plane(blobs[sample], node >> _NINE, _ZERO64, plane)
            prefetch(words, begin + ((node & _LOW9) >> _FIVE))


@kernel
def masks(words: U32s, blobs: U64s2, node: U64, others: U32s, out: OutU16s2) -> None:
    """Compute the mask of ``node`` with each of ``others`` in each sample of a shard."""
    _prefetch(words, blobs, node)
    for i in range(others.size):
        other = np.uint64(others[i])
        _prefetch(words, blobs, other)
        for sample in range(blobs.shape[0]):
            out[sample, i] = np.uint16(_mask(words, blobs[sample], node, other))


@kernel
def tally(words: U32s, blobs: U64s2, node: U64, done: U64, levels: OutU32s4) -> None:
    """Add the matches of ``node`` with all nodes in a shard to ``levels``, which already has
    ``done`` samples. ``levels`` is uint32[blocks, length, bits of the number of samples, LINE].
    """
    samples, length, bits = np.uint64(blobs.shape[0]), blobs[0, 1], blobs[0, 2]
    mine = np.empty((samples, length, bits), np.uint32)
    for sample in range(samples):
        for ring in range(length):
            for bit in range(bits):
                mine[sample, ring, bit] = _ZERO32 - _bit(words, blobs[sample], node, ring, bit)
    carry, most = np.empty(LINE, np.uint32), np.uint64(levels.shape[2])
    for block in range(np.uint64(levels.shape[0])):
        for ring in range(length):
            first = (block * length + ring) * most
            for sample in range(samples):
                carry[:] = _ZERO32
                for bit in range(bits):
                    begin = _plane(blobs[sample], block, ring, bit)
                    differ(carry, words, begin, mine[sample, ring, bit])
                agree(carry)
                reach, at = done + sample + _ONE64, first * _LINE64
                while reach > _ZERO64:
                    count_in(levels, at, carry)
                    reach >>= _ONE64
                    at += _LINE64


@helper
def _units(total: Any, scale: Any, shift: Any, factor: Any) -> Any:
    return np.rint((np.float64(total) * scale - shift) * factor)


@kernel
def unbiased(sums: U64s2, samples: F64, chance: F64, whole: F64, out: OutF64s2) -> None:
    """Fill ``out`` float64[h, 2] with x in grains and the variance of its mean. ``sums``
    uint64[h, 2] are the fixed-point sums of y and of its square; ``whole`` is W, ``chance`` q.
    """
    factor, scale, shift = 1.0 / (1.0 - chance), GRAINS / (samples * ONE), chance * whole * GRAINS
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1] = _units(sums[i, 0], scale, shift, factor), np.nan
        if samples > 1.0:
            mean = np.float64(sums[i, 0]) / (samples * ONE)
            variance = np.float64(sums[i, 1]) / (samples * ONE) - mean * mean
            variance = 0.0 if variance < _ROUNDING else variance
            out[i, 1] = variance * factor * factor / (samples - 1.0)


@kernel
def settle(
    levels: U32s4,
    weights: U64s,
    terms: F64s,
    node: I64,
    least: F64,
    totals: OutF64s2,
    touched: OutU32s,
    have: I64,
) -> I64:
    """Add the scores of at least ``least`` grains to the totals, except that of ``node``.

    ``weights`` uint64[length] are the ring weights, in fixed point; ``terms`` float64[4] is (number
    of samples, q, W, weight of the part). ``totals`` and ``touched[:have]`` are those of the query
    (``kernels/totals.py``); variances are unknown. Returns the new ``have``.
    """
    samples, chance, whole, weight = terms
    factor, scale, shift = 1.0 / (1.0 - chance), GRAINS / (samples * ONE), chance * whole * GRAINS
    found = np.empty(BLOCK, np.uint64)
    for block in range(levels.shape[0]):
        found[:] = _ZERO64
        for word in range(_LINE64):
            for ring in range(levels.shape[1]):
                for level in range(levels.shape[2]):
                    worth = weights[ring] << np.uint64(level)
                    spread(found, word << _FIVE, levels[block, ring, level, word], worth)
        first = block * BLOCK
        for i in range(min(BLOCK, totals.shape[0] - first)):
            here = first + i
            grains = _units(found[i], scale, shift, factor)
            wanted = grains >= least and grains != 0.0 and here != node
            fresh = wanted and totals[here, 0] == 0.0 and totals[here, 1] == 0.0
            touched[have] = here  # no branch: it would be unpredictable
            have += 1 if fresh else 0
            totals[here, 0] += weight * grains if wanted else 0.0
    return have
