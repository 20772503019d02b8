"""Keyed randomness: every random value is a function of what it decides.

    draw(seed, sample, step, node)  = mix(key + node * GOLDEN),  key = mix(seed, sample, step)
    order(seed, sample, step)       = a random bijection of {0, ..., 2**bits - 1}

``order`` is the random permutation of PSimRank (Fogaras, Racz, *Scaling link-based similarity
search*, section 2.2.1): four rounds of (key, odd multiplier, xor-shift) on words of at least 16
bits, with new keys for every (seed, sample, step). The papers suggest linear maps modulo a prime,
which are only pairwise independent, so argmins over a set would not be uniform. Because orders are
invertible, the argmin of a hub can be found by walking the order from its smallest place.

A draw costs two multiplications; a place in an order costs four, and vectorizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.kernels._kernel import helper, kernel, shared
from cocite.kernels._types import *

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)
_S13, _S16 = np.uint64(13), np.uint64(16)
_SCRAMBLE_A, _SCRAMBLE_B = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_ONE = np.uint64(1)

_ROUNDS = 4
ORDER_WORDS = 2 + 3 * _ROUNDS
"""uint32 words that describe an order: mask, shift, and for each round a key, an odd multiplier
and its inverse."""

_MASK, _SHIFT, _KEYS, _TIMES, _BACK = 0, 1, 2, 2 + _ROUNDS, 2 + 2 * _ROUNDS
_MIN_ORDER_BITS = 16


@helper
def mix(value: Any) -> Any:
    """Apply Splitmix64's finalizer (Steele, Lea, Flood 2014), a bijection of 64-bit words."""
    value = (value ^ (value >> _S30)) * _MIX_A
    value = (value ^ (value >> _S27)) * _MIX_B
    return value ^ (value >> _S31)


@shared
def scramble(node: U64) -> U64:
    """Hash a node by a bijection of 32-bit words (MurmurHash3's finalizer, Appleby 2011). Ties are
    ordered by this hash, because ids often follow topics, and would favor some of these.
    """
    word = ((node ^ (node >> _S16)) * _SCRAMBLE_A) & _LOW32
    word = ((word ^ (word >> _S13)) * _SCRAMBLE_B) & _LOW32
    return word ^ (word >> _S16)


@kernel
def draw_key(seed: U64, sample: U64, step: U64) -> U64:
    """Return the 64-bit key for all draws of one step of one sample."""
    key = mix(np.uint64(seed) + GOLDEN)
    key = mix(key ^ (np.uint64(sample) * GOLDEN + _ONE))
    return mix(key ^ (np.uint64(step) * GOLDEN + _ONE))


@shared
def draw(key: U64, node: U64) -> U64:
    """Return 64 random bits for ``node`` under ``key``."""
    return mix(key + np.uint64(node) * GOLDEN)


@shared
def pick(bits: U64, count: U64) -> U64:
    """Return a uniform integer below ``count`` from 64 random bits: the high word of bits * count.
    ``count`` must be below 2**32. The bias is below count / 2**64.
    """
    high = (bits >> _S32) * count
    low = ((bits & _LOW32) * count) >> _S32
    return (high + low) >> _S32


@helper
def _inverse_odd(value: Any) -> Any:
    """Return the inverse of an odd integer modulo 2**32, by Newton's iteration."""
    inverse = np.uint32(value)
    for _ in range(4):
        inverse = np.uint32(inverse * np.uint32(np.uint32(2) - np.uint32(value * inverse)))
    return inverse


@kernel
def make_order(key: U64, bits: U64, out: OutU32s) -> None:
    """Fill ``out`` (uint32[ORDER_WORDS]) with the order of ``key`` on words of ``bits`` bits."""
    mask = np.uint32((_ONE << np.uint64(bits)) - _ONE)
    out[_MASK] = mask
    out[_SHIFT] = np.uint32((bits + 1) // 2)
    for i in range(_ROUNDS):
        word = draw(key, np.uint64(i))
        out[_KEYS + i] = np.uint32(word) & mask
        out[_TIMES + i] = np.uint32(word >> _S32) | np.uint32(1)
        out[_BACK + i] = _inverse_odd(out[_TIMES + i])


@shared
def place_of(order: U32s, node: U32) -> U32:
    """Return the unique place of ``node`` in the order (uint32)."""
    mask, shift = order[_MASK], order[_SHIFT]
    value = np.uint32((np.uint32(node) ^ order[_KEYS]) * order[_TIMES]) & mask
    for i in range(1, _ROUNDS):
        value = np.uint32(value ^ (value >> shift))
        value = np.uint32((value ^ order[_KEYS + i]) * order[_TIMES + i]) & mask
    return np.uint32(value)


@shared
def node_at(order: U32s, place: U32) -> U32:
    """Return the word at ``place``, the inverse of ``place_of``. May exceed the largest node id."""
    mask, shift = order[_MASK], order[_SHIFT]
    value = np.uint32(place)
    for i in range(_ROUNDS - 1, 0, -1):
        value = np.uint32(np.uint32(value * order[_BACK + i]) & mask) ^ order[_KEYS + i]
        value = np.uint32(value ^ (value >> shift))
    return np.uint32(np.uint32(np.uint32(value * order[_BACK]) & mask) ^ order[_KEYS])


def order_bits(nodes: int) -> int:
    """Return the width in bits of the words that an order of ``nodes`` nodes permutes; 16 or more.

    Fewer bits have too few orders for uniform argmins on small graphs; more bits lengthen the
    search from the smallest place.
    """
    return max(_MIN_ORDER_BITS, int(nodes - 1).bit_length())


def empty_order() -> NDArray[np.uint32]:
    """Allocate one order."""
    return np.zeros(ORDER_WORDS, np.uint32)


@kernel
def draw_steps(
    seed: U64, sample: U64, turn: U64, bits: U64, keys: OutU64s, orders: OutU32s2
) -> None:
    """Fill ``keys`` for steps ``turn`` + 1, ``turn`` + 2, ..., and ``orders`` for the first."""
    for i in range(keys.size):
        keys[i] = draw_key(seed, sample, turn + np.uint64(i + 1))
    for i in range(orders.shape[0]):
        make_order(keys[i], bits, orders[i])


@kernel
def pair_keys(seed: U64, pairs: U64s, out: OutU64s) -> None:
    """Write 64 random bits to ``out`` for each of ``pairs`` (uint64: smaller id * 2**32 + larger
    id). A link and its reverse are one pair, so they get the same bits.
    """
    key = draw_key(seed, np.uint64(0), np.uint64(0))
    for i in range(pairs.size):
        out[i] = draw(key, pairs[i])
