"""Decode BVGraph, the compressed successor lists in which LAW publishes its web graphs.

The lists of nodes 0, 1, ... form one bit stream; the highest bit of a byte comes first. The list of
node x consists of

    d                     the number of successors; if it is 0, the list ends here
    r                     0, or the list copies from the list of x - r, which is in the window
    blocks                if r > 0: their number, and the lengths of runs to copy and to skip in
                          turn; all but the first are stored minus 1. After an even number, the
                          rest is copied as well
    intervals             if used: their number; the start of each, and its length minus the minimum
    residuals             all others, ascending

The first number of an ascending run is stored as its distance from x, with the sign in the lowest
bit; later numbers as the distance from the previous one, minus the smallest possible distance.

``decode`` stops at the end of the input or of the output space, and can resume there. It checks
every number, because files are untrusted. Costs about 60 ns per link. Source: Boldi, Vigna 2004,
*The WebGraph framework I: compression techniques*; bits and codes as in WebGraph's class BVGraph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel, leading_zeros
from cocite.kernels._types import *

UNARY, GAMMA, DELTA, ZETA, NIBBLE, GOLOMB = range(6)
CODES = {name: code for code, name in enumerate("UNARY GAMMA DELTA ZETA NIBBLE GOLOMB".split())}

NODES, WINDOW, LEAST, K, DEGREE, REFERENCE, BLOCK_COUNT, BLOCK, RESIDUAL = range(9)
RULES = 9
"""int64 words of the rules: nodes of the graph, size of the window of earlier lists to copy from,
length of the shortest interval (0: none are used), k of zeta (or the modulus of Golomb), then the
codes of degrees, references, numbers of blocks, blocks and residuals.
"""

POSITION, BITS, FIRST, NEXT, USED, LAST, LONGEST = range(7)
STATE = 7
"""int64 words of the state: the next bit and how many bits there are, the node of the first list in
the buffer, the node of the next list to read, links in the buffer, whether no more bits follow,
degree of the last list begun.
"""

DONE, MORE_BITS, MORE_ROOM, DAMAGED = range(4)

_6, _63, _64, _1 = np.uint64(6), np.uint64(63), np.uint64(64), np.uint64(1)
_LONGEST_CODE = 56
"""Maximum bits of a coded number: a node id has 32, and a sign and some codes need more."""
_BAD = -1


@helper
def _peek(words: Any, position: Any) -> Any:
    i, shift = np.uint64(position) >> _6, np.uint64(position) & _63
    if i + _1 >= np.uint64(words.size):
        return np.uint64(0)
    found = words[i] << shift
    if shift:
        found |= words[i + _1] >> (_64 - shift)
    return found


@helper
def _bits(words: Any, position: Any, count: Any) -> Any:
    if count == 0:
        return np.int64(0)
    return np.int64(_peek(words, position) >> (_64 - np.uint64(count)))


@helper
def _zeros(words: Any, position: Any) -> Any:
    """Count the zeros from a position on; the count may be too large if the words end first."""
    count = np.int64(0)
    while True:
        word = _peek(words, position + count)
        if word:
            return count + np.int64(leading_zeros(word))
        count += 64
        if position + count >= words.size * 64:
            return count


@helper
def _read(words: Any, position: Any, code: Any, k: Any) -> Any:
    """Return (decoded number, position after it); the number is -1 if too large."""
    if code == NIBBLE:
        value = np.int64(0)
        while True:
            group = _bits(words, position, np.int64(4))
            position += 4
            value = value << 3 | group & 7
            if group & 8:
                return value, position
            if value >> 50 or position > words.size * 64:
                return np.int64(_BAD), position
    zeros = _zeros(words, position)
    position += zeros + 1
    if code == UNARY:
        return zeros, position
    if code == GAMMA:
        if zeros > _LONGEST_CODE:
            return np.int64(_BAD), position
        return (np.int64(1) << zeros | _bits(words, position, zeros)) - 1, position + zeros
    if code == DELTA:
        if zeros > 6:
            return np.int64(_BAD), position
        size = (np.int64(1) << zeros | _bits(words, position, zeros)) - 1
        position += zeros
        if size > _LONGEST_CODE:
            return np.int64(_BAD), position
        return (np.int64(1) << size | _bits(words, position, size)) - 1, position + size
    if code == ZETA:
        size = zeros * k + k - 1
        if zeros > _LONGEST_CODE or size > _LONGEST_CODE:
            return np.int64(_BAD), position
        value, least = _bits(words, position, size), np.int64(1) << zeros * k
        position += size
        if value < least:
            return value + least - 1, position
        return (value << 1 | _bits(words, position, np.int64(1))) - 1, position + 1
    # Golomb: the quotient in unary, the remainder in minimal binary
    if k == 0:
        return np.int64(0), position - zeros - 1
    if zeros > np.int64(1) << 40:
        return np.int64(_BAD), position
    size = 63 - np.int64(leading_zeros(np.uint64(k)))
    short = (np.int64(2) << size) - k
    value = _bits(words, position, size)
    position += size
    if value >= short:
        value = (value << 1 | _bits(words, position, np.int64(1))) - short
        position += 1
    return zeros * k + value, position


@helper
def _signed(value: Any) -> Any:
    """Decode a signed number; the lowest bit is the sign."""
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


@helper
def _merged(parts: Any, cuts: Any, out: Any, at: Any) -> Any:
    """Merge three ascending runs of ``parts`` into ``out``; return whether no number repeats."""
    i, j, k = cuts[0], cuts[1], cuts[2]
    last = np.int64(-1)
    while i < cuts[1] or j < cuts[2] or k < cuts[3]:
        least, which = np.int64(1) << 62, 0
        if i < cuts[1]:
            least = np.int64(parts[i])
        if j < cuts[2] and np.int64(parts[j]) < least:
            least, which = np.int64(parts[j]), 1
        if k < cuts[3] and np.int64(parts[k]) < least:
            least, which = np.int64(parts[k]), 2
        if which == 0:
            i += 1
        elif which == 1:
            j += 1
        else:
            k += 1
        if least <= last:
            return False
        last = least
        out[at] = np.uint32(least)
        at += 1
    return True


@helper
def _copied(words: Any, position: Any, rules: Any, given: Any, parts: Any, degree: Any) -> Any:
    """Copy blocks of ``given`` to ``parts``; return (number copied, -1 if invalid; position)."""
    count, position = _read(words, position, rules[BLOCK_COUNT], rules[K])
    if count < 0 or count > given.size + 1:
        return np.int64(_BAD), position
    copied, at = np.int64(0), np.int64(0)
    for block in range(count + 1):
        if block < count:
            length, position = _read(words, position, rules[BLOCK], rules[K])
            length += block > 0
        else:
            length = given.size - at
        if length < 0 or length > given.size - at:
            return np.int64(_BAD), position
        if block % 2 == 0:
            if copied + length > degree:
                return np.int64(_BAD), position
            for i in range(length):
                parts[copied + i] = given[at + i]
            copied += length
        at += length
    return copied, position


@helper
def _report(
    words: Any, position: Any, rules: Any, node: Any, parts: Any, cuts: Any, degree: Any
) -> Any:
    """Write intervals and residuals to ``parts``; return the position, -1 - position if invalid."""
    at, nodes = cuts[1], rules[NODES]
    if at < degree and rules[LEAST]:
        count, position = _read(words, position, GAMMA, rules[K])
        if count < 0 or count > degree - at:
            return -1 - position
        before = np.int64(0)
        for interval in range(count):
            gap, position = _read(words, position, GAMMA, rules[K])
            more, position = _read(words, position, GAMMA, rules[K])
            if gap < 0 or more < 0:
                return -1 - position
            begin = before + gap + 1 if interval else node + _signed(gap)
            length = more + rules[LEAST]
            if begin < 0 or begin + length > nodes or length > degree - at:
                return -1 - position
            for i in range(length):
                parts[at + i] = np.uint32(begin + i)
            at += length
            before = begin + length
    cuts[2] = at
    value = np.int64(-1)
    while at < degree:
        gap, position = _read(words, position, rules[RESIDUAL], rules[K])
        if gap < 0:
            return -1 - position
        value = value + gap + 1 if at > cuts[2] else node + _signed(gap)
        if value < 0 or value >= nodes:
            return -1 - position
        parts[at] = np.uint32(value)
        at += 1
    cuts[3] = at
    return position


@kernel
def decode(
    words: U64s, rules: I64s, state: OutI64s, begins: OutI64s, links: OutU32s, parts: OutU32s
) -> I64:
    """Read more lists from ``words`` (uint64, padded with two zero words).

    ``links`` uint32 contains the lists of the nodes state[FIRST] to state[NEXT]: list i is
    links[begins[i] : begins[i + 1]]. New lists are appended. ``parts`` uint32 has space for one
    list. Returns DONE, MORE_BITS, MORE_ROOM, or DAMAGED at the node state[NEXT].
    """
    cuts = np.zeros(4, np.int64)
    nodes, window = rules[NODES], rules[WINDOW]
    while state[NEXT] < nodes:
        node, position = state[NEXT], state[POSITION]
        row = node - state[FIRST]
        if row + 1 >= begins.size:
            return MORE_ROOM
        degree, position = _read(words, position, rules[DEGREE], rules[K])
        short = DAMAGED if state[LAST] else MORE_BITS
        if position > state[BITS]:
            return short
        if degree < 0 or degree > nodes:
            return DAMAGED
        state[LONGEST] = degree
        at = state[USED]
        if at + degree > links.size or degree > parts.size:
            return MORE_ROOM
        if degree:
            reference = np.int64(0)
            if window:
                reference, position = _read(words, position, rules[REFERENCE], rules[K])
                if position > state[BITS]:
                    return short
                if reference < 0 or reference > window or reference > row:
                    return DAMAGED
            cuts[1] = 0
            if reference:
                given = links[begins[row - reference] : begins[row - reference + 1]]
                cuts[1], position = _copied(words, position, rules, given, parts, degree)
                if position > state[BITS]:
                    return short
                if cuts[1] < 0:
                    return DAMAGED
            position = _report(words, position, rules, node, parts, cuts, degree)
            if max(position, -1 - position) > state[BITS]:
                return short  # bits after the last one are meaningless zeros
            if position < 0 or not _merged(parts, cuts, links, at):
                return DAMAGED
        state[USED] = at + degree
        begins[row + 1] = at + degree
        state[POSITION] = position
        state[NEXT] = node + 1
    return DONE
