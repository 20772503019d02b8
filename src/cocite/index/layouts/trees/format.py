"""The packed layout: the fingerprint trees of a sample as runs of nodes, in few bits.

    directory[3 (n // 64 + 1)]   for 64 nodes each: how many runs begin before them, and two words
                                 with a bit for each node that begins a run, low first
    order[ceil(r o / 32)]        for each run, by its first node, its number: o bits each
    runs[ceil(r (w + 13) / 32)]  the runs in dendrogram order, behind them those that met nobody:
                                 first node (w bits), places - 1 (5), label of the first place (4),
                                 label of the others (4)
    padding                      zeros, two words at least, to a multiple of 16 (a cache line)

r, the *members* of a sample, is the number of its runs; w are the bits of n - 1, o those of r - 1,
one at least. Numbers are packed from the lowest bit of the first word on, and go across words.

A run is up to 32 nodes with ids one behind the other that stand next to each other in dendrogram
order, joined by one label but for the first, which has its own: 0 where a tree begins. The label of
others is 0 where there are none. Nodes that met nobody are in runs of both labels 0, by ascending
ids. No run could be joined to the one behind it. Where pages are numbered by their URLs a run has
two nodes, and five in large trees.

Trees and their order are those of the layout ``trees``, so every answer is the same, to the bit.

Size: w + o + 13 bits a run and 1.5 a node: 3.1 bytes a node and sample of cnr-2000, and 6.6 with
its pages in any order, where trees have 8.5; up to 10 where there are billions. Memory to make one:
28 bytes a node, and the sample.

The trees layout: the fingerprint trees of a sample in dendrogram order.

    position[nodes]          where each node stands, 2**32 - 1 if it met nobody
    member[p]                the nodes in dendrogram order, tree behind tree
    label[ceil(p / 8)]       the labels, eight half-bytes to a word, low first
    padding                  zeros, to a multiple of 16 words (a cache line)

p, the members, is the number of nodes that met another one.

Size: 8.5 bytes a node and sample at most. Memory to make one: 26.5 bytes a node, and 8.5 for each
that waits to be written; ``index/layouts/trees/assemble.py`` makes the same in less.

The paths layout: fingerprint trees, and the points of all walks.

    position[nodes]          where each node stands: those that met one as in the layout trees,
                             the others behind them
    member[nodes]            the nodes in that order
    label[ceil(n / 8)]       the labels, eight half-bytes to a word, low first
    steps[ceil(n / 8)]       how many points of its walk are the node's own, packed likewise
    begin[ceil(n / 8)]       where the own points of every eighth place begin
    point[p]                 the own points, place after place, those of a walk in order of steps
    padding                  zeros, to a multiple of 16 words (a cache line)

A walk that has met a smaller one goes on as that one does, so only the points before the meeting
are its own. p, the members, is the number of them all: one for each step of a walk that is still
alone or the smallest of its group behind that step.

Size: 9.5 bytes a node and sample and 4 for each of p; p is about 1 a node on webs, 2 on dense
graphs, where whole paths would be ``length`` a node. Memory to make one: 30 bytes a node, and 12
for each node and step at most, where no walks meet.
Source: 000, section 2, Algorithm 1; that walks which met need storing once is this project's.

The compact layout: one in-link a node, taken at every step, forwards and backwards.

    forward[nodes]       the node that a walk at each node steps to, 2**32 - 1 if it ends there
    begin[nodes + 1]     where each node's children, the nodes that step to it, begin
    child[m]             the children, ascending
    padding              zeros, to a multiple of 16 words (a cache line)

m, the members, is the number of nodes that have an in-link.

Size: 12 bytes a node and sample, whatever the length of walks, which are all there whole. The trees
layout holds the same meetings in 8.5, but not where the walks went. Memory to make one: 28 bytes a
node, with the blob before it.
Source: 000, section 3 (IndexIn, IndexOut).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.index.layouts.contract import SampledFormat, padded
from cocite.measures import LENGTH, PartSettings


def tree_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(nodes + members + -(-members // 8))


def labels_at(words: NDArray[np.uint32], first: int, members: int) -> NDArray[np.uint8]:
    """uint8[members]: the labels of a sample, which begin at word ``first``."""
    packed = words[first : first + -(-members // 8)].view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:members]


class TreesFormat(SampledFormat):
    """The layout ``trees``."""

    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Any sample."""
        return True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 4]: where position, member and label begin, and p."""
        blobs = np.empty((len(members), 4), np.uint64)
        base = 0
        for sample, count in enumerate(members):
            blobs[sample] = base, base + nodes, base + nodes + count, count
            base += tree_words(nodes, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which every node meets another."""
        return tree_words(nodes, nodes)


# -- format ------------------------------------------------------------------------------


WIDTH = 6
"""Numbers that say where a sample lies."""
_RUN = 13
"""Bits of a run beside its first node."""
_BEHIND = 2
"""Words behind the last run, as runs are read by words of 64 bits."""


def bits_of(count: int) -> int:
    """Bits of the numbers below ``count``."""
    return max(1, (count - 1).bit_length())


def parts_of(nodes: int, runs: int) -> tuple[int, int, int]:
    """Words of the directory, the order and the runs of a sample."""
    order, size = runs * bits_of(runs), runs * (bits_of(nodes) + _RUN)
    return 3 * (nodes // 64 + 1), -(-order // 32), -(-size // 32)


def packed_words(nodes: int, runs: int) -> int:
    """32-bit words of a blob."""
    return padded(sum(parts_of(nodes, runs)) + _BEHIND)


class PackedFormat(SampledFormat):
    """The layout ``packed``."""

    carry_node = 19
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Any sample."""
        return True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 6]: where directory, order and runs begin; r, w and o."""
        blobs = np.empty((len(members), WIDTH), np.uint64)
        base = 0
        for sample, runs in enumerate(members):
            directory, order, _ = parts_of(nodes, runs)
            blobs[sample, :3] = base, base + directory, base + directory + order
            blobs[sample, 3:] = runs, bits_of(nodes), bits_of(runs)
            base += packed_words(nodes, runs)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which every run is one node."""
        return packed_words(nodes, nodes)


# -- format ------------------------------------------------------------------------------


def _eighths(nodes: int) -> int:
    return -(-nodes // 8)


def path_words(nodes: int, points: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 3 * _eighths(nodes) + points)


class PathsFormat(SampledFormat):
    """The layout ``paths``."""

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 8]: where position, member and label begin; nodes; where steps, begin and
        point begin; and p. The first four are those of the layout trees.
        """
        blobs = np.empty((len(members), 8), np.uint64)
        base, eighths = 0, _eighths(nodes)
        for sample, points in enumerate(members):
            label = base + 2 * nodes
            blobs[sample, :4] = base, base + nodes, label, nodes
            blobs[sample, 4:7] = label + eighths, label + 2 * eighths, label + 3 * eighths
            blobs[sample, 7] = points
            base += path_words(nodes, points)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which no walks meet."""
        return path_words(nodes, nodes * settings[LENGTH])


# -- format ------------------------------------------------------------------------------


def compact_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 1 + members)


class CompactFormat(SampledFormat):
    """The layout ``compact``."""

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 5]: where forward, begin and child begin, m, and the length of walks."""
        blobs = np.empty((len(members), 5), np.uint64)
        base, length = 0, settings[LENGTH]
        for sample, count in enumerate(members):
            blobs[sample] = base, base + nodes, base + 2 * nodes + 1, count, length
            base += compact_words(nodes, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a graph in which every node has an in-link."""
        return compact_words(nodes, nodes)
