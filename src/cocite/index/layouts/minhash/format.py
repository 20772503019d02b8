"""The minhash layout: for every ring of a sample the groups of nodes that share their winner.

    cell[nodes, length]      where the node's group begins in ``group``, ring after ring,
                             2**32 - 1 if it is alone in its group
    group[p]                 the groups, ring after ring: the winner, how many nodes, the nodes
    padding                  zeros, to a multiple of 16 words (a cache line)

p, the members, is the number of words of all groups. Groups of a ring are in order of their
winners, nodes in a group ascending. A node's winner in a ring is the node that is first, in the
sample's random order, among those from which it is reached in so many links at most; it is written
as 2**32 - 1 if that node is gone since (``index/refresh.py``).

Size: 4 bytes a node, ring and sample for the cells, at most as much for the members of groups, and
8 for each group; on webs less than 8 in all. Memory to make one: as much, and 4 bytes a node
(``index/layouts/minhash/build.py`` has the rest). Source: 001, section 2.3 and Algorithm 3; the
paper keeps the winners and an inverted list, the same two cells.

With ``bits`` (the layout ``sketch``) a sample has some bits of a hash of each winner, in planes.

    plane[ceil(nodes / 512), length, bits, 16]    32-bit words, block of 512 nodes after block

Bit i of word w of a plane belongs to node 32 w + i of its block; what is beyond the last node is 0.
The members of such a sample are its nodes, and say nothing more.

Size: ``bits`` / 8 bytes a node, ring and sample: with ``bits`` 1 a sixtieth of the layout minhash.
There are no lists: asking for related nodes reads all of it.
Source: Li, Koenig 2010, *b-bit minwise hashing*; ``kernels/minhash_bits.py`` says how it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.index.layouts.contract import PartPlan, SampledFormat, padded
from cocite.measures import LENGTH, SEED, PartSettings
from cocite.measures.xjaccard import BITS

_MOST_WORDS = 2**32 - 1
BLOCK, PLANE = 512, 16
"""Nodes of a block of planes, and words of a plane."""


def minhash_words(nodes: int, length: int, members: int) -> int:
    """Return how many 32-bit words a blob of groups has."""
    return padded(nodes * length + members)


def plane_words(nodes: int, length: int, bits: int) -> int:
    """Return how many 32-bit words a blob of planes has."""
    return -(-nodes // BLOCK) * length * bits * PLANE


def check_words(sample: int, words: int) -> None:
    """Raise :class:`ResourceError` if groups take more words than can be numbered."""
    if words > _MOST_WORDS:
        raise ResourceError(
            f"the groups of sample {sample} take {words:,} words; the layout minhash holds "
            f"{_MOST_WORDS:,} at most. Choose a smaller length, or the layout sketch"
        )


class MinhashFormat(SampledFormat):
    """The layouts ``minhash`` (``bits`` 0: groups) and ``sketch`` (planes)."""

    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Groups hold their winners; bits of hashes do not."""
        return not settings[BITS]

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """Return uint64[samples, 4]: where cells and groups begin, p, and the length; of planes
        uint64[samples, 3]: where they begin, the length, and the bits.
        """
        base, length, bits = 0, settings[LENGTH], settings[BITS]
        blobs = np.empty((len(members), 3 if bits else 4), np.uint64)
        for sample, count in enumerate(members):
            if bits:
                blobs[sample] = base, length, bits
                base += plane_words(nodes, length, bits)
            else:
                blobs[sample] = base, base + nodes * length, count, length
                base += minhash_words(nodes, length, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which all groups are pairs, or of any with bits."""
        length, bits = settings[LENGTH], settings[BITS]
        if bits:
            return plane_words(nodes, length, bits)
        return minhash_words(nodes, length, length * (nodes // 2 * 4 + nodes % 2))


def ring_planes(
    part: PartPlan, sample: int, rings: Sequence[NDArray[np.uint32]]
) -> NDArray[np.uint32]:
    """Return uint32[groups of 512 nodes, length, bits, 16]: the winners of the rings of a sample,
    each uint32[nodes], cut to bits.
    """
    from cocite.kernels import minhash_bits, random

    bits, seed = part.settings[BITS], part.settings[SEED]
    planes = np.zeros((-(-rings[0].size // BLOCK), len(rings), bits, PLANE), np.uint32)
    for ring, winners in enumerate(rings):
        step = np.uint64(part.turn + ring + 1)
        key = random.draw_key(np.uint64(seed), np.uint64(sample), step)
        minhash_bits.sketch(winners, np.uint64(key), ring, planes)
    return planes
