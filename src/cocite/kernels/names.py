"""Front-coded names: encoding, decoding, and the search for similar names.

Names are stored in id order, in blocks of BLOCK. Each name is (shared, length, bytes): the length
of the prefix that it shares with the previous name in its block (0 for the first), then the rest.
Both numbers are varints: seven bits per byte, low bits first; the high bit is set if bytes follow.

``distances`` finds misspelled names by the bit-parallel edit distance of Myers (1999) in the form
of Hyyrö (2003): one word operation per character for queries up to 64 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *

BLOCK = 16
"""Names per block, which is also the maximum number that a lookup decodes."""

_ROOM = 1 << 16
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_FAR = np.int32(1_000_000)


@helper
def _put(value: Any, out: Any, at: Any) -> Any:
    while value >= 128:
        out[at] = np.uint8((value & 127) | 128)
        value >>= 7
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@kernel
def encode(text: U8s, ends: U64s, out: OutU8s, blocks: OutU64s) -> I64:
    """Front-code the names ``text[ends[i-1]:ends[i]]``, the first of which begins a block.

    ``out`` uint8 needs ``text.size + 6 * ends.size`` bytes; ``blocks`` uint64[ceil(names/BLOCK)]
    receives where each block begins in it. Returns the bytes written.
    """
    at = 0
    begin, before, before_end = 0, 0, 0
    for i in range(ends.size):
        end = np.int64(ends[i])
        shared = 0
        if i % BLOCK == 0:
            blocks[i // BLOCK] = np.uint64(at)
        else:
            limit = min(end - begin, before_end - before)
            while shared < limit and text[begin + shared] == text[before + shared]:
                shared += 1
        at = _put(shared, out, at)
        at = _put(end - begin - shared, out, at)
        for j in range(begin + shared, end):
            out[at] = text[j]
            at += 1
        before, before_end, begin = begin, end, end
    return at


@helper
def _varint(data: Any, at: Any, stop: Any) -> Any:
    """Return (value, end) of the varint at ``at``; an unfinished varint exceeds any length."""
    value, shift = 0, 0
    while at < stop and shift < 28:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return _ROOM, at


@helper
def _block(data: Any, blocks: Any, number: Any) -> Any:
    """Return where a block begins and ends; a damaged one is empty."""
    begin = blocks[number]
    end = blocks[number + 1] if number + 1 < blocks.size else np.uint64(data.size)
    if begin > end or end > np.uint64(data.size):
        return 0, 0
    return np.int64(begin), np.int64(end)


@helper
def _next_name(data: Any, at: Any, stop: Any, name: Any, before: Any) -> Any:
    """Decode the entry at ``at`` over the previous name, whose length is ``before``. Returns (end
    of the entry, length of the name). The length is negative for a damaged entry, which exceeds its
    block (``stop``) or shares more than the previous name has.
    """
    shared, at = _varint(data, at, stop)
    rest, at = _varint(data, at, stop)
    if shared > before or shared + rest >= _ROOM or at + rest > stop:
        return at, -1
    for j in range(rest):
        name[shared + j] = data[at + j]
    return at + rest, shared + rest


@kernel
def decode(data: U8s, blocks: U64s, ids: U32s, out: OutU8s, ends: OutU64s) -> I64:
    """Write the concatenated names of ``ids``; ``ends[i]`` is where name i ends.

    Returns the bytes needed, or -1 for damaged data. Names beyond ``out.size`` are measured but not
    written; call again with a larger array.
    """
    name = np.empty(_ROOM, np.uint8)
    at = 0
    for i in range(ids.size):
        place, stop = _block(data, blocks, np.int64(ids[i]) // BLOCK)
        size = 0
        for _ in range(np.int64(ids[i]) % BLOCK + 1):
            place, size = _next_name(data, place, stop, name, size)
            if size < 0:
                return -1
        if at + size <= out.size:
            for j in range(size):
                out[at + j] = name[j]
        at += size
        ends[i] = np.uint64(at)
    return at


@helper
def _lower(byte: Any) -> Any:
    return byte + 32 if 65 <= byte <= 90 else byte


@kernel
def distances(data: U8s, blocks: U64s, count: I64, wanted: U8s, out: OutI32s) -> None:
    """Compute the edit distance between ``wanted`` (1 to 64 bytes) and each of ``count`` names.

    ``out`` is int32[count]. Ignores ASCII case; insertions, deletions and replacements cost one
    each.
    """
    name = np.empty(_ROOM, np.uint8)
    masks = np.zeros(256, np.uint64)
    size = wanted.size
    for i in range(size):
        masks[_lower(wanted[i])] |= _ONE << np.uint64(i)
    top = _ONE << np.uint64(size - 1)
    place, stop, length = 0, 0, 0
    for node in range(count):
        if node % BLOCK == 0:
            place, stop = _block(data, blocks, node // BLOCK)
            length = 0
        place, length = _next_name(data, place, stop, name, length)
        if length < 0:
            out[node:count] = _FAR
            return
        plus, minus, score = ~_ZERO, _ZERO, size
        for j in range(length):
            equal = masks[_lower(name[j])]
            diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
            up = minus | ~(diagonal | plus)
            down = plus & diagonal
            if up & top:
                score += 1
            if down & top:
                score -= 1
            up = (up << _ONE) | _ONE
            plus = (down << _ONE) | ~(diagonal | up)
            minus = up & diagonal
        out[node] = np.int32(score) if length else _FAR
