"""Array formats of min-hash samples: groups or planes (``storage/FORMAT.md``).

A node's winner in a ring is the first node, in the sample's random order, that reaches the node in
a given number of links. Groups contain the nodes with the same winner in a ring. Planes (the layout
``sketch``) contain some ``bits`` of a hash of each winner, in blocks of 512 nodes.

Groups need 4 bytes per node, ring and sample for the cells, at most as much for members, and 8 per
group; less than 8 in total on webs. Planes need ``bits`` / 8, so a sixtieth with ``bits`` 1.
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
"""Nodes per block of planes, and words per plane."""


def minhash_words(nodes: int, length: int, members: int) -> int:
    """Return the size of a blob of groups in 32-bit words."""
    return padded(nodes * length + members)


def check_words(sample: int, words: int) -> None:
    """Raise :class:`ResourceError` if groups have more words than uint32 can number."""
    if words > _MOST_WORDS:
        raise ResourceError(
            f"the groups of sample {sample} need {words:,} words; the layout minhash can store at "
            f"most {_MOST_WORDS:,}. Choose a smaller length, or the layout sketch"
        )


class MinhashFormat(SampledFormat):
    """The layouts ``minhash`` (``bits`` 0: groups) and ``sketch`` (planes)."""

    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True for groups, which store their winners, and False for planes."""
        return not settings[BITS]

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the size of groups or planes; planes have no members."""
        length, bits = settings[LENGTH], settings[BITS]
        planes = -(-nodes // BLOCK) * length * bits * PLANE
        return planes if bits else minhash_words(nodes, length, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the offsets of cells and groups, the member count, and the length; for planes, the
        offset, the length, and ``bits``.
        """
        length, bits = settings[LENGTH], settings[BITS]
        return (base, length, bits) if bits else (base, base + nodes * length, members, length)

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the size of planes, or of a sample in which all groups are pairs."""
        length = settings[LENGTH]
        return self.words(nodes, length * (nodes // 2 * 4 + nodes % 2), settings)


def ring_planes(part: PartPlan, sample: int, rings: Sequence[Words]) -> Words:
    """Return uint32[blocks of 512 nodes, length, bits, 16]: hash bits of the winners in ``rings``,
    each uint32[nodes].
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
