"""The arrays of a sample of min-hashes: groups or planes (``storage/FORMAT.md``).

Groups are the nodes with the same winner in a ring: the first node, in the sample's random order,
of those that reach a node in a given number of links. Planes (``bits``, the layout ``sketch``) hold
some bits of a hash of each winner, for blocks of 512 nodes.

Size: groups take 4 bytes per node, ring and sample for the cells, at most as much for members, and
8 for each group; less than 8 in all on webs. Planes take ``bits`` / 8: with ``bits`` 1 a sixtieth.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 and Algorithm 3; Li, Koenig 2010,
*b-bit minwise hashing*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cocite.constants import Words
from cocite.errors import ResourceError
from cocite.index.layouts.contract import PartPlan, SampledFormat, padded
from cocite.measures import LENGTH, SEED, PartSettings
from cocite.measures.xjaccard import BITS
from cocite.storage import evict

_MOST_WORDS = 2**32 - 1
BLOCK, PLANE = 512, 16
"""Nodes of a block of planes, and words of a plane."""


def minhash_words(nodes: int, length: int, members: int) -> int:
    """Return the number of 32-bit words of a blob of groups."""
    return padded(nodes * length + members)


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
        """Return True for groups, which store their winners; bits of hashes do not."""
        return not settings[BITS]

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of groups, or of planes, which have no members."""
        length, bits = settings[LENGTH], settings[BITS]
        planes = -(-nodes // BLOCK) * length * bits * PLANE
        return planes if bits else minhash_words(nodes, length, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where cells and groups begin, p, and the length; for planes, where they begin, the
        length, and the bits.
        """
        length, bits = settings[LENGTH], settings[BITS]
        return (base, length, bits) if bits else (base, base + nodes * length, members, length)

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which all groups are pairs, or of any sample with
        bits.
        """
        length = settings[LENGTH]
        return self.words(nodes, length * (nodes // 2 * 4 + nodes % 2), settings)


def ring_planes(part: PartPlan, sample: int, rings: Sequence[Words]) -> Words:
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
        evict(winners)
    return planes
