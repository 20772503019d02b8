"""Packed fingerprint trees: writing, reading and unpacking them without loss.

A *run* is up to 32 adjacent places of a tree whose members are consecutive nodes, all joined by the
same label except the first. Nodes that meet no other node form runs without labels, at the end.
Each run is one integer; a bitmap by id leads from a node to its run.

    run          first node (w bits) | places - 1 (5) | label of the first (4) | of the others (4)
    directory    for every 64 nodes: how many runs begin before them; a bit for each first node
    order        for each run, in ascending order of its first node, its number

A sample is a row uint64[6]: addresses of directory, order and runs, number of runs, bits of a node,
bits of a run number. Finding a node's run costs three accesses. Source: Jacobson 1989 for counting
bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel, long_at, ones, prefetch_at, word_at
from cocite.kernels._types import *

REST = np.uint64(13)
"""Bits of a run after its first node."""
_ZERO64, _ONE64, _TWO64, _THREE64 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_FOUR64, _FIVE64, _SIX64, _NINE64 = np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(9)
_TWELVE64, _LOW3, _LOW4, _LOW5 = np.uint64(12), np.uint64(7), np.uint64(15), np.uint64(31)
_LOW6, _WORD = np.uint64(63), np.uint64(32)
_ALL = np.uint64(2**64 - 1)


@helper
def bits_at(address: Any, bit: Any) -> Any:
    """Return at least 57 bits from a bit on."""
    return long_at(address, bit >> _THREE64) >> (bit & _LOW3)


@helper
def run_at(sample: Any, run: Any) -> Any:
    """Return the first node of a run, and the other bits."""
    bits = sample[4]
    word = bits_at(sample[2], run * (bits + REST))
    return word & ((_ONE64 << bits) - _ONE64), word >> bits


@helper
def size_of(rest: Any) -> Any:
    """Return the number of places in a run."""
    return (rest & _LOW5) + _ONE64


@helper
def label_of(rest: Any) -> Any:
    """Return the label of a run's first place, which joins it to the previous run."""
    return (rest >> _FIVE64) & _LOW4


@helper
def inner_of(rest: Any) -> Any:
    """Return the label of all other places, 0 if there are none."""
    return (rest >> _NINE64) & _LOW4


@helper
def rank_of(directory: Any, node: Any) -> Any:
    """Return the rank of a node's run, by first node; 2**64 - 1 if a damaged directory has none."""
    block = node >> _SIX64
    below = long_at(directory, block * _TWELVE64 + _FOUR64) & (_ALL >> (_LOW6 - (node & _LOW6)))
    return np.uint64(word_at(directory, block * _THREE64)) + ones(below) - _ONE64


@helper
def starts_at(directory: Any, node: Any) -> Any:
    """Return 1 if a node, or the end of the nodes, begins a run; otherwise 0."""
    starts = long_at(directory, (node >> _SIX64) * _TWELVE64 + _FOUR64)
    return (starts >> (node & _LOW6)) & _ONE64


@helper
def number_of(sample: Any, rank: Any) -> Any:
    """Return the number of a run, given its rank in the order of first nodes."""
    return bits_at(sample[1], rank * sample[5]) & ((_ONE64 << sample[5]) - _ONE64)


@helper
def fetch_begin(sample: Any, node: Any) -> None:
    """Prefetch what ``rank_of`` reads."""
    prefetch_at(sample[0], (node >> _SIX64) * _THREE64)


@helper
def fetch_number(sample: Any, rank: Any) -> None:
    """Prefetch what ``number_of`` reads."""
    prefetch_at(sample[1], (rank * sample[5]) >> _FIVE64)


@helper
def fetch_run(sample: Any, run: Any) -> None:
    """Prefetch what ``run_at`` reads."""
    prefetch_at(sample[2], (run * (sample[4] + REST)) >> _FIVE64)


# -- packed ------------------------------------------------------------------------------


DAMAGED = -1
_PLACES = 32
"""Maximum number of places in a run."""
RUN_BITS = 13
"""Bits of a run without its first node."""
_MOST, _ZERO8 = np.int64(_PLACES), np.uint8(0)


@helper
def _run_end(member: Any, joined: Any, at: Any) -> Any:
    end = at + 1
    size = min(np.int64(member.size), at + _MOST)
    if end < size and joined[end] != _ZERO8:
        label = joined[end]
        while end < size and joined[end] == label and member[end] == member[at] + (end - at):
            end += 1
    return end


@helper
def _alone_end(met: Any, at: Any) -> Any:
    """Return the end of the run that begins at ``at``, of nodes that meet no other node."""
    end = at + 1
    size = min(np.int64(met.size), at + _MOST)
    while end < size and met[end] == _ZERO8:
        end += 1
    return end


