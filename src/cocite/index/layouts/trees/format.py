"""Where the arrays of a sample of walks lie: trees, packed, paths, compact (``storage/FORMAT.md``).

Bytes a node and sample: trees 8.5 at most; packed w + o + 13 bits a run and 1.5 bytes a node, 3.1
on cnr-2000 and 6.6 with its pages in any order, since a run is up to 32 nodes with ids one behind
the other; paths 9.5 and 4 for each point, about one a node on webs; compact 12, whatever the length
of walks. Packed trees are those of the layout trees, so every answer is the same, to the bit. In
paths a walk that has met a smaller one goes on as that one does, so each point is stored once.

Source: 001, section 2.1; paths: 000, section 2, Algorithm 1; compact: 000, section 3. Runs, and
that walks which met need storing once, are this project's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.index.layouts.contract import SampledFormat, padded
from cocite.measures import LENGTH, PartSettings


def tree_words(nodes: int, members: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(nodes + members + -(-members // 8))


def labels_at(words: NDArray[np.uint32], first: int, members: int) -> NDArray[np.uint8]:
    """Return the labels of a sample, uint8[members], which begin at word ``first``."""
    packed = words[first : first + -(-members // 8)].view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:members]


class TreesFormat(SampledFormat):
    """The layout ``trees``."""

    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True for all samples."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return tree_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where position, member and label begin, and p."""
        return base, base + nodes, base + nodes + members, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which every node meets another."""
        return tree_words(nodes, nodes)


WIDTH = 6
"""Numbers that locate a sample."""
_RUN = 13
"""Bits of a run beside its first node."""
_BEHIND = 2
"""Words after the last run, as runs are read in words of 64 bits."""


def bits_of(count: int) -> int:
    """Return the bits of the numbers below ``count``."""
    return max(1, (count - 1).bit_length())


def parts_of(nodes: int, runs: int) -> tuple[int, int, int]:
    """Return the words of the directory, the order and the runs of a sample."""
    order, size = runs * bits_of(runs), runs * (bits_of(nodes) + _RUN)
    return 3 * (nodes // 64 + 1), -(-order // 32), -(-size // 32)


def packed_words(nodes: int, runs: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(sum(parts_of(nodes, runs)) + _BEHIND)


class PackedFormat(SampledFormat):
    """The layout ``packed``."""

    carry_node = 19
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True for all samples."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return packed_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where directory, order and runs begin; r, w and o."""
        directory, order, _ = parts_of(nodes, members)
        begins = base, base + directory, base + directory + order
        return *begins, members, bits_of(nodes), bits_of(members)

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which every run is one node."""
        return packed_words(nodes, nodes)


_MOST_POINTS = 2**32 - 1


def check_points(sample: int, points: int) -> None:
    """Raise :class:`ResourceError` if paths have more points than can be numbered."""
    if points > _MOST_POINTS:
        raise ResourceError(
            f"sample {sample} has {points:,} points of walks; the layout paths holds "
            f"{_MOST_POINTS:,} at most. Choose a smaller length, or the layout trees"
        )


def eighths(nodes: int) -> int:
    """Return the words that hold four bits a node."""
    return -(-nodes // 8)


def path_words(nodes: int, points: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(2 * nodes + 3 * eighths(nodes) + points)


class PathsFormat(SampledFormat):
    """The layout ``paths``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return path_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where position, member and label begin; nodes; where steps, begin and point begin;
        and p. The first four are those of the layout trees.
        """
        words, label = eighths(nodes), base + 2 * nodes
        begins = label + words, label + 2 * words, label + 3 * words
        return base, base + nodes, label, nodes, *begins, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which no walks meet."""
        return path_words(nodes, nodes * settings[LENGTH])


def compact_words(nodes: int, members: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(2 * nodes + 1 + members)


class CompactFormat(SampledFormat):
    """The layout ``compact``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return compact_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where forward, begin and child begin, m, and the length of walks."""
        return base, base + nodes, base + 2 * nodes + 1, members, settings[LENGTH]

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words for a graph in which every node has an in-link."""
        return compact_words(nodes, nodes)