@kernel
def count_runs(member: U32s, joined: U8s, met: OutU8s) -> I64:
    """Count the runs; set ``met`` uint8[nodes] for members."""
    met[:] = _ZERO8
    count, at = 0, 0
    while at < member.size:
        end = _run_end(member, joined, at)
        for place in range(at, end):
            met[member[place]] = np.uint8(1)
        at, count = end, count + 1
    at = 0
    while at < met.size:
        if met[at] != _ZERO8:
            at += 1
            continue
        at, count = _alone_end(met, at), count + 1
    return count


@helper
def _put(words: Any, bit: Any, value: Any, bits: Any) -> None:
    """Write at most 58 ``bits`` of ``value`` into words that are 0 there."""
    while bits > _ZERO64:
        word, shift = bit >> _FIVE64, bit & _LOW5
        some = min(bits, _WORD - shift)
        part = (value & ((_ONE64 << some) - _ONE64)) << shift
        words[word] |= np.uint32(part)
        value, bit, bits = value >> some, bit + some, bits - some


@helper
def _begin(directory: Any, node: Any) -> None:
    at = (node >> _SIX64) * _THREE64 + _ONE64 + ((node & _LOW6) >> _FIVE64)
    directory[at] |= np.uint32(_ONE64 << (node & _LOW5))


@helper
def _place(directory: Any, node: Any) -> Any:
    """Return the rank of the run that begins with ``node``, in the order of first nodes."""
    block = (node >> _SIX64) * _THREE64
    count = np.uint64(directory[block])
    within = node & _LOW6
    low, high = np.uint64(directory[block + _ONE64]), np.uint64(directory[block + _TWO64])
    bits = (low | (high << _WORD)) & ((_ONE64 << within) - _ONE64)
    while bits != _ZERO64:
        bits &= bits - _ONE64
        count += _ONE64
    return count


@kernel
def pack(
    member: U32s,
    joined: U8s,
    met: U8s,
    bits: U64s,
    directory: OutU32s,
    order: OutU32s,
    runs: OutU32s,
    first: OutU32s,
) -> None:
    """Fill ``directory``, ``order`` and ``runs``, all uint32 and initially zero.

    ``member`` and ``joined`` are those of ``trees.lay_out``, ``met`` that of ``count_runs``;
    ``bits`` uint64[2] are the bits of a node and of a run number. ``first`` uint32[runs] is
    scratch.
    """
    node_bits, order_bits = bits[0], bits[1]
    size = node_bits + np.uint64(RUN_BITS)
    count, at = _ZERO64, 0
    while at < member.size:
        end = _run_end(member, joined, at)
        node = np.uint64(member[at])
        rest = np.uint64(joined[at + 1]) if end > at + 1 else _ZERO64
        value = np.uint64(end - at - 1) | (np.uint64(joined[at]) << _FIVE64) | (rest << _NINE64)
        _put(runs, count * size, node | (value << node_bits), size)
        _begin(directory, node)
        first[count] = np.uint32(node)
        at, count = end, count + _ONE64
    at = 0
    while at < met.size:
        if met[at] != _ZERO8:
            at += 1
            continue
        end = _alone_end(met, at)
        node = np.uint64(at)
        _put(runs, count * size, node | (np.uint64(end - at - 1) << node_bits), size)
        _begin(directory, node)
        first[count] = np.uint32(node)
        at, count = end, count + _ONE64
    begun = _ZERO64
    for block in range(directory.size // 3):
        directory[3 * block] = np.uint32(begun)
        for word in range(1, 3):
            left = directory[3 * block + word]
            while left != np.uint32(0):
                left &= np.uint32(left - np.uint32(1))
                begun += _ONE64
    _begin(directory, np.uint64(met.size))
    for run in range(count):
        at = _place(directory, np.uint64(first[run]))
        _put(order, at * order_bits, np.uint64(run), order_bits)


@kernel
def unpack(sample: U64s, member: OutU32s, joined: OutU8s) -> I64:
    """Unpack a sample's members and labels, as from ``trees.lay_out``: uint32 and uint8[nodes].
    Returns the number of members, or DAMAGED if the runs do not match the number of nodes.
    """
    nodes, size, members = np.uint64(member.size), _ZERO64, _ZERO64
    for run in range(sample[3]):
        first, rest = run_at(sample, np.uint64(run))
        count, label, inner = size_of(rest), label_of(rest), inner_of(rest)
        if size + count > nodes or first + count > nodes:
            return DAMAGED
        for step in range(count):
            member[size] = np.uint32(first + np.uint64(step))
            joined[size] = np.uint8(label if step == 0 else inner)
            if joined[size] != _ZERO8:
                members = size + _ONE64
            size += _ONE64
    return np.int64(members) if size == nodes else DAMAGED
